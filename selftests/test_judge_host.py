"""A ClusterIP on a host: interfaces, sockets, tables; what is a fault, what is none, and which listing proves nothing."""

import dataclasses
import ipaddress
import pathlib

import host_samples as sample
import pytest
from host_samples import VIP, ip, net

from servicepath.model import judge_host, lan
from servicepath.model.addresses import Socket
from servicepath.model.routing import ServiceNetwork, lookup_targets, service_network
from servicepath.model.rules import Ruleset
from servicepath.model.service_rules import NodeRules
from servicepath.parse import iproute
from servicepath.parse.iptables import parse_save
from servicepath.parse.sockets import parse_ss

CASES = pathlib.Path(__file__).parent / "data" / "cases"
KNOWN = ServiceNetwork((net("10.43.0.0/16"),), frozenset({VIP}), ())
SS = 'tcp LISTEN 0 128 0.0.0.0:22 0.0.0.0:* users:(("sshd",pid=1,fd=3))\nudp UNCONN 0 0 0.0.0.0:8472 0.0.0.0:*\n'


def read(case, name):
    return next(CASES.glob(f"{case}-*")).joinpath(name).read_text()


def judged(**changes):
    network = changes.pop("network", KNOWN)
    return judge_host.judge_no_route("master", sample.routing(**changes), [VIP], network)


@pytest.mark.parametrize("name", ["ip-addr.txt", "ip-j-addr.json"])
def test_case_12_a_down_interface_counts_and_the_mode_is_named(name):
    vips = [ip("10.43.0.1"), ip("10.43.0.10"), ip("10.43.157.93")]
    wrong = judge_host.judge_no_interface("node1", iproute.parse_ip_addr(read("12", name)), vips)
    assert len(wrong) == 3
    assert all("kube-ipvs0" in d.subject and "IPVS mode" in d.actual for d in wrong)


def test_case_12_local_routes_to_clusterips_are_named():
    routes = read("12", "ip-route-local.txt").replace(" proto", " table local proto") + sample.ROUTES
    wrong = judged(routes=routes, lookups="local 10.43.0.10 dev lo table local src 10.43.0.10\n")
    assert len(wrong) == 4
    assert "does not leave the host" in str(wrong[-1])
    assert sum("IPVS mode" in str(d) for d in wrong) == 3


@pytest.mark.parametrize(
    ("case", "name", "vip"),
    [("05", "ip-addr.txt", "10.100.0.10"), ("20", "svclb-pod-ip-j-addr.json", "10.43.190.44"), ("16", "ip-j-addr.json", "10.96.0.10")],
)
def test_no_interface_of_the_other_cases_holds_a_clusterip(case, name, vip):
    assert judge_host.judge_no_interface("node1", iproute.parse_ip_addr(read(case, name)), [ip(vip)]) == ()


def test_an_endpoints_address_on_an_interface_is_fine():
    assert judge_host.judge_no_interface("master", sample.interfaces(), [VIP]) == ()  # 192.168.55.10 is default/kubernetes' endpoint


def test_a_listing_without_the_nodes_own_address_proves_nothing():
    assert judge_host.interfaces_silent(sample.interfaces(), sample.node()) is None
    assert "192.168.55.99" in judge_host.interfaces_silent(sample.interfaces(), sample.node("master", "192.168.55.99"))
    assert judge_host.interfaces_silent((), sample.node())


def test_a_socket_on_the_clusterip_is_named_with_its_process():
    line = 'udp UNCONN 0 0 10.43.0.10:53 0.0.0.0:* users:(("node-cache",pid=7,fd=3))'
    wrong = judge_host.judge_no_listener("master", parse_ss(f"{SS}{line}\n"), [VIP])
    assert len(wrong) == 1
    assert "node-cache" in str(wrong[0])
    assert wrong[0].evidence == (line,)


def test_a_wildcard_socket_is_none_of_the_clusterips():
    assert judge_host.judge_no_listener("master", parse_ss(SS), [VIP]) == ()


def test_a_listing_without_sshd_proves_nothing_where_we_came_by_ssh():
    kubelet = parse_ss('tcp LISTEN 0 128 *:10250 *:* users:(("kubelet",pid=1,fd=3))\n')
    moved = parse_ss('tcp LISTEN 0 128 *:2222 *:* users:(("sshd",pid=1,fd=3))\n')
    assert judge_host.listeners_silent(parse_ss(SS), by_ssh=True) is None
    assert judge_host.listeners_silent(moved, by_ssh=True) is None
    assert judge_host.listeners_silent(kubelet, by_ssh=True)
    assert judge_host.listeners_silent(kubelet, by_ssh=False) is None
    assert judge_host.listeners_silent(parse_ss(SS.splitlines(keepends=True)[1]), by_ssh=False)


