"""Captures: framing, link types, VXLAN, fragments, DNS questions; packets are built with scapy."""

import ipaddress
import pathlib
import struct
import time

import pytest
from scapy.layers.dns import DNS, DNSQR
from scapy.layers.inet import ICMP, IP, TCP, UDP, fragment
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop
from scapy.layers.l2 import ARP, CookedLinux, CookedLinuxV2, Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Raw

from servicepath.model import packets as packets_of
from servicepath.parse.errors import ParseError
from servicepath.parse.pcap import mentions, parse_pcap

CASES = pathlib.Path(__file__).parent / "data" / "cases"
MAC = "02:00:00:00:00:01"
ETHER = Ether(src=MAC, dst=MAC)  # without a destination scapy would ask the network for one
NAME = "kubernetes.default.svc.cluster.local"


def ip(text):
    return ipaddress.ip_address(text)


def query(dns_id=0x1234, qtype="A", **ports):
    return UDP(**{"sport": 43210, "dport": 53, **ports}) / DNS(id=dns_id, rd=1, qd=DNSQR(qname=NAME, qtype=qtype))


def pod_query(**ports):
    return ETHER / IP(src="10.42.0.161", dst="10.42.1.113") / query(**ports)


def tunnelled(inner, outer=None, dport=8472, vni=12345):
    outer = outer or IP(src="192.168.55.10", dst="192.168.55.11")
    return ETHER / outer / UDP(sport=40123, dport=dport) / VXLAN(flags=8, vni=vni) / inner


def pcap(*frames, linktype=1, order="<", magic=0xA1B2C3D4, cut=None):
    out = [struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, 262144, linktype)]
    for number, frame in enumerate(frames):
        data = bytes(frame)
        kept = data[:cut]
        out.append(struct.pack(order + "IIII", 1_700_000_000 + number, 250_000, len(kept), len(data)) + kept)
    return b"".join(out)


def pcapng(*frames, order="<", resolution=None, offset=None):
    def block(kind, body):
        body += b"\0" * (-len(body) % 4)
        return struct.pack(order + "II", kind, len(body) + 12) + body + struct.pack(order + "I", len(body) + 12)

    out = [block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))]
    options = struct.pack(order + "HHBxxx", 9, 1, resolution) if resolution else b""
    options += struct.pack(order + "HHq", 14, 8, offset) if offset else b""
    out.append(block(1, struct.pack(order + "HHI", 1, 0, 0) + options))
    units = 10 ** (resolution or 6)
    for frame in frames:
        at, data = (1_700_000_000 - (offset or 0)) * units, bytes(frame)
        out.append(block(6, struct.pack(order + "IIIII", 0, at >> 32, at & 0xFFFFFFFF, len(data), len(data)) + data))
        out.append(block(5, b"\0" * 12))  # interface statistics
    return b"".join(out)


def one(data, **options):
    (packet,) = parse_pcap(data, interface="enp1s0", **options)
    return packet


def test_vxlan_between_two_nodes_of_case_16():
    found = parse_pcap((CASES / "16-vxlan-tunnel-capture" / "vxlan-8472.pcap").read_bytes(), interface="eth1")
    nodes, pods = {ip("192.168.10.100"), ip("192.168.10.101")}, {ip("10.244.0.4"), ip("10.244.1.232")}

    assert len(found) == 4
    assert {p.outer.source for p in found} | {p.outer.destination for p in found} == nodes
    assert {p.inner.source for p in found} | {p.inner.destination for p in found} == pods
    assert not any(h.destination in ipaddress.ip_network("10.96.0.0/12") for p in found for h in (p.outer, p.inner))
    assert [p.vni for p in found[:2]] == [3245, 12317]  # the sender's identity, not a constant
    assert (found[1].outer.source, found[1].inner.source) == (found[0].outer.destination, found[0].inner.destination)
    assert [p.inner.icmp for p in found[:2]] == [(8, 0), (0, 0)]
    assert all(p.outer_checksum_ok for p in found)


def test_checksum_that_is_wrong_at_the_receiver_of_case_17():
    found = parse_pcap((CASES / "17-flannel-bad-udp-cksum" / "receiver-8472.pcap").read_bytes(), interface="eth0")

    assert [p.outer_checksum_ok for p in found] == [False] * 4
    assert {p.vni for p in found} == {1}
    assert {str(p.inner) for p in found} == {"10.42.1.0:33451 → 10.42.0.6:53/UDP"}
    assert {(p.dns_id, p.question) for p in found} == {(0x1234, ". A")}


