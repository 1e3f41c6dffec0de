"""kube-proxy in nftables mode, socket LB, and Cilium in kube-proxy's place: what is judged then, right and wrong."""

import dataclasses
import ipaddress

import pytest
import rule_cases
from test_judge_dataplanes import LISTED, at, both, gathered

from servicepath.model import join, judge_connect, judge_dataplanes, judge_equal_rules, judge_nft, matrix
from servicepath.model.addresses import Socket
from servicepath.model.cilium import CtEntry
from servicepath.model.expected_endpoints import Expected
from servicepath.model.flows import Flow, Probe, Source
from servicepath.model.host import ConntrackEntry
from servicepath.model.mode import EXPECTED, EXPECTED_REPLACED
from servicepath.model.packets import Capture, Header, Packet
from servicepath.model.rules import Ruleset
from servicepath.model.service_rules import NodeRules
from servicepath.model.services import ServicePort
from servicepath.parse.iptables import parse_save
from servicepath.parse.nft import parse_kube_proxy_nft

TEXT = rule_cases.text("06", "nft-list-table-ip-kube-proxy.txt")
VIP = ipaddress.ip_address("10.43.0.10")
DNS = ServicePort("kube-system", "kube-dns", "dns", "UDP", 53, 53, None, None)
BACKEND = Socket(ipaddress.ip_address("10.42.0.171"), 53)


def expected(*sockets: Socket, exact: bool = True) -> Expected:
    return Expected(frozenset(sockets), False, False, exact, frozenset(sockets), True, False, False)


def judged(text: str, wanted: Expected):
    table = parse_kube_proxy_nft(text)
    return (*judge_nft.service_rule("master", DNS, VIP, table, wanted), *judge_nft.backend_choice("master", DNS, VIP, table, wanted))


def test_the_map_leads_to_exactly_the_serving_endpoints():
    assert judged(TEXT, expected(BACKEND)) == ()
    way = judge_nft.walk(parse_kube_proxy_nft(TEXT), VIP, "UDP", 53)
    assert "service-ips: 10.43.0.10:53 udp → service-FY5PMXPG-kube-system/kube-dns/udp/dns" in way.lines
    assert way.lines[-1].endswith("meta l4proto udp dnat to 10.42.0.171:53")


def test_an_endpoint_too_few_and_one_too_many_are_named():
    other = Socket(ipaddress.ip_address("10.42.1.9"), 53)
    (wrong,) = judged(TEXT, expected(BACKEND, other))
    assert (wrong.problem, wrong.expected) == ("does not go to a serving endpoint", "10.42.1.9:53")
    assert judged(TEXT, expected(BACKEND, other, exact=False)) == ()
    assert [each.actual for each in judged(TEXT, expected(other, exact=False))] == ["10.42.0.171:53"]


def test_an_endpoints_chain_without_its_rule_is_seen():
    """As seen on a node whose kube-proxy v1.34 was restarted in nftables mode: the chain is there, and nothing in it."""
    emptied = "\n".join(line for line in TEXT.splitlines() if "udp dnat to 10.42.0.171:53" not in line)
    assert judged(emptied, expected(BACKEND))[0].problem == "does not go to a serving endpoint"


def test_a_service_that_the_map_does_not_have_and_one_that_nobody_serves():
    gone = TEXT.replace("10.43.0.10 . udp . 53 ", "10.43.0.99 . udp . 53 ")
    assert judged(gone, expected(BACKEND))[0].problem == "has no element for 10.43.0.10:53/UDP"
    assert judged(gone, expected())[0].problem == "does not refuse 10.43.0.10:53 as it should though no endpoint serves"


def rules(nft: str = "", legacy: str = "") -> NodeRules:
    def one(name: str, text: str) -> Ruleset:
        return parse_save(f"*nat\n{text}COMMIT\n", backend=name)

    return NodeRules(one("nft", nft), one("legacy", legacy))


def test_chains_of_another_mode_are_left_over_and_the_kubelets_are_not():
    others = rules(":KUBE-IPTABLES-HINT - [0:0]\n:KUBE-FIREWALL - [0:0]\n:CILIUM_POST_nat - [0:0]\n")
    assert judge_nft.left_in_iptables("master", others) == ()
    (wrong,) = judge_nft.left_in_iptables("master", rules(legacy=":KUBE-SERVICES - [0:0]\n:KUBE-SVC-TCOU7JCQXEZGVUNU - [0:0]\n"))
    assert wrong.actual == "2 chains"
    assert "legacy: nat KUBE-SERVICES" in wrong.evidence


NODE = ipaddress.ip_address("192.168.55.10")
ELSEWHERE = ipaddress.ip_address("10.42.2.200")
POD = ipaddress.ip_address("10.42.0.50")
POD_BACKEND = Socket(ipaddress.ip_address("10.42.1.113"), 53)


class Objects:
    """As much of the API's objects as the join asks for."""

    pod_ips = frozenset({POD, POD_BACKEND.ip, BACKEND.ip})

    def node_of(self, ip):  # noqa: D102
        return "worker1" if ip == POD_BACKEND.ip else "master"


