"""What is sent on a node, from where and where it is captured: planned from the API and the node's snapshot alone."""

from __future__ import annotations

import dataclasses
import ipaddress
import json
import subprocess

import pytest

from fixtures import traffic
from servicepath.experiments import counters, planning
from servicepath.experiments.traffic import WINDOWS
from servicepath.inventory import Inventory
from servicepath.model.addresses import Socket
from servicepath.model.flows import Source
from servicepath.model.services import CiliumNode, ClusterObjects, Endpoint, Node, Pod, Service, ServicePort
from servicepath.observation import CouldNotSee, Observation, Trouble

DNS = ServicePort("kube-system", "kube-dns", "dns", "UDP", 53, None, None, None)
DNS_TCP = ServicePort("kube-system", "kube-dns", "dns-tcp", "TCP", 53, None, None, None)
METRICS = ServicePort("kube-system", "kube-dns", "metrics", "UDP", 9153, None, None, None)
RULES = "*nat\n:PREROUTING ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]\nCOMMIT\n"
CONNTRACK = "udp      17 25 src=10.42.0.9 dst=10.43.0.10 sport=20001 dport=53 src=10.42.1.113 dst=10.42.0.9 sport=53 dport=20002 use=1\n"


def ip(text):
    return ipaddress.ip_address(text)


def net(text):
    return ipaddress.ip_network(text)


def node(name, *ips):
    return Node(name, tuple(map(ip, ips)), (), True, "v1.34.4", "6.1", "Debian", "containerd", {}, {})


def service(*vips, ports=(DNS, DNS_TCP, METRICS), policy="Cluster"):
    ips = tuple(map(ip, vips))
    made = Service("kube-system", "kube-dns", "ClusterIP", ips, ports, {"x": "y"}, policy, None, "None", False, None, {}, {})
    return dataclasses.replace(made, families=tuple(address.version for address in ips))


def endpoint(address, on, number=53):
    ports = {("dns", "UDP"): number, ("dns-tcp", "TCP"): number}
    return Endpoint("kube-system", "kube-dns", "a", ip(address), True, True, False, on, None, ports)


def pod(name, on, *ips):
    return Pod("default", name, on, tuple(map(ip, ips)), False, "Running", True, False, {}, {})


def cluster(*services, endpoints=(), pods=(), **changes):
    nodes = (node("master", "192.168.55.10"), node("worker1", "192.168.55.11"))
    own = CiliumNode("master", (net("10.42.0.0/24"),), (ip("192.168.55.10"),), (ip("10.42.0.9"),))
    other = CiliumNode("worker1", (net("10.42.1.0/24"),), (ip("192.168.55.11"),), (ip("10.42.1.182"),))
    made = ClusterObjects("v1.34.4", services, tuple(endpoints), tuple(pods), nodes, (own, other), (), {}, {})
    return dataclasses.replace(made, **changes)


def interface(index, name, *cidrs, link=None):
    listed = [{"family": "inet6" if ":" in c else "inet", "local": c.split("/")[0], "prefixlen": int(c.split("/")[1])} for c in cidrs]
    shown = {"ifindex": index, "ifname": name, "flags": ["UP"], "mtu": 1500, "operstate": "UP", "addr_info": listed}
    return shown if link is None else {**shown, "link_index": link}


CLIENT = ("/run/netns/cni-1", [interface(9, "eth0", "10.42.0.4/32", "fd00:42::4/128", link=7)])
BACKEND = ("/run/netns/cni-2", [interface(11, "eth0", "10.42.0.20/32", "fd00:42::20/128", link=12)])


def said(*, namespaces=(("10.42.0.4", CLIENT),), devices=None, **changed):
    """The node's snapshot; ``namespaces`` pairs Pod IPs with the namespace that holds them."""
    devices = devices or [
        interface(2, "enp1s0", "192.168.55.10/24"),
        interface(4, "cilium_host", "10.42.0.9/32"),
        interface(5, "cilium_vxlan"),
        interface(7, "lxc1"),
        interface(12, "lxc2"),
    ]
    route = [{"dst": "10.42.1.0/24", "gateway": "10.42.0.9", "dev": "cilium_host", "prefsrc": "10.42.0.9", "metrics": [{"mtu": 1450}]}]
    lines = [f"{address} {path} {json.dumps(shown, separators=(',', ':'))}" for address, (path, shown) in namespaces]
    texts = {
        "iptables-nft-save": RULES, "iptables-legacy-save": "", "ip-tables-names": "", "ip-addr": json.dumps(devices),
        "ip-route": json.dumps(route), "ip-rule": "[]", "conntrack": CONNTRACK,
        "listeners": "tcp LISTEN 0 5 0.0.0.0:22 0.0.0.0:*\n", "pod-namespaces": "".join(f"{line}\n" for line in lines),
    } | changed  # fmt: skip
    return {name: Observation("master", name, (name,), 0, text.encode(), b"", 0.0, 0.0) for name, text in texts.items()}


