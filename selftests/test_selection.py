"""What a run looks at, and how its nodes are reached."""

from __future__ import annotations

import dataclasses
import ipaddress

import fake_ssh
import pytest

from servicepath import inventory, selection, targets
from servicepath.channels.local import LocalChannel
from servicepath.channels.ssh import SocketFolder
from servicepath.inventory import Inventory
from servicepath.model.services import ClusterObjects, Endpoint, Node, Pod, Policy, Service, ServicePort
from servicepath.selection import Options, SelectionError

PLAIN = Inventory()


def port(number=53, name="dns", protocol="UDP", service="kube-dns", namespace="kube-system"):
    return ServicePort(namespace, service, name, protocol, number, None, None, None)


def service(name="kube-dns", namespace="kube-system", labels=None, ports=None):
    ports = ports or (port(service=name, namespace=namespace),)
    ip = ipaddress.ip_address("10.43.0.10")
    return Service(namespace, name, "ClusterIP", (ip,), ports, {}, "Cluster", None, "None", False, None, labels or {}, {})


def pod(name, node="master", ip="10.42.0.9", namespace="default", **changes):
    made = Pod(namespace, name, node, (ipaddress.ip_address(ip),), False, "Running", True, False, {"app": name}, {})
    return dataclasses.replace(made, **changes)


def node(name, ip="203.0.113.7"):
    return Node(name, (ipaddress.ip_address(ip),), (), True, "v1.34.4", "6.1", "Debian", "containerd", {}, {})


def objects(**changes):
    empty = ClusterObjects("v1.34.4", (), (), (), (node("master"), node("worker1")), (), (), {}, None)
    return dataclasses.replace(empty, **changes)


def endpoint(ip, service="kube-dns", namespace="kube-system"):
    return Endpoint(namespace, service, "slice", ipaddress.ip_address(ip), True, True, False, "master", None, {("dns", "UDP"): 53})


def test_nodes_are_those_named_else_the_inventorys_else_all():
    there = objects()

    assert [n.name for n in selection.select_nodes(there, Options(), PLAIN)] == ["master", "worker1"]
    assert [n.name for n in selection.select_nodes(there, Options(), Inventory(nodes={"worker1": {}}))] == ["worker1"]
    assert [n.name for n in selection.select_nodes(there, Options(nodes=("master", "master")), PLAIN)] == ["master"]


def test_services_of_one_name_in_two_namespaces_have_ports_of_different_ids():
    there = objects(services=(service("web", "blue"), service("web", "green"), service("db", "green")))
    names = ("blue/web", "green/web", "green/db")

    ids = [s.ports[0].id for s in selection.select_services(there, Options(services=names), PLAIN)]
    assert ids == ["blue/web:dns/UDP", "green/web:dns/UDP", "db:dns/UDP"]
    (alone,) = selection.select_services(there, Options(services=("blue/web",)), PLAIN)
    assert alone.ports[0].id == "web:dns/UDP"
    # To whom it belongs does not hang on how it is called.
    assert selection.select_services(there, Options(services=names), PLAIN)[0].ports == alone.ports


def test_a_node_that_is_not_there_is_one_line_with_those_that_are():
    with pytest.raises(SelectionError, match=r"^--node: no node wroker1 in the cluster; there are: master, worker1$"):
        selection.select_nodes(objects(), Options(nodes=("wroker1",)), PLAIN)
    with pytest.raises(SelectionError, match=r"^inventory.yaml: no node x "):
        selection.select_nodes(objects(), Options(), Inventory(nodes={"x": {}}))


@pytest.mark.parametrize(
    ("services", "chosen"),
    [
        ([service(), service("metrics", ports=(port(443, "https", "TCP"),))], "kube-system/kube-dns"),
        ([service("coredns-upstream", labels={"k8s-app": "kube-dns"}), service("kube-dns", labels={"k8s-app": "kube-dns"})],
         "kube-system/kube-dns"),
        ([service("rke2-coredns", labels={"k8s-app": "kube-dns"})], "kube-system/rke2-coredns"),
        ([service("dns-default", "openshift-dns", labels={"k8s-app": "kube-dns"}), service("other")], "openshift-dns/dns-default"),
        ([service("coredns")], "kube-system/coredns"),
    ],
)  # fmt: skip
def test_the_dns_service_is_found_whatever_it_is_called(services, chosen):
    assert [s.key for s in selection.select_services(objects(services=tuple(services)), Options(), PLAIN)] == [chosen]


def test_without_a_dns_service_the_user_is_asked_for_one():
    with pytest.raises(SelectionError, match="name one with --service"):
        selection.select_services(objects(services=(service("web", "default"),)), Options(), PLAIN)


def test_services_named_on_the_command_line_come_before_the_inventorys():
    there = objects(services=(service("a", "x"), service("b", "x")))

    assert [s.key for s in selection.select_services(there, Options(services=("x/b",)), Inventory(services=["x/a"]))] == ["x/b"]
    assert [s.key for s in selection.select_services(there, Options(), Inventory(services=["x/a"]))] == ["x/a"]
    with pytest.raises(SelectionError, match="--service: no Service x/c"):
        selection.select_services(there, Options(services=("x/c",)), PLAIN)


def chosen(pods, *, options=None, inventory=PLAIN, policies=(), endpoints=()):
    there = objects(pods=tuple(pods), policies=tuple(policies), endpoints=tuple(endpoints), services=(service(),))
    found = selection.client_pods(there, options or Options(), inventory, there.services)
    return {name: each and each.name for name, each in found.items()}