def entry(source, destination, reply_from, reply_to) -> ConntrackEntry:
    return ConntrackEntry("UDP", (source, destination), (reply_from, reply_to), None, False, True, 30, None, raw="the entry")


def traced(source: Source, conntrack=(), ct=(), packets=()):
    probe = Probe("p", "host", source, DNS, Socket(VIP, 53), 20000, (), 1.0)
    client = POD if source is Source.POD else None
    index = join.PacketIndex({"underlay": Capture("enp1s0", "", tuple(packets), True)})
    return join.trace(Flow(probe, (), None, None), client, join.FlowTables(conntrack, ct), index, Objects(), {ELSEWHERE})


def test_two_flows_that_masquerading_gave_one_port_towards_two_backends_are_told_apart():
    """As seen on a node: the port that masquerading chooses need only be free towards one backend."""
    masqueraded, other = Socket(ipaddress.ip_address("10.42.0.96"), 24675), Socket(ipaddress.ip_address("10.42.2.9"), 53)
    mine = entry(Socket(NODE, 20000), Socket(VIP, 53), POD_BACKEND, masqueraded)
    theirs = entry(Socket(NODE, 20013), Socket(VIP, 53), other, masqueraded)

    def packet(to):
        header = Header(masqueraded.ip, to.ip, "UDP", masqueraded.port, to.port, 105)
        return Packet("enp1s0", 1.0, header, None, None, None, None, None, 77)

    stray = Socket(ipaddress.ip_address("10.42.9.9"), 53)
    packets = [packet(POD_BACKEND), packet(other), packet(stray)]

    found = traced(Source.HOST, [mine, theirs], packets=packets).packets["underlay"]

    assert [each.outer.destination for each in found] == [POD_BACKEND.ip, stray.ip]


def test_a_flow_that_ended_before_and_had_the_same_masqueraded_port_takes_no_packet_away():
    """As seen on a node: an entry in its last second, in the reading before; masquerading then gave its port to our flow."""
    masqueraded = Socket(ipaddress.ip_address("10.42.0.96"), 24675)
    mine = entry(Socket(NODE, 20000), Socket(VIP, 53), POD_BACKEND, masqueraded)
    ended = entry(Socket(NODE, 24675), Socket(VIP, 53), POD_BACKEND, masqueraded)
    header = Header(masqueraded.ip, POD_BACKEND.ip, "UDP", masqueraded.port, 53, 105)
    packet = Packet("enp1s0", 1.0, header, None, None, None, None, None, 77)

    assert traced(Source.HOST, [mine, ended], packets=[packet]).packets["underlay"] == (packet,)


def test_a_flow_of_which_one_way_is_outside_the_tunnel_is_not_carried_by_it():
    mine = Socket(NODE, 20000)

    def packet(vni):
        header = Header(mine.ip, POD_BACKEND.ip, "UDP", mine.port, 53, 105)
        return Packet("enp1s0", 1.0, header, vni, header if vni else None, None, None, None, 77)

    held = [entry(mine, Socket(VIP, 53), POD_BACKEND, mine)]
    said = [matrix.transport(traced(Source.HOST, held, packets=map(packet, vnis))) for vnis in ((7, 7), (None, 7), (7, None))]
    assert said == ["Cilium VXLAN", matrix.PLAIN, matrix.PLAIN]


def test_rules_that_policy_makes_differ_are_no_difference_in_nftables_mode_either():
    other = {"master": parse_kube_proxy_nft(TEXT), "worker1": parse_kube_proxy_nft(TEXT.replace("10.42.0.171:53", "10.42.1.9:53"))}
    objects, service = both()
    local = dataclasses.replace(objects, services=(dataclasses.replace(service, internal_traffic_policy="Local"),))

    assert service.cluster_ips == (VIP,)
    assert judge_equal_rules.judge_equal_rules(other, objects)
    assert judge_equal_rules.judge_equal_rules(other, local) == ()
    assert judge_equal_rules.judge_equal_rules(other, objects, {service.key}) == ()


def test_a_hosts_flow_that_began_at_the_backend_is_found_and_right():
    mine = Socket(NODE, 20000)
    trace = traced(Source.HOST, [entry(mine, POD_BACKEND, POD_BACKEND, mine), entry(Socket(POD, 20000), POD_BACKEND, POD_BACKEND, mine)])
    assert len(trace.conntrack) == 1
    assert (trace.backend, trace.backend_node) == (POD_BACKEND, "worker1")
    assert judge_connect.not_at_connect([trace], {POD_BACKEND}) == ()
    assert judge_connect.not_at_connect([trace], {BACKEND})[0].problem == "went to no serving endpoint"


def test_another_nodes_flow_from_the_same_port_is_not_this_hosts():
    trace = traced(Source.HOST, [entry(Socket(ELSEWHERE, 20000), BACKEND, BACKEND, Socket(ELSEWHERE, 20000))])
    assert (trace.conntrack, trace.backend) == ((), None)