def test_a_node_as_cilium_leaves_it_has_no_route_inside():
    assert judged() == ()


@pytest.mark.parametrize(
    "route",
    [
        "10.43.0.10 dev enp1s0", "10.43.0.0/16 via 192.168.55.11 dev enp1s0", "blackhole 10.43.0.0/24", "unreachable 10.43.128.0/17",
        "local 10.43.0.10 dev lo table local", "10.43.0.10 dev dummy0 table default", "throw 10.43.0.10",
    ],
)  # fmt: skip
def test_a_route_inside_the_service_cidr_is_a_fault_of_any_type_in_any_reached_table(route):
    wrong = judged(routes=sample.ROUTES + route + "\n")
    assert wrong
    assert "route inside the Service CIDR" in str(wrong[0])


@pytest.mark.parametrize("refusal", ["Permission denied", "Invalid argument", "Network is unreachable"])
def test_a_rule_that_refuses_the_service_cidr_is_a_fault_and_hides_no_control(refusal):
    kind = {"Permission denied": "prohibit", "Invalid argument": "blackhole"}.get(refusal, "unreachable")
    host = sample.routing(rules=f"50:\tfrom all to 10.43.0.0/16 {kind}\n{sample.RULES}", lookups="")
    refused = iproute.parse_ip_route_get("", VIP, error_text=f"RTNETLINK answers: {refusal}\n")
    host = dataclasses.replace(host, lookups={VIP: refused})
    assert judge_host.routing_silent(host, "master", sample.objects(), VIP) is None
    wrong = judge_host.judge_no_route("master", host, [VIP], KNOWN)
    assert [d.problem for d in wrong] == ["refuses unmarked packets to 10.43.0.10", "has no way"]


def test_a_rule_that_refuses_some_users_the_service_cidr_is_a_fault_too():
    rule = "50:\tfrom all to 10.43.0.0/16 uidrange 1234-1234 prohibit\n"
    assert "50: from all to 10.43.0.0/16" in str(judged(rules=rule + sample.RULES)[0])
    assert judged(rules=rule.replace("10.43.0.0/16", "10.0.0.0/8") + sample.RULES) == ()
    assert judged(rules=rule.replace("uidrange 1234-1234", "fwmark 0x1") + sample.RULES) == ()


@pytest.mark.parametrize("route", ["10.0.0.0/8 via 192.168.55.2 dev enp1s0", "10.42.0.0/15 via 192.168.55.2 dev enp1s0"])
def test_a_prefix_wider_than_the_service_cidr_is_legal(route):
    assert judged(routes=sample.ROUTES + route + "\n") == ()


def test_a_table_for_marked_packets_is_none_of_these():
    assert judged(routes=sample.ROUTES + "local 10.43.0.0/16 dev lo table 2004\n") == ()
    # An unmarked packet meets a rule for mark 0, and one for every mark but some other.
    for rule in ("8:\tfrom all fwmark 0/0xf00 lookup 2004", "8:\tnot from all fwmark 0xca6c lookup 2004"):
        assert judged(routes=sample.ROUTES + "local 10.43.0.0/16 dev lo table 2004\n", rules=f"{rule}\n{sample.RULES}")


@pytest.mark.parametrize("rule", ["from all iif eth1", "from 192.168.55.10", "from all uidrange 0-0", "from all to 10.43.0.0/16"])
def test_a_table_that_only_some_unmarked_packets_reach_is_reached(rule):
    rules = f"50:\t{rule} lookup 102\n{sample.RULES}"
    assert judged(rules=rules, routes=sample.ROUTES + "10.43.0.0/16 dev tun0 table 102\n")


def test_a_table_for_other_destinations_is_not_reached():
    rules = f"50:\tfrom all to 10.50.0.0/16 lookup 102\n{sample.RULES}"
    assert judged(rules=rules, routes=sample.ROUTES + "10.43.0.0/16 dev tun0 table 102\n") == ()


