"""Loose outputs of a VXLAN cluster that speaks IPv6, inside the tunnel and below it: routes, MTU and captures."""

from __future__ import annotations

import json

import pytest
from judging import judged, laid_out
from scapy.layers import dns, inet, inet6, l2, vxlan
from scapy.utils import wrpcap

NODES = {"node1": "fd00:192::11", "node2": "fd00:192::12"}
CIDRS = {"node1": "fd00:10:244:1::/64", "node2": "fd00:10:244:2::/64"}
ROUTERS = {"node1": "fd00:10:244:1::ab", "node2": "fd00:10:244:2::cd"}
CLIENT, BACKEND, VIP = "fd00:10:244:1::5", "fd00:10:244:2::7", "fd00:10:96::a"
MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
OVERHEAD = 70  # IPv6 40, UDP 8, VXLAN 8, Ethernet 14
ROUTES, TUNNEL = "tests/test_4_routing_to_a_remote_podcidr.py", "tests/test_7_vxlan.py"

ADDRESSES = f"""\
2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default
    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff
    inet6 {NODES["node1"]}/64 scope global
3: cilium_net@cilium_host: <BROADCAST,MULTICAST,NOARP,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default
    link/ether 02:00:00:00:00:02 brd ff:ff:ff:ff:ff:ff
4: cilium_host@cilium_net: <BROADCAST,MULTICAST,NOARP,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default
    link/ether 02:00:00:00:00:03 brd ff:ff:ff:ff:ff:ff
    inet6 {ROUTERS["node1"]}/128 scope global
5: cilium_vxlan: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UNKNOWN group default
    link/ether 02:00:00:00:00:04 brd ff:ff:ff:ff:ff:ff
"""


def routes(cidr=CIDRS["node2"], device="cilium_host", mtu=1500 - OVERHEAD):
    return (
        f"{CIDRS['node1']} dev cilium_host proto kernel src {ROUTERS['node1']} metric 1024 pref medium\n"
        f"{cidr} dev {device} proto kernel src {ROUTERS['node1']} metric 1024 mtu {mtu} pref medium\n"
        "fd00:192::/64 dev eth0 proto kernel metric 256 pref medium\n"
        "default via fd00:192::1 dev eth0 metric 1024 pref medium\n"
    )


def api():
    nodes = [
        {"kind": "Node", "metadata": {"name": name}, "status": {"addresses": [{"type": "InternalIP", "address": ip}]}}
        for name, ip in NODES.items()
    ]
    cilium = [
        {
            "kind": "CiliumNode", "metadata": {"name": name},
            "spec": {
                "ipam": {"podCIDRs": [CIDRS[name]]},
                "addresses": [{"type": "InternalIP", "ip": NODES[name]}, {"type": "CiliumInternalIP", "ip": ROUTERS[name]}],
            },
        }
        for name in NODES
    ]  # fmt: skip
    listed = {"nodes": nodes, "ciliumnodes": cilium}
    return {f"api/{name}.json": json.dumps({"kind": "List", "items": items}) for name, items in listed.items()}


def of_node1(tmp_path, listing, **files):
    found = {"nodes/node1/ip-addr.txt": ADDRESSES, "nodes/node1/ip6-route.txt": listing, **api(), **files}
    return judged(laid_out(tmp_path, found), ROUTES)


def test_routes_to_an_ipv6_pod_cidr_hold(tmp_path):
    found = of_node1(tmp_path, routes())

    for conclusion in ("remote-podcidr-route", "cilium-host-address", "tunnel-mtu"):
        assert found.of(conclusion, "node1") == {"passed"}, found.these(conclusion)


