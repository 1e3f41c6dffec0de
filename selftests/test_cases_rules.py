"""The verdicts on rules of the recorded cases: each case.md's "what a correct suite should say", as assertions."""

import dataclasses
import ipaddress
import json

import pytest
import rule_cases
from rule_cases import objects, only, rules, service

from servicepath.model import (
    counters,
    expected_endpoints,
    judge_backends,
    judge_chain_names,
    judge_equal_rules,
    judge_rules,
    service_rules,
)
from servicepath.model.addresses import Socket
from servicepath.model.difference import explain
from servicepath.model.rules import Counter
from servicepath.model.service_rules import NodeRules
from servicepath.parse.iptables_list import parse_list
from servicepath.parse.nft import parse_kube_proxy_nft


def ip(text):
    return ipaddress.ip_address(text)


def sockets(*texts):
    return frozenset(Socket(ip(text.rpartition(":")[0]), int(text.rpartition(":")[2])) for text in texts)


def expect(api, of, port, node="node1"):
    return expected_endpoints.expect(api.endpoints_of(of), of, port, node, of.cluster_ips[0].version)


def judge(nat, api, of, port, node="node1"):
    """All that is judged of one Service port: service-rule, and with endpoints backend-choice and endpoint-dnat."""
    wanted, vip = expect(api, of, port, node), of.cluster_ips[0]
    wrong = judge_rules.judge_service_rule(node, port, vip, nat, wanted)
    if wanted.sockets:
        seen = judge_backends.translations(port, vip, nat, wanted)
        wrong += judge_backends.judge_backend_choice(node, of, port, vip, nat, wanted)
        wrong += judge_backends.judge_endpoint_dnat(node, port, seen, wanted)
    return wrong


def assert_holds(nat, api, node="node1"):
    for of in api.services:
        for port in of.ports:
            wrong = judge(nat, api, of, port, node)
            assert not wrong, explain(wrong)


KUBERNETES = service("default/kubernetes", "10.43.0.1", ("https", "TCP", 443))
DNS_PORTS = (("dns", "UDP", 53), ("dns-tcp", "TCP", 53), ("metrics", "TCP", 9153))
AKS = ip("10.0.45.10")


def test_01_the_chain_holds_and_leads_to_both_endpoints():
    api = objects(case="01")
    nat = only(rules("01", "nat-after-zero.save"))
    walk = service_rules.walk(nat.active, AKS, "TCP", 80)

    assert_holds(nat, api)
    assert walk.sockets == sockets("10.244.1.202:8080", "10.244.1.240:8080")
    assert [choice.share for choice in walk.choices] == [0.5, 0.5]


def test_01_twenty_requests_from_the_host_count_twenty_and_not_forty():
    before, after = rules("01", "nat-after-zero.save"), rules("01", "nat-after-20-from-host.save")
    growth = counters.counter_deltas(before, after, service_rules.walk(after, AKS, "TCP", 80))

    assert growth.service == growth.chain == growth.endpoints == growth.masquerade == Counter(20, 1200)
    assert set(growth.by_endpoint.values()) == {Counter(10, 600)}


def test_01_twenty_requests_from_a_pod_count_nothing_though_other_rules_move():
    before, after = rules("01", "nat-after-zero.save"), rules("01", "nat-after-20-from-pod.save")
    growth = counters.counter_deltas(before, after, service_rules.walk(after, AKS, "TCP", 80))

    assert growth.service == growth.chain == growth.endpoints == growth.masquerade == Counter(0, 0)
    assert after.rules("nat", "KUBE-SERVICES")[-1].counter.packets == 9


def test_01_counters_that_fall_are_disturbed_and_not_zero():
    before, after = rules("01", "nat-after-20-from-host.save"), rules("01", "nat-after-20-from-pod.save")
    growth = counters.counter_deltas(before, after, service_rules.walk(after, AKS, "TCP", 80))

    assert isinstance(growth, counters.Disturbed)
    assert "counts less than before" in growth.reason


