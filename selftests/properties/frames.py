"""Captured frames made up at random and built with scapy, each with the facts that it was built from; and the files that hold them."""

from __future__ import annotations

import dataclasses
import struct
from typing import Any

from hypothesis import strategies as st
from scapy.layers.dns import DNS, DNSQR, DNSRR
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_NOP, IPOption_RR, IPOption_Timestamp
from scapy.layers.inet6 import (
    ICMPv6EchoRequest,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    PadN,
)
from scapy.layers.l2 import ARP, CookedLinux, CookedLinuxV2, Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Raw

from servicepath.model.packets import Header

MAC = "02:00:00:00:00:01"
VXLAN_PORT = 8472
ETHERNET, RAW_IP, NULL, COOKED, COOKED_2 = 1, 101, 0, 113, 276
PORTS = st.integers(1, 65535).filter(lambda port: port not in (53, 5353, VXLAN_PORT))
NAMES = st.lists(st.from_regex(r"[a-z0-9_-]{1,20}", fullmatch=True), min_size=1, max_size=5).map(lambda labels: ".".join(labels) + ".")
TCP_OPTIONS = st.lists(
    st.sampled_from([("MSS", 1460), ("NOP", None), ("WScale", 7), ("SAckOK", b""), ("Timestamp", (1, 2)), ("SAck", (1, 2))]), max_size=3
)
IP_OPTIONS = st.lists(
    st.sampled_from([IPOption_NOP(), IPOption_RR(routers=["0.0.0.0"] * 3), IPOption_Timestamp(flg=0, length=12)]), max_size=2
)
FLAGS = "FSRPAUECN"


@dataclasses.dataclass(frozen=True)
class Built:
    """An IP packet, or a frame with one in it, and what it is to be read as."""

    layer: Any = dataclasses.field(repr=False)
    header: Header
    payload_length: int
    dns: tuple[int | None, bool | None, str | None] = (None, None, None)
    checksum_ok: bool | None = None
    vni: int | None = None
    inner: Header | None = None

    @property
    def bytes(self) -> bytes:
        """As on the wire."""
        return bytes(self.layer)


@st.composite
def messages(draw: st.DrawFn) -> tuple[DNS, tuple[int, bool, str]]:
    """A DNS message with its id, whether it is an answer, and its question."""
    dns_id, name, answer = draw(st.integers(0, 65535)), draw(NAMES), draw(st.booleans())
    kind = draw(st.sampled_from(["A", "AAAA", "SRV", "HTTPS"]))
    more = [DNSRR(rrname=name, type="A", rdata="10.0.0.1")] if answer else []
    return DNS(id=dns_id, qr=answer, rd=1, qd=DNSQR(qname=name, qtype=kind), an=more), (dns_id, answer, f"{name} {kind}")


@st.composite
def payloads(draw: st.DrawFn) -> tuple[bytes, tuple[Any, Any, Any]]:
    """A DNS message, or bytes that are none."""
    if draw(st.booleans()):
        return b"x" * draw(st.integers(0, 60)), (None, None, None)
    message, facts = draw(messages())
    return bytes(message), facts


@st.composite
def networks(draw: st.DrawFn, version: int | None = None) -> tuple[Any, dict[str, Any]]:
    """An IP header with options or extension headers, and the facts in it."""
    version = version or draw(st.sampled_from([4, 6]))
    source, destination = (draw(st.ip_addresses(v=version)) for _ in range(2))
    facts: dict[str, Any] = {"source": source, "destination": destination, "dont_fragment": True}
    common = {"src": str(source), "dst": str(destination)}
    if version == 4:
        facts["dont_fragment"] = draw(st.booleans())
        flags = ("DF+" if facts["dont_fragment"] else "") + draw(st.sampled_from(["", "evil"]))
        tos, number, ttl = draw(st.integers(0, 255)), draw(st.integers(0, 65535)), draw(st.integers(0, 255))
        return IP(**common, flags=flags.strip("+"), tos=tos, id=number, ttl=ttl, options=draw(IP_OPTIONS)), facts
    layer = IPv6(**common, tc=draw(st.integers(0, 255)), fl=draw(st.integers(0, 2**20 - 1)), hlim=draw(st.integers(0, 255)))
    for extension in draw(st.lists(st.sampled_from([IPv6ExtHdrHopByHop, IPv6ExtHdrDestOpt]), max_size=2, unique=True)):
        layer /= extension(options=[PadN(optdata=b"\0" * draw(st.sampled_from([4, 12])))])
    return layer, facts


