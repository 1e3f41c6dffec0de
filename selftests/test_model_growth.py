"""Counter windows: what counts as ours, what is taken off, and what cannot be told."""

import dataclasses
import ipaddress
import re

import pytest

from servicepath.model import growth
from servicepath.model.addresses import Socket
from servicepath.model.flows import Answer, Flow, Probe, Query, Source
from servicepath.model.growth import Growth
from servicepath.model.host import ConntrackEntry
from servicepath.model.rules import Counter
from servicepath.model.services import ServicePort
from servicepath.model.windows import Cut, SyncMark, Window
from servicepath.parse.iptables import parse_save
from servicepath.parse.sync_mark import parse_sync_mark

VIP = ipaddress.ip_address("10.43.0.10")
BACKEND = Socket(ipaddress.ip_address("10.42.1.113"), 53)
NODE = ipaddress.ip_address("192.168.55.10")
DNS = ServicePort("kube-system", "kube-dns", "dns", "UDP", 53, "53", None, None)

NAT = """\
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-SEP-L5JRWRCR3OTUNAH5 - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-TCOU7JCQXEZGVUNU - [0:0]
[9:900] -A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
[9:900] -A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
[{masq}] -A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
[0:0] -A KUBE-SEP-L5JRWRCR3OTUNAH5 -s 10.42.1.113/32 -m comment --comment "kube-system/kube-dns:dns" -j KUBE-MARK-MASQ
[{sep}] -A KUBE-SEP-L5JRWRCR3OTUNAH5 -p udp -m comment --comment "kube-system/kube-dns:dns" -m udp -j DNAT --to-destination 10.42.1.113:53
[{services}] -A KUBE-SERVICES -d 10.43.0.10/32 -p udp -m comment --comment "kube-system/kube-dns:dns cluster IP" -m udp --dport 53 \
-j KUBE-SVC-TCOU7JCQXEZGVUNU
[{masq}] -A KUBE-SVC-TCOU7JCQXEZGVUNU ! -s 10.42.0.0/16 -d 10.43.0.10/32 -p udp -m comment --comment "kube-system/kube-dns:dns cluster IP" \
-m udp --dport 53 -j KUBE-MARK-MASQ
[{svc}] -A KUBE-SVC-TCOU7JCQXEZGVUNU -m comment --comment "kube-system/kube-dns:dns -> 10.42.1.113:53" -j KUBE-SEP-L5JRWRCR3OTUNAH5
COMMIT
"""


def entry(sport: int, source: ipaddress.IPv4Address = NODE) -> ConntrackEntry:
    """A translated flow to the Service."""
    there = (Socket(source, sport), Socket(VIP, 53))
    return ConntrackEntry("udp", there, (BACKEND, Socket(NODE, sport)), None, False, True, 30, 0)


def cut(counter: str, *flows: tuple[ConntrackEntry, ...], sync: str = "1", services: str | None = None) -> Cut:
    """A cut in which every rule of the Service shows the same counter."""
    first, second = flows or ((), ())
    text = NAT.format(masq=counter, sep=counter, services=services or counter, svc=counter)
    mark = SyncMark("kube-proxy's metrics", sync)
    return Cut(parse_save(text), (mark, mark), (first, second))


def measured(before: Cut, after: Cut, sports: frozenset[int] = frozenset({20001})) -> Growth:
    """The growth, which the caller expects to be measurable."""
    found = growth.measure(Window("host", before, after, sports, sports), VIP, DNS)
    assert isinstance(found, Growth), found
    return found


def test_ten_flows_of_the_notes():
    found = measured(cut("0:0"), cut("10:1050"))

    assert found.svc == found.sep == found.services == found.masquerade == Counter(10, 1050)
    assert found.unlike(10, [105] * 10) == ()
    assert found.unmarked(10) == ()
    assert any(line.startswith("[0:0] → [10:1050] -A KUBE-SVC-TCOU7JCQXEZGVUNU") for line in found.lines)


def test_flows_that_were_not_counted_are_told():
    wrong = measured(cut("0:0"), cut("9:945")).unlike(10, [105] * 10)

    assert {d.actual for d in wrong} == {"+9 packets"}
    assert all("kube-system/kube-dns:dns" in d.subject for d in wrong)


def test_a_chain_that_marks_nothing_is_told():
    emptied = re.sub(r"^.*-j MARK .*\n", "", NAT, flags=re.MULTILINE)
    before, after = (dataclasses.replace(cut(counter), nat=parse_save(emptied.format(
        masq=counter, sep=counter, services=counter, svc=counter))) for counter in ("0:0", "10:1050"))  # fmt: skip

    (wrong,) = measured(before, after).unmarked(10)

    assert str(wrong).startswith("KUBE-MARK-MASQ - marks no packet - expected: a rule to MARK, actual: 0 rules, none to MARK")


def test_other_bytes_are_told():
    assert measured(cut("0:0"), cut("10:1000")).unlike(10, [105] * 10) != ()


def test_a_flow_of_others_is_taken_off():
    foreign = entry(40000)

    found = measured(cut("0:0"), cut("6:600", (foreign,), (foreign,)))

    assert found.foreign == 1
    assert found.unlike(5, [105] * 5) == ()
    assert found.unlike(6, [105] * 6) != ()


def test_a_flow_at_the_edge_cannot_be_counted():
    found = growth.measure(Window("host", cut("0:0"), cut("1:105", (), (entry(40000),)), frozenset(), frozenset()), VIP, DNS)

    assert found == "1 flows of others began while the counters were being read"


