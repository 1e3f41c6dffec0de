"""DNS messages and questions with neutral labels, byte for byte of the same length: so all lengths and counts stay what they were.

A label becomes other letters and digits, each letter as large or small as it was: by that the suite tells its queries apart. Addresses
in answers are mapped. What is no name and no address (TXT, cookies, unknown records) becomes zeros.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import struct

from .addresses import AddressMap

# Labels that every cluster asks for, and the ends of names that are everybody's.
KEPT = frozenset(
    b"kubernetes default kube-dns kube-system svc pod cluster local localhost arpa in-addr ip6 com net org io dev ns dns hostmaster "
    b"example invalid test".split()
)
_HEADER = 12
_NAMES = {2: 0, 5: 0, 12: 0, 39: 0, 15: 2, 33: 6}  # NS, CNAME, PTR, DNAME, MX, SRV → bytes before the name
_SOA, _A, _AAAA = 6, 1, 28
_LETTERS, _DIGITS = b"abcdefghijklmnopqrstuvwxyz", b"0123456789"


class DnsMap:
    """The map of labels, and of whole messages."""

    def __init__(self, key: bytes, addresses: AddressMap) -> None:
        self._key = key
        self._addresses = addresses

    def question(self, text: str) -> str:
        """``kubernetes.default.svc.cluster.local. A``, as the suite writes it: name and type."""
        name, space, kind = text.rpartition(" ")
        return f"{self.name(name)}{space}{kind}" if space else self.name(text)

    def name(self, text: str) -> str:
        """A name, with or without the dot at its end."""
        return re.sub(r"(?:[^.\\]|\\.)+", lambda label: self.label(label[0].encode()).decode("latin-1"), text)

    def label(self, label: bytes) -> bytes:
        """A label's counterpart of the same length."""
        low = label.lower()
        if low in KEPT:
            return label
        stream = hashlib.shake_128(self._key + low).digest(len(label))
        return bytes(_other(byte, chance) for byte, chance in zip(label, stream, strict=True))

    def message(self, message: bytes) -> bytes:
        """A message's counterpart, as far as it is there; from where it cannot be read on come zeros."""
        found = bytearray(message)
        end = self._records(found) if len(found) >= _HEADER else len(found)
        found[end:] = bytes(len(found) - end)
        return bytes(found)

    def _records(self, found: bytearray) -> int:
        """Rewrite what is behind the header; where it ends."""
        questions, *records = struct.unpack_from("!4H", found, 4)
        at = _HEADER
        for _ in range(questions):
            at = self._labels(found, at) + 4
        for _ in range(sum(records)):
            at = self._labels(found, at)
            if at + 10 > len(found):
                break
            kind, length = struct.unpack_from("!H6xH", found, at)
            at += 10
            self._data(found, at, kind, min(at + length, len(found)))
            at += length
        return min(at, len(found))

    def _labels(self, found: bytearray, at: int) -> int:
        """Rewrite a name; where it ends."""
        while at < len(found) and found[at]:
            length = found[at]
            if length & 0xC0:  # points to a name that stands, and is rewritten, before
                return at + 2
            found[at + 1 : at + 1 + length] = self.label(bytes(found[at + 1 : at + 1 + length]))
            at += length + 1
        return at + 1

    def _data(self, found: bytearray, at: int, kind: int, end: int) -> None:
        if (kind == _A and end - at == 4) or (kind == _AAAA and end - at == 16):
            found[at:end] = self._addresses.ip(ipaddress.ip_address(bytes(found[at:end]))).packed
        elif kind in _NAMES and end - at > _NAMES[kind]:
            self._labels(found, at + _NAMES[kind])
        elif kind == _SOA:
            self._labels(found, self._labels(found, at))
        else:
            found[at:end] = bytes(max(end - at, 0))


def _other(byte: int, chance: int) -> int:
    if byte in _DIGITS:
        return _DIGITS[chance % 10]
    if bytes((byte,)).isalpha():
        letter = _LETTERS[chance % 26]
        return letter - 32 if bytes((byte,)).isupper() else letter
    return byte if byte in b"-_" else ord("x")