def test_01_a_pods_empty_nat_table_cannot_be_judged():
    nat = only(rules("01", "in-pod-netns.save"))
    api = objects(case="01")

    assert nat.holders == ()
    assert nat.active is None
    assert "no iptables back end" in judge_rules.unseen(nat, expect(api, api.services[0], api.services[0].ports[0]))


def test_01_the_listing_says_the_same_as_the_save():
    listed = rule_cases.text("01", "iptables-L-v.txt")
    chain = parse_list(listed[listed.index("Chain ") :], table="nat").rules("nat", "KUBE-SVC-XS3ZU56555AQFGIC")
    saved = rules("01", "nat-after-20-from-host.save").rules("nat", "KUBE-SVC-XS3ZU56555AQFGIC")

    assert [rule.meaning for rule in chain] == [rule.meaning for rule in saved]
    assert [rule.counter for rule in chain] == [rule.counter for rule in saved]


def test_02_a_grep_without_endpoint_chains_holds_by_hash():
    traefik = service("traefik/traefik", "10.43.186.42", ("web", "TCP", 80))
    web = traefik.ports[0]
    ends = tuple(rule_cases.endpoint(web, address, 8000) for address in ("10.42.0.145", "10.42.3.82", "10.42.5.85"))
    api = objects(traefik, endpoints=ends)
    nat = only(rules("02", "iptables-save-grep.txt", table="nat"))
    seen = judge_backends.translations(web, traefik.cluster_ips[0], nat, expect(api, traefik, web))

    assert_holds(nat, api)
    assert {each.proof for each in seen} == {"hash"}
    assert not any(each.choice.told for each in seen)


def test_02_an_endpoint_that_only_the_comment_names_is_told_by_comment():
    traefik = service("traefik/traefik", "10.43.186.42", ("web", "TCP", 80))
    nat = only(rules("02", "iptables-save-grep.txt", table="nat"))
    wanted = expect(objects(traefik), traefik, traefik.ports[0])
    seen = judge_backends.translations(traefik.ports[0], traefik.cluster_ips[0], nat, wanted)

    assert {each.proof for each in seen} == {"comment"}
    assert {each.socket for each in seen} == sockets("10.42.0.145:8000", "10.42.3.82:8000", "10.42.5.85:8000")


def test_03_kubernetes_holds_and_services_without_endpoints_are_refused():
    dns = service("kube-system/kube-dns", "10.43.0.10", *DNS_PORTS)
    metrics = service("kube-system/metrics-server", "10.43.40.11", ("https", "TCP", 443))
    api = objects(KUBERNETES, dns, metrics, case="03", version="v1.22.3")
    nat = only(rules("03", "iptables-save-c.txt"))

    assert_holds(nat, api)
    assert not judge_chain_names.judge_chain_names("node1", nat, api)
    assert service_rules.walk(nat.active, ip("10.43.0.10"), "UDP", 53).refusals[0].target == "REJECT"
    assert judge_chain_names.predicts_kubernetes(nat.active, api)


def test_03_a_ready_dns_endpoint_makes_the_refusal_wrong():
    dns = service("kube-system/kube-dns", "10.43.0.10", *DNS_PORTS)
    api = objects(dns, endpoints=(rule_cases.endpoint(dns.ports[0], "10.42.0.7", 53),))

    wrong = judge(only(rules("03", "iptables-save-c.txt")), api, dns, dns.ports[0])

    assert "has no rule for 10.43.0.10:53/UDP" in explain(wrong)
    assert "REJECT in filter" in explain(wrong)


@pytest.mark.parametrize("name", ["nat.save", "nat-grep-A20.txt"])
def test_04_all_services_hold_host_network_endpoints_and_node_ports_included(name):
    api = objects(case="04")
    nat = only(rules("04", name, table="nat"))

    assert_holds(nat, api)
    assert service_rules.walk(nat.active, ip("10.43.85.149"), "TCP", 80).chain == "KUBE-SVC-UQMCRMJZLI3FTLDP"