def test_what_stands_behind_a_final_rule_or_a_goto_is_not_reached():
    routes = sample.ROUTES + "10.43.0.0/16 dev tun0 table 102\n"
    behind = sample.RULES + "40000:\tfrom all lookup 102\n"
    assert judged(rules=behind, routes=routes)
    assert judged(rules=behind.replace("40000", "33000") + "32800:\tfrom all unreachable\n", routes=routes) == ()
    assert judged(rules=sample.RULES + "5:\tfrom all goto 100\n6:\tfrom all lookup 102\n", routes=routes) == ()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("local 10.43.0.10 dev lo table local src 10.43.0.10", "does not leave the host"),
        ("10.43.0.10 dev cilium_host src 10.42.0.9", "goes another way than the tables"),
    ],
)
def test_the_kernels_own_answer_must_agree(answer, says):
    assert says in str(judged(lookups=answer + "\n")[0])


def test_no_way_at_all_is_a_fault_since_routing_comes_before_translation():
    refused = iproute.parse_ip_route_get("", VIP, error_text="RTNETLINK answers: Network is unreachable")
    host = sample.routing(routes=sample.ROUTES.replace("default via 192.168.55.1 dev enp1s0\n", ""), lookups="")
    host = type(host)(host.rules, host.routes, {VIP: refused})
    wrong = judge_host.judge_no_route("master", host, [VIP], KNOWN)
    assert [d.problem for d in wrong] == ["has no way"]


def test_several_ways_and_several_rules_lead_where_the_kernel_says():
    routes = sample.ROUTES.replace(
        "default via 192.168.55.1 dev enp1s0\n",
        "default\n\tnexthop via 192.168.55.1 dev enp1s0 weight 1\n\tnexthop via 10.9.9.1 dev wlan0 weight 1\n",
    )
    assert judged(routes=routes, lookups="10.43.0.10 via 10.9.9.1 dev wlan0 src 10.9.9.2\n") == ()
    # wg-quick: everything but the default route from main, and that from the tunnel.
    rules = (
        "100:\tfrom all lookup local\n200:\tfrom all lookup main suppress_prefixlength 0\n"
        "300:\tnot from all fwmark 0xca6c lookup 51820\n32766:\tfrom all lookup main\n"
    )
    tunnel = sample.ROUTES + "default dev wg0 table 51820\n"
    assert judged(rules=rules, routes=tunnel, lookups="10.43.0.10 dev wg0 src 10.8.0.2\n") == ()


def test_without_a_published_service_cidr_wide_prefixes_are_told_from_its_own():
    network = service_network(sample.objects())
    assert network.cidrs == ()
    inside = {text for text in ("10.43.0.0/16", "10.43.0.10/32", "10.43.0.0/12", "10.40.0.0/13", "10.42.0.0/15", "0.0.0.0/0", "10.0.0.0/8")
              if network.holds(ipaddress.ip_network(text, strict=False))}  # fmt: skip
    # 10.40.0.0/13 and wider hold PodCIDRs as well, which no Service CIDR does.
    assert inside == {"10.43.0.0/16", "10.43.0.10/32"}


def test_the_apis_word_and_the_inventorys_go_before_the_guess():
    published = sample.objects(service_cidrs=(net("10.43.0.0/16"),))
    assert service_network(published).holds(net("10.43.99.0/24"))
    assert not service_network(sample.objects()).holds(net("10.43.99.0/24"))  # holds no ClusterIP: not known to be inside
    assert service_network(published, [net("10.96.0.0/12")]).cidrs == (net("10.96.0.0/12"),)


def test_lookups_are_wanted_for_the_clusterips_and_each_remote_podcidr():
    outside = sample.cilium_node("worker3", "10.42.3.0/24", "10.99.0.1")
    wanted = lookup_targets(sample.objects(cilium_nodes=(*sample.NODES, outside)), "master", [VIP])
    assert wanted == (VIP, ip("10.42.1.182"), ip("10.42.2.7"), ip("10.42.3.1"))


def test_a_listing_without_another_nodes_podcidr_proves_nothing():
    objects, single = sample.objects(), sample.objects(cilium_nodes=sample.NODES[:1])
    assert judge_host.routing_silent(sample.routing(), "master", objects, VIP) is None
    fewer = sample.routing(routes="default via 192.168.55.1 dev enp1s0\n")
    assert "10.42.1.0/24" in judge_host.routing_silent(fewer, "master", objects, VIP)
    assert judge_host.routing_silent(sample.routing(), "master", single, VIP) is None
    assert judge_host.routing_silent(fewer, "master", single, VIP)
    assert "was not asked" in judge_host.routing_silent(sample.routing(lookups=""), "master", objects, VIP)
    other_ipam = sample.objects(cilium_nodes=())
    assert judge_host.routing_silent(sample.routing(), "master", other_ipam, VIP) is None
    assert judge_host.routing_silent(fewer, "master", other_ipam, VIP)