def test_a_flow_that_iptables_translated_was_not_translated_at_connect():
    mine = Socket(NODE, 20000)
    trace = traced(Source.HOST, [entry(mine, Socket(VIP, 53), POD_BACKEND, mine)])
    assert [wrong.problem for wrong in judge_connect.not_at_connect([trace], {POD_BACKEND})] == ["a flow table knows the ClusterIP"]


def test_a_pods_flow_that_ebpf_translated_was_not_translated_at_connect():
    mine = Socket(POD, 20000)
    out = CtEntry("UDP", "OUT", mine, POD_BACKEND, 0, raw="out")
    service = CtEntry("UDP", "SVC", mine, Socket(VIP, 53), 0, raw="svc")
    assert judge_connect.not_at_connect([traced(Source.POD, ct=[out])], {POD_BACKEND}) == ()
    (wrong,) = judge_connect.not_at_connect([traced(Source.POD, ct=[out, service])], {POD_BACKEND})
    assert (wrong.problem, wrong.evidence) == ("a flow table knows the ClusterIP", ("svc",))


def test_a_flow_without_any_trace_is_not_taken_for_right():
    assert judge_connect.not_at_connect([traced(Source.HOST)], {POD_BACKEND})[0].actual == "no backend seen"


def test_without_a_kube_proxy_two_dataplanes_are_compared():
    objects, service = both()
    held = gathered(objects, service, rules=None, agent=LISTED, lb_map=())
    assert [view.source for view in held.views] == [judge_dataplanes.AGENT, judge_dataplanes.MAP]
    assert held.serving_lines[0] == "10.42.1.113:53"
    assert {wrong.subject.split(",")[0] for wrong in judge_dataplanes.differing(held)} >= {"master: Cilium's load-balancing map"}
    beside = gathered(objects, service, rules=(), agent=LISTED, lb_map=())
    assert beside.views[0].source == judge_dataplanes.RULES
    assert dataclasses.replace(beside, views=beside.views[1:]) == held
    assert at("10.42.1.113:53") in held.views[0].backends


@pytest.mark.parametrize("held", [":KUBE-SERVICES - [0:0]\n", ""])
def test_a_window_counts_only_where_kube_proxys_chains_are(held):
    from servicepath.model.windows import Cut, Window

    cut = Cut(parse_save(f"*nat\n{held}COMMIT\n"), (None, None), ((), ()))
    assert Window("host", cut, cut, frozenset(), frozenset()).counts == bool(held)


@pytest.mark.parametrize(
    ("source", "mode", "who"),
    [
        (Source.HOST, EXPECTED, "kube-proxy (iptables)"),
        (Source.POD, EXPECTED, "Cilium (eBPF)"),
        (Source.HOST, dataclasses.replace(EXPECTED, proxy_mode="nftables"), "kube-proxy (nftables)"),
        (Source.HOST, dataclasses.replace(EXPECTED, socket_lb=True), "Cilium (socket LB)"),
        (Source.POD, dataclasses.replace(EXPECTED, socket_lb=True), "Cilium (socket LB)"),
        (Source.POD, dataclasses.replace(EXPECTED_REPLACED, hostns_only=True), "Cilium (eBPF)"),
        (Source.HOST, dataclasses.replace(EXPECTED_REPLACED, hostns_only=True), "Cilium (socket LB)"),
        (Source.HOST, dataclasses.replace(EXPECTED_REPLACED, socket_lb=False), "Cilium (eBPF)"),
    ],
)
def test_the_matrix_expects_what_the_set_up_makes_of_a_flow(source, mode, who):
    assert matrix.expected_translator(source, mode) == who


def test_the_matrix_tells_a_flow_of_socket_lb_from_one_that_kube_proxy_translated():
    with_lb, nft = dataclasses.replace(EXPECTED, socket_lb=True), dataclasses.replace(EXPECTED, proxy_mode="nftables")
    mine = Socket(NODE, 20000)

    def answered(target):
        trace = traced(Source.HOST, [entry(mine, target, POD_BACKEND, mine)])
        return dataclasses.replace(trace, flow=dataclasses.replace(trace.flow, connected=True))

    early, late = answered(POD_BACKEND), answered(Socket(VIP, 53))

    def seen(trace, mode):
        return matrix.cell("master", trace.probe.port, Source.HOST, [trace], "", mode=mode)

    assert (seen(early, with_lb).translated_by, seen(early, with_lb).verdict) == ("Cilium (socket LB)", matrix.EXPECTED)
    assert (seen(late, with_lb).translated_by, seen(late, with_lb).verdict) == ("kube-proxy (iptables)", matrix.UNEXPECTED)
    assert (seen(late, nft).translated_by, seen(late, nft).verdict) == ("kube-proxy (nftables)", matrix.EXPECTED)
    assert seen(early, EXPECTED).verdict == matrix.UNEXPECTED
    (wrong,) = matrix.unexpected([seen(late, with_lb)])
    assert "Cilium (socket LB)" in str(wrong)