def test_04_the_hole_in_the_grep_is_told_by_hash_and_the_rest_by_rule():
    api = objects(case="04")
    nat = only(rules("04", "nat-grep-A20.txt", table="nat"))
    metrics = service("kube-system/metrics-server", "10.43.151.224", ("https", "TCP", 443))
    web = api.service("kube-system/traefik").ports[0]
    api = objects(*api.services, metrics, case="04", endpoints=(rule_cases.endpoint(metrics.ports[0], "10.42.0.5", 10250),))

    hidden = judge_backends.translations(web, ip("10.43.85.149"), nat, expect(api, api.service("kube-system/traefik"), web))
    shown = judge_backends.translations(metrics.ports[0], metrics.cluster_ips[0], nat, expect(api, metrics, metrics.ports[0]))

    assert [each.proof for each in hidden] == ["hash"]
    assert [each.proof for each in shown] == ["rule"]


def test_05_a_missing_masquerade_rule_is_no_fault():
    dns = service("kube-system/kube-dns", "10.100.0.10", *DNS_PORTS)
    numbers = (53, 53, 9153)
    ends = [
        rule_cases.endpoint(port, address, number)
        for port, number in zip(dns.ports, numbers, strict=True)
        for address in ("172.31.12.149", "172.31.3.129")
    ]
    api = objects(
        service("my-namespace/my-app", "10.100.192.187", (None, "TCP", 80)),
        service("default/kubernetes", "10.100.0.1", ("https", "TCP", 443)),
        dns,
        case="05",
        endpoints=tuple(ends),
    )
    nat = only(rules("05", "iptables-S-nat.txt", table="nat"))

    assert_holds(nat, api)
    assert not judge_chain_names.judge_chain_names("node1", nat, api)
    assert service_rules.walk(nat.active, ip("10.100.0.10"), "UDP", 53).masquerade_rule is None


@pytest.mark.parametrize(
    "name", ["nft-list-table-ip-kube-proxy.json", "nft-list-table-ip-kube-proxy.txt", "nft-list-retyped-by-1.0.6.txt"]
)
def test_06_the_nftables_table_leads_to_the_serving_endpoints_and_refuses_without(name):
    table = parse_kube_proxy_nft(rule_cases.text("06", name))
    hello = service("lab/hello-np-svc", "10.43.195.72", (None, "TCP", 8000))
    api = objects(hello, case="06")
    found = table.service(ip("10.43.195.72"), "TCP", 8000)

    assert frozenset(found.endpoints) == api.serving(hello, hello.ports[0])
    assert len(found.endpoints) == 9
    assert frozenset(table.node_ports["tcp", 30000]) == frozenset(found.endpoints)
    assert table.refused[Socket(ip("10.43.21.102"), 4317), "tcp"] == "reject"
    assert table.service(ip("10.43.21.102"), "TCP", 4317) is None
    assert ip("10.43.21.102") in table.cluster_ips


def test_07_an_unsupported_revision_is_told_by_hash_and_is_never_violated():
    test1 = service("default/test1", "10.102.176.227", ("80", "TCP", 80))
    api = objects(test1, case="07")
    nat = only(rules("07", "iptables-S.txt", table="nat"))
    seen = judge_backends.translations(test1.ports[0], test1.cluster_ips[0], nat, expect(api, test1, test1.ports[0]))

    assert_holds(nat, api)
    assert {each.proof for each in seen} == {"hash"}
    assert {each.socket for each in seen} == api.serving(test1, test1.ports[0])
    walk = service_rules.walk(nat.active, ip("10.102.176.227"), "tcp", 80)
    assert walk.chain == "KUBE-SVC-VRCN2UH6RARGOJZA"
    assert walk.masquerade_rule.chain == "KUBE-SERVICES"
    assert len(walk.untold) == 3


def test_07_without_a_proof_the_translation_is_untold_and_not_wrong():
    test1 = service("default/test1", "10.102.176.227", ("80", "TCP", 80))
    nat = only(rules("07", "iptables-S.txt", table="nat"))
    elsewhere = objects(test1, endpoints=(rule_cases.endpoint(test1.ports[0], "10.244.9.9", 80),))
    wanted = expect(elsewhere, test1, test1.ports[0])
    seen = judge_backends.translations(test1.ports[0], test1.cluster_ips[0], nat, wanted)

    assert len(judge_backends.untold(seen)) == 3
    assert not judge_backends.judge_endpoint_dnat("node1", test1.ports[0], seen, wanted)