def test_pod_query_inside_vxlan():
    packet = one(pcap(tunnelled(pod_query())))

    assert str(packet.outer) == "192.168.55.10:40123 → 192.168.55.11:8472/UDP"
    assert str(packet.innermost) == "10.42.0.161:43210 → 10.42.1.113:53/UDP"
    assert (packet.vni, packet.dns_id, packet.dns_response, packet.question) == (12345, 0x1234, False, f"{NAME}. A")
    assert packet.payload_length == 54
    assert packet.inner.length == 82
    assert packet.outer.length == 132
    assert (packet.truncated, packet.outer_checksum_ok) == (False, True)
    assert packet.time == pytest.approx(1_700_000_000.25)
    assert "VNI 12345" in str(packet)
    assert "0x1234" in str(packet)


def test_ipv6_outside_and_inside():
    inner = ETHER / IPv6(src="fd00:42::161", dst="fd00:42:1::113") / query(qtype="AAAA")
    packet = one(pcap(tunnelled(inner, IPv6(src="fd00:55::10", dst="fd00:55::11"))))

    assert str(packet.outer) == "[fd00:55::10]:40123 → [fd00:55::11]:8472/UDP"
    assert packet.question == f"{NAME}. AAAA"
    assert (packet.inner.length, packet.payload_length, packet.outer_checksum_ok) == (102, 54, True)


def test_the_port_decides_what_is_vxlan():
    iana = pcap(tunnelled(pod_query(), dport=4789))

    assert one(iana, vxlan_port=4789).is_vxlan
    assert not one(iana).is_vxlan
    assert not one(pcap(ETHER / IP() / UDP(dport=8472) / VXLAN(flags=0) / pod_query())).is_vxlan


def test_what_vxlan_carries_need_not_be_ip():
    packet = one(pcap(tunnelled(ETHER / ARP())))

    assert (packet.vni, packet.inner, packet.is_vxlan) == (12345, None, True)


@pytest.mark.parametrize(
    ("linktype", "link"),
    [
        (1, ETHER), (1, ETHER / Dot1Q(vlan=7)), (1, Ether(src=MAC, dst=MAC, type=0x88A8) / Dot1Q(vlan=7) / Dot1Q(vlan=8)),
        (113, CookedLinux(proto=0x800)), (276, CookedLinuxV2(proto=0x800)), (101, None), (12, None), (0, Raw(b"\2\0\0\0")),
    ],
)  # fmt: skip
def test_link_types(linktype, link):
    frame = IP(src="10.42.0.161", dst="10.43.0.10") / query()
    packet = one(pcap(link / frame if link else frame, linktype=linktype))

    assert (str(packet.outer), packet.question) == ("10.42.0.161:43210 → 10.43.0.10:53/UDP", f"{NAME}. A")
    assert packet.innermost is packet.outer


def test_unknown_link_type_is_refused():
    with pytest.raises(ParseError, match="link type 147"):
        parse_pcap(pcap(pod_query(), linktype=147), interface="x")


def test_what_is_not_ip_is_left_out():
    assert parse_pcap(pcap(ETHER / ARP(), Ether(src=MAC, dst=MAC, type=0x88CC) / b"lldp", b"short"), interface="x") == ()


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("magic", [0xA1B2C3D4, 0xA1B23C4D])
def test_byte_orders_and_fractions(order, magic):
    packet = one(pcap(pod_query(), order=order, magic=magic))

    assert packet.time - 1_700_000_000 == pytest.approx(0.25 if magic == 0xA1B2C3D4 else 0.00025, abs=1e-6)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("resolution", [None, 9])
@pytest.mark.parametrize("offset", [None, 1_600_000_000, -3600])
def test_pcapng(order, resolution, offset):
    packet = one(pcapng(tunnelled(pod_query()), order=order, resolution=resolution, offset=offset))

    assert (packet.time, packet.vni) == (1_700_000_000, 12345)


@pytest.mark.parametrize(
    "data",
    [b"", b"tcpdump: listening", pcap(pod_query())[:-1], pcap(pod_query())[:30], pcapng(pod_query())[:-20], pcap()[:10]],
    ids=["nothing", "text", "cut in a packet", "cut in its header", "pcapng cut", "cut in the file's header"],
)
def test_what_is_no_whole_capture_is_refused(data):
    with pytest.raises(ParseError):
        parse_pcap(data, interface="x")


def test_an_empty_capture_is_a_capture():
    assert parse_pcap(pcap(), interface="x") == ()


def test_truncated_packets_are_marked():
    whole = len(bytes(tunnelled(pod_query())))
    packet = one(pcap(tunnelled(pod_query()), cut=whole - 10))

    assert (packet.truncated, packet.outer_checksum_ok) == (True, None)
    assert (packet.inner.length, packet.payload_length) == (82, 54)  # as on the wire
    assert (packet.dns_id, packet.question) == (0x1234, None)


@pytest.mark.parametrize("cut", [10, 20, 40, 45, 52, 70, 80, 90])
def test_a_snap_length_without_a_header_is_refused(cut):
    with pytest.raises(ParseError, match=f"line 1: '{cut} bytes kept'"):
        parse_pcap(pcap(tunnelled(pod_query()), cut=cut), interface="x")


