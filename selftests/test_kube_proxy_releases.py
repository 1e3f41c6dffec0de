"""What the real kube-proxy of each release wrote for one Service of each kind is read as the API says it, and judged so.

The files are those of ``python -m bench.releases``; rules are node master's.
"""

from __future__ import annotations

import dataclasses
import functools
import ipaddress
import json
import pathlib
import re

import pytest

from servicepath.model import expected_endpoints, judge_backends, judge_chain_names, judge_nft, judge_rules, service_rules
from servicepath.model.addresses import Socket
from servicepath.model.nft_rules import NftTable
from servicepath.model.rules import Ruleset
from servicepath.model.service_rules import NodeRules
from servicepath.model.services import ClusterObjects
from servicepath.parse.iptables import parse_save
from servicepath.parse.kubernetes import parse_endpoint_slices, parse_services
from servicepath.parse.nft import parse_kube_proxy_nft
from servicepath.recording import storage

RELEASES = sorted(pathlib.Path(__file__).parent.glob("data/kubernetes-*/kube-proxy.tar.zst"))
NODE = "master"
FAMILIES = {"ip": 4, "ip6": 6}
FORMS = ("text", "handles", "json")
VIPS = {4: ipaddress.ip_address("10.43.0.16"), 6: ipaddress.ip_address("fd00:43::16")}
SETTINGS = ("cluster-cidr", "masquerade-all")

releases = pytest.mark.parametrize("release", [path.parent.name.removeprefix("kubernetes-") for path in RELEASES])
families = pytest.mark.parametrize("family", FAMILIES)
settings = pytest.mark.parametrize("setting", SETTINGS)


@functools.cache
def files(release: str) -> dict[str, str]:
    path = pathlib.Path(__file__).parent / "data" / f"kubernetes-{release}" / "kube-proxy.tar.zst"
    return {name: content.decode() for name, content in storage.files_of(path).items()}


@functools.cache
def objects(release: str) -> ClusterObjects:
    services = parse_services(json.loads(files(release)["api/services.json"]))
    endpoints = parse_endpoint_slices(json.loads(files(release)["api/endpointslices.json"]))
    return ClusterObjects(f"v{release}", services, endpoints, (), (), (), (), {}, None)


def table(release: str, name: str, family: str, form: str = "text") -> NftTable:
    return parse_kube_proxy_nft(files(release)[f"nftables/{name}/{family}.{form}"])


def rules(release: str, setting: str, family: str) -> NodeRules:
    text = files(release)[f"iptables/{setting}/{family}tables-save"]
    read = parse_save(text, backend="nft", tool=f"{family}tables-save")
    return NodeRules(read, Ruleset("legacy", {}, family=FAMILIES[family]))


def ports(said: ClusterObjects, version: int):
    """Each Service port with its ClusterIP of the family, and where its traffic should go."""
    for service in said.services:
        for port in () if expected_endpoints.not_proxied(service) else service.ports:
            for ip in service.cluster_ips:
                if ip.version == version:
                    yield service, port, ip, expected_endpoints.expect(said.endpoints_of(service), service, port, NODE, version)


def judged(said: ClusterObjects, nat: NodeRules | NftTable, version: int) -> list[str]:
    """All differences of all Services, each with what it is about."""
    found = list(judge_chain_names.judge_chain_names(NODE, nat, said))
    for service, port, ip, expected in ports(said, version):
        found += judge_rules.judge_service_rule(NODE, port, ip, nat, expected)
        if expected.sockets:
            found += judge_backends.judge_backend_choice(NODE, service, port, ip, nat, expected)
            seen = judge_backends.translations(port, ip, nat, expected)
            found += judge_backends.judge_endpoint_dnat(NODE, port, seen, expected)
    return [f"{each.subject} {each.problem}: {each.actual}" for each in found]


def reached(said: ClusterObjects, nat: NftTable, version: int) -> dict[str, object]:
    """Each Service port → where the table sends its traffic, or how it refuses it."""
    told = {}
    for _, port, ip, _ in ports(said, version):
        found = nat.service(ip, port.protocol, port.port)
        told[port.id] = frozenset(found.endpoints) if found else nat.refused.get((Socket(ip, port.port), port.protocol.lower()))
    return told


def address(version: int, node: int, number: int) -> str:
    return f"10.42.{node}.{number}:8080" if version == 4 else f"[fd00:42:{node}:1111:2222:3333:4444:{number}]:8080"


# By hand, and not by the model: the nodes (0 is master) of the endpoints that a packet from master may reach, or the refusal.
BY_HAND = {
    "three": (16, {0, 1, 2}), "none": (18, "reject"), "sticky": (20, {0, 1, 2}), "sticky-one": (21, {0}), "node-port": (22, {1, 2}),
    "node-port-none": (23, "reject"), "balanced": (24, {1, 2}), "external-ips": (26, {1, 2}), "inside-local": (28, {0}),
    "inside-local-away": (29, "drop"), "outside-local-away": (31, {1, 2}), "both-local": (32, {0}), "starting": (34, "reject"),
    "partly-starting": (35, {1}), "leaving": (36, {0, 1}), "partly-leaving": (37, {1}), "leaving-local": (38, {1}),
}  # fmt: skip