@st.composite
def transports(draw: st.DrawFn, version: int) -> tuple[Any, dict[str, Any], int, tuple[Any, Any, Any]]:
    """A transport header with what it carries; its facts, the payload's length, and the DNS message's facts."""
    kind = draw(st.sampled_from(["UDP", "UDP", "TCP", "ICMP", "other"]))
    sport, dport = draw(PORTS), draw(PORTS)
    if kind == "UDP":
        payload, dns = draw(payloads())
        return UDP(sport=sport, dport=dport) / Raw(payload), {"protocol": kind, "sport": sport, "dport": dport}, len(payload), dns
    if kind == "TCP":
        bits, (payload, dns) = draw(st.integers(0, 511)), draw(payloads())
        payload = payload if dns[0] is None else struct.pack("!H", len(payload)) + payload
        layer = TCP(sport=sport, dport=dport, flags=bits, reserved=draw(st.integers(0, 7)), options=draw(TCP_OPTIONS))
        letters = "".join(letter for place, letter in enumerate(FLAGS) if bits >> place & 1)
        return layer / Raw(payload), {"protocol": kind, "sport": sport, "dport": dport, "tcp_flags": letters}, len(payload), dns
    size = draw(st.integers(0, 40))
    if kind == "ICMP":
        layer = ICMP(type=8, code=0, id=7) if version == 4 else ICMPv6EchoRequest(id=7)
        name, icmp = ("ICMP", (8, 0)) if version == 4 else ("ICMPv6", (128, 0))
        return layer / Raw(b"x" * size), {"protocol": name, "icmp": icmp}, size, (None, None, None)
    number, name = draw(st.sampled_from([(47, "GRE"), (50, "ESP"), (89, "89"), (103, "103")]))
    return (number, Raw(b"x" * size)), {"protocol": name}, size, (None, None, None)


@st.composite
def plain(draw: st.DrawFn, version: int | None = None) -> Built:
    """A whole IP packet with UDP, TCP, ICMP or another protocol."""
    layer, facts = draw(networks(version))
    transport, more, size, dns = draw(transports(facts["source"].version))
    if isinstance(transport, tuple):
        number, transport = transport
        _last(layer).setfieldval("nh" if isinstance(layer, IPv6) else "proto", number)
    whole = layer / transport
    header = Header(**{"sport": None, "dport": None, **facts, **more}, length=len(bytes(whole)))
    right = True if header.protocol == "UDP" else None
    if right and draw(st.booleans()):
        transport.chksum = draw(st.integers(0, 65535))
        told = type(layer)(bytes(layer / transport))  # scapy fills the right one in where there is none
        right = None if not transport.chksum else transport.chksum == _right(told, UDP)
        whole = layer / transport
    return Built(whole, header, size, dns, right)


def _right(packet: Any, kind: type) -> int:
    """The checksum that scapy would put in."""
    again = packet.copy()
    del again[kind].chksum
    return int(type(packet)(bytes(again))[kind].chksum)


def _last(layer: Any) -> Any:
    while layer.payload:
        layer = layer.payload
    return layer


@st.composite
def fragments(draw: st.DrawFn, version: int | None = None) -> Built:
    """A first, middle or last fragment of a UDP datagram; only the first holds the ports."""
    version = version or draw(st.sampled_from([4, 6]))
    source, destination = (draw(st.ip_addresses(v=version)) for _ in range(2))
    offset, more = draw(st.sampled_from([0, 1, 185, 8191])), draw(st.booleans())
    more = more or offset == 0
    sport, dport, size = draw(PORTS), draw(PORTS), draw(st.integers(1, 20)) * 8
    body = bytes(UDP(sport=sport, dport=dport, len=3000, chksum=1)) + b"x" * size if offset == 0 else b"x" * size
    if version == 4:
        layer = IP(src=str(source), dst=str(destination), proto=17, flags="MF" if more else "", frag=offset, options=draw(IP_OPTIONS))
    else:
        layer = IPv6(src=str(source), dst=str(destination)) / IPv6ExtHdrFragment(nh=17, m=more, offset=offset, id=7)
    whole = layer / Raw(body)
    ports = (sport, dport) if offset == 0 else (None, None)
    header = Header(
        source, destination, "UDP", *ports, len(bytes(whole)), dont_fragment=version == 6, more_fragments=more, fragment_offset=offset * 8
    )
    return Built(whole, header, size)


