"""The walk and the judgements bite: a healthy node is green, and each thing that can be wrong is found and named."""

import dataclasses
import ipaddress
import re

import pytest
import rule_cases
from healthy_rules import API, API_END, DNS, ENDS, KUBE_SEP, KUBE_SVC, KUBERNETES, SEPS, SVC, VIP, expect, judged, line, node_rules, save

from servicepath.model import (
    chain_names,
    expected_endpoints,
    judge_chain_names,
    judge_equal_rules,
    judge_rules,
    rule_entry,
)
from servicepath.model.addresses import Socket
from servicepath.model.difference import explain
from servicepath.model.rule_entry import Match, Packet
from servicepath.model.rules import Ruleset
from servicepath.model.service_rules import NodeRules
from servicepath.parse.iptables import parse_save


def test_a_healthy_node_has_no_difference():
    assert not judged(node_rules())
    assert judge_chain_names.predicts_kubernetes(node_rules().active, API)
    assert judge_rules.unseen(node_rules(), expect()) is None


def test_the_hash_is_that_of_the_notes():
    assert SVC == "KUBE-SVC-TCOU7JCQXEZGVUNU"
    notes = Socket(ipaddress.ip_address("10.42.1.113"), 53)
    assert chain_names.endpoint_chain("kube-system/kube-dns:dns", "UDP", notes) == "KUBE-SEP-L5JRWRCR3OTUNAH5"
    assert chain_names.service_chain("default/kubernetes:https", "TCP") == "KUBE-SVC-NPX46M4PTMTKRN6Y"


ORPHAN = (":KUBE-SERVICES - [0:0]\n:KUBE-SVC", ":KUBE-SERVICES - [0:0]\n:KUBE-SEP-AAAAAAAAAAAAAAAA - [0:0]\n:KUBE-SVC")
CHANCE = "-m statistic --mode random --probability 0.50000000000 "
OTHER = ("--to-destination 10.42.1.7:53", "--to-destination 10.42.2.7:53")
MUTANTS = [
    ("service-rule", "can translate", ("-A PREROUTING -j CILIUM_PRE_nat\n", "-A PREROUTING -p udp -j DNAT --to-destination 1.2.3.4:5\n")),
    ("service-rule", "can translate", (line("-A PREROUTING -j CIL"), line("-A PREROUTING -j CIL") + "-A CILIUM_PRE_nat -j REDIRECT\n")),
    ("service-rule", "OUTPUT - does not lead", ("[9:540] -A OUTPUT -j KUBE-SERVICES\n", "")),
    ("service-rule", "leads only some packets", ("[9:540] -A OUTPUT -j", "[9:540] -A OUTPUT -o eth0 -j")),
    ("service-rule", "ends the packet's way", ("[9:540] -A OUTPUT -j", "-A OUTPUT -p udp -j ACCEPT\n-A OUTPUT -j")),
    ("service-rule", "has no rule for 10.43.0.10:53/UDP", (line(f"-d 10.43.0.10/32 .*-j {SVC}"), "")),
    ("service-rule", "leads 10.43.0.10:53/UDP to another chain", (f"--dport 53 -j {SVC}", f"--dport 53 -j {KUBE_SVC}")),
    ("service-rule", "has several rules", (line(f"-d 10.43.0.10/32 .*-j {SVC}"), 2 * line(f"-d 10.43.0.10/32 .*-j {SVC}"))),
    ("service-rule", "takes only some packets", ("-A KUBE-SERVICES -d 10.43.0.10/32", "-A KUBE-SERVICES -s 10.1.0.0/16 -d 10.43.0.10/32")),
    ("service-rule", "refuses 10.43.0.10:53/UDP though", (
        "[9:540] -A FORWARD", "-A KUBE-SERVICES -d 10.43.0.10/32 -p udp -m udp --dport 53 -j REJECT\n[9:540] -A FORWARD"
    )),
    ("chain-names", "is missing", (SEPS[1], "KUBE-SEP-AAAAAAAAAAAAAAAA")),
    ("chain-names", "is not the hash of any", (SEPS[1], "KUBE-SEP-AAAAAAAAAAAAAAAA")),
    ("chain-names", "is orphaned", ORPHAN),
    ("chain-names", "leads to another chain", (f"--dport 53 -j {SVC}", f"--dport 53 -j {KUBE_SVC}")),
    ("chain-names", "translates to another endpoint than its name says", OTHER),
    ("backend-choice", "has no jump to a serving endpoint", (line(f"-A {SVC} .*-j {SEPS[1]}"), "")),
    ("backend-choice", "jumps more than once", (line(f"-A {SVC} .*-j {SEPS[1]}"), 2 * line(f"-A {SVC} .*-j {SEPS[1]}"))),
    ("backend-choice", "does not give endpoints equal chances", ("0.50000000000", "0.40000000000")),
    ("backend-choice", "does not give endpoints equal chances", (CHANCE, "")),
    ("backend-choice", "kube-proxy does not write", (f"[1:77] -A {SVC} -j", f"-A {SVC} -s 10.9.9.9/32 -j ACCEPT\n[1:77] -A {SVC} -j")),
    ("backend-choice", "jumps to what is no serving endpoint", (f"-A {SVC} -j {SEPS[2]}", f"-A {SVC} -j {KUBE_SEP}")),
    ("endpoint-dnat", "translates to another endpoint", OTHER),
    ("endpoint-dnat", "translates to what is no serving endpoint", ("--to-destination 10.42.1.7:53", "--to-destination 10.42.1.7:54")),
    ("endpoint-dnat", "does not translate to one endpoint", ("--to-destination 10.42.1.7:53", "--to-destination :0 --persistent")),
    ("endpoint-dnat", "no DNAT rule", (line("DNAT --to-destination 10.42.1.7:53"), "")),
    ("endpoint-dnat", "translates another protocol", (f"-A {SEPS[1]} -p udp", f"-A {SEPS[1]} -p tcp")),
]  # fmt: skip


