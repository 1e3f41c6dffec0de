"""Rules of several nodes, and of two moments: what differs is named, and what may differ is not."""

import dataclasses
import ipaddress
import re

import pytest
import rule_cases
from healthy_rules import API, API_END, DNS, ENDS, KUBE_SVC, KUBERNETES, SEPS, SVC, VIP, line, node_rules, save

from servicepath.model import (
    counters,
    judge_chain_names,
    judge_equal_rules,
    service_rules,
)
from servicepath.model.addresses import Socket
from servicepath.model.difference import explain
from servicepath.model.rules import Counter
from servicepath.parse.iptables import parse_save


def three_nodes(edited):
    return {"node0": node_rules(), "node1": rule_cases.only(parse_save(edited)), "node2": node_rules()}


def test_nodes_with_equal_rules_are_equal_whatever_their_order_and_counters():
    lines = save().split("\n")
    at = [number for number, each in enumerate(lines) if "-A KUBE-SERVICES -d" in each]
    lines[at[0]], lines[at[1]] = lines[at[1]], lines[at[0]]
    edited = re.sub(r"^\[\d+:\d+\]", "[8:8]", "\n".join(lines), flags=re.M)

    assert not judge_equal_rules.judge_equal_rules(three_nodes(edited), API)


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        ((line(f"-A {SVC} .*-j {SEPS[1]}"), ""), "node1: rules of 10.43.0.10:53/UDP (kube-system/kube-dns:dns/UDP) - differ"),
        ((line(f"-d 10.43.0.10/32 .*-j {SVC}"), ""), "actual: no rule"),
        (("! -s 10.42.0.0/16", "! -s 10.99.0.0/16"), "masquerade from outside 10.99.0.0/16"),
        (("--to-destination 10.42.1.7:53", "--to-destination 10.42.2.7:53"), "does otherwise than on other nodes"),
        (("-d 10.43.0.1/32", "-d 10.43.0.99/32"), "node1: rules of 10.43.0.99:443/TCP (no Service that the API lists)"),
    ],
)
def test_a_node_that_is_unlike_the_others_is_named(edit, problem):
    assert problem in explain(judge_equal_rules.judge_equal_rules(three_nodes(save(edit)), API))


def test_a_node_that_does_not_mark_an_endpoints_own_packets_is_unlike_the_others():
    edit = (line(f"-A {SEPS[1]} -s .*"), "")

    said = explain(judge_equal_rules.judge_equal_rules(three_nodes(save(edit)), API))

    assert "marks packets from 10.42.1.7/32, actual: DNAT to 10.42.1.7:53; marks no packets for masquerade" in said


def test_a_service_that_changed_meanwhile_is_left_aside_and_no_other():
    edited = three_nodes(save((line(f"-A {SVC} .*-j {SEPS[1]}"), ""), (line(f"-A {SEPS[1]} .*DNAT"), "")))

    assert judge_equal_rules.judge_equal_rules(edited, API)
    assert not judge_equal_rules.judge_equal_rules(edited, API, {"kube-system/kube-dns"})
    assert judge_equal_rules.judge_equal_rules(edited, API, {"default/other"})
    assert "not compared: kube-system/kube-dns: it changed while the nodes were asked" in judge_equal_rules.describe(
        edited, API, {"kube-system/kube-dns"}
    )


def test_chains_of_a_service_that_changed_meanwhile_are_left_aside_and_no_other():
    api = rule_cases.objects(DNS, KUBERNETES, endpoints=(ENDS[0], API_END))
    nat = node_rules()

    assert judge_chain_names.judge_chain_names("node1", nat, api)
    assert not judge_chain_names.judge_chain_names("node1", nat, api, {"kube-system/kube-dns"})
    assert judge_chain_names.judge_chain_names("node1", nat, api, {"kube-system/kube-dn"})


