"""The API's answers → ClusterObjects, on a real cluster's answers and on what users' clusters have besides."""

import copy
import ipaddress
import json
import pathlib

import host_samples as sample
import pytest

from servicepath.parse import kubernetes
from servicepath.parse.errors import ParseError
from servicepath.parse.policies import parse_policies

DATA = pathlib.Path(__file__).parent / "data"
ANSWERS = json.loads((DATA / "kubernetes-1.34.4" / "answers.json").read_text())
CASE_21 = DATA / "cases" / "21-headless-and-no-selector"


def ip(text):
    return ipaddress.ip_address(text)


def items(*objects):
    return {"items": list(objects)}


def named(name, namespace="web", **parts):
    return {"metadata": {"name": name, "namespace": namespace, **parts.pop("metadata", {})}, **parts}


@pytest.fixture
def cluster():
    return kubernetes.parse_kubernetes(ANSWERS)


def test_a_real_cluster_is_read(cluster):
    dns = cluster.service("kube-system/kube-dns")
    assert cluster.server_version == "v1.34.4"
    assert dns.cluster_ips == (ip("10.43.0.10"),)
    assert [(p.name, p.protocol, p.port) for p in dns.ports] == [("dns", "UDP", 53), ("dns-tcp", "TCP", 53)]
    assert [str(s) for s in cluster.serving(dns, dns.ports[0])] == ["10.42.1.36:53"]
    assert cluster.node("worker1").internal_ips == (ip("192.168.55.11"),)
    assert cluster.cilium_node("worker1").cilium_internal_ips == (ip("10.42.1.182"),)
    assert set(cluster.agents) == {"master", "worker1", "worker2"}
    assert cluster.cilium_config["tunnel-protocol"] == "vxlan"
    assert cluster.node_of(ip("10.42.1.36")) == "worker1"


def test_what_the_cluster_has_not_is_absent_and_what_is_needed_is_not_guessed():
    fewer = {key: ANSWERS[key] for key in ("version", "services", "endpointslices", "pods", "nodes")} | {"cilium-config": None}
    found = kubernetes.parse_kubernetes(fewer)
    assert (found.cilium_nodes, found.policies, found.cilium_config, found.service_cidrs) == ((), (), None, ())
    with pytest.raises(ParseError, match="endpointslices"):
        kubernetes.parse_kubernetes({k: v for k, v in fewer.items() if k != "endpointslices"})


def test_service_cidrs_are_read():
    with_cidrs = ANSWERS | {"servicecidrs": items({"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.43.0.0/16", "fd43::/108"]}})}
    found = kubernetes.parse_kubernetes(with_cidrs).service_cidrs
    assert [str(cidr) for cidr in found] == ["10.43.0.0/16", "fd43::/108"]


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("services", "items", 0, "spec", "clusterIPs"), ["10.43.0.256"], "an IP address"),
        (("services", "items", 0, "spec", "ports", 0, "port"), "443", "a whole number"),
        (("services", "items", 0, "spec", "ports", 0, "port"), 70000, "a port number"),
        (("services", "items", 0, "metadata", "name"), None, "a text"),
        (("services", "items"), None, "a list object"),
        (("endpointslices", "items", 0, "endpoints", 0, "addresses"), [], "at least one address"),
        (("endpointslices", "items", 0, "endpoints", 0, "conditions", "ready"), "true", "true or false"),
        (("pods", "items", 0, "status", "podIPs"), [{"ip": "nowhere"}], "an IP address"),
        (("ciliumnodes", "items", 0, "spec", "ipam", "podCIDRs"), ["10.42.0.0/33"], "a prefix"),
        (("nodes", "items", 0, "metadata", "labels"), ["a"], "an object"),
    ],
)
def test_a_wrong_field_is_an_error_that_names_object_and_field(path, value, says):
    broken = copy.deepcopy(ANSWERS)
    place = broken
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(ParseError, match=says) as error:
        kubernetes.parse_kubernetes(broken)
    assert str(path[-1]) in str(error.value) or str(path[-2]) in str(error.value)


def test_case_21_headless_no_selector_external_name_and_other_proxy():
    services = {s.key: s for s in kubernetes.parse_services(json.loads((CASE_21 / "services.json").read_text()))}
    endpoints = kubernetes.parse_endpoint_slices(json.loads((CASE_21 / "endpointslices.json").read_text()))
    assert services["db/pg-headless"].headless
    assert services["db/pg-headless"].cluster_ips == ()
    assert services["db/ext-api"].selector is None
    assert (services["web/shop-ext"].type, services["web/shop-ext"].cluster_ips, services["web/shop-ext"].ports) == ("ExternalName", (), ())
    assert services["web/proxied-by-other"].labels["service.kubernetes.io/service-proxy-name"] == "other-proxy"
    by_service = {(e.service, str(e.ip)): e for e in endpoints}
    hand_made = by_service["ext-api", "192.168.77.5"]
    assert (hand_made.ready, hand_made.serving, hand_made.node_name, hand_made.pod) == (True, None, None, None)
    assert by_service["proxied-by-other", "10.42.1.44"].ports == {(None, "TCP"): 8080}


def test_fqdn_slices_and_slices_of_no_service_hold_no_endpoints():
    fqdn = named(
        "a", metadata={"labels": {"kubernetes.io/service-name": "s"}}, addressType="FQDN", endpoints=[{"addresses": ["x.example"]}]
    )
    orphan = named("b", addressType="IPv4", endpoints=[{"addresses": ["10.42.0.1"]}])
    assert kubernetes.parse_endpoint_slices(items(fqdn, orphan)) == ()