WEB = service("default/web", "10.96.71.30", (None, "TCP", 80))


def test_08_one_back_end_alone_cannot_be_judged_and_both_together_hold():
    nft, legacy = rules("08", "nft-backend-nat.save"), rules("08", "legacy-backend-nat.save", backend="legacy")
    api = objects(WEB, case="08", version="v1.23.1")
    wanted = expect(api, WEB, WEB.ports[0])

    assert nft.backend == "nft"
    assert "legacy tables present" in nft.warning
    assert "legacy back end was not read" in judge_rules.unseen(NodeRules(nft, None), wanted)
    assert NodeRules(nft, legacy).holders == ("legacy",)
    assert judge_rules.unseen(NodeRules(nft, legacy), wanted) is None
    assert_holds(NodeRules(nft, legacy), api)
    assert not judge_chain_names.judge_chain_names("node1", NodeRules(nft, legacy), api)


def test_08_a_stale_copy_in_the_other_back_end_is_found_by_every_conclusion():
    both = NodeRules(rules("08", "both-current-nft.save"), rules("08", "both-stale-legacy.save"))
    api = objects(WEB, case="08", version="v1.23.1")
    wanted = expect(api, WEB, WEB.ports[0])
    seen = judge_backends.translations(WEB.ports[0], WEB.cluster_ips[0], both, wanted)

    assert both.holders == ("nft", "legacy")
    assert "both iptables back ends" in explain(judge_rules.judge_service_rule("n", WEB.ports[0], WEB.cluster_ips[0], both, wanted))
    assert "10.244.1.7:8080" in explain(judge_backends.judge_endpoint_dnat("n", WEB.ports[0], seen, wanted))
    assert "both iptables back ends" in explain(judge_chain_names.judge_chain_names("n", both, api))


def test_08_the_order_of_xtables_save_is_read_and_the_missing_endpoint_named():
    nat = only(rules("08", "xtables-save-order.txt"))
    api = objects(WEB, case="08", version="v1.17.0")
    rule = service_rules.walk(nat.active, ip("10.96.71.30"), "TCP", 80).service_rule

    assert (rule.dport, rule.comment) == (80, "default/web cluster IP")
    wrong = judge(nat, api, WEB, WEB.ports[0])
    assert len(wrong) == 1
    assert "has no jump to a serving endpoint - expected: 10.244.2.16:8080" in str(wrong[0])


def test_08_the_listing_with_the_warning_is_an_excerpt_of_the_nft_back_end():
    listed = parse_list(rule_cases.text("08", "nft-backend-prerouting.txt").partition("PREROUTING\n")[2], table="nat")

    assert (listed.backend, listed.complete) == ("nft", False)
    assert listed.rules("nat", "PREROUTING")[0].dst_type_local


AFFINITY = service("default/k8s-nginx-affinity", "10.109.59.245", (None, "TCP", 80), session_affinity="ClientIP")


def affine_objects(of=AFFINITY):
    subset = json.loads(rule_cases.text("09", "endpoints-v1.json"))["subsets"][0]
    ends = tuple(rule_cases.endpoint(of.ports[0], each["ip"], 80) for each in subset["addresses"])
    return objects(of, endpoints=ends, version="v1.11.2")


@pytest.mark.parametrize("name", ["nat.save", "iptables-save-grep.txt"])
def test_09_affinity_has_three_endpoints_and_not_six(name):
    nat = only(rules("09", name, table="nat"))
    walk = service_rules.walk(nat.active, ip("10.109.59.245"), "TCP", 80)

    assert_holds(nat, affine_objects())
    assert not judge_chain_names.judge_chain_names("node1", nat, affine_objects())
    assert (len(walk.choices), len(walk.affinity), len(walk.sep_rules)) == (3, 3, 3)