def plan(objects, client=None, answers=None, used=frozenset):
    return traffic.plan(objects.node("master"), answers or said(), objects, objects.services, client, Inventory(), used)


HERE, THERE = pod("near", "master", "10.42.0.20"), pod("far", "worker1", "10.42.1.113")
WEB = pod("web", "master", "10.42.0.4")


def usual(**changes):
    return cluster(service("10.43.0.10", **changes), endpoints=[endpoint("10.42.0.20", "master"), endpoint("10.42.1.113", "worker1")],
                   pods=[HERE, THERE, WEB])  # fmt: skip


def test_the_plan_names_what_the_snapshot_showed():
    found = plan(usual(), WEB, said(namespaces=[("10.42.0.4", CLIENT), ("10.42.0.20", BACKEND)]))

    assert (found.clients, found.client_netns, found.route_mtu) == ((ip("10.42.0.4"),), "/run/netns/cni-1", 1450)
    assert found.addresses == (ip("10.43.0.10"), ip("10.42.0.4"))
    assert {tap.role: tap.interface for tap in found.taps} == {
        "underlay": "enp1s0", "tunnel": "cilium_vxlan", "client-lxc": "lxc1", "backend-lxc-1": "lxc2",
    }  # fmt: skip
    assert "-t nat" in found.save_tool[-1]
    assert "nft" in found.save_tool[-1]


def test_each_port_is_probed_by_what_it_speaks_and_what_nobody_knows_is_not():
    found = plan(usual(), WEB)

    assert {p.port.name for p in found.probes} == {"dns", "dns-tcp"}
    assert {p.window for p in found.probes} == {*WINDOWS, "size"}
    assert {p.target for p in found.probes if p.window != "size"} == {Socket(ip("10.43.0.10"), 53)}
    assert {p.target for p in found.probes if p.window == "size"} == {Socket(ip("10.42.1.113"), 53)}  # straight to a remote backend
    assert {p.source for p in found.probes if p.window == "pod"} == {Source.POD}


def test_no_source_port_is_one_that_is_in_use_and_none_is_used_twice():
    objects = usual()
    taken = frozenset(p.sport for p in plan(objects, WEB).probes)
    found = [p.sport for p in plan(objects, WEB, used=lambda: taken).probes]

    assert not taken & set(found)
    assert len(found) == len(set(found))


def test_ports_in_use_are_those_of_both_flow_tables_and_of_listeners():
    ct = "UDP OUT 10.42.0.4:20003 -> 10.42.1.113:53 expires=1 Packets=0 Bytes=0 RxFlagsSeen=0x00 LastRxReport=1 TxFlagsSeen=0x00 LastTxReport=1 Flags=0x0000 [ ] RevNAT=4 SourceSecurityID=1 \n"  # noqa: E501
    agent = {"agent-ct": Observation("master", "agent-ct", ("x",), 0, ct.encode(), b"", 0.0, 0.0)}

    assert traffic.used_ports(said(), agent) == {20001, 53, 20002, 22, 20003}
    assert traffic.used_ports(said(), None) == traffic.used_ports(said(), Trouble("master", "forbidden")) == {20001, 53, 20002, 22}


def test_a_local_service_is_sent_to_only_where_it_serves():
    objects = usual(policy="Local")
    elsewhere = dataclasses.replace(objects, endpoints=objects.endpoints[1:])

    assert {p.port.name for p in plan(objects).probes} == {"dns", "dns-tcp"}
    assert plan(elsewhere).probes == ()


def test_without_a_client_pod_the_host_alone_sends():
    found = plan(usual())

    assert (found.clients, found.client_netns) == ((), None)
    assert {p.source for p in found.probes} == {Source.HOST}
    assert [tap.role for tap in found.taps] == ["underlay", "tunnel"]


def test_a_client_pod_or_an_underlay_that_is_not_found_is_said():
    with pytest.raises(CouldNotSee, match="no network namespace of this node holds an address of the client Pod default/web"):
        plan(usual(), WEB, said(namespaces=[]))
    with pytest.raises(CouldNotSee, match=r"no interface holds the node's address 192\.168\.55\.10"):
        plan(usual(), WEB, said(devices=[interface(7, "lxc1")]))