def test_policies_that_make_nodes_differ_are_not_compared():
    edited = save((line(f"-A {SVC} .*-j {SEPS[1]}"), ""))
    for service, ends in (
        (dataclasses.replace(DNS, internal_traffic_policy="Local"), ENDS),
        (dataclasses.replace(DNS, traffic_distribution="PreferClose"), ENDS),
        (DNS, tuple(dataclasses.replace(each, hints=("zone",)) for each in ENDS)),
    ):
        api = rule_cases.objects(service, KUBERNETES, endpoints=(*ends, API_END))
        assert not judge_equal_rules.judge_equal_rules(three_nodes(edited), api)


def test_each_nodes_own_pod_cidr_in_the_masquerade_rule_is_equal():
    cidrs = {f"node{number}": f"10.42.{number}.0/24" for number in range(3)}
    api = dataclasses.replace(API, nodes=tuple(rule_cases.node(name, cidr) for name, cidr in cidrs.items()))
    nodes = {name: node_rules(("! -s 10.42.0.0/16", f"! -s {cidr}")) for name, cidr in cidrs.items()}

    assert not judge_equal_rules.judge_equal_rules(nodes, api)


def test_a_tool_that_cannot_print_the_target_does_not_make_nodes_differ():
    edited = save(("--to-destination 10.42.1.7:53", "[unsupported revision]"))

    assert not judge_equal_rules.judge_equal_rules(three_nodes(edited), API)


def grown(*edits):
    before, after = parse_save(save()), parse_save(save(*edits))
    return counters.counter_deltas(before, after, service_rules.walk(before, VIP, "UDP", 53))


TWO_MORE = (
    ("[3:231] -A KUBE-SERVICES", "[5:385] -A KUBE-SERVICES"),
    (f"[3:231] -A {SVC} !", f"[5:385] -A {SVC} !"),
    (f"[1:77] -A {SVC} -j {SEPS[2]}", f"[3:231] -A {SVC} -j {SEPS[2]}"),
    (f"[1:77] -A {SEPS[2]} -p udp", f"[3:231] -A {SEPS[2]} -p udp"),
)


def test_growth_is_told_by_rule_and_by_endpoint():
    growth = grown(*TWO_MORE)

    assert growth.service == growth.masquerade == growth.chain == growth.endpoints == Counter(2, 154)
    assert growth.by_endpoint[Socket(ipaddress.ip_address("10.42.2.7"), 53)] == Counter(2, 154)
    assert growth.by_endpoint[Socket(ipaddress.ip_address("10.42.0.7"), 53)] == Counter(0, 0)


@pytest.mark.parametrize(
    "sync",
    [
        ("[7:420] -A KUBE-SERVICES", "[0:0] -A KUBE-SERVICES"),
        ("[1:60] -A KUBE-MARK-MASQ", "[0:0] -A KUBE-MARK-MASQ"),
        ("[7:420] -A KUBE-SERVICES", "-A KUBE-SERVICES -d 10.43.7.7/32 -p tcp -m tcp --dport 80 -j X\n[7:420] -A KUBE-SERVICES"),
    ],
)
def test_a_sync_disturbs_kube_services_and_not_the_services_own_chains(sync):
    growth = grown(*TWO_MORE, sync)

    assert isinstance(growth.service, counters.Disturbed)
    assert growth.chain == growth.endpoints == Counter(2, 154)


def test_another_order_of_kube_services_tells_a_sync():
    first, second = line(f"-A KUBE-SERVICES .*-j {SVC}"), line(f"-A KUBE-SERVICES .*-j {KUBE_SVC}")
    growth = grown((first + second, second + first))

    assert "order" in growth.service.reason
    assert growth.endpoints == Counter(0, 0)


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        ((f"[1:77] -A {SEPS[2]} -p udp", f"[0:0] -A {SEPS[2]} -p udp"), "counts less than before"),
        (("0.50000000000", "0.40000000000"), "changed between"),
        (("--to-destination 10.42.1.7:53", "--to-destination 10.42.1.7:54"), "changed between"),
        ((line(f"-A KUBE-SERVICES .*-j {SVC}"), ""), "has no rule"),
        ((f"[1:77] -A {SEPS[2]} -p udp", f"-A {SEPS[2]} -p udp"), "without counters"),
    ],
)
def test_what_makes_readings_incomparable_is_said_and_never_zero(edit, reason):
    assert reason in grown(edit).reason
