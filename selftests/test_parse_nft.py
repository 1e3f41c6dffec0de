"""kube-proxy's nftables table as JSON and as text, and text that is none."""

import dataclasses
import ipaddress
import json

import pytest
import rule_cases

from servicepath.model.addresses import Socket
from servicepath.parse.errors import ParseError
from servicepath.parse.nft import parse_kube_proxy_nft

JSON = rule_cases.text("06", "nft-list-table-ip-kube-proxy.json")
TEXT = rule_cases.text("06", "nft-list-table-ip-kube-proxy.txt")


def test_json_and_both_texts_are_the_same_table():
    found = [parse_kube_proxy_nft(text) for text in (JSON, TEXT, rule_cases.text("06", "nft-list-retyped-by-1.0.6.txt"))]

    assert found[0].version == "1.0.6"
    assert len({repr(dataclasses.replace(table, version=None)) for table in found}) == 1
    assert len(found[0].services) == 9


def test_an_unnamed_ports_chain_ends_in_a_slash():
    service = parse_kube_proxy_nft(TEXT).service(ipaddress.ip_address("10.43.195.72"), "tcp", 8000)

    assert service.chain == "service-BHFQAWP5-lab/hello-np-svc/tcp/"
    assert service.endpoints[0] == Socket(ipaddress.ip_address("10.42.2.218"), 8080)


def test_affinity_rules_and_drops_are_no_further_endpoints():
    chain = "chain service-FY5PMXPG-kube-system/kube-dns/udp/dns {\n"
    affinity = "                ip saddr . meta l4proto @affinity-x goto endpoint-S4FSIJI2-kube-system/kube-dns/udp/dns__10.42.0.171/53\n"
    table = parse_kube_proxy_nft(TEXT.replace(chain, chain + affinity))

    assert len(table.service(ipaddress.ip_address("10.43.0.10"), "UDP", 53).endpoints) == 1


def test_ipv6_endpoints_are_read_in_both_forms():
    text = """\
table ip6 kube-proxy {
\tmap service-ips {
\t\telements = { fd00::a . udp . 53 : goto service-X-a/b/udp/c }
\t}
\tchain service-X-a/b/udp/c {
\t\tnumgen random mod 1 vmap { 0 : goto endpoint-Y-a/b/udp/c__fd00..1/53 }
\t}
\tchain endpoint-Y-a/b/udp/c__fd00..1/53 {
\t\tmeta l4proto udp dnat to [fd00::1]:53
\t}
}
"""
    as_json = {
        "nftables": [
            {"table": {"family": "ip6", "name": "kube-proxy"}},
            {"map": {"name": "service-ips", "elem": [[{"concat": ["fd00::a", "udp", 53]}, {"goto": {"target": "s"}}]]}},
            {"chain": {"name": "s"}},
            {"rule": {"chain": "s", "expr": [{"dnat": {"family": "ip6", "addr": "fd00::1", "port": 53}}]}},
        ]
    }

    for each in (text, json.dumps(as_json)):
        (service,) = parse_kube_proxy_nft(each).services
        assert service.frontend == Socket(ipaddress.ip_address("fd00::a"), 53)
        assert service.endpoints == (Socket(ipaddress.ip_address("fd00::1"), 53),)


NODE_PORTS_TEXT = """\
table ip kube-proxy { # handle 1
\tmap no-endpoint-nodeports { # handle 12
\t\ttype inet_proto . inet_service : verdict
\t\tcomment "vmap to drop or reject packets to service nodeports with no endpoints"
\t\telements = { tcp . 30001 comment "a/b:c" : goto reject-chain,
\t\t\t     udp . 30001 comment "a/b, : { } c" : drop }
\t}

\tchain reject-chain { # handle 1
\t\treject # handle 14
\t}
}
"""
NODE_PORTS_JSON = {
    "map": {
        "family": "ip", "name": "no-endpoint-nodeports", "table": "kube-proxy", "type": ["inet_proto", "inet_service"], "map": "verdict",
        "elem": [
            [{"elem": {"val": {"concat": ["tcp", 30001]}, "comment": "a/b:c"}}, {"goto": {"target": "reject-chain"}}],
            [{"elem": {"val": {"concat": ["udp", 30001]}, "comment": "a/b, : { } c"}}, {"drop": None}],
        ],
    }
}  # fmt: skip