@pytest.mark.parametrize(
    "unfit",
    [
        pod("a", host_network=True),
        pod("a", ready=False),
        pod("a", terminating=True),
        pod("a", ips=()),
        pod("svclb-traefik-x"),
        pod("a", labels={"svccontroller.k3s.cattle.io/svcname": "traefik"}),
        pod("a", ip="10.42.0.2"),
    ],
)
def test_some_pods_are_no_clients(unfit):
    assert chosen([unfit, pod("b", ip="10.42.0.3")], endpoints=[endpoint("10.42.0.2")])["master"] == "b"
    assert chosen([unfit], endpoints=[endpoint("10.42.0.2")])["master"] is None


@pytest.mark.parametrize(
    ("policy", "fit"),
    [
        (Policy("NetworkPolicy", "default", "p", {"app": "a"}, True), False),
        (Policy("NetworkPolicy", "default", "p", {}, True), False),
        (Policy("NetworkPolicy", "default", "p", None, True), False),
        (Policy("CiliumClusterwideNetworkPolicy", None, "p", {}, True), False),
        (Policy("NetworkPolicy", "default", "p", {"app": "other"}, True), True),
        (Policy("NetworkPolicy", "elsewhere", "p", {}, True), True),
        (Policy("NetworkPolicy", "default", "p", {"app": "a"}, False), True),
    ],
)
def test_a_pod_whose_egress_a_policy_limits_is_no_client(policy, fit):
    assert (chosen([pod("a")], policies=[policy])["master"] == "a") is fit


def test_a_client_outside_kube_system_is_preferred_and_then_by_name():
    assert chosen([pod("a", namespace="kube-system"), pod("c"), pod("b")]) == {"master": "b", "worker1": None}


def test_a_named_pod_counts_for_its_node():
    pods = [pod("a"), pod("z"), pod("w", "worker1")]

    assert chosen(pods, inventory=Inventory(pods=["default/z"])) == {"master": "z", "worker1": "w"}
    assert chosen(pods, options=Options(pods=("default/z",))) == {"master": "z", "worker1": None}


@pytest.mark.parametrize(
    ("named", "says"),
    [
        ("default/none", "--pod: no Pod default/none"),
        ("default/host", "has the node's network"),
        ("default/late", "is not Ready"),
    ],
)
def test_a_named_pod_that_cannot_be_a_client_is_one_line(named, says):
    with pytest.raises(SelectionError, match=says):
        chosen([pod("host", host_network=True), pod("late", ready=False)], options=Options(pods=(named,)))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (port(53, "dns", "UDP"), "dns"),
        (port(53, "dns-tcp", "TCP"), "dns"),
        (port(5353, "dns", "UDP"), "dns"),
        (port(53, None, "UDP"), "dns"),
        (port(9153, "metrics", "TCP"), "tcp"),
        (port(123, "ntp", "UDP"), None),
        (port(53, "dns", "SCTP"), None),
    ],
)
def test_what_a_port_speaks(asked, said):
    assert selection.speaks(asked, PLAIN) == said


def test_what_a_port_speaks_may_be_said_by_name_or_number():
    said = Inventory(probes={"kube-system/kube-dns": {"metrics": "dns", 123: "dns", "dns": "tcp"}})

    assert selection.speaks(port(9153, "metrics", "TCP"), said) == "dns"
    assert selection.speaks(port(123, "ntp", "UDP"), said) == "dns"
    assert selection.speaks(port(53, "dns", "TCP"), said) == "tcp"


@pytest.fixture
def ssh(tmp_path, monkeypatch):
    fake = fake_ssh.FakeSsh(tmp_path)
    monkeypatch.setenv("PATH", fake_ssh.on_path(tmp_path))
    return fake


def test_nodes_of_the_api_are_reached_as_openssh_knows_them_else_by_internal_ip(ssh):
    ssh.alias("aliased", "hostname 198.51.100.3")
    ssh.alias("behind", "hostname behind\nproxyjump bastion")
    nodes = [node(name) for name in ("aliased", "behind", "unknown.invalid", "localhost")]

    found = targets.of_nodes(PLAIN, [*nodes, node("this", "127.0.0.1")])

    assert {name: target.host for name, target in found.items()} == {
        "aliased": "aliased", "behind": "behind", "unknown.invalid": "203.0.113.7", "localhost": "localhost", "this": None,
    }  # fmt: skip
    assert found["this"].connection == "local"


def test_the_inventorys_nodes_come_before_the_apis():
    said = Inventory(nodes={"master": {}, "worker1": {"host": "w"}, "worker2": {"connection": "local"}})

    found = targets.of_nodes(said, [node("other")])

    assert {name: (t.host, t.connection) for name, t in found.items()} == {
        "master": ("master", "ssh"), "worker1": ("w", "ssh"), "worker2": ("worker2", "local"),
    }  # fmt: skip


def test_the_lan_client_is_the_inventorys_else_this_machine_when_it_is_no_node():
    named = Inventory(lan_client={"host": "desk"})

    assert targets.of_lan_client(named, []) == inventory.Node(host="desk")
    assert targets.of_lan_client(PLAIN, [node("master")]) == inventory.Node(connection="local")
    assert targets.of_lan_client(PLAIN, [node("master", "127.0.0.1")]) is None
    assert targets.of_lan_client(Inventory(nodes={"master": {"connection": "local"}}), []) is None


def test_targets_become_channels():
    sockets = SocketFolder()
    made = targets.channels({"a": inventory.Node(host="b"), "c": inventory.Node(connection="local")}, targets.login(PLAIN), sockets)
    sockets.remove()

    assert made["a"].host == "b"
    assert isinstance(made["c"], LocalChannel)