def test_09_affinity_that_the_service_does_not_ask_for_is_a_difference():
    plain = dataclasses.replace(AFFINITY, session_affinity="None")

    wrong = judge(only(rules("09", "nat.save")), affine_objects(plain), plain, plain.ports[0])

    assert [each.problem for each in wrong] == ["keeps clients at endpoints without sessionAffinity"]


def test_10_the_cluster_ip_path_holds_though_external_traffic_is_dropped():
    api = objects(
        service("default/nginx-ext", "10.108.2.154", (None, "TCP", 80), type="NodePort", external_traffic_policy="Local"),
        case="10",
        version="v1.13.1",
    )
    nat = only(rules("10", "old-xlb.save"))

    assert_holds(nat, api)
    assert not judge_chain_names.judge_chain_names("node1", nat, api)


def test_10_the_new_filter_table_alone_holds_no_service_rules():
    filters = rules("10", "new-filter-drop.save")

    assert only(filters).holders == ()
    assert [r.target for r in filters.rules("filter", "KUBE-EXTERNAL-SERVICES")] == ["DROP", "DROP"]


@pytest.mark.parametrize("name", ["restore-input.rules", "same-as-save-c.save"])
def test_11_restore_input_and_save_lead_to_the_same_endpoint(name):
    api = objects(case="11")
    nat = only(rules("11", name))
    walk = service_rules.walk_from_services(nat.active, ip("172.30.0.41"), "TCP", 80)

    assert walk.sockets == sockets("10.180.0.1:80")
    assert not judge_chain_names.judge_chain_names("node1", nat, api)
    assert nat.active.exact_rules("nat", ip("198.51.100.4"), "tcp", 80)[0].target == "KUBE-FW-XPGD46QRK7WJZT7O"


def test_11_both_syntaxes_give_equal_models():
    fed, saved = rules("11", "restore-input.rules"), rules("11", "same-as-save-c.save")
    same = ("KUBE-SERVICES", "KUBE-NODEPORTS", "KUBE-SVC-", "KUBE-SEP-", "KUBE-EXT-", "KUBE-FW-")
    ours = [name for table, name in saved.chains if table == "nat" and name.startswith(same)]

    assert len(ours) == 6
    for name in ours:
        assert [r.meaning for r in fed.rules("nat", name)] == [r.meaning for r in saved.rules("nat", name)]
    pair = {"node1": only(fed), "node2": only(saved)}
    assert not judge_equal_rules.judge_equal_rules(pair, objects(case="11"))


def test_20_host_ports_of_svclb_are_no_endpoints_and_no_translation_before():
    traefik = service("kube-system/traefik", "10.43.190.44", ("web", "TCP", 80), ("websecure", "TCP", 443), type="LoadBalancer")
    ends = (
        rule_cases.endpoint(traefik.ports[0], "10.42.0.21", 8000),
        rule_cases.endpoint(traefik.ports[1], "10.42.0.21", 8443),
    )
    traefik = dataclasses.replace(traefik, load_balancer_ips=(ip("192.168.1.50"),))
    api = objects(traefik, endpoints=ends)
    nat = only(rules("20", "host.save"))

    assert_holds(nat, api)
    assert not judge_chain_names.judge_chain_names("node1", nat, api)
    comment = nat.active.rules("nat", "CNI-HOSTPORT-DNAT")[0].comment
    assert comment == 'dnat name: "cbr0" id: "5f0c1d"'


def test_20_the_svclb_pods_own_table_is_not_judged_as_the_hosts():
    nat = only(rules("20", "svclb-pod-netns.save"))

    assert nat.holders == ()


def test_21_headless_external_and_foreign_services_have_no_chain_and_none_is_missed():
    api = objects(case="21")
    nat = only(rules("21", "nat.save"))
    reasons = {of.name: expected_endpoints.not_proxied(of) for of in api.services}

    assert not judge_chain_names.judge_chain_names("node1", nat, api)
    assert reasons.pop("ext-api") is None
    assert len(reasons) == 3
    assert all(reasons.values())
    ext = api.service("db/ext-api")
    assert not judge(nat, api, ext, ext.ports[0])
