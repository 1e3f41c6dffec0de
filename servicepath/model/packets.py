"""Captured packets, decoded as far as a conclusion needs: outer header, VXLAN, inner header, DNS."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable

from .addresses import IPAddress, Socket


@dataclasses.dataclass(frozen=True, slots=True)
class Header:
    """An IP and transport header. ``length`` is the IP packet's total length in bytes; ports are None for later fragments.

    ``fragment_offset`` is in bytes; ``icmp`` is (type, code) of ICMP or ICMPv6. IPv6 counts as "don't fragment".
    """

    source: IPAddress
    destination: IPAddress
    protocol: str
    sport: int | None
    dport: int | None
    length: int
    tcp_flags: str | None = None
    dont_fragment: bool = False
    more_fragments: bool = False
    fragment_offset: int = 0
    icmp: tuple[int, int] | None = None

    def __str__(self) -> str:
        """``10.42.0.161:40123 → 10.42.1.113:53/UDP``."""
        if self.sport is None or self.dport is None:
            return f"{self.source} → {self.destination}/{self.protocol}"
        return f"{Socket(self.source, self.sport)} → {Socket(self.destination, self.dport)}/{self.protocol}"


@dataclasses.dataclass(frozen=True, slots=True)
class Packet:
    """One captured packet.

    Attributes:
        interface: where it was captured.
        time: Unix time of the capture, seconds.
        outer: the header on the wire; of a packet that is not encapsulated, its only header.
        vni: VXLAN network identifier; None when not encapsulated.
        inner: the header inside VXLAN; None when not encapsulated.
        dns_id: id of the DNS message carried (UDP, or the first of a TCP segment), else None.
        dns_response: True for an answer, False for a question, None when there is no DNS message.
        question: ``kubernetes.default.svc.cluster.local. A``, else None.
        payload_length: bytes behind the innermost transport header.
        truncated: the capture holds less than was on the wire.
        outer_checksum_ok: the outer UDP checksum; None when there is none to judge. Wrong at the receiver, the kernel drops the
            packet; at the sender it only means that the network card is to put it in (offload), and says nothing.
    """

    interface: str
    time: float
    outer: Header
    vni: int | None
    inner: Header | None
    dns_id: int | None
    dns_response: bool | None
    question: str | None
    payload_length: int
    truncated: bool = False
    outer_checksum_ok: bool | None = None

    def __str__(self) -> str:
        """One line: when, where, outer header, VXLAN and inner header, what DNS said; lengths in bytes."""
        at = datetime.datetime.fromtimestamp(self.time, datetime.UTC).strftime("%H:%M:%S.%f")
        parts = [f"{at} {self.interface}: {self.outer} {self.outer.length} B"]
        if self.vni is not None:
            parts.append(f"VXLAN VNI {self.vni}: {self.inner} {self.inner.length} B" if self.inner else f"VXLAN VNI {self.vni}")
        if self.dns_id is not None:
            parts.append(f"DNS {'answer' if self.dns_response else 'question'} {self.dns_id:#06x} {self.question or ''}".rstrip())
        if self.truncated:
            parts.append("cut off by the capture")
        return " | ".join(parts)

    @property
    def innermost(self) -> Header:
        """The header of the Service's own packet: inside VXLAN where there is one."""
        return self.inner or self.outer

    @property
    def is_vxlan(self) -> bool:
        """True when it is encapsulated, whatever it carries."""
        return self.vni is not None

    def carries(self, ip: IPAddress) -> bool:
        """True when the address is the source or destination of the outer or the inner header."""
        headers = (self.outer, self.inner) if self.inner else (self.outer,)
        return any(ip in (header.source, header.destination) for header in headers)


@dataclasses.dataclass(frozen=True, slots=True)
class Capture:
    """What tcpdump wrote on one interface, and whether it is whole.

    ``complete`` is True when tcpdump said that the kernel dropped nothing and it wrote all that passed its filter.
    """

    interface: str
    filter: str
    packets: tuple[Packet, ...]
    complete: bool
    problem: str | None = None


def questions(packets: Iterable[Packet]) -> tuple[Packet, ...]:
    """The packets with a DNS question."""
    return tuple(p for p in packets if p.dns_response is False)


def answers(packets: Iterable[Packet]) -> tuple[Packet, ...]:
    """The packets with a DNS answer."""
    return tuple(p for p in packets if p.dns_response is True)
