"""conntrack's listings and the kernel's own file; and what an entry to a ClusterIP must lead to."""

import ipaddress
import json
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servicepath.model.addresses import Socket
from servicepath.model.judge_conntrack import judge_entry
from servicepath.model.rules import Counter
from servicepath.model.services import ServicePort
from servicepath.parse.conntrack import parse_conntrack
from servicepath.parse.errors import ParseError
from servicepath.parse.kubernetes import parse_endpoint_slices

CASE_18 = pathlib.Path(__file__).parent / "data" / "cases" / "18-conntrack-stale-udp"

UDP = "udp      17 29 src=10.1.1.1 dst=10.43.0.10 sport=57178 dport=53 [UNREPLIED] src=10.42.1.113 dst=10.42.0.9 sport=53 dport=57178 mark=0 use=1"  # noqa: E501
ICMP = "icmp     1 29 src=127.0.0.1 dst=127.0.0.2 type=8 code=0 id=26355 packets=1 bytes=84 src=127.0.0.2 dst=127.0.0.1 type=0 code=0 id=26355 packets=1 bytes=84 mark=0 use=1"  # noqa: E501
SUMMARY = "conntrack v1.4.7 (conntrack-tools): 3 flow entries have been shown."
TCP = "ipv4     2 tcp      6 86389 ESTABLISHED src=192.168.55.10 dst=10.43.0.1 sport=54022 dport=443 packets=9 bytes=900 src=192.168.55.11 dst=192.168.55.10 sport=6443 dport=54022 packets=8 bytes=800 [ASSURED] mark=16384 zone=0 use=2"  # noqa: E501
V6 = "ipv6     10 udp      17 170 src=fd00::1 dst=fd43::a sport=4000 dport=53 src=fd42::5 dst=fd00::1 sport=53 dport=4000 [ASSURED] mark=0 use=1"  # noqa: E501
OFFLOADED = (
    "ipv4     2 tcp      6 src=10.1.1.1 dst=10.1.1.2 sport=1 dport=2 src=10.1.1.2 dst=10.1.1.1 sport=2 dport=1 [OFFLOAD] mark=0 use=3"
)


def ip(text):
    return ipaddress.ip_address(text)


def socket(text):
    host, _, port = text.rpartition(":")
    return Socket(ip(host), int(port))


def one(line):
    return parse_conntrack(line + "\n").entries[0]


def test_a_udp_entry_has_both_tuples_and_no_state():
    entry = one(UDP)
    assert (entry.protocol, entry.state, entry.timeout, entry.unreplied, entry.assured) == ("UDP", None, 29, True, False)
    assert entry.original == (socket("10.1.1.1:57178"), socket("10.43.0.10:53"))
    assert entry.reply == (socket("10.42.1.113:53"), socket("10.42.0.9:57178"))
    assert entry.counts is None


def test_a_tcp_entry_has_state_counters_mark_and_zone():
    entry = one(TCP)
    assert (entry.protocol, entry.state, entry.assured, entry.mark, entry.zone) == ("TCP", "ESTABLISHED", True, 16384, 0)
    assert entry.counts == (Counter(9, 900), Counter(8, 800))


def test_plain_extended_id_and_the_kernels_file_read_the_same():
    plain = one(UDP)
    assert plain == one(f"ipv4     2 {UDP}") == one(f"{UDP} id=2353918702")
    assert plain == one(f"{UDP} [start=Mon Nov 30 04:00:00 2026] id=2353918702")


def test_ipv6_and_offloaded_entries():
    assert one(V6).reply[0].ip == ip("fd42::5")
    assert one(OFFLOADED).timeout is None


def test_entries_without_ports_are_counted_and_the_summary_is_none():
    gre = "unknown  47 597 src=10.1.1.1 dst=10.1.1.2 [UNREPLIED] src=10.1.1.2 dst=10.1.1.1 mark=0 use=1"
    table = parse_conntrack("\n".join([ICMP, UDP, SUMMARY, ICMP, gre, ""]))
    assert (len(table.entries), table.without_ports) == (1, {"ICMP": 2, "UNKNOWN": 1})
    assert parse_conntrack("").entries == ()