def test_case_05_routes_and_rules_of_another_cni_hold_nothing_of_the_service_cidr():
    host = sample.routing(
        rules=read("05", "ip-rule.txt"), routes=read("05", "ip-route.txt"), lookups="10.100.0.10 via 172.31.0.1 dev eth0 src 172.31.0.225\n"
    )
    vip = ip("10.100.0.10")
    network = ServiceNetwork((), frozenset({vip, ip("10.100.0.1"), ip("10.100.192.187")}), ())
    assert judge_host.judge_no_route("node1", host, [vip], network) == ()
    assert host.reachable_tables(vip) == ("102", "101", "local", "main", "default")


SAVE = "*nat\n:PREROUTING ACCEPT [0:0]\n{chain}-A {rule}\nCOMMIT\n"


def lan_facts(
    *, routes="default via 192.168.55.1 dev eth0\n", save="*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n", vip=False, node=True, nft=True
):
    def attempt(target, connected):
        host, number = target.split(":")
        return lan.Connect(Socket(ip(host), int(number)), connected, None if connected else "timed out", 3.0, f"connect {target}")

    return lan.LanHostFacts(
        name="lan-client",
        interfaces=(),
        routing=sample.routing(routes=routes, rules="0:\tfrom all lookup local\n32766:\tfrom all lookup main\n", lookups=""),
        rules=NodeRules(parse_save(save) if nft else None, Ruleset("legacy", {})),
        connect_to_vip=attempt("10.43.0.10:53", vip),
        connect_to_node=attempt("192.168.55.10:6443", node),
    )


def test_a_plain_lan_host_has_neither():
    facts = lan_facts()
    assert lan.lan_host_silent(facts) is None
    assert lan.judge_lan_host(facts, VIP, KNOWN) == ()


def test_each_thing_that_a_lan_host_must_not_have_is_named():
    assert "route to the Service CIDR" in str(
        lan.judge_lan_host(lan_facts(routes="10.43.0.0/16 via 192.168.55.10 dev eth0\n"), VIP, KNOWN)[0]
    )
    assert "was made" in str(lan.judge_lan_host(lan_facts(vip=True), VIP, KNOWN)[0])
    proxy = SAVE.format(chain=":KUBE-SERVICES - [0:0]\n", rule="KUBE-SERVICES -d 10.43.0.10/32 -p udp -j ACCEPT")
    own = SAVE.format(chain="", rule="PREROUTING -d 10.43.0.10/32 -p udp -m udp --dport 53 -j DNAT --to-destination 10.42.1.113:53")
    other = SAVE.format(chain="", rule="PREROUTING -d 192.168.55.0/24 -j ACCEPT")
    assert [len(lan.judge_lan_host(lan_facts(save=save), VIP, KNOWN)) for save in (proxy, own, other)] == [1, 1, 0]


def test_a_lan_host_that_saw_nothing_proves_nothing():
    assert "iptables-nft-save is not there (package iptables)" in lan.lan_host_silent(lan_facts(nft=False))
    assert "does not connect to the node either" in lan.lan_host_silent(lan_facts(node=False))
    assert "no route at all" in lan.lan_host_silent(lan_facts(routes=""))


def test_each_of_a_dual_stack_services_clusterips_is_judged():
    network = ServiceNetwork((net("10.43.0.0/16"), net("fd00:43::/112")), frozenset(), ())
    six, host = ip("fd00:43::a"), sample.routing(routes=sample.ROUTES)
    leaked = dataclasses.replace(host, routes=(*host.routes, *iproute.parse_ip_route("fd00:43::/112 dev enp1s0\n", family=6)))

    assert judge_host.judge_no_route("master", leaked, [VIP], network) == ()
    (wrong,) = judge_host.judge_no_route("master", leaked, [VIP, six], network)
    assert "fd00:43::/112" in str(wrong)
    assert len(judge_host.reachable_routes(leaked, [VIP, VIP, six])) == len(set(judge_host.reachable_routes(leaked, [VIP, six])))
