"""The Services of bench/releases.py: one of each kind of which kube-proxy makes rules of its own, in IPv4 and IPv6."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.apart import Creation
from lab.topology import Topology

SERVICE_CIDR = "fd00:43::/112"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices"
NAMESPACE, LONG = "shop", "n" * 63
HTTP = ("http", "TCP", 80)
EVERYWHERE = ("master", "worker1", "worker2")
AWAY = ("worker1", "worker2")
ALL_PORTS = (HTTP, ("dns", "UDP", 53), ("signals", "SCTP", 9999))
STICKY = {"sessionAffinity": "ClientIP"}
NODE_PORT, LOAD_BALANCER = {"type": "NodePort"}, {"type": "LoadBalancer"}
RANGES = {"loadBalancerSourceRanges": ["203.0.113.0/24", "fd00:99::/64"]}
LOCAL_INSIDE, LOCAL_OUTSIDE = {"internalTrafficPolicy": "Local"}, {"externalTrafficPolicy": "Local"}

# Name: the endpoints' nodes (and what keeps one from being ready), the ports, and what else is in the Service's spec.
SERVICES: dict[tuple[str, str], tuple[tuple[str, ...], tuple[tuple[str, str, int], ...], dict[str, Any]]] = {
    (NAMESPACE, "three"): (EVERYWHERE, (HTTP,), {}),
    (NAMESPACE, "one"): (("worker1",), (("", "TCP", 8000),), {}),
    (NAMESPACE, "none"): ((), (HTTP,), {}),
    (NAMESPACE, "many-ports"): (AWAY, ALL_PORTS, {}),
    (NAMESPACE, "sticky"): (EVERYWHERE, (HTTP,), STICKY),
    (NAMESPACE, "sticky-one"): (("master",), (HTTP,), STICKY),
    (NAMESPACE, "node-port"): (AWAY, (HTTP, ("dns", "UDP", 53)), NODE_PORT),
    (NAMESPACE, "node-port-none"): ((), (HTTP,), NODE_PORT),
    (NAMESPACE, "balanced"): (AWAY, (HTTP,), LOAD_BALANCER | RANGES),
    (NAMESPACE, "balanced-local"): (EVERYWHERE, (HTTP,), LOAD_BALANCER | LOCAL_OUTSIDE | STICKY),
    (NAMESPACE, "external-ips"): (AWAY, (HTTP,), {"externalIPs": ["198.51.100.7", "fd00:98::7"]}),
    (NAMESPACE, "external-ips-none"): ((), (HTTP,), {"externalIPs": ["198.51.100.8", "fd00:98::8"]}),
    (NAMESPACE, "inside-local"): (EVERYWHERE, (HTTP,), LOCAL_INSIDE),
    (NAMESPACE, "inside-local-away"): (AWAY, (HTTP,), LOCAL_INSIDE),
    (NAMESPACE, "outside-local"): (EVERYWHERE, (HTTP,), NODE_PORT | LOCAL_OUTSIDE),
    (NAMESPACE, "outside-local-away"): (AWAY, (HTTP,), NODE_PORT | LOCAL_OUTSIDE),
    (NAMESPACE, "both-local"): (EVERYWHERE, (HTTP,), NODE_PORT | LOCAL_INSIDE | LOCAL_OUTSIDE),
    (NAMESPACE, "headless"): (AWAY, (HTTP,), {"clusterIP": "None"}),
    (NAMESPACE, "starting"): (("master not-ready", "worker1 not-ready"), (HTTP,), {}),
    (NAMESPACE, "partly-starting"): (("master not-ready", "worker1"), (HTTP,), {}),
    (NAMESPACE, "leaving"): (("master leaving", "worker1 leaving", "worker2 not-ready"), (HTTP,), {}),
    (NAMESPACE, "partly-leaving"): (("master leaving", "worker1"), (HTTP,), {}),
    (NAMESPACE, "leaving-local"): (("master leaving", "worker1"), (HTTP,), NODE_PORT | LOCAL_OUTSIDE),
    (NAMESPACE, "emptied"): (AWAY, (HTTP,), {}),
    (LONG, "s" * 63): (EVERYWHERE, (("p" * 63, "TCP", 80),), {}),
}  # fmt: skip


def node_ip(number: int) -> str:
    """A node's IPv6 address; the lab's own has none."""
    return f"fd00:55::{number + 10}"


def surroundings(topology: Topology) -> Iterator[Creation]:
    """The nodes, of which kube-proxy wants its own, and the namespaces."""
    for number, node in enumerate(topology.nodes):
        addresses = [{"type": "InternalIP", "address": address} for address in (str(node.address), node_ip(number))]
        cidrs = [str(node.node_pod_cidr), f"fd00:42:{number}::/64"]
        spec = {"podCIDRs": cidrs, "podCIDR": cidrs[0]}
        yield "/api/v1/nodes", {"metadata": {"name": node.name}, "spec": spec, "status": {"addresses": addresses}}
    for namespace in (NAMESPACE, LONG):
        yield "/api/v1/namespaces", {"metadata": {"name": namespace}}


def objects() -> Iterator[Creation]:
    """The Services and their EndpointSlices."""
    for number, ((namespace, name), (endpoints, ports, more)) in enumerate(SERVICES.items(), 16):
        yield f"/api/v1/namespaces/{namespace}/services", {"metadata": {"name": name}, "spec": _spec(number, ports, more)}
        for version in (4, 6):
            yield SLICES.format(namespace), _slice(name, version, number, endpoints, ports)


def statuses() -> Iterator[tuple[str, dict[str, Any]]]:
    """Changes of the load balancers' status, which stand for their controller: the Service's path, and the change."""
    for number, ((namespace, name), (_, _, more)) in enumerate(SERVICES.items(), 16):
        if more.get("type") == "LoadBalancer":
            ingress = [{"ip": f"192.0.2.{number}"}, {"ip": f"fd00:99::{number}"}]
            yield f"/api/v1/namespaces/{namespace}/services/{name}/status", {"status": {"loadBalancer": {"ingress": ingress}}}


def _spec(number: int, ports: tuple[tuple[str, str, int], ...], more: dict[str, Any]) -> dict[str, Any]:
    """A Service's spec; all that the API server would choose is chosen, so that each run makes the same."""
    ips = {} if "clusterIP" in more else {"clusterIP": f"10.43.0.{number}", "clusterIPs": [f"10.43.0.{number}", f"fd00:43::{number}"]}
    listed = [{"name": name, "protocol": protocol, "port": port, "targetPort": 8000 + port} for name, protocol, port in ports]
    for place, port in enumerate(listed if more.get("type") in ("NodePort", "LoadBalancer") else ()):
        port["nodePort"] = 30000 + 10 * number + place
    return {"ports": listed, "ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv4", "IPv6"], **ips, **more}


def _slice(name: str, version: int, number: int, endpoints: tuple[str, ...], ports: tuple[tuple[str, str, int], ...]) -> dict[str, Any]:
    made = []
    for each in endpoints:
        node, _, state = each.partition(" ")
        place = EVERYWHERE.index(node)
        address = f"10.42.{place}.{number}" if version == 4 else f"fd00:42:{place}:1111:2222:3333:4444:{number}"
        conditions = {"ready": not state, "serving": state != "not-ready", "terminating": state == "leaving"}
        made.append({"addresses": [address], "conditions": conditions, "nodeName": node})
    return {
        "metadata": {"name": f"{name}-ipv{version}"[-63:], "labels": {"kubernetes.io/service-name": name}},
        "addressType": f"IPv{version}",
        "ports": [{"name": name, "port": 8000 + port, "protocol": protocol} for name, protocol, port in ports],
        "endpoints": made,
    }
