"""Reads the id and the question of a DNS message, and nothing else of it (RFC 1035, sections 4.1.1 and 4.1.2).

Twelve bytes of header (id, flags, four counts), then the question: labels, each with its length before it, ended by a zero byte,
then type and class::

    1234 0100 0001 0000 0000 0000  07 "example" 03 "com" 00  0001 0001      →  0x1234, a question, "example.com. A"
"""

from __future__ import annotations

import dataclasses
import struct

_HEADER = struct.Struct("!6H")
_TYPES = {1: "A", 2: "NS", 5: "CNAME", 6: "SOA", 12: "PTR", 15: "MX", 16: "TXT", 28: "AAAA", 33: "SRV", 65: "HTTPS", 255: "ANY"}
_CLASSES = (1, 3, 4, 254, 255)
_RESPONSE = 0x8000
_HIGHEST_OPCODE = 6


@dataclasses.dataclass(frozen=True, slots=True)
class DnsMessage:
    """``question`` is ``example.com. A``; None when the message has none or is cut off in it."""

    dns_id: int
    response: bool
    question: str | None


def read_dns(message: bytes, *, certain: bool) -> DnsMessage | None:
    """Read a DNS message.

    Args:
        message: without the length that stands before it on TCP.
        certain: the port says that this is DNS, so that a cut-off message counts; otherwise only bytes that can be nothing else
            do: one question of a known class, and no answers to a question.

    Returns:
        None for what is no DNS message.
    """
    if len(message) < _HEADER.size:
        return None
    dns_id, flags, questions, answers, _, _ = _HEADER.unpack_from(message)
    response = bool(flags & _RESPONSE)
    plausible = (flags >> 11 & 15) <= _HIGHEST_OPCODE and questions == 1 and (response or answers == 0)
    question = _question(message) if plausible else None
    if question is None and not certain:
        return None
    return DnsMessage(dns_id, response, question)


def _question(message: bytes) -> str | None:
    """The text of the first question; None when it is cut off or cannot be one."""
    labels: list[str] = []
    at = _HEADER.size
    while at < len(message) and message[at]:
        length = message[at]
        if length > 63 or at + length >= len(message):  # a question's own name is never compressed
            return None
        labels.append("".join(_character(byte) for byte in message[at + 1 : at + 1 + length]))
        at += length + 1
    if at + 5 > len(message):
        return None
    kind, of_class = struct.unpack_from("!2H", message, at + 1)
    # The top bit of the class is multicast DNS' own (RFC 6762).
    if of_class & 0x7FFF not in _CLASSES:
        return None
    return f"{'.'.join(labels)}. {_TYPES.get(kind, f'TYPE{kind}')}"


def _character(byte: int) -> str:
    """A byte of a label as zone files write it (RFC 1035, section 5.1)."""
    if byte in b".\\":
        return f"\\{chr(byte)}"
    return chr(byte) if 0x21 <= byte <= 0x7E else f"\\{byte:03d}"