def test_fragments():
    parts = fragment(IP(src="10.42.0.161", dst="10.42.1.113", id=9) / UDP(sport=43210, dport=7000) / Raw(b"x" * 2000), fragsize=1400)
    first, last = parse_pcap(pcap(*(ETHER / part for part in parts)), interface="x")

    assert (first.outer.sport, first.outer.more_fragments, first.outer.fragment_offset) == (43210, True, 0)
    assert (last.outer.sport, last.outer.dport, last.outer.more_fragments, last.outer.fragment_offset) == (None, None, False, 1400)
    assert first.outer_checksum_ok is last.outer_checksum_ok is None
    six = ETHER / IPv6(src="fd00::1", dst="fd00::2") / IPv6ExtHdrHopByHop() / IPv6ExtHdrFragment(m=1, nh=17) / query()
    packet = one(pcap(six))
    assert (packet.outer.dport, packet.outer.more_fragments, packet.outer.protocol) == (53, True, "UDP")


def test_tcp_flags_and_dns_behind_its_length():
    message = bytes(DNS(id=7, qd=DNSQR(qname="a.b.", qtype="AAAA")))
    segment = IP(src="10.42.0.161", dst="10.43.0.10", flags="DF") / TCP(sport=5000, dport=53, flags="PA", options=[("NOP", None)] * 4)
    syn = one(pcap(ETHER / IP() / TCP(flags="S", dport=53)))
    packet = one(pcap(ETHER / segment / (struct.pack("!H", len(message)) + message)))

    assert (syn.outer.tcp_flags, syn.payload_length, syn.dns_id) == ("S", 0, None)
    assert (packet.outer.tcp_flags, packet.dns_id, packet.question, packet.outer.dont_fragment) == ("PA", 7, "a.b. AAAA", True)
    assert packet.payload_length == len(message) + 2


def test_ethernet_padding_is_no_payload():
    frame = bytes(ETHER / IP() / TCP(flags="A")) + b"\0" * 6

    assert one(pcap(frame)).payload_length == 0


def test_dns_is_known_by_itself_on_other_ports():
    answer = IP() / UDP(sport=1053, dport=43210) / DNS(id=7, qr=1, qd=DNSQR(qname="a.b."))
    noise = IP() / UDP(sport=1053, dport=43210) / Raw(bytes(range(60)))
    found = parse_pcap(pcap(ETHER / answer, ETHER / noise), interface="x")

    assert [(p.dns_id, p.dns_response, p.question) for p in found] == [(7, True, "a.b. A"), (None, None, None)]


def test_questions_one_may_ask():
    ask, other = tunnelled(pod_query()), tunnelled(pod_query(sport=5), vni=6)
    reply = (
        ETHER / IP(src="192.168.55.11", dst="192.168.55.10") / UDP(sport=999, dport=8472) / VXLAN(flags=8, vni=77)
        / ETHER / IP(src="10.42.1.113", dst="10.42.0.161") / UDP(sport=53, dport=43210) / DNS(id=0x1234, qr=1, qd=DNSQR(qname=NAME))
    )  # fmt: skip
    found = parse_pcap(pcap(ask, other, reply), interface="x")

    assert packets_of.questions(found) == found[:2]
    assert packets_of.answers(found) == found[2:]
    assert found[0].carries(ip("192.168.55.10"))
    assert found[0].carries(ip("10.42.0.161"))
    assert not found[0].carries(ip("10.43.0.10"))


def test_twenty_among_two_hundred_thousand_are_found_at_once():
    ours = [bytes(tunnelled(pod_query(sport=43210 + n))) for n in range(20)]
    theirs = bytes(tunnelled(ETHER / IP(src="10.42.0.99", dst="10.42.1.113") / query(sport=3333)))
    data = pcap(*(ours[n // 10_000] if n % 10_000 == 7 else theirs for n in range(200_000)))
    started = time.process_time()

    found = parse_pcap(data, interface="x", wanted=mentions([ip("10.42.1.113")], range(43210, 43230)))

    assert len(found) == 20
    assert time.process_time() - started < 2  # measured: 0.3 s; a million in 1.5 s


def test_a_first_look_by_address_alone_finds_ipv6_and_fragments():
    look = mentions([ip("fd00::1"), ip("10.42.0.161")])

    assert look(bytes(ETHER / IPv6(src="fd00::1", dst="fd00::2")))
    assert look(bytes(ETHER / IP(dst="10.42.0.161", frag=100) / ICMP()))
    assert not look(bytes(ETHER / IP(src="10.0.0.1", dst="10.42.0.16") / query()))
    with pytest.raises(ValueError, match="address"):
        mentions([])