def test_named_ports_come_from_containers_and_sidecars_alone():
    def ports(name, number):
        return [{"name": name, "containerPort": number}]

    spec = {
        "containers": [
            {"name": "main", "ports": [*ports("http", 8080), {"containerPort": 9}]},
            {"name": "second", "ports": ports("http", 1)},
        ],
        "initContainers": [
            {"name": "once", "ports": ports("setup", 1)},
            {"name": "side", "restartPolicy": "Always", "ports": ports("proxy", 2)},
        ],
    }
    pod = kubernetes.parse_pods(items(named("p", spec=spec)))[0]
    assert pod.container_ports == {("http", "TCP"): 8080, ("proxy", "TCP"): 2}
    assert (pod.ips, pod.ready, pod.phase, pod.terminating) == ((), False, "Unknown", False)


def test_the_ready_agent_of_two_counts_and_only_with_its_container():
    def agent(name, ready, container="cilium-agent"):
        status = {"conditions": [{"type": "Ready", "status": ready}], "podIP": "192.168.55.10"}
        spec = {"nodeName": "master", "containers": [{"name": container}]}
        return named(name, "cilium", metadata={"labels": {"k8s-app": "cilium"}}, spec=spec, status=status)

    pods = items(agent("old", "False"), agent("new", "True"), agent("starting", "False"), agent("operator", "True", "cilium-operator"))
    assert kubernetes.parse_kubernetes(ANSWERS | {"pods": pods}).agents["master"].name == "new"


def test_cilium_nodes_of_multi_pool_ipam_have_all_pools_cidrs():
    pools = {"allocated": [{"pool": "default", "cidrs": ["10.42.3.0/27"]}, {"pool": "blue", "cidrs": ["10.50.0.0/27", "fd42::/112"]}]}
    node = {"metadata": {"name": "n"}, "spec": {"ipam": {"pools": pools}, "addresses": [{"type": "CiliumInternalIP", "ip": "fd42::1"}]}}
    found = kubernetes.parse_cilium_nodes(items(node))[0]
    assert [str(cidr) for cidr in found.pod_cidrs] == ["10.42.3.0/27", "10.50.0.0/27", "fd42::/112"]
    assert found.cilium_internal_ips == (ip("fd42::1"),)


@pytest.mark.parametrize(
    ("kind", "spec", "labels", "limits"),
    [
        ("NetworkPolicy", {"podSelector": {}, "policyTypes": ["Ingress"]}, {}, False),
        ("NetworkPolicy", {"podSelector": {"matchLabels": {"a": "b"}}, "egress": [{}]}, {"a": "b"}, True),
        (
            "NetworkPolicy",
            {"podSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}, "policyTypes": ["Egress"]},
            None,
            True,
        ),
        (
            "CiliumNetworkPolicy",
            {"endpointSelector": {"matchLabels": {"k8s:a": "b", "any:c": "d"}}, "egress": []},
            {"a": "b", "c": "d"},
            True,
        ),
        (
            "CiliumNetworkPolicy",
            {"endpointSelector": {"matchLabels": {"k8s:io.kubernetes.pod.namespace": "x"}}, "egressDeny": [{}]},
            None,
            True,
        ),
        ("CiliumClusterwideNetworkPolicy", {"endpointSelector": {"matchLabels": {"reserved:health": ""}}, "ingress": [{}]}, None, False),
    ],
)
def test_policies_say_whom_they_select_and_whether_they_limit_egress(kind, spec, labels, limits):
    found = parse_policies({"kind": kind + "List", "items": [named("p", spec=spec)]})
    assert [(p.kind, p.match_labels, p.limits_egress) for p in found] == [(kind, labels, limits)]


def test_policies_with_several_specs_and_for_nodes():
    several = named("p", kind="CiliumNetworkPolicy", specs=[{"endpointSelector": {}}, {"endpointSelector": {}, "egress": [{}]}])
    nodes = {"kind": "CiliumClusterwideNetworkPolicy", "metadata": {"name": "n"}, "spec": {"nodeSelector": {}, "egress": [{}]}}
    assert [p.limits_egress for p in parse_policies(items(several, nodes))] == [False, True]
    with pytest.raises(ParseError, match="one of NetworkPolicy"):
        parse_policies(items(named("q", spec={})))


def test_cilium_tunnels_between_the_addresses_of_its_own_nodes():
    def cilium(name, *addresses):
        listed = [{"type": kind, "ip": ip} for kind, ip in addresses]
        return {"metadata": {"name": name}, "spec": {"ipam": {"podCIDRs": []}, "addresses": listed}}

    items = [
        cilium("both", ("ExternalIP", "203.0.113.1"), ("InternalIP", "10.1.0.1"), ("CiliumInternalIP", "10.42.0.9")),
        cilium("outside", ("ExternalIP", "203.0.113.2"), ("CiliumInternalIP", "10.42.1.9")),
        cilium("dual", ("InternalIP", "10.1.0.3"), ("ExternalIP", "2001:db8::3")),
        cilium("none"),
    ]
    made = [sample.node(name, "192.168.55.1") for name in ("both", "outside", "dual", "none", "plain")]
    found = sample.objects(nodes=tuple(made), cilium_nodes=kubernetes.parse_cilium_nodes({"items": items}))

    tunnels = {node.name: sorted(map(str, found.tunnel_ips(node.name))) for node in made}
    assert tunnels == {
        "both": ["10.1.0.1"],
        "outside": ["203.0.113.2"],
        "dual": ["10.1.0.3", "2001:db8::3"],
        "none": ["192.168.55.1"],
        "plain": ["192.168.55.1"],
    }
    assert found.tunnel_ips("no such node") == frozenset()