def test_a_sync_puts_kube_services_aside_and_nothing_else():
    found = measured(cut("7:700"), cut("17:1750", sync="2", services="1:105"))

    assert found.services is None
    assert found.unlike(10, [105] * 10) == ()


def test_counters_that_went_back_are_no_zero():
    found = growth.measure(Window("host", cut("7:700"), cut("2:200", sync="2"), frozenset(), frozenset()), VIP, DNS)

    assert isinstance(found, str)
    assert "written anew" in found


def test_changed_rules_cannot_be_compared():
    after = cut("1:100")
    moved = Cut(parse_save(NAT.replace("10.42.1.113:53", "10.42.2.7:53").format(masq="1:1", sep="1:1", services="1:1", svc="1:1")), *[
        after.sync, after.conntrack
    ])  # fmt: skip

    assert "changed" in str(growth.measure(Window("host", cut("0:0"), moved, frozenset(), frozenset()), VIP, DNS))


def test_a_port_that_was_in_use_is_no_new_flow():
    before = cut("0:0", (entry(20001),), (entry(20001),))

    found = growth.measure(Window("host", before, cut("1:105"), frozenset({20001}), frozenset({20001})), VIP, DNS)

    assert found == "one of our source ports was in use already"


METRIC = 'kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"} '
HANDLE = "ip daddr 10.43.0.10 counter packets 1 bytes 1 jump X # handle "


@pytest.mark.parametrize(
    ("first", "second"), [(METRIC + "1.7e+09\n", METRIC + "1.8e+09\n"), (HANDLE + "11\n", HANDLE + "12\n")], ids=["metrics", "handles"]
)
def test_sync_marks_differ_after_a_sync(first, second):
    assert parse_sync_mark(first) == parse_sync_mark(first)
    assert parse_sync_mark(first) != parse_sync_mark(second)


def test_handles_do_not_change_with_counters():
    line = "ip daddr 10.43.0.10 counter packets {} bytes 1 jump X # handle 11\n"

    assert parse_sync_mark(line.format(1)) == parse_sync_mark(line.format(9))


def test_no_mark_is_no_mark():
    assert parse_sync_mark("") is None


EXTERNAL = """\
:KUBE-EXT-TCOU7JCQXEZGVUNU - [0:0]
:KUBE-SVL-TCOU7JCQXEZGVUNU - [0:0]
"""


@pytest.mark.parametrize("way", ["-j KUBE-SVC-TCOU7JCQXEZGVUNU", "-j KUBE-SEP-L5JRWRCR3OTUNAH5"], ids=["cluster", "local"])
def test_what_comes_by_node_port_is_none_of_the_clusterips(way):
    """With externalTrafficPolicy Cluster it leads through KUBE-EXT to the Service's chain, with Local past it to the endpoints."""
    chain = "KUBE-EXT" if "SVC" in way else "KUBE-SVL"

    def reading(outside: int, inside: int) -> Cut:
        svc = outside + inside if chain == "KUBE-EXT" else inside
        counts = {"masq": f"{inside}:{inside}", "sep": f"{outside + inside}:{outside + inside}", "svc": f"{svc}:{svc}"}
        text = NAT.format(**counts, services=counts["masq"]).replace(":KUBE-MARK-MASQ", EXTERNAL + ":KUBE-MARK-MASQ")
        text = text.replace("COMMIT", f"[{outside}:{outside}] -A {chain}-TCOU7JCQXEZGVUNU {way}\nCOMMIT")
        mark = SyncMark("kube-proxy's metrics", "1")
        return Cut(parse_save(text), (mark, mark), ((), ()))

    found = measured(reading(40, 3), reading(45, 13))

    assert (found.svc, found.sep, found.aside) == (Counter(10, 10), Counter(10, 10), 5)
    assert found.unlike(10, ()) == ()
    assert "taken off: 5" in found.summary


def answered(sport: int, *, by: bool = True) -> Flow:
    """One of our flows to the Service."""
    query = Query(sport, "kubernetes.default.svc.cluster.local. A", b"\0" * 77)
    probe = Probe(f"host-{sport}", "host", Source.HOST, DNS, Socket(VIP, 53), sport, (query,), 1.0)
    return Flow(probe, (Answer(Socket(VIP, 53), sport, "NOERROR", (), 0.001) if by else None,), None, None)


def over(counter: str, flows: tuple[ConntrackEntry, ...], ours: list[Flow], *, services: str | None = None) -> str | None:
    """What is said of an excess, of a window that began at zero."""
    window = Window("host", cut("0:0"), cut(counter, flows, flows, services=services), frozenset({20001}), frozenset({20001}))
    found = growth.measure(window, VIP, DNS)
    assert isinstance(found, Growth), found
    return growth.unexplained(found, window, VIP, ours)


def test_a_packet_that_was_translated_and_dropped_is_nobodys_of_ours():
    said = over("2:210", (entry(20001),), [answered(20001)])

    why = "others' packets were dropped, or an entry had expired"
    assert said == f"1 more were counted than the 1 flows in conntrack, and all of ours were answered: {why}"


def test_a_pods_flow_in_the_hosts_conntrack_is_what_was_counted():
    assert over("1:105", (entry(20001),), [answered(20001)]) is None


def test_a_pods_flow_that_is_in_no_conntrack_was_not_counted():
    assert "1 more" in str(over("1:105", (), [answered(20001)]))


def test_a_flow_of_ours_without_an_answer_may_be_what_was_counted_twice():
    assert over("2:210", (entry(20001),), [answered(20001, by=False)]) is None


def test_rules_that_do_not_count_alike_are_no_ones_dropped_packets():
    assert over("2:210", (entry(20001),), [answered(20001)], services="1:105") is None
