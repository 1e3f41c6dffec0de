"""Reads captured packets as far as a conclusion needs: outer header, VXLAN, inner header, DNS question.

Input is what ``tcpdump -w`` writes, from an Ethernet device, from ``any`` (Linux cooked, both versions), or raw IP. What it shows,
in tcpdump's own words, of a Pod's query on the underlay::

    IP 192.168.55.10.40123 > 192.168.55.11.8472: OTV, flags [I] (0x08), overlay 0, instance 12345
    IP 10.42.0.161.43210 > 10.42.1.113.53: 4660+ A? kubernetes.default.svc.cluster.local. (54)

A capture can hold a million packets of which twenty matter. So ``wanted`` takes a first look at the bytes, and only what it lets
through is dissected, layer by layer, with scapy.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable

from ..model.addresses import IPAddress
from ..model.packets import Header, Packet
from . import dissect
from .dns_question import DnsMessage, read_dns
from .errors import ParseError
from .pcap_file import TOOL, Record, records

_DNS_PORTS = (53, 5353)


def mentions(addresses: Iterable[IPAddress], numbers: Iterable[int] = ()) -> Callable[[bytes], bool]:
    """Make a first look for ``parse_pcap``: frames that hold one of the addresses, anywhere, and one of the 16-bit numbers.

    Args:
        addresses: sought as bytes, so outer, inner and quoted headers count alike; a chance hit does no harm.
        numbers: ports or DNS ids; none: any will do. Later IP fragments hold neither: seek them by address alone.
    """
    # One regular expression finds any of twenty words in 0.2 µs; looking for one after the other takes 9.
    address = _any_of(address.packed for address in addresses)
    number = _any_of(struct.pack("!H", number) for number in numbers)
    if address is None:
        raise ValueError("a first look needs an address")
    if number is None:
        return lambda frame: address(frame) is not None
    return lambda frame: address(frame) is not None and number(frame) is not None


def _any_of(words: Iterable[bytes]) -> Callable[[bytes], re.Match[bytes] | None] | None:
    pattern = b"|".join(sorted(re.escape(word) for word in set(words)))
    return re.compile(pattern, re.DOTALL).search if pattern else None


def parse_pcap(
    data: bytes, *, interface: str, vxlan_port: int = 8472, wanted: Callable[[bytes], bool] | None = None
) -> tuple[Packet, ...]:
    """Read the IP packets of a capture.

    Args:
        data: the whole pcap or pcapng file.
        interface: where it was captured; put into each packet.
        vxlan_port: UDP destination port that carries VXLAN (Cilium and Flannel: 8472; IANA's: 4789).
        wanted: told a frame's bytes, says whether to dissect it; None dissects all (some thousands a second).

    Returns:
        The packets in the capture's order. What is not IP is left out.

    Raises:
        ParseError: for a file that is no capture or is cut off, an unknown link type, or a snap length too short for the outer or
            the inner header.
    """
    packets = []
    for record in records(data):
        if wanted is None or wanted(record.frame):
            packet = _packet(record, interface, vxlan_port)
            if packet:
                packets.append(packet)
    return tuple(packets)


def _packet(record: Record, interface: str, vxlan_port: int) -> Packet | None:
    cut = len(record.frame) < record.wire_length
    link = dissect.link(record.frame, record.linktype)
    if link is None:
        raise ParseError(TOOL, record.number, f"link type {record.linktype}", "Ethernet, Linux cooked or raw IP")
    outer = _datagram(record, link)
    if outer is None:
        return None
    tunnel = outer.header.protocol == "UDP" and outer.header.dport == vxlan_port
    vxlan = dissect.vxlan(outer) if tunnel else None
    if tunnel and cut and len(outer.payload) < dissect.VXLAN_LENGTH <= outer.payload_length:
        raise _too_short(record)
    inner = _datagram(record, vxlan.inner) if vxlan else None
    carried = inner or outer
    message = _dns(carried.header, carried.payload) if carried is inner or not vxlan else None
    return Packet(
        interface=interface,
        time=record.time,
        outer=outer.header,
        vni=vxlan.vni if vxlan else None,
        inner=inner.header if inner else None,
        dns_id=message.dns_id if message else None,
        dns_response=message.response if message else None,
        question=message.question if message else None,
        payload_length=carried.payload_length,
        truncated=cut,
        outer_checksum_ok=None if cut else outer.checksum_ok,
    )


def _datagram(record: Record, link: dissect.Link) -> dissect.Datagram | None:
    """The IP packet in a frame, the outer or the inner one; None for what is none."""
    missing = max(record.wire_length - len(record.frame), 0)
    found = dissect.ip(link, missing)
    if missing and (link.may_be_ip if found is None else not found.whole_headers):
        raise _too_short(record)
    return found


def _too_short(record: Record) -> ParseError:
    return ParseError(TOOL, record.number, f"{len(record.frame)} bytes kept", "whole headers (tcpdump -s 0)")


def _dns(header: Header, payload: bytes) -> DnsMessage | None:
    """The DNS message of a UDP datagram, or the first one of a TCP segment, behind its length (RFC 1035, section 4.2.2)."""
    certain = header.sport in _DNS_PORTS or header.dport in _DNS_PORTS
    if header.protocol == "UDP" and header.sport is not None:
        return read_dns(payload, certain=certain)
    if header.protocol != "TCP" or len(payload) < 2:
        return None
    (length,) = struct.unpack_from("!H", payload)
    # A segment in the middle of a long answer starts anywhere, so on TCP the port alone proves nothing.
    return read_dns(payload[2 : 2 + length], certain=False)
