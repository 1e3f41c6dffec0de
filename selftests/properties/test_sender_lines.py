"""What the sender on the node prints, made up at random: read back it is the flows, with the answers that scapy wrote."""

from __future__ import annotations

import ipaddress
import json

import dns.rcode
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.dns import DNS, DNSQR, DNSRR

from properties.spoiling import cut, outcome, reshaped, spoilt
from servicepath.model.addresses import Socket
from servicepath.model.flows import Answer, Flow, Probe, Query, Source
from servicepath.model.services import ServicePort
from servicepath.parse.errors import ParseError
from servicepath.parse.probe import parse_sender

PORT = ServicePort("kube-system", "kube-dns", "dns", "UDP", 53, None, None, None)
TARGET = Socket(ipaddress.ip_address("10.43.0.10"), 53)
SECONDS = st.floats(0, 10).map(lambda seconds: round(seconds, 6))
RCODES = [dns.rcode.NOERROR, dns.rcode.NXDOMAIN, dns.rcode.SERVFAIL, dns.rcode.REFUSED]


@st.composite
def answers(draw: st.DrawFn) -> tuple[dict[str, object], Answer]:
    """An answer as printed, and as read: a DNS message, or bytes that are none. A dual-stack socket maps IPv4 addresses."""
    source, took = Socket(draw(st.ip_addresses()), draw(st.integers(1, 65535))), draw(SECONDS)
    mapped = source.ip.version == 4 and draw(st.booleans())
    said = {"from": [f"::ffff:{source.ip}" if mapped else str(source.ip), source.port], "took": took}
    if isinstance(source.ip, ipaddress.IPv6Address) and source.ip.ipv4_mapped:
        source = Socket(source.ip.ipv4_mapped, source.port)
    if draw(st.booleans()):
        payload = draw(st.binary(max_size=11))  # shorter than a DNS header
        return {**said, "payload": payload.hex()}, Answer(source, None, None, (), took)
    dns_id, rcode = draw(st.integers(0, 65535)), draw(st.sampled_from(RCODES))
    ips = draw(st.sets(st.ip_addresses(v=4).map(str), max_size=3))
    records = [DNSRR(rrname="a.b.", ttl=5, rdata=ip) for ip in ips]
    message = DNS(id=dns_id, qr=1, rcode=int(rcode), qd=DNSQR(qname="a.b."), an=records)
    trailing = draw(st.sampled_from([b"", b"x"]))
    return (
        {**said, "payload": (bytes(message) + trailing).hex()},
        Answer(source, dns_id, dns.rcode.to_text(rcode), tuple(sorted(ips)), took),
    )


@st.composite
def flows(draw: st.DrawFn, number: int) -> tuple[dict[str, object], Flow]:
    asked = draw(st.integers(0, 3))
    queries = tuple(Query(n, "a.b. A", b"") for n in range(asked))
    probe = Probe(f"flow-{number}", "host", Source.HOST, PORT, TARGET, 40000 + number, queries, 2.0)
    given_ = draw(st.lists(answers(), max_size=asked))
    connected, unsent = draw(st.sampled_from([None, True, False])), draw(st.booleans())
    error = draw(st.sampled_from([None, "Connection refused", "[Errno 98] \u2028 é \" \\"]))
    line = {"id": probe.id, "answers": [said for said, _ in given_], "connected": connected, "error": error, "newfangled": [1]}
    line |= {"unsent": True} if unsent else {}
    padded = (*(read for _, read in given_), *[None] * (asked - len(given_)))
    return line, Flow(probe, padded, connected, error, unsent)


@st.composite
def runs(draw: st.DrawFn) -> list[tuple[dict[str, object], Flow]]:
    return [draw(flows(number)) for number in range(draw(st.integers(1, 3)))]


def printed(run, order=lambda lines: lines):
    return "".join(f"{json.dumps(line)}\n" for line in order([line for line, _ in run]))


def parser(run):
    return lambda text: parse_sender(text, [flow.probe for _, flow in run])


@given(runs(), st.data())
def test_what_is_printed_in_any_order_is_read_back_in_that_of_the_probes(run, data):
    text = printed(run, lambda lines: data.draw(st.permutations(lines)))

    assert parser(run)(text) == tuple(flow for _, flow in run)


@given(runs(), st.data())
def test_no_part_of_a_run_is_taken_for_all_of_it(run, data):
    assert outcome(parser(run), data.draw(cut(printed(run)))) is None


@given(runs(), st.data())
def test_spoilt_lines_are_an_error_or_flows(run, data):
    outcome(parser(run), data.draw(spoilt(printed(run))))
    outcome(parser(run), "".join(f"{json.dumps(line)}\n" for line in data.draw(reshaped([line for line, _ in run]))))


@given(st.binary(max_size=80), st.binary(min_size=2, max_size=2))
def test_any_bytes_are_an_answer(payload, flags):
    header = b"\x12\x34" + flags + b"\0\1\0\1\0\0\0\0"
    for each in (payload, header + payload):
        line = {"id": "a", "answers": [{"payload": each.hex(), "from": ["10.0.0.1", 53], "took": 0.1}]}
        probe = Probe("a", "host", Source.HOST, PORT, TARGET, 40000, (Query(1, "a. A", b""),), 2.0)
        (flow,) = parse_sender(f"{json.dumps(line)}\n", [probe])
        assert flow.answered


@pytest.mark.parametrize(
    "wrong",
    [
        {"from": ["10.0.0.1", 65536]}, {"from": ["10.0.0.1", -1]}, {"from": ["10.0.0.1", 1e999]}, {"from": ["10.0.0.1", True]},
        {"from": ["10.0.0.1"]}, {"from": ["dns", 53]}, {"took": "0.1"}, {"took": 1e999}, {"took": None}, {"took": True},
        {"payload": "0"}, {"payload": 0},
    ],
)  # fmt: skip
def test_what_is_used_of_an_answer_must_be_right(wrong):
    probe = Probe("a", "host", Source.HOST, PORT, TARGET, 40000, (Query(1, "a. A", b""),), 2.0)
    line = {"id": "a", "answers": [{"payload": "", "from": ["10.0.0.1", 53], "took": 0.1} | wrong]}

    with pytest.raises(ParseError, match="probe sender: line 1: "):
        parse_sender(f"{json.dumps(line)}\n", [probe])


def test_two_lines_of_one_flow_are_an_error():
    probe = Probe("a", "host", Source.HOST, PORT, TARGET, 40000, (), 2.0)

    with pytest.raises(ParseError, match="probe sender: line 2: "):
        parse_sender('{"id": "a", "answers": [], "connected": true}\n{"id": "a", "answers": [], "connected": false}\n', [probe])