@pytest.mark.parametrize(
    "line",
    [
        "conntrack: command not found",
        "udp 17 29 src=10.1.1.1 dst=10.43.0.10 sport=57178 dport=53",
        UDP.replace("10.43.0.10", "10.43.0"),
        UDP.replace("dport=57178", "dport=port"),
        UDP.replace("sport=53 ", ""),
        UDP.replace("dst=10.42.0.9 ", ""),
    ],
)
def test_another_line_is_an_error_that_names_it(line):
    with pytest.raises(ParseError, match="line 2"):
        parse_conntrack(f"{UDP}\n{line}\n")


@pytest.mark.parametrize("line", [UDP, TCP, V6, OFFLOADED, ICMP])
def test_a_line_that_was_cut_off_is_an_error_or_the_same_entry(line):
    whole = parse_conntrack(line)
    for end in range(1, len(line)):
        try:
            found = parse_conntrack(line[:end])
        except ParseError:
            continue
        assert found == whole


@given(st.ip_addresses(v=4), st.ip_addresses(v=4), st.integers(0, 65535), st.integers(0, 65535), st.booleans(), st.integers(0, 2**32 - 1))
def test_an_entry_that_is_printed_reads_the_same(here, there, sport, dport, unreplied, mark):
    flag = " [UNREPLIED]" if unreplied else ""
    there_and_back = f"src={here} dst={there} sport={sport} dport={dport}{flag} src={there} dst={here} sport={dport} dport={sport}"
    line = f"tcp 6 1 SYN_SENT {there_and_back} mark={mark} use=1"
    entry = one(line)
    assert entry.original == (Socket(here, sport), Socket(there, dport)) == entry.reply[::-1]
    assert (entry.unreplied, entry.mark, entry.state, entry.raw) == (unreplied, mark, "SYN_SENT", line)


DNS = ServicePort("kube-system", "kube-dns", "dns", "UDP", 53, None, None, None)


@pytest.fixture
def serving():
    endpoints = parse_endpoint_slices(json.loads((CASE_18 / "endpointslices.json").read_text()))
    return frozenset(Socket(e.ip, e.ports["dns", "UDP"]) for e in endpoints)


def test_case_18_an_entry_to_an_endpoint_that_is_gone_is_named(serving):
    entries = parse_conntrack((CASE_18 / "conntrack-L-unreplied.txt").read_text()).entries
    wrong = [judge_entry(e, ip("10.96.0.10"), DNS, serving, ()) for e in entries]
    assert [len(w) for w in wrong] == [1, 0]
    assert "leads to no serving endpoint" in str(wrong[0][0])
    assert "10.103.78.37:53" in str(wrong[0][0])
    assert entries[0].raw in wrong[0][0].evidence


def test_case_18_an_entry_that_was_never_translated_is_named(serving):
    entries = parse_conntrack((CASE_18 / "conntrack-L-not-dnated.txt").read_text()).entries
    wrong = [judge_entry(e, ip("10.15.240.10"), DNS, serving, ()) for e in entries]
    assert [len(w) for w in wrong] == [1, 0]  # the TCP entry is another Service's
    assert "was never translated" in str(wrong[0][0])


def test_no_answer_yet_from_a_serving_endpoint_is_no_fault(serving):
    entry = one(UDP.replace("10.42.1.113", "10.103.92.14"))
    assert entry.unreplied
    assert judge_entry(entry, ip("10.43.0.10"), DNS, serving, ()) == ()


def test_a_remote_pod_must_be_able_to_answer():
    backends = frozenset({socket("10.42.1.113:53")})
    masqueraded, plain = one(UDP), one(UDP.replace("dst=10.42.0.9", "dst=192.168.55.10"))
    vip, own = ip("10.43.0.10"), [ip("10.42.0.9")]
    assert judge_entry(masqueraded, vip, DNS, backends, own, remote_pod=True) == ()
    assert judge_entry(plain, vip, DNS, backends, own) == ()
    assert "lets a remote Pod answer" in str(judge_entry(plain, vip, DNS, backends, own, remote_pod=True)[0])