@pytest.mark.parametrize(("conclusion", "problem", "edit"), MUTANTS, ids=[f"{number} {m[0]}: {m[1]}" for number, m in enumerate(MUTANTS)])
def test_each_conclusion_bites(conclusion, problem, edit):
    found = judged(node_rules(edit))

    assert problem in explain(found.get(conclusion, ()))


@pytest.mark.parametrize(
    "rule",
    [
        "-A PREROUTING -m addrtype --dst-type LOCAL -j DNAT --to-destination 1.2.3.4:5",
        "-A PREROUTING -d 10.0.0.0/24 -j DNAT --to-destination 1.2.3.4:5",
        "-A PREROUTING ! -d 10.43.0.0/16 -j REDIRECT --to-ports 99",
        "-A PREROUTING -p tcp -j REDIRECT --to-ports 99",
        "-A PREROUTING -p udp -m udp --dport 80 -j REDIRECT --to-ports 99",
        "-A PREROUTING -p udp -m multiport --dports 80,1000:2000 -j REDIRECT --to-ports 99",
        "-A PREROUTING -p udp -m multiport ! --dports 1:100 -j REDIRECT --to-ports 99",
        "-A PREROUTING -o eth0 -j REDIRECT --to-ports 99",
        "-A CILIUM_PRE_nat -j RETURN\n-A CILIUM_PRE_nat -j REDIRECT --to-ports 99",
        "-A PREROUTING -m mark --mark 0x1 -j ACCEPT",
        "-A PREROUTING -j MARK --set-xmark 0x1/0x1",
    ],
)
def test_what_cannot_translate_this_packet_is_harmless_before_kube_services(rule):
    before = "[1:60] -A PREROUTING -j KUBE-SERVICES"

    assert not judged(node_rules((before, f"{rule}\n{before}")))


@pytest.mark.parametrize(
    "rule",
    [
        "-A PREROUTING -i eth0 -j REDIRECT --to-ports 99",
        "-A PREROUTING -m mark --mark 0x1 -j REDIRECT --to-ports 99",
        "-A PREROUTING -p udp -m multiport --dports 50:60 -j REDIRECT --to-ports 99",
        "-A CILIUM_PRE_nat -m mark --mark 0x2 -j RETURN\n-A CILIUM_PRE_nat -j REDIRECT --to-ports 99",
    ],
)
def test_what_can_translate_this_packet_is_not(rule):
    before = "[1:60] -A PREROUTING -j KUBE-SERVICES"

    assert "can translate" in explain(judged(node_rules((before, f"{rule}\n{before}")))["service-rule"])


