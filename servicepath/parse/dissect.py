"""Takes one captured frame apart with scapy's layers, one layer at a time: link, IPv4 or IPv6, UDP/TCP/ICMP, VXLAN.

Ethernet (with VLAN tags), then for example::

    45 00 00 69 …  c0 a8 37 0a  c0 a8 37 0b │ 9c bb 21 18 00 55 … │ 08 00 00 00 00 30 39 00 │ Ethernet, IP, UDP, DNS
    IPv4, 192.168.55.10 → 192.168.55.11       UDP 40123 → 8472      VXLAN, VNI 12345

Scapy is not left to dissect a whole packet by itself: it would guess what a port carries by whatever modules happen to be loaded,
and the port of the tunnel is ours to say. Wrong checksums are no reason to leave a packet out: a sender's network card puts them
in behind the capture.
"""

from __future__ import annotations

import dataclasses
import functools
import ipaddress
import struct
from types import SimpleNamespace
from typing import Any

from ..model.addresses import IPAddress
from ..model.packets import Header

VXLAN_LENGTH, _VNI_IS_VALID = 8, 0x08  # bytes of its header; the flag I of RFC 7348
_IPV4, _IPV6, _NO_IP = 0x0800, 0x86DD, 0
_VLAN = (0x8100, 0x88A8, 0x9100)
_PROTOCOLS = {1: "ICMP", 6: "TCP", 17: "UDP", 47: "GRE", 50: "ESP", 58: "ICMPv6", 132: "SCTP"}
_FRAGMENT, _AUTHENTICATION, _EXTENSIONS = 44, 51, (0, 43, 60)
_LONGEST = 65535  # bytes that an IPv6 header's length field can tell (RFC 2675)
# The bytes of a transport header that are read.
_READ = {"UDP": 8, "SCTP": 8, "TCP": 20, "ICMP": 8, "ICMPv6": 8}
# Link types of tcpdump.org: Ethernet; raw IP (and the numbers that BSD gives it); null and loop (four bytes of family before
# the IP header); Linux cooked v1 and v2.
_ETHERNET, _RAW, _NULL, _SLL, _SLL2 = 1, (12, 14, 101, 228, 229), (0, 108), 113, 276


@functools.cache
def _scapy() -> SimpleNamespace:
    """Scapy's layers, imported when first needed (0.3 s), without reading this machine's routes, which takes a third more."""
    from scapy.config import conf

    conf.route_autoload = conf.route6_autoload = False
    from scapy.layers import inet, inet6, l2

    return SimpleNamespace(
        Ether=l2.Ether, Dot1Q=l2.Dot1Q, CookedLinux=l2.CookedLinux, CookedLinuxV2=l2.CookedLinuxV2,
        IP=inet.IP, UDP=inet.UDP, TCP=inet.TCP, ICMP=inet.ICMP, IPv6=inet6.IPv6, Fragment=inet6.IPv6ExtHdrFragment,
    )  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class Link:
    """What a link layer carries: an EtherType and the bytes behind the header; no type and no bytes where that is cut off."""

    ethertype: int
    payload: bytes

    @property
    def may_be_ip(self) -> bool:
        """IPv4, IPv6, or cut off before its type; a VLAN tag is one that was too short to be taken off."""
        return self.ethertype in (_IPV4, _IPV6, *_VLAN) or (self.ethertype == _NO_IP and not self.payload)


@dataclasses.dataclass(frozen=True, slots=True)
class Datagram:
    """An IP packet taken apart.

    Attributes:
        payload: the captured bytes behind the transport header.
        payload_length: how many there were on the wire.
        checksum_ok: of a whole UDP datagram; None for anything else, or where no checksum is used.
        whole_headers: False where the capture ends before what the header's fields are read from.
    """

    header: Header
    payload: bytes
    payload_length: int
    checksum_ok: bool | None
    whole_headers: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Vxlan:
    """A VXLAN header (RFC 7348) and the Ethernet frame's content behind it."""

    vni: int
    inner: Link