def test_node_ports_without_endpoints_are_refused():
    for text in (NODE_PORTS_TEXT, _with(NODE_PORTS_JSON)):
        table = parse_kube_proxy_nft(text)

        assert table.refused_node_ports == {("tcp", 30001): "reject", ("udp", 30001): "drop"}
        assert not table.node_ports


@pytest.mark.parametrize(
    ("good", "bad"), [(": drop", ": accept"), (": drop", ": goto elsewhere"), ("udp . 30001", "udp . 70000"), ("udp . 30001", "30001")]
)
def test_a_node_port_that_is_none_or_is_not_refused_is_an_error(good, bad):
    with pytest.raises(ParseError, match="nft list table kube-proxy"):
        parse_kube_proxy_nft(NODE_PORTS_TEXT.replace(good, bad))


def test_since_v1_36_a_services_chain_translates_by_itself():
    text = """\
table ip kube-proxy {
\tmap service-ips {
\t\ttype ipv4_addr . inet_proto . inet_service : verdict
\t\telements = { 10.96.0.1 . tcp . 443 : goto service-2QRHZV4L-default/kubernetes/tcp/https }
\t}

\tchain service-2QRHZV4L-default/kubernetes/tcp/https {
\t\tmeta l4proto tcp dnat ip to numgen random mod 2 map { 0 : 10.0.0.10 . 6443, 1 : 10.0.0.8 . 6443 }
\t}
}
"""
    (service,) = parse_kube_proxy_nft(text).services

    assert [str(endpoint) for endpoint in service.endpoints] == ["10.0.0.10:6443", "10.0.0.8:6443"]
    for bad in ("0 : 10.0.0.10 : 6443", "0 : 10.0.0.10 . https", "0 : kubernetes . 6443", "", "10.0.0.10 . 6443"):
        with pytest.raises(ParseError, match="nft list table kube-proxy"):
            parse_kube_proxy_nft(text.replace("0 : 10.0.0.10 . 6443", bad))


def _with(item):
    return json.dumps({"nftables": [{"table": {"family": "ip", "name": "kube-proxy"}}, item]})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"nftables": []}',
        JSON[: len(JSON) // 2],
        TEXT[: TEXT.rindex("}")],
        TEXT[: TEXT.rindex("chain endpoint")],
        "table ip filter {\n}\n",
        TEXT.replace("10.43.0.10 . udp . 53", "10.43.0.10 . udp . domain"),
        TEXT.replace("10.43.0.10 . udp . 53", "10.43.0.10 . 53"),
        TEXT.replace("dnat to 10.42.0.171:53", "dnat to 10.42.0.171"),
        TEXT.replace("chain service-FY5PMXPG-kube-system/kube-dns/udp/dns {", "chain renamed {"),
        # Damaged JSON that is JSON all the same.
        '{"nftables": {"table": 1}}',
        '{"nftables": [[]]}',
        '{"nftables": [{}]}',
        '{"nftables": [{"table": 5}]}',
        *(_with(item) for item in (
            {"map": {"elem": []}},
            {"map": {"name": "service-ips", "elem": [["10.43.0.10"]]}},
            {"map": {"name": "service-ips", "elem": [[{"elem": {}}, {"drop": None}]]}},
            {"map": {"name": "service-ips", "elem": [[{"concat": 5}, {"drop": None}]]}},
            {"map": {"name": "service-ips", "elem": [["10.43.0.10", {"goto": {}}]]}},
            {"chain": {}},
            {"chain": []},
            {"rule": {"expr": [{"goto": {"target": "x"}}]}},
            {"rule": {"chain": "nowhere", "expr": [{"dnat": {"addr": "10.42.0.7", "port": 53}}]}},
            {"rule": {"chain": "nowhere", "expr": ["accept"]}},
            {"rule": {"chain": "nowhere", "expr": [{"vmap": {"data": {"set": [[1, 2, 3]]}}}]}},
        )),
    ],
)
def test_what_is_no_such_table_is_an_error(text):
    with pytest.raises(ParseError, match="nft list table kube-proxy"):
        parse_kube_proxy_nft(text)