@pytest.mark.parametrize(
    ("conclusion", "listing", "says"),
    [
        ("remote-podcidr-route", routes(device="eth0"), CIDRS["node2"]),
        ("remote-podcidr-route", routes(cidr="fd00:10:244:3::/64"), CIDRS["node2"]),
        ("tunnel-mtu", routes(mtu=1500), CIDRS["node2"]),
    ],
    ids=["through another device", "another PodCIDR", "no room for the tunnel's headers"],
)
def test_a_wrong_ipv6_route_bites(tmp_path, conclusion, listing, says):
    found = of_node1(tmp_path, listing)

    assert found.of(conclusion, "node1") == {"failed"}, found.these(conclusion)
    assert says in found.message(conclusion, "node1")


def captured(tmp_path, outer=(NODES["node1"], NODES["node2"]), inner=(CLIENT, BACKEND)):
    """A question and its answer inside VXLAN, over an underlay of the nodes' IPv6 addresses."""
    ether = l2.Ether(src=MACS[0], dst=MACS[1])
    asked = dns.DNS(id=7, qd=dns.DNSQR(qname="kubernetes.default.svc.cluster.local"))
    answer = dns.DNS(id=7, qr=1, qd=asked.qd, an=dns.DNSRR(rrname=asked.qd[0].qname, rdata="10.96.0.1"))

    def wrapped(under, inside, payload):
        below = ether / inet6.IPv6(src=under[0], dst=under[1]) / inet.UDP(sport=40000, dport=8472) / vxlan.VXLAN(vni=2, flags=8)
        return below / ether / inet6.IPv6(src=inside[0], dst=inside[1]) / payload

    question = wrapped(outer, inner, inet.UDP(sport=33000, dport=53) / asked)
    reply = wrapped(outer[::-1], inner[::-1], inet.UDP(sport=53, dport=33000) / answer)
    wrpcap(str(tmp_path / "vxlan.pcap"), [question, reply])
    return {"nodes/node1/vxlan-8472.pcap": (tmp_path / "vxlan.pcap").read_bytes()}


def of_tunnel(tmp_path, **changed):
    pods = {
        "kind": "Pod", "metadata": {"name": "client", "namespace": "default"},
        "spec": {"nodeName": "node1"}, "status": {"phase": "Running", "podIP": CLIENT, "podIPs": [{"ip": CLIENT}]},
    }  # fmt: skip
    ports = [{"name": "dns", "protocol": "UDP", "port": 53}]
    service = {
        "kind": "Service", "metadata": {"name": "kube-dns", "namespace": "kube-system"},
        "spec": {"type": "ClusterIP", "selector": {"k8s-app": "kube-dns"}, "clusterIP": VIP, "clusterIPs": [VIP], "ports": ports},
    }  # fmt: skip
    more = {"api/pods.json": json.dumps(pods), "api/services.json": json.dumps(service)}
    return judged(laid_out(tmp_path / "folder", {**captured(tmp_path, **changed), **api(), **more}), TUNNEL)


def test_pods_of_ipv6_speak_inside_the_tunnel(tmp_path):
    found = of_tunnel(tmp_path)

    for conclusion in ("tunnel-endpoints", "inner-is-the-pod", "answer-comes-back", "no-clusterip-inside"):
        assert found.of(conclusion, "node1") == {"passed"}, found.these(conclusion)
    for conclusion in ("host-inner-source", "local-backend-untunnelled"):
        assert found.of(conclusion, "node1") == {"skipped"}, found.these(conclusion)


@pytest.mark.parametrize(
    ("conclusion", "changed", "says"),
    [
        ("no-clusterip-inside", {"inner": (CLIENT, VIP)}, VIP),
        ("inner-is-the-pod", {"inner": (NODES["node1"], BACKEND)}, NODES["node1"]),
        ("tunnel-endpoints", {"outer": (NODES["node1"], "fd00:192::99")}, "fd00:192::99"),
    ],
    ids=["the ClusterIP inside", "a node's address inside", "a stranger's address outside"],
)
def test_what_ipv6_shows_in_the_tunnel_bites(tmp_path, conclusion, changed, says):
    found = of_tunnel(tmp_path, **changed)

    assert found.of(conclusion, "node1") == {"failed"}, found.these(conclusion)
    assert says in found.message(conclusion, "node1")