@dataclasses.dataclass(frozen=True, slots=True)
class _Network:
    """An IP header, with all that the transport layer needs of it."""

    source: IPAddress
    destination: IPAddress
    number: int
    total: int
    body_length: int
    body: bytes
    offset: int
    more: bool
    dont: bool


def link(frame: bytes, linktype: int) -> Link | None:
    """Take the link layer off; None for a link type that is not known."""
    layers = _scapy()
    if linktype == _ETHERNET:
        return _ethernet(frame)
    if linktype in _RAW:
        return _raw(frame)
    if linktype in _NULL:
        return _raw(frame[4:])
    if linktype in (_SLL, _SLL2):
        layer = layers.CookedLinux() if linktype == _SLL else layers.CookedLinuxV2()
        if len(frame) < (16 if linktype == _SLL else 20):
            return Link(_NO_IP, b"")
        payload = layer.do_dissect(frame)
        return _untagged(layer.proto, payload)
    return None


def _ethernet(frame: bytes) -> Link:
    return _untagged(_ethertype(frame[:14]), frame[14:]) if len(frame) >= 14 else Link(_NO_IP, b"")


@functools.lru_cache(maxsize=1024)
def _ethertype(header: bytes) -> int:
    """Of an Ethernet header; remembered, since a capture holds few of them and a layer costs 50 µs."""
    layer = _scapy().Ether()
    layer.do_dissect(header)
    return int(layer.type)


def _untagged(ethertype: int, payload: bytes) -> Link:
    """Behind any VLAN tags."""
    while ethertype in _VLAN and len(payload) >= 4:
        tag = _scapy().Dot1Q()
        payload = tag.do_dissect(payload)
        ethertype = tag.type
    return Link(ethertype, payload)


def _raw(packet: bytes) -> Link:
    version = packet[0] >> 4 if packet else 0
    return Link({4: _IPV4, 6: _IPV6}.get(version, _NO_IP), packet)


def ip(found: Link, missing: int = 0) -> Datagram | None:
    """Take an IP packet apart; None for what is none, or is too short for its own header.

    ``missing`` bytes at its end were on the wire and not kept.
    """
    read = {_IPV4: _ipv4, _IPV6: _ipv6}.get(found.ethertype)
    network = read(found.payload, missing) if read else None
    return _transport(network) if network else None


def _ipv4(packet: bytes, missing: int) -> _Network | None:
    if len(packet) < 20 or len(packet) < (packet[0] & 15) * 4 or (packet[0] & 15) < 5:
        return None
    layer = _ipv4_header(packet[:4] + b"\0\0" + packet[6:8] + b"\0" + packet[9:10] + bytes(10))
    size = layer.ihl * 4
    # A length of 0 is a packet larger than 64 KiB on its way to segmentation (BIG TCP).
    total = layer.len or len(packet) + missing
    return _Network(
        source=ipaddress.IPv4Address(packet[12:16]),
        destination=ipaddress.IPv4Address(packet[16:20]),
        number=layer.proto,
        total=total,
        body_length=max(total - size, 0),
        body=packet[size : max(total, size)],
        offset=layer.frag * 8,
        more=bool(layer.flags.MF),
        dont=bool(layer.flags.DF),
    )


@functools.lru_cache(maxsize=4096)
def _ipv4_header(header: bytes) -> Any:
    """Scapy's IP layer of 20 bytes; id, TTL, checksum and addresses are left zero by the caller, so that a capture holds few of them."""
    layer = _scapy().IP()
    layer.do_dissect(header)
    return layer