@st.composite
def tunnelled(draw: st.DrawFn) -> Built:
    """VXLAN over either family, with a VLAN tag inside or without, and an IP packet or ARP in it."""
    layer, facts = draw(networks())
    inner, vni, sport = draw(plain() | fragments() | st.none()), draw(st.integers(0, 2**24 - 1)), draw(st.integers(1, 65535))
    checksum = draw(st.sampled_from([None, 0]))
    carried = draw(links(inner.layer, ETHERNET)) if inner else Ether(src=MAC, dst=MAC) / ARP()
    tunnel = VXLAN(flags=draw(st.sampled_from([8, 0x88])), vni=vni) / carried
    whole = layer / UDP(sport=sport, dport=VXLAN_PORT, chksum=checksum) / Raw(bytes(tunnel))
    header = Header(**facts, protocol="UDP", sport=sport, dport=VXLAN_PORT, length=len(bytes(whole)))
    right = True if checksum is None else None
    if inner is None:
        return Built(whole, header, len(bytes(tunnel)), (None, None, None), right, vni)
    return Built(whole, header, inner.payload_length, inner.dns, right, vni, inner.header)


@st.composite
def links(draw: st.DrawFn, layer: Any, linktype: int) -> Any:
    """The packet in a frame of the link type."""
    number = 0x0800 if isinstance(layer, IP) else 0x86DD
    if linktype == RAW_IP:
        return layer
    if linktype == NULL:
        return Raw(b"\2\0\0\0") / Raw(bytes(layer))
    tags = draw(st.lists(st.builds(Dot1Q, vlan=st.integers(0, 4095), prio=st.integers(0, 7)), max_size=2))
    first = draw(st.sampled_from([0x8100, 0x88A8])) if tags else number
    link = {ETHERNET: Ether(src=MAC, dst=MAC, type=first), COOKED: CookedLinux(proto=first), COOKED_2: CookedLinuxV2(proto=first)}[linktype]
    for place, tag in enumerate(tags):
        tag.type = number if place == len(tags) - 1 else 0x8100
        link /= tag
    padding = b"\0" * draw(st.sampled_from([0, 6, 18])) if linktype == ETHERNET else b""
    return link / Raw(bytes(layer) + padding)


LINKTYPES = st.sampled_from([ETHERNET, ETHERNET, COOKED, COOKED_2, RAW_IP, NULL])


@st.composite
def frames(draw: st.DrawFn, linktype: int, built: st.SearchStrategy[Built] | None = None) -> Built:
    """A captured frame of the link type."""
    found = draw(built or plain() | fragments() | tunnelled())
    return dataclasses.replace(found, layer=Raw(bytes(draw(links(found.layer, linktype)))))


def pcap(frames: list[bytes], linktype: int, *, order: str = "<", nano: bool = False, snap: int | None = None) -> bytes:
    """A pcap file; the frames are a second and three units apart."""
    out = struct.pack(order + "IHHIIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, snap or 262144, linktype)
    for number, frame in enumerate(frames):
        out += struct.pack(order + "IIII", 1_700_000_000 + number, 3 * number, len(frame[:snap]), len(frame)) + frame[:snap]
    return out


def pcapng(frames: list[bytes], linktype: int, *, order: str = "<", nano: bool = False, snap: int | None = None) -> bytes:
    """The same as a pcapng file, with blocks in it that hold no packet."""

    def block(kind: int, body: bytes) -> bytes:
        body += b"\0" * (-len(body) % 4)
        length = struct.pack(order + "I", len(body) + 12)
        return struct.pack(order + "I", kind) + length + body + length

    options = struct.pack(order + "HHBxxxHH", 9, 1, 9, 0, 0) if nano else b""
    out = block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    out += block(1, struct.pack(order + "HHI", linktype, 0, snap or 0) + options)
    for number, frame in enumerate(frames):
        at = (1_700_000_000 + number) * (10**9 if nano else 10**6) + 3 * number
        out += block(6, struct.pack(order + "IIIII", 0, at >> 32, at & 0xFFFFFFFF, len(frame[:snap]), len(frame)) + frame[:snap])
        out += block(5, b"\0" * 12)
    return out
