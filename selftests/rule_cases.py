"""Rulesets and API objects for selftests of rules: the recorded cases, and Services made from a few words."""

from __future__ import annotations

import dataclasses
import ipaddress
import json
import pathlib

from servicepath.model.rules import Ruleset
from servicepath.model.service_rules import NodeRules
from servicepath.model.services import ClusterObjects, Endpoint, Node, Service, ServicePort
from servicepath.parse.iptables import parse_save
from servicepath.parse.kubernetes import parse_endpoint_slices, parse_services

CASES = pathlib.Path(__file__).parent / "data" / "cases"


def text(case: str, name: str) -> str:
    """A file of the case whose folder starts with this number."""
    (folder,) = CASES.glob(f"{case}-*")
    return (folder / name).read_text()


def rules(case: str, name: str, *, table: str | None = None, backend: str | None = None) -> Ruleset:
    """A file of the case, read as iptables-save."""
    return parse_save(text(case, name), table=table, backend=backend)


def only(ruleset: Ruleset) -> NodeRules:
    """A node that has these rules in its nft back end and none in the legacy one."""
    return NodeRules(nft=ruleset, legacy=Ruleset("legacy", {}))


def objects(*services: Service, case: str | None = None, endpoints: tuple[Endpoint, ...] = (), version: str = "v1.34.4") -> ClusterObjects:
    """What the API says: the given Services (else the case's own) with the case's EndpointSlices and further endpoints."""
    if case:
        services = services or parse_services(json.loads(text(case, "services.json")))
        endpoints = (*parse_endpoint_slices(json.loads(text(case, "endpointslices.json"))), *endpoints)
    return ClusterObjects(version, tuple(services), endpoints, (), (), (), (), {}, None)


def service(key: str, ip: str, *ports: tuple[str | None, str, int], **changes: object) -> Service:
    """A Service with one ClusterIP; ports are (name, protocol, number)."""
    namespace, name = key.split("/")
    made = Service(
        namespace=namespace,
        name=name,
        type="ClusterIP",
        cluster_ips=(ipaddress.ip_address(ip),),
        ports=tuple(ServicePort(namespace, name, port[0], port[1], port[2], None, None, None) for port in ports),
        selector={"app": name},
        internal_traffic_policy="Cluster",
        external_traffic_policy=None,
        session_affinity="None",
        publish_not_ready=False,
        traffic_distribution=None,
        labels={},
        annotations={},
    )
    return dataclasses.replace(made, **changes)


def endpoint(port: ServicePort, ip: str, number: int, node: str = "node1", **changes: object) -> Endpoint:
    """A ready endpoint of a port."""
    ports = {(port.name, port.protocol): number}
    made = Endpoint(port.namespace, port.service, f"{port.service}-x", ipaddress.ip_address(ip), True, True, False, node, None, ports)
    return dataclasses.replace(made, **changes)


def node(name: str, cidr: str) -> Node:
    """A Node with one PodCIDR."""
    return Node(name, (), (ipaddress.ip_network(cidr),), True, "v1.34.4", "6.1", "Debian", "containerd", {}, {})
