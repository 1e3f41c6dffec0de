"""Captured packets, decoded as far as a conclusion needs: outer header, VXLAN, inner header, DNS."""

from __future__ import annotations

import dataclasses

from .addresses import IPAddress, Socket


@dataclasses.dataclass(frozen=True, slots=True)
class Header:
    """An IP and transport header. ``length`` is the IP packet's total length in bytes; ports are None for later fragments."""

    source: IPAddress
    destination: IPAddress
    protocol: str
    sport: int | None
    dport: int | None
    length: int
    tcp_flags: str | None = None
    dont_fragment: bool = False
    more_fragments: bool = False

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

    @property
    def innermost(self) -> Header:
        """The header of the Service's own packet: inside VXLAN where there is one."""
        return self.inner or self.outer


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