def test_the_underlay_is_where_cilium_tunnels_from():
    objects = usual()
    own = dataclasses.replace(objects.cilium_nodes[0], internal_ips=(ip("10.9.0.1"),))
    devices = [interface(2, "enp1s0", "192.168.55.10/24"), interface(3, "enp2s0", "10.9.0.1/24"), interface(7, "lxc1")]

    found = plan(dataclasses.replace(objects, cilium_nodes=(own, *objects.cilium_nodes[1:])), WEB, said(devices=devices))
    assert next(tap.interface for tap in found.taps if tap.role == "underlay") == "enp2s0"


def dual(*vips):
    client, near = pod("web", "master", "10.42.0.4", "fd00:42::4"), pod("near", "master", "10.42.0.20", "fd00:42::20")
    far = pod("far", "worker1", "10.42.1.113", "fd00:43::7")
    places = [endpoint(address, on) for address, on in (
        ("10.42.0.20", "master"), ("fd00:42::20", "master"), ("10.42.1.113", "worker1"), ("fd00:43::7", "worker1"),
    )]  # fmt: skip
    return cluster(service(*vips), endpoints=places, pods=[client, near, far]), client


def test_an_ipv6_first_service_is_asked_from_the_client_pods_ipv6_address():
    objects, client = dual("fd00::a", "10.43.0.10")
    spaces = [(address, CLIENT) for address in ("10.42.0.4", "fd00:42::4")] + [(a, BACKEND) for a in ("10.42.0.20", "fd00:42::20")]
    found = plan(objects, client, said(namespaces=spaces))

    assert found.clients == (ip("10.42.0.4"), ip("fd00:42::4"))
    assert (found.client_of(6), found.client_of(4)) == (ip("fd00:42::4"), ip("10.42.0.4"))
    assert {p.target.ip.version for p in found.probes} == {6}
    assert any(p.source is Source.POD for p in found.probes)
    assert [tap.role for tap in found.taps if tap.role.startswith("backend")] == ["backend-lxc-1"]  # one veth, whatever its addresses
    assert "udp[38:4]=0xfd000042 and udp[42:4]=0x00000000" in next(tap.filter for tap in found.taps if tap.role == "underlay")


def test_a_client_pod_without_an_address_of_the_family_sends_nothing_there():
    objects, _ = dual("fd00::a")
    found = plan(objects, WEB)

    assert {p.source for p in found.probes} == {Source.HOST}


def test_another_attempt_has_other_source_ports_and_queries_and_all_else_the_same():
    first = plan(usual(), WEB)
    again = planning.renewed(first, frozenset())

    def same(of):
        return [dataclasses.replace(p, sport=0, queries=()) for p in of.probes]

    def asked(of):
        return [(q.question.lower(), len(q.payload)) for p in of.probes for q in p.queries]

    assert not {p.sport for p in first.probes} & {p.sport for p in again.probes}
    assert same(again) == same(first)
    assert asked(again) == asked(first)
    ids = [(old.dns_id, old.question) == (new.dns_id, new.question) for a, b in zip(first.probes, again.probes, strict=True)
           for old, new in zip(a.queries, b.queries, strict=True)]  # fmt: skip
    assert not any(ids), "a late answer to the first attempt's query would count as one to the second's"


def conntrack_lists(tmp_path, *addresses):
    """Which families a conntrack program is asked for, and what is kept of what it says."""
    tool = tmp_path / "conntrack"
    tool.write_text('#!/bin/sh\necho "$3" >> "$0.asked"\necho "udp $3 src=fd00::a"; echo "udp $3 src=10.43.0.10"; echo other\n')
    tool.chmod(0o755)
    command = counters.conntrack("conntrack", [ip(address) for address in addresses])
    done = subprocess.run(command.argv, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, text=True, check=True)
    return (tmp_path / "conntrack.asked").read_text().split(), done.stdout.splitlines()


@pytest.mark.parametrize(
    ("addresses", "families"),
    [(["10.43.0.10"], ["ipv4"]), (["fd00::a"], ["ipv6"]), (["fd00::a", "10.43.0.10"], ["ipv4", "ipv6"]), ([], ["ipv4"])],
)
def test_conntrack_is_listed_for_each_family_under_test(addresses, families, tmp_path):
    asked, kept = conntrack_lists(tmp_path, *addresses)

    assert asked == families
    assert kept == [f"udp {family} src={address}" for family in families for address in ("fd00::a", "10.43.0.10") if address in addresses]


def test_an_ipv6_address_is_found_as_the_kernels_own_listing_spells_it():
    script = counters.conntrack("conntrack", [ip("fd00::a")]).argv[-1]

    assert "-e fd00::a -e fd00:0000:0000:0000:0000:0000:0000:000a" in script
