"""Facts that several selftests build: a node as Cilium 1.19 leaves it, and the objects of its cluster."""

import dataclasses
import ipaddress

from servicepath.model.routing import HostRouting
from servicepath.model.services import CiliumNode, ClusterObjects, Node, Pod, Service, ServicePort
from servicepath.parse import iproute

VIP = ipaddress.ip_address("10.43.0.10")

RULES = """\
9:	from all fwmark 0x200/0xf00 lookup 2004
100:	from all lookup local
32766:	from all lookup main
32767:	from all lookup default
"""
ROUTES = """\
local default dev lo table 2004 proto kernel scope host
default via 192.168.55.1 dev enp1s0
10.42.0.0/24 via 10.42.0.9 dev cilium_host proto kernel src 10.42.0.9
10.42.0.9 dev cilium_host proto kernel scope link
10.42.1.0/24 via 10.42.0.9 dev cilium_host proto kernel src 10.42.0.9 mtu 1450
10.42.2.0/24 via 10.42.0.9 dev cilium_host proto kernel src 10.42.0.9 mtu 1450
192.168.55.0/24 dev enp1s0 proto kernel scope link src 192.168.55.10
local 10.42.0.9 dev cilium_host table local proto kernel scope host src 10.42.0.9
local 192.168.55.10 dev enp1s0 table local proto kernel scope host src 192.168.55.10
"""
LOOKUPS = """\
10.43.0.10 via 192.168.55.1 dev enp1s0 src 192.168.55.10
10.42.1.182 dev cilium_host src 10.42.0.9 mtu 1450
10.42.2.7 dev cilium_host src 10.42.0.9 mtu 1450
"""
INTERFACES = """\
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default
    inet 127.0.0.1/8 scope host lo
2: enp1s0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default
    inet 192.168.55.10/24 scope global enp1s0
3: cilium_net@cilium_host: <BROADCAST,MULTICAST,NOARP,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default
4: cilium_host@cilium_net: <BROADCAST,MULTICAST,NOARP,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default
    inet 10.42.0.9/32 scope global cilium_host
5: cilium_vxlan: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UNKNOWN group default
    link/ether 12:b1:e4:fb:04:d3 brd ff:ff:ff:ff:ff:ff
    vxlan external id 0 srcport 0 0 dstport 8472 nolearning
7: lxc1@if6: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default
"""


def ip(text):
    return ipaddress.ip_address(text)


def net(text):
    return ipaddress.ip_network(text)


def routing(*, rules=RULES, routes=ROUTES, lookups=LOOKUPS):
    found = [iproute.parse_ip_route_get(f"{line}\n", ip(line.removeprefix("local ").split()[0])) for line in lookups.splitlines()]
    read = (iproute.parse_ip_rule(f"{rules}\n"), iproute.parse_ip_route(f"{routes}\n"))
    return HostRouting(*read, {lookup.destination: lookup for lookup in found})


def interfaces(text=INTERFACES):
    return iproute.parse_ip_addr(text)


def node(name="master", *ips):
    return Node(name, tuple(map(ip, ips or ["192.168.55.10"])), (), True, "v1.34.4+k3s1", "6.1.0", "Debian", "containerd", {}, {})


def cilium_node(name, cidr, internal, *more):
    return CiliumNode(name, tuple(map(net, (cidr, *more))), (), (ip(internal),))


NODES = (
    cilium_node("master", "10.42.0.0/24", "10.42.0.9"),
    cilium_node("worker1", "10.42.1.0/24", "10.42.1.182"),
    cilium_node("worker2", "10.42.2.0/24", "10.42.2.7"),
)


def port(name="dns", protocol="UDP", number=53, target="dns", service="kube-dns", namespace="kube-system"):
    return ServicePort(namespace, service, name, protocol, number, target, None, None)


def service(*, vip="10.43.0.10", selector=None, ports=None, **changes):
    made = Service(
        "kube-system", "kube-dns", "ClusterIP", (ip(vip),), tuple(ports or (port(),)), selector or {"k8s-app": "kube-dns"},
        "Cluster", None, "None", False, None, {}, {}, families=(4,),
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def pod(name="coredns-a", *ips, **changes):
    made = Pod(
        "kube-system", name, "worker1", tuple(map(ip, ips or ["10.42.1.113"])), False, "Running", True, False,
        {"k8s-app": "kube-dns", "x": "y"}, {("dns", "UDP"): 53},
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def objects(**changes):
    made = ClusterObjects("v1.34.4", (service(),), (), (), (node(),), NODES, (), {}, {})
    return dataclasses.replace(made, **changes)
