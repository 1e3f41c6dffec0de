"""The API's answers → ClusterObjects. Input: the JSON as the API sends it, decoded: camelCase, a list object for each resource.

Sample (one item of ``GET /api/v1/services``):

    {"metadata": {"namespace": "kube-system", "name": "kube-dns"},
     "spec": {"type": "ClusterIP", "clusterIP": "10.43.0.10", "clusterIPs": ["10.43.0.10"], "ipFamilies": ["IPv4"],
              "ports": [{"name": "dns", "port": 53, "protocol": "UDP", "targetPort": "dns"}],
              "selector": {"k8s-app": "kube-dns"}, "internalTrafficPolicy": "Cluster", "sessionAffinity": "None"}}
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from ..model.addresses import IPAddress, IPNetwork
from ..model.services import (
    CiliumNode,
    ClusterObjects,
    Endpoint,
    Node,
    Pod,
    Service,
    ServicePort,
)
from .fields import Fields
from .policies import parse_policies

_FAMILIES = {"IPv4": 4, "IPv6": 6}


def parse_kubernetes(answers: Mapping[str, Any]) -> ClusterObjects:
    """Read one snapshot of the API.

    Args:
        answers: resource → the API's answer: ``version``, ``services``, ``endpointslices``, ``pods``, ``nodes``; and where the
            cluster has them ``ciliumnodes``, ``networkpolicies``, ``ciliumnetworkpolicies``, ``ciliumclusterwidenetworkpolicies``,
            ``servicecidrs``, ``kube-system`` (the Namespace) and ``cilium-config`` (the ConfigMap). An absent or null one is a resource
            that the cluster has not.

    Raises:
        ParseError: an answer that is needed is absent, or a field that is used has not its type; names object and field.
    """
    everything = Fields("Kubernetes API", answers)
    for needed in ("version", "services", "endpointslices", "pods", "nodes"):
        if not everything.has(needed):
            raise everything.error(needed, None, "an answer of the API")
    config = everything.child("cilium-config").labels("data") if everything.has("cilium-config") else None
    policies = ("networkpolicies", "ciliumnetworkpolicies", "ciliumclusterwidenetworkpolicies")
    return ClusterObjects(
        server_version=everything.child("version").text("gitVersion"),
        services=parse_services(answers["services"]),
        endpoints=parse_endpoint_slices(answers["endpointslices"]),
        pods=parse_pods(answers["pods"]),
        nodes=parse_nodes(answers["nodes"]),
        cilium_nodes=parse_cilium_nodes(answers["ciliumnodes"]) if everything.has("ciliumnodes") else (),
        policies=tuple(p for name in policies if everything.has(name) for p in parse_policies(answers[name])),
        agents=_agents(answers["pods"]),
        cilium_config=config,
        service_cidrs=_service_cidrs(answers["servicecidrs"]) if everything.has("servicecidrs") else (),
        uid=everything.child("kube-system").child("metadata").optional_text("uid"),
    )


def parse_services(answer: Mapping[str, Any]) -> tuple[Service, ...]:
    """Read a ServiceList (core/v1)."""
    return tuple(_service(each) for each in objects_of("services", answer))


def parse_endpoint_slices(answer: Mapping[str, Any]) -> tuple[Endpoint, ...]:
    """Read an EndpointSliceList (discovery.k8s.io/v1).

    Slices that belong to no Service and those of address type FQDN, which have no addresses and which no proxy uses, are left out.
    """
    slices = objects_of("endpointslices", answer)
    return tuple(endpoint for each in slices if each.optional_text("addressType") != "FQDN" for endpoint in _endpoints(each))


def parse_pods(answer: Mapping[str, Any]) -> tuple[Pod, ...]:
    """Read a PodList (core/v1)."""
    return tuple(_pod(each) for each in objects_of("pods", answer))


def parse_nodes(answer: Mapping[str, Any]) -> tuple[Node, ...]:
    """Read a NodeList (core/v1)."""
    return tuple(_node(each) for each in objects_of("nodes", answer))


def parse_cilium_nodes(answer: Mapping[str, Any]) -> tuple[CiliumNode, ...]:
    """Read a CiliumNodeList (cilium.io/v2); PodCIDRs of multi-pool IPAM are those of all pools."""
    return tuple(_cilium_node(each) for each in objects_of("ciliumnodes", answer))


def objects_of(resource: str, answer: object) -> tuple[Fields, ...]:
    """The items of a list object, each under its own name for errors."""
    found = Fields(f"Kubernetes API: {resource}", answer)
    if not found.has("items"):
        raise found.error("items", found.value.get("items"), "a list object with items")
    named = []
    for number, item in enumerate(found.items("items"), 1):
        anonymous = Fields(f"Kubernetes API: {resource}", item, f"item {number}").child("metadata")
        name = "/".join(part for part in (anonymous.optional_text("namespace"), anonymous.text("name")) if part)
        named.append(Fields(f"Kubernetes API: {resource}", item, name))
    return tuple(named)


def _service(item: Fields) -> Service:
    meta, spec = item.child("metadata"), item.child("spec")
    kind = spec.optional_text("type") or "ClusterIP"
    headless = spec.optional_text("clusterIP") == "None"
    listed = spec.texts("clusterIPs") or tuple(filter(None, [spec.optional_text("clusterIP")]))
    ips = () if headless or kind == "ExternalName" else listed
    families = tuple(_FAMILIES[family] for family in spec.texts("ipFamilies") if family in _FAMILIES)
    addresses = tuple(spec.convert("clusterIPs", ip, ipaddress.ip_address, "an IP address") for ip in ips if ip)
    ingress = item.child("status").child("loadBalancer").children("ingress")
    return Service(
        namespace=meta.text("namespace"),
        name=meta.text("name"),
        type=kind,
        cluster_ips=addresses,
        ports=tuple(_service_port(meta.text("namespace"), meta.text("name"), port) for port in spec.children("ports")),
        selector=spec.labels("selector") or None,
        internal_traffic_policy=spec.optional_text("internalTrafficPolicy") or "Cluster",
        external_traffic_policy=spec.optional_text("externalTrafficPolicy"),
        session_affinity=spec.optional_text("sessionAffinity") or "None",
        publish_not_ready=spec.flag("publishNotReadyAddresses") or False,
        traffic_distribution=spec.optional_text("trafficDistribution"),
        labels=meta.labels("labels"),
        annotations=meta.labels("annotations"),
        external_ips=spec.addresses("externalIPs"),
        load_balancer_ips=tuple(ip for ip in (each.address("ip") for each in ingress) if ip is not None),
        headless=headless,
        families=families or tuple(dict.fromkeys(ip.version for ip in addresses)),
    )


def _service_port(namespace: str, service: str, port: Fields) -> ServicePort:
    number = port.port("port")
    if number is None:
        raise port.error("port", None, "a port number")
    target = port.value.get("targetPort")
    return ServicePort(
        namespace=namespace,
        service=service,
        name=port.optional_text("name"),
        protocol=port.optional_text("protocol") or "TCP",
        port=number,
        target_port=str(port.port("targetPort") or "") or None if isinstance(target, int) else port.optional_text("targetPort"),
        node_port=port.port("nodePort") if port.value.get("nodePort") else None,
        app_protocol=port.optional_text("appProtocol"),
    )


def _endpoints(item: Fields) -> tuple[Endpoint, ...]:
    meta = item.child("metadata")
    service = meta.labels("labels").get("kubernetes.io/service-name")
    if not service:
        return ()
    ports = {(p.optional_text("name"), p.optional_text("protocol") or "TCP"): p.port("port") for p in item.children("ports")}
    return tuple(_endpoint(meta, service, each, ports) for each in item.children("endpoints"))


def _endpoint(meta: Fields, service: str, each: Fields, ports: Mapping[tuple[str | None, str], int | None]) -> Endpoint:
    """One endpoint; of several addresses the first counts (they are fungible, and consumers use the first)."""
    conditions, target = each.child("conditions"), each.child("targetRef")
    addresses = each.addresses("addresses")
    if not addresses:
        raise each.error("addresses", each.value.get("addresses"), "at least one address")
    is_pod = target.optional_text("kind") == "Pod"
    return Endpoint(
        namespace=meta.text("namespace"),
        service=service,
        slice_name=meta.text("name"),
        ip=addresses[0],
        ready=conditions.flag("ready"),
        serving=conditions.flag("serving"),
        terminating=conditions.flag("terminating"),
        node_name=each.optional_text("nodeName"),
        pod=f"{target.optional_text('namespace') or meta.text('namespace')}/{target.text('name')}" if is_pod else None,
        ports=ports,
        hints=tuple(zone.text("name") for zone in each.child("hints").children("forZones")),
    )


def _pod(item: Fields) -> Pod:
    meta, spec, status = item.child("metadata"), item.child("spec"), item.child("status")
    listed = [ip for ip in (each.address("ip") for each in status.children("podIPs")) if ip is not None]
    single = status.address("podIP")
    owner = next((o for o in meta.children("ownerReferences") if o.flag("controller")), None)
    return Pod(
        namespace=meta.text("namespace"),
        name=meta.text("name"),
        node_name=spec.optional_text("nodeName"),
        ips=tuple(listed) or (() if single is None else (single,)),
        host_network=spec.flag("hostNetwork") or False,
        phase=status.optional_text("phase") or "Unknown",
        ready=_condition(status, "Ready"),
        terminating=meta.has("deletionTimestamp"),
        labels=meta.labels("labels"),
        container_ports=_container_ports(spec),
        owner_kind=owner.optional_text("kind") if owner else None,
        owner_name=owner.optional_text("name") if owner else None,
    )


def _container_ports(spec: Fields) -> Mapping[tuple[str, str], int]:
    """Named ports of containers and of sidecars (init containers that are always restarted); the first of a name counts."""
    sidecars = [c for c in spec.children("initContainers") if c.optional_text("restartPolicy") == "Always"]
    found: dict[tuple[str, str], int] = {}
    for container in (*spec.children("containers"), *sidecars):
        for port in container.children("ports"):
            name, number = port.optional_text("name"), port.port("containerPort")
            if name and number:
                found.setdefault((name, port.optional_text("protocol") or "TCP"), number)
    return found


def _condition(status: Fields, kind: str) -> bool:
    return any(c.optional_text("type") == kind and c.optional_text("status") == "True" for c in status.children("conditions"))


def _node(item: Fields) -> Node:
    meta, spec, status = item.child("metadata"), item.child("spec"), item.child("status")
    info = status.child("nodeInfo")
    single = spec.optional_text("podCIDR")
    cidrs = spec.networks("podCIDRs") or (() if single is None else (spec.convert("podCIDR", single, _network, "a prefix"),))
    return Node(
        name=meta.text("name"),
        internal_ips=_typed_addresses(status, "address", "InternalIP"),
        pod_cidrs=cidrs,
        ready=_condition(status, "Ready"),
        kubelet_version=info.optional_text("kubeletVersion") or "unknown",
        kernel_version=info.optional_text("kernelVersion") or "unknown",
        os_image=info.optional_text("osImage") or "unknown",
        container_runtime=info.optional_text("containerRuntimeVersion") or "unknown",
        labels=meta.labels("labels"),
        annotations=meta.labels("annotations"),
    )


def _cilium_node(item: Fields) -> CiliumNode:
    meta, spec = item.child("metadata"), item.child("spec")
    pools = spec.child("ipam").child("pools").children("allocated")
    cidrs = (*spec.child("ipam").networks("podCIDRs"), *(cidr for pool in pools for cidr in pool.networks("cidrs")))
    return CiliumNode(
        name=meta.text("name"),
        pod_cidrs=tuple(dict.fromkeys(cidrs)),
        internal_ips=_typed_addresses(spec, "ip", "InternalIP"),
        cilium_internal_ips=_typed_addresses(spec, "ip", "CiliumInternalIP"),
        external_ips=_typed_addresses(spec, "ip", "ExternalIP"),
    )


def _typed_addresses(holder: Fields, field: str, kind: str) -> tuple[IPAddress, ...]:
    """The addresses of one type among ``addresses``."""
    found = (a.address(field) for a in holder.children("addresses") if a.optional_text("type") == kind)
    return tuple(ip for ip in found if ip is not None)


def _service_cidrs(answer: object) -> tuple[IPNetwork, ...]:
    return tuple(cidr for each in objects_of("servicecidrs", answer) for cidr in each.child("spec").networks("cidrs"))


def _network(text: str) -> IPNetwork:
    return ipaddress.ip_network(text)


def _agents(answer: object) -> Mapping[str, Pod]:
    """Node → its Cilium agent: label k8s-app=cilium in any namespace, container cilium-agent; the ready one of two."""
    found: dict[str, Pod] = {}
    for item in objects_of("pods", answer):
        names = [container.optional_text("name") for container in item.child("spec").children("containers")]
        pod = _pod(item)
        if pod.labels.get("k8s-app") != "cilium" or "cilium-agent" not in names or pod.node_name is None:
            continue
        known = found.get(pod.node_name)
        if known is None or (pod.ready and not pod.terminating, pod.ready) > (known.ready and not known.terminating, known.ready):
            found[pod.node_name] = pod
    return found
