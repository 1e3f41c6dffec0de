"""Captures, their frames built with scapy: what is read is what was built, and of what is cut off nothing wrong is read."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, TCP, UDP, IPOption_NOP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrHopByHop, Jumbo
from scapy.packet import Raw

from properties import frames
from properties.frames import ETHERNET, LINKTYPES, RAW_IP, Built
from properties.spoiling import outcome
from servicepath.parse import dissect
from servicepath.parse.pcap import parse_pcap

FILES = st.sampled_from([frames.pcap, frames.pcapng])
ORDERS = st.sampled_from("<>")


def some(most: int):
    """A link type and up to so many frames of it."""
    return LINKTYPES.flatmap(lambda linktype: st.tuples(st.just(linktype), st.lists(frames.frames(linktype), min_size=1, max_size=most)))


def read(data: bytes):
    return parse_pcap(data, interface="eth0", vxlan_port=frames.VXLAN_PORT)


def facts(packet):
    dns = (packet.dns_id, packet.dns_response, packet.question)
    return packet.outer, packet.vni, packet.inner, dns, packet.payload_length


def expected(built: Built):
    return built.header, built.vni, built.inner, built.dns, built.payload_length


@given(some(4), FILES, ORDERS, st.booleans())
def test_what_is_built_is_what_is_read(captured, file, order, nano):
    linktype, built = captured
    found = read(file([each.bytes for each in built], linktype, order=order, nano=nano))

    assert [facts(packet) for packet in found] == [expected(each) for each in built]
    assert [packet.outer_checksum_ok for packet in found] == [each.checksum_ok for each in built]
    assert not any(packet.truncated for packet in found)
    units = 10**9 if nano else 10**6
    times = [1_700_000_000 + number + 3 * number / units for number in range(len(built))]
    assert [packet.time for packet in found] == pytest.approx(times, rel=0, abs=1e-6)


@given(some(2), FILES, ORDERS, st.integers(1, 250))
def test_of_a_frame_that_the_snap_length_cuts_the_headers_are_right_or_it_is_an_error(captured, file, order, snap):
    linktype, built = captured
    frames_ = [each.bytes for each in built]
    found = outcome(read, file(frames_, linktype, order=order, snap=snap))

    if found is None:
        assert any(len(frame) > snap for frame in frames_)
        return
    for packet, each, frame in zip(found, built, frames_, strict=True):
        (*headers, dns, length), (*built_headers, built_dns, built_length) = facts(packet), expected(each)
        assert (headers, length) == (built_headers, built_length)
        assert packet.truncated == (len(frame) > snap)
        assert dns == built_dns or packet.truncated
        assert all(mine in (theirs, None) for mine, theirs in zip(dns, built_dns, strict=True))


@given(some(2), FILES, ORDERS, st.data())
def test_a_file_that_is_cut_off_is_an_error_that_names_the_packet_or_holds_the_packets_before_it(captured, file, order, data):
    linktype, built = captured
    whole = file([each.bytes for each in built], linktype, order=order)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    borders = [len(file([each.bytes for each in built[:n]], linktype, order=order)) for n in range(len(built) + 1)]
    found = outcome(read, cut)

    if found is None:
        with pytest.raises(ValueError, match="pcap: ") as error:
            read(cut)
        before = sum(border <= len(cut) for border in borders)
        assert error.value.line in (before, before - 1, 0)
        assert error.value.line or before <= 1
    else:
        assert [facts(packet) for packet in found] == [expected(each) for each in built[: len(found)]]
        assert len(cut) in borders or file is frames.pcapng


@given(some(1), st.data())
def test_a_damaged_file_is_an_error_or_packets(captured, data):
    linktype, built = captured
    damaged = bytearray(data.draw(FILES)([each.bytes for each in built], linktype))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))

    outcome(read, bytes(damaged))


@given(st.lists(frames.frames(ETHERNET), min_size=2, max_size=3), st.randoms(use_true_random=False))
def test_what_was_read_before_changes_nothing(built, order):
    """Headers of one form are dissected once and remembered: the same packets alone, and in another order, read the same."""
    shuffled = list(built)
    order.shuffle(shuffled)
    together = {each.bytes: facts(packet) for each, packet in zip(shuffled, read(_file(shuffled)), strict=True)}
    for remembered in (dissect._ethertype, dissect._ipv4_header, dissect._tcp_flags):
        remembered.cache_clear()

    assert all(facts(read(_file([each]))[0]) == together[each.bytes] for each in built)


def _file(built):
    return frames.pcap([each.bytes for each in built], ETHERNET)


@given(st.binary(min_size=20, max_size=20), st.integers(0, 60))
def test_any_ipv4_header_is_read_as_rfc_791_lays_it_out(header, more):
    found = dissect.ip(dissect.Link(0x0800, header + bytes(more)))
    words, flags = header[0] & 15, int.from_bytes(header[6:8], "big")

    if words < 5 or words * 4 > 20 + more:
        assert found is None
        return
    total = int.from_bytes(header[2:4], "big") or 20 + more
    told = found.header
    assert (told.source.packed, told.destination.packed, told.length) == (header[12:16], header[16:20], total)
    assert (told.dont_fragment, told.more_fragments) == (bool(flags & 0x4000), bool(flags & 0x2000))
    assert told.fragment_offset == (flags & 0x1FFF) * 8


@given(st.binary(min_size=20, max_size=20))
def test_any_tcp_header_is_read_as_rfc_9293_lays_it_out(header):
    packet = IP(src="10.0.0.1", dst="10.0.0.2", proto=6) / Raw(header + b"x" * 60)
    (found,) = read(frames.pcap([bytes(packet)], RAW_IP))
    bits = int.from_bytes(header[12:14], "big") & 0x1FF

    assert (found.outer.sport, found.outer.dport) == (int.from_bytes(header[:2], "big"), int.from_bytes(header[2:4], "big"))
    assert found.outer.tcp_flags == "".join(letter for place, letter in enumerate(frames.FLAGS) if bits >> place & 1)
    assert found.payload_length == 80 - max(header[12] >> 4, 5) * 4  # a header shorter than its fixed part is none


@given(st.binary(min_size=8, max_size=8))
def test_any_vxlan_header_is_read_as_rfc_7348_lays_it_out(header):
    packet = IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=5, dport=frames.VXLAN_PORT) / Raw(header + bytes(14))
    (found,) = read(frames.pcap([bytes(packet)], RAW_IP))

    assert found.vni == (int.from_bytes(header[4:7], "big") if header[0] & 8 else None)


@given(st.integers(65536, 200_000), st.booleans(), st.integers(60, 400))
def test_a_packet_larger_than_its_length_field_is_as_large_as_it_was_on_the_wire(size, six, snap):
    """BIG TCP: the length is 0 (IPv4) or stands in an option (IPv6), and what is kept is a part."""
    tcp = bytes(TCP(sport=5, dport=6, flags="PA"))
    options = IPv6ExtHdrHopByHop(options=[Jumbo(jumboplen=size + 28)])
    head = bytes(IPv6(src="fd00::1", dst="fd00::2", plen=0) / options if six else IP(src="10.0.0.1", dst="10.0.0.2", len=0, proto=6))
    head = head[:40] + b"\6" + head[41:] if six else head
    frame = head + tcp + bytes(size)
    (found,) = read(frames.pcap([frame], RAW_IP, snap=snap + len(head)))

    assert (found.payload_length, found.outer.length, found.truncated) == (size, len(frame), True)
    assert (found.outer.protocol, found.outer.dport) == ("TCP", 6)


def test_padding_behind_an_empty_ipv6_packet_is_no_payload():
    frame = bytes(IPv6(src="fd00::1", dst="fd00::2", nh=59, plen=0)) + bytes(6)
    (found,) = read(frames.pcap([frame], RAW_IP))

    assert (found.outer.length, found.payload_length) == (40, 0)


def test_what_stands_behind_a_datagrams_own_length_is_none_of_it():
    """RFC 9868; the checksum is over the datagram alone."""
    datagram = bytes(IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=5, dport=6) / Raw(b"abcd"))[20:]
    packet = IP(src="10.0.0.1", dst="10.0.0.2", proto=17, options=[IPOption_NOP()] * 4) / Raw(datagram + b"more")
    (found,) = read(frames.pcap([bytes(packet)], RAW_IP))

    assert (found.payload_length, found.outer_checksum_ok, found.outer.destination) == (4, True, ipaddress.ip_address("10.0.0.2"))