@pytest.mark.parametrize(
    ("rule", "leaves"),
    [
        ("-A OUTPUT -m owner --uid-owner 1234 -j ACCEPT", True),
        ("-A OUTPUT -m owner --uid-owner 1234 -j RETURN", True),
        ("-A OUTPUT -m owner --uid-owner 1234 -g CILIUM_PRE_nat", True),
        ("-A OUTPUT -s 192.0.2.0/24 -j CILIUM_PRE_nat\n-A CILIUM_PRE_nat -j ACCEPT", True),
        ("-A OUTPUT -m mark ! --mark 0x1 -j RETURN", True),
        ("-A OUTPUT -m mark --mark 0x0/0x1 -j RETURN", True),
        ("-A OUTPUT -m mark --mark 0x1/0x1 -j RETURN", False),
        ("-A OUTPUT -j CILIUM_PRE_nat\n-A CILIUM_PRE_nat -s 192.0.2.0/24 -j RETURN", False),
        ("-A OUTPUT -o lo -j RETURN", False),
        ("-A OUTPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT", False),
        ("-A OUTPUT -m conntrack --ctstate NEW -m owner --uid-owner 1234 -j ACCEPT", True),
        ("-A OUTPUT -m owner --uid-owner 1234 -j LOG", False),
    ],
)
def test_what_lets_some_packets_go_on_before_kube_services_is_named(rule, leaves):
    before = "[9:540] -A OUTPUT -j KUBE-SERVICES"

    said = explain(judged(node_rules((before, f"{rule}\n{before}"))).get("service-rule", ()))

    assert ("lets some packets go on before KUBE-SERVICES sees them" in said) is leaves
    assert bool(said) is leaves


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("-A SEP -j RETURN", "ends the packet's way before it is translated"),
        ("-A SEP -p udp -j REDIRECT --to-ports 5353", "ends the packet's way before it is translated"),
        ("-A SEP -s 192.0.2.0/24 -j ACCEPT", "lets some packets go before they are translated"),
        ("-A SEP -j LOG --log-prefix x", None),
        ("-A SEP -j MARK --set-xmark 0x8/0x8", None),
    ],
)
def test_what_stands_before_an_endpoints_translation_counts(rule, problem):
    dnat = f"[1:77] -A {SEPS[1]} -p udp"
    edit = (dnat, f"{rule.replace('SEP', SEPS[1])}\n{dnat}")

    found = judged(node_rules(edit))
    nodes = {"node0": node_rules(), "node1": node_rules(edit), "node2": node_rules()}
    unlike = explain(judge_equal_rules.judge_equal_rules(nodes, API))

    assert problem is None or problem in explain(found["endpoint-dnat"])
    assert problem is not None or not found
    assert ("does otherwise than on other nodes" in unlike) is bool(problem)


def test_a_translation_of_some_packets_only_is_none():
    edit = (f"-A {SEPS[0]} -p udp -j DNAT", f"-A {SEPS[0]} -p udp -m mark --mark 0x0/0xff -j DNAT")

    assert "translates only some packets" in explain(judged(node_rules(edit))["endpoint-dnat"])


def test_a_rule_of_kube_services_for_some_packets_takes_nothing_from_the_others():
    front = "[3:231] -A KUBE-SERVICES -d 10.43.0.10/32"

    found = judged(node_rules((front, f"[0:0] -A KUBE-SERVICES -s 192.0.2.0/24 -j RETURN\n{front}")))

    assert list(found) == ["service-rule"]
    assert "has several rules for 10.43.0.10:53/UDP - expected: one, to KUBE-SVC" in explain(found["service-rule"])


def test_a_match_tells_no_some_and_yes():
    packet = Packet(VIP, "udp", 53, "OUTPUT")
    (rule,) = parse_save("-A X -d 10.43.0.0/16 -p udp -j MARK --set-xmark 0x1/0x1\n", table="nat").rules("nat", "X")

    assert rule_entry.match(rule, packet) is Match.YES
    assert rule_entry.match(dataclasses.replace(rule, source=rule.destination), packet) is Match.SOME
    assert rule_entry.match(dataclasses.replace(rule, dport=54), packet) is Match.NO


def test_a_loop_of_jumps_ends():
    loop = "-A PREROUTING -j A\n-A A -j B\n-A B -j A\n-A PREROUTING -j KUBE-SERVICES\n"

    entry = rule_entry.find_entry(parse_save(loop, table="nat"), Packet(VIP, "udp", 53, "PREROUTING"))

    assert entry.rule is not None


REFUSED = (
    (line(f"-d 10.43.0.10/32 .*-j {SVC}"), ""),
    ("[9:540] -A FORWARD", "-A KUBE-SERVICES -d 10.43.0.10/32 -p udp -m udp --dport 53 -j REJECT\n[9:540] -A FORWARD"),
)


def without_dns_chains():
    kept = [each for each in save(*REFUSED).split("\n") if not any(name in each for name in (SVC, *SEPS))]
    return "\n".join(kept)


def test_without_endpoints_the_refusal_is_the_set_up():
    api = rule_cases.objects(DNS, KUBERNETES, endpoints=(API_END,))
    nat = rule_cases.only(parse_save(without_dns_chains()))

    assert not judged(nat, api=api)
    dropped = rule_cases.only(parse_save(without_dns_chains().replace("-j REJECT", "-j DROP")))
    assert "one rule with REJECT, actual: DROP" in explain(judged(dropped, api=api)["service-rule"])
    silent = rule_cases.only(parse_save(re.sub(".*-j REJECT\n", "", without_dns_chains())))
    assert "actual: no rule" in explain(judged(silent, api=api)["service-rule"])
    unreached = rule_cases.only(parse_save(re.sub(".*-A FORWARD.*\n", "", without_dns_chains())))
    assert "actual: not FORWARD" in explain(judged(unreached, api=api)["service-rule"])
    assert "though no endpoint serves" in explain(judged(node_rules(), api=api)["service-rule"])