@releases
@families
@settings
def test_a_table_is_read_the_same_in_all_its_forms(release, family, setting):
    first, *others = (dataclasses.replace(table(release, setting, family, form), version=None) for form in FORMS)

    assert [dataclasses.replace(each, services=first.services) for each in others] == [first] * 2
    assert all(sorted(map(repr, each.services)) == sorted(map(repr, first.services)) for each in others)
    assert {frozenset(each.lines) for each in (first, *others)} == {frozenset(first.lines)}


@releases
@families
@settings
def test_a_table_says_what_the_api_says(release, family, setting):
    version, said, nat = FAMILIES[family], objects(release), table(release, setting, family)
    found = reached(said, nat, version)

    for service, port, _, expected in ports(said, version):
        assert found[port.id] == (expected.sockets or (expected.refusal or "").lower()), port.id
        if port.node_port and expected.cluster_chain:
            assert nat.node_ports[port.protocol.lower(), port.node_port], port.id
        for outside in (*service.external_ips, *service.load_balancer_ips):
            held = nat.service(outside, port.protocol, port.port) if outside.version == version else None
            assert held is None or set(held.endpoints) == expected.reachable, port.id
    for name, (number, nodes) in BY_HAND.items():
        wanted = nodes if isinstance(nodes, str) else {address(version, node, number) for node in nodes}
        mine = found[f"{name}:http/TCP"]
        assert (mine if isinstance(mine, str) else set(map(str, mine))) == wanted, name
    assert nat.cluster_ips == {ip for _, _, ip, _ in ports(said, version)}


@releases
@families
@settings
def test_healthy_tables_and_rules_are_judged_in_silence(release, family, setting):
    version, said = FAMILIES[family], objects(release)

    for nat in (*(table(release, setting, family, form) for form in FORMS), rules(release, setting, family)):
        assert judged(said, nat, version) == []


@releases
@families
@pytest.mark.parametrize("form", FORMS)
def test_a_table_that_nft_spoilt_is_told_of(release, family, form):
    version, said = FAMILIES[family], objects(release)
    removed, elsewhere, missing = (
        judged(said, table(release, name, family, form), version) for name in ("removed", "elsewhere", "missing")
    )
    gone, other = address(version, 2, 16), "10.42.9.9:8080" if version == 4 else "[fd00:42:9::9]:8080"

    assert [each for each in (*removed, *elsewhere, *missing) if "shop/three" not in each] == []
    assert any("does not go to a serving endpoint" in each for each in removed)
    assert any("goes to what is no serving endpoint" in each and other in each for each in elsewhere)
    assert any("has no element for" in each for each in missing)
    assert any("is missing: no such chain in the table" in each for each in missing)
    found = table(release, "removed", family, form).service(VIPS[version], "tcp", 80)
    assert gone not in map(str, found.endpoints)
    assert len(found.endpoints) == 2


@releases
@families
@pytest.mark.parametrize("form", FORMS)
def test_chains_that_wait_for_their_deletion_are_no_difference(release, family, form):
    """kube-proxy has followed the API; the chains of a Service whose endpoints went are there, without rules."""
    whole = objects(release)
    said = dataclasses.replace(whole, endpoints=tuple(each for each in whole.endpoints if each.service != "emptied"))
    nat = table(release, "emptied", family, form)

    waiting = [name for name, lines in nat.lines.items() if not lines and "/emptied/" in name]
    assert len(waiting) >= 1
    assert judged(said, nat, FAMILIES[family]) == []
    # The control: a chain that is not empty is told of.
    kept = dataclasses.replace(nat, lines={**nat.lines, waiting[0]: ("meta l4proto tcp dnat to 10.42.1.39:8080",)})
    assert any(waiting[0] in each for each in judged(said, kept, FAMILIES[family]))


@releases
@families
def test_rules_are_read_as_the_api_says_them(release, family):
    version, said, nat = FAMILIES[family], objects(release), rules(release, "cluster-cidr", family)
    everyone = rules(release, "masquerade-all", family).active
    pods = {4: "10.42.0.0/16", 6: "fd00:42::/32"}[version]

    for _, port, ip, expected in ports(said, version):
        walk = service_rules.walk(nat.active, ip, port.protocol, port.port)
        assert walk.sockets == expected.sockets, port.id
        assert (not walk.refusals) == bool(expected.sockets), port.id
        if expected.sockets:
            assert [choice.share for choice in walk.choices] == pytest.approx([1 / len(walk.choices)] * len(walk.choices))
            assert f"! -s {pods}" in walk.masquerade_rule.raw
            assert all(choice.hairpin for choice in walk.choices)
            assert "-s " not in service_rules.walk(everyone, ip, port.protocol, port.port).masquerade_rule.raw


@releases
@families
def test_the_way_shows_what_is_masqueraded(release, family):
    version, said = FAMILIES[family], objects(release)
    (three,) = (each for each in ports(said, version) if each[0].name == "three")
    for setting, told in (("cluster-cidr", "saddr != "), ("masquerade-all", "")):
        way = judge_nft.walk(table(release, setting, family), three[2], "TCP", 80).lines
        marks = [line for line in way if re.search(r"jump mark-for-masquerade|mark set", line) and "daddr" in line]
        assert len(marks) == 1, way
        assert (told in marks[0]) if told else ("saddr" not in marks[0])
