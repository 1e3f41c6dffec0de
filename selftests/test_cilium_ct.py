"""``cilium-dbg bpf ct list global``."""

import ipaddress
import pathlib

import pytest

from servicepath.model.addresses import Socket
from servicepath.parse.cilium_ct import parse_ct_list
from servicepath.parse.errors import ParseError

REAL = pathlib.Path(__file__).parent / "data" / "cilium-1.19.1"


def at(ip, port):
    return Socket(ipaddress.ip_address(ip), port)


def test_real_table_of_1_19():
    found = parse_ct_list((REAL / "bpf-ct-list.txt").read_text())
    pod = at("10.42.1.36", 37964)

    assert [(e.protocol, e.direction) for e in found[-7:-2]] == [("TCP", "SVC"), ("TCP", "OUT"), *[("UDP", "IN")] * 3]
    assert [e.direction for e in found if (e.source, e.destination) == (pod, at("10.43.0.1", 443))] == ["SVC"]
    assert [e.direction for e in found if (e.source, e.destination) == (pod, at("192.168.55.10", 6443))] == ["OUT"]
    assert [(e.protocol, e.direction) for e in found[-2:]] == [("ICMP", "RELATED")] * 2
    assert found[0].packets == 0


def test_only_entries_of_the_ports_that_are_asked_for():
    found = parse_ct_list((REAL / "bpf-ct-list.txt").read_text(), ports={37964, 53})

    assert {(e.source.port, e.destination.port) for e in found} == {(37964, 443), (37964, 6443), (38353, 53), (57080, 53), (59164, 53)}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "UDP SVC 10.42.0.161:43210 -> 10.43.0.10:53 expires=100 Packets=3 Bytes=300 RxFlagsSeen=0x00",
            ("UDP", "SVC", at("10.42.0.161", 43210), at("10.43.0.10", 53), 3),
        ),
        (
            "TCP OUT 10.43.0.10:53 -> 10.42.0.161:43210 service expires=100 RxPackets=1 RxBytes=60 TxPackets=2 TxBytes=120",
            ("TCP", "SVC", at("10.42.0.161", 43210), at("10.43.0.10", 53), 3),
        ),
        ("UDP OUT fd00::a1:43210 -> fd00:10::a:53 expires=9", ("UDP", "OUT", at("fd00::a1", 43210), at("fd00:10::a", 53), None)),
        ("UDP OUT [fd00::a1]:43210 -> [fd00::a]:53 expires=9", ("UDP", "OUT", at("fd00::a1", 43210), at("fd00::a", 53), None)),
        ("ICMPv6 OUT fd00::a1:0 -> fd00::a:0 related expires=9", ("ICMPv6", "RELATED", at("fd00::a1", 0), at("fd00::a", 0), None)),
        ("SCTP IN 10.0.0.1:1 -> 10.0.0.2:2 expires=9 Packets=0", ("SCTP", "IN", at("10.0.0.1", 1), at("10.0.0.2", 2), 0)),
    ],
)
def test_forms_of_a_line(line, expected):
    (entry,) = parse_ct_list(line + "\n")

    assert (entry.protocol, entry.direction, entry.source, entry.destination, entry.packets) == expected
    assert entry.raw == line


def test_nothing_is_no_entries():
    assert parse_ct_list("\n\n") == ()


@pytest.mark.parametrize(
    "line",
    [
        "Unable to open /sys/fs/bpf/tc/globals/cilium_ct4_global: no such file",
        "UDP OUT 10.0.0.1 1:2 expires=3",
        "UDP OUT 300.0.0.1:1 -> 10.0.0.1:2 expires=1",
    ],
)
def test_what_is_no_entry_is_refused(line):
    with pytest.raises(ParseError, match="line 2"):
        parse_ct_list(f"\n{line}\n")