def _ipv6(packet: bytes, missing: int) -> _Network | None:
    if len(packet) < 40:
        return None
    layer = _scapy().IPv6()
    rest = layer.do_dissect(packet)
    # 0 is a jumbogram, or BIG TCP; or a packet of its header alone, which Ethernet's padding may follow.
    length = layer.plen or (len(rest) + missing if len(rest) + missing > _LONGEST else 0)
    number, offset, more, body, behind = layer.nh, 0, False, rest[:length], length
    while (number in _EXTENSIONS or number in (_FRAGMENT, _AUTHENTICATION)) and len(body) >= 8:
        if number == _FRAGMENT:
            part = _scapy().Fragment()
            body = part.do_dissect(body)
            number, offset, more, behind = part.nh, part.offset * 8, bool(part.m), behind - 8
            if offset:
                break
            continue
        size = (body[1] + 2) * 4 if number == _AUTHENTICATION else (body[1] + 1) * 8
        number, body, behind = body[0], body[size:], behind - size
    return _Network(
        source=ipaddress.IPv6Address(packet[8:24]),
        destination=ipaddress.IPv6Address(packet[24:40]),
        number=number,
        total=length + 40,
        body_length=max(behind, 0),
        body=body,
        offset=offset,
        more=more,
        dont=True,  # routers never fragment IPv6
    )


def _transport(network: _Network) -> Datagram:
    protocol = _PROTOCOLS.get(network.number, str(network.number))
    body, length, sport, dport, flags, icmp, size = network.body, network.body_length, None, None, None, None, 0
    wanted = _READ.get(protocol, 8 if network.number in (_FRAGMENT, _AUTHENTICATION, *_EXTENSIONS) else 0) if network.offset == 0 else 0
    whole = len(body) >= wanted
    if wanted and whole and protocol in ("UDP", "TCP", "SCTP"):
        sport, dport = struct.unpack_from("!2H", body)
        size = 12 if protocol == "SCTP" else 8
    if sport is not None and protocol == "TCP":
        flags, words = _tcp_flags(body[12:14])
        size = max(words, 5) * 4
    elif sport is not None and protocol == "UDP":
        # What stands behind the datagram's own length is none of it (RFC 9868). 0: a jumbogram; too much: a first fragment.
        (own,) = struct.unpack_from("!H", body, 4)
        length = own if 8 <= own <= length else length
        body = body[:length]
    elif wanted and whole and protocol in ("ICMP", "ICMPv6"):
        icmp, size = (body[0], body[1]), 8
    header = Header(
        source=network.source, destination=network.destination, protocol=protocol, sport=sport, dport=dport,
        length=network.total, tcp_flags=flags, dont_fragment=network.dont, more_fragments=network.more,
        fragment_offset=network.offset, icmp=icmp,
    )  # fmt: skip
    judged = protocol == "UDP" and sport is not None and not network.more and len(body) == length
    right = _checksum_ok(network, body) if judged else None
    return Datagram(header, body[size:], max(length - size, 0), right, whole or len(body) >= network.body_length)


@functools.lru_cache(maxsize=1024)
def _tcp_flags(middle: bytes) -> tuple[str, int]:
    """The flags and the header's length, in words of four bytes, of a TCP header's 13th and 14th byte."""
    layer = _scapy().TCP()
    layer.do_dissect(bytes(12) + middle + bytes(6))
    return str(layer.flags), layer.dataofs


def _checksum_ok(network: _Network, datagram: bytes) -> bool | None:
    """Whether the UDP checksum over pseudo header and datagram is right (RFC 768, RFC 8200); None for 0, "not used"."""
    if not struct.unpack_from("!H", datagram, 6)[0]:
        return None
    body = datagram + b"\0" * (len(datagram) % 2)
    pseudo = network.source.packed + network.destination.packed + struct.pack("!2I", len(datagram), network.number)
    total: int = sum(struct.unpack(f"!{len(pseudo + body) // 2}H", pseudo + body))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total == 0xFFFF


def vxlan(outer: Datagram) -> Vxlan | None:
    """Take VXLAN off a UDP datagram; None without the flag that says that the VNI is valid, or when it is cut off."""
    if outer.header.fragment_offset or len(outer.payload) < VXLAN_LENGTH:
        return None
    # Read here, since scapy 2.8 fails on a header with the flags of two extensions at once (0x8c).
    flags, vni = outer.payload[0], int.from_bytes(outer.payload[4:7], "big")
    return Vxlan(vni, _ethernet(outer.payload[VXLAN_LENGTH:])) if flags & _VNI_IS_VALID else None