def test_without_the_filter_table_a_refusal_cannot_be_judged():
    api = rule_cases.objects(DNS, KUBERNETES, endpoints=(API_END,))
    nat = rule_cases.only(parse_save(without_dns_chains().partition("*filter")[0]))

    assert "filter table was not read" in judge_rules.unseen(nat, expect(api=api))


def test_policy_local_leads_to_the_nodes_own_endpoints_alone():
    local = dataclasses.replace(DNS, internal_traffic_policy="Local")
    api = rule_cases.objects(local, KUBERNETES, endpoints=(*ENDS, API_END))
    here, nowhere = expect(local, api, "node1"), expect(local, api, "node9")

    assert (here.sockets, here.refusal, here.local) == (frozenset({Socket(ipaddress.ip_address("10.42.1.7"), 53)}), None, True)
    assert (nowhere.sockets, nowhere.refusal) == (frozenset(), "DROP")
    svl = SVC.replace("SVC", "SVL")
    one = re.sub(rf".*({SEPS[0]}|{SEPS[2]}).*\n", "", save((SVC, svl)).replace(CHANCE, ""))
    assert not judged(rule_cases.only(parse_save(one)), local, api, "node1")


def test_endpoints_that_serve_while_they_terminate_count_when_none_is_ready():
    leaving = tuple(dataclasses.replace(each, ready=False, terminating=True) for each in ENDS[:2])

    assert len(expect(api=rule_cases.objects(DNS, endpoints=(*leaving, ENDS[2]))).sockets) == 1
    assert len(expect(api=rule_cases.objects(DNS, endpoints=leaving)).sockets) == 2
    unready = tuple(dataclasses.replace(each, ready=False, serving=False) for each in ENDS)
    assert not expect(api=rule_cases.objects(DNS, endpoints=unready)).sockets


def test_topology_hints_let_a_node_choose_some_endpoints():
    hinted = tuple(dataclasses.replace(each, hints=(f"zone{number}",)) for number, each in enumerate(ENDS))
    api = rule_cases.objects(DNS, KUBERNETES, endpoints=(*hinted, API_END))
    one = re.sub(rf".*({SEPS[0]}|{SEPS[2]}).*\n", "", save().replace(CHANCE, ""))

    assert not judged(rule_cases.only(parse_save(one)), api=api)
    assert judged(rule_cases.only(parse_save(one)))["backend-choice"]


def test_affinity_is_judged_whole():
    affine = dataclasses.replace(DNS, session_affinity="ClientIP")

    assert not judged(node_rules(affinity=True), affine)
    missing = node_rules((f"--name {SEPS[0]} --rsource -j {SEPS[0]}", f"--name {SEPS[1]} --rsource -j {SEPS[1]}"), affinity=True)
    assert f"missing: {SEPS[0]}" in explain(judged(missing, affine)["backend-choice"])
    forgetful = node_rules((f"-m recent --set --name {SEPS[0]} --rsource ", ""), affinity=True)
    assert "does not remember clients" in explain(judged(forgetful, affine)["backend-choice"])
    assert "missing" in explain(judged(node_rules(), affine)["backend-choice"])


def test_orphans_are_healthy_in_a_large_cluster_only():
    big = rule_cases.service("a/big", "10.43.9.9", ("x", "TCP", 80), labels={})
    many = tuple(rule_cases.endpoint(big.ports[0], f"10.50.{n // 250}.{n % 250}", 80, ready=False, serving=False) for n in range(1001))
    api = rule_cases.objects(DNS, KUBERNETES, big, endpoints=(*ENDS, API_END, *many))

    assert expected_endpoints.is_large(api, expected_endpoints.by_service(api))
    assert not judged(node_rules(ORPHAN), api=api)
    assert judged(node_rules(ORPHAN))["chain-names"]


def test_two_back_ends_are_one_too_many_and_none_is_told():
    ruleset = parse_save(save())
    both = NodeRules(ruleset, dataclasses.replace(ruleset, backend="legacy"))

    assert {"service-rule", "chain-names"} == set(judged(both))
    assert both.holders == ("nft", "legacy")
    nobody = rule_cases.only(Ruleset("nft", {}, tables=("nat", "filter")))
    assert (nobody.holders, nobody.active) == ((), None)
    assert "no iptables back end" in judge_rules.unseen(nobody, expect())


def test_the_back_end_that_kubelet_uses_comes_first():
    ruleset = parse_save(save())
    hinted = parse_save(save() + "*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n")

    assert NodeRules(ruleset, hinted).holders == ("legacy", "nft")
