"""Where a node's rules should send a Service port's traffic, from the API's objects.

Kubernetes v1.34: pkg/proxy/topology.go (CategorizeEndpoints), pkg/proxy/serviceport.go and endpointslicecache.go. A condition
that the API leaves out counts as ready, serving and not terminating.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from .addresses import Socket
from .services import ClusterObjects, Endpoint, Service, ServicePort

_OTHER_PROXY = "service.kubernetes.io/service-proxy-name"

# More endpoints than this and kube-proxy leaves out comments, and cleans up chains only once a sync period.
LARGE_CLUSTER = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Expected:
    """Where one node should send one Service port's traffic.

    Attributes:
        sockets: the endpoints for traffic to the ClusterIP; none: the Service has a set-up of its own.
        elsewhere: with internalTrafficPolicy Local and no endpoint on this node: endpoints serve on others.
        local: internalTrafficPolicy is Local.
        exact: False where topology hints or trafficDistribution let the node choose some of ``sockets``.
        reachable: all that the Service port's chains on this node may lead to, external traffic included.
        external_here: with externalTrafficPolicy Local the endpoints on this node that traffic from outside must reach; none: it is
            dropped here, or the policy is Cluster.
        required: those of ``reachable`` that no topology hint or trafficDistribution lets the node leave out.
        cluster_chain: whether the KUBE-SVC chain is used; local_chain: whether KUBE-SVL is; external_chain: whether KUBE-EXT is.
    """

    sockets: frozenset[Socket]
    elsewhere: bool
    local: bool
    exact: bool
    reachable: frozenset[Socket]
    cluster_chain: bool
    local_chain: bool
    external_chain: bool
    external_here: frozenset[Socket] = frozenset()
    required: frozenset[Socket] = frozenset()

    @property
    def refusal(self) -> str | None:
        """The target in filter that refuses the traffic where no endpoint is; None where there are endpoints."""
        if self.sockets:
            return None
        return "DROP" if self.elsewhere else "REJECT"


def not_proxied(service: Service) -> str | None:
    """Why kube-proxy has no rules for the Service; None when it has."""
    if service.type == "ExternalName":
        return f"{service.key} is an ExternalName Service: DNS answers with another name"
    if service.headless or not service.cluster_ips:
        return f"{service.key} has no ClusterIP"
    if _OTHER_PROXY in service.labels:
        return f"{service.key} is left to another proxy: label {_OTHER_PROXY}={service.labels[_OTHER_PROXY]}"
    return None


def differs_by_policy(service: Service, endpoints: Iterable[Endpoint]) -> str | None:
    """The policy that makes nodes' rules for the Service's ClusterIP differ; None when they must be equal."""
    if service.internal_traffic_policy == "Local":
        return "internalTrafficPolicy is Local"
    if service.traffic_distribution:
        return f"trafficDistribution is {service.traffic_distribution}"
    if any(endpoint.hints for endpoint in endpoints):
        return "its endpoints have topology hints"
    return None


def by_service(objects: ClusterObjects) -> Mapping[tuple[str, str], tuple[Endpoint, ...]]:
    """All endpoints by (namespace, Service)."""
    return objects.by_service


def moved(before: ClusterObjects, after: ClusterObjects) -> frozenset[str]:
    """The Services (``namespace/name``) that changed between two readings in what kube-proxy makes rules of."""
    one, other = by_service(before), by_service(after)
    endpoints = frozenset("/".join(key) for key in one.keys() | other.keys() if one.get(key) != other.get(key))
    return changed_services(before, after) | endpoints


def changed_services(before: ClusterObjects, after: ClusterObjects) -> frozenset[str]:
    """The Services that are new, gone or themselves changed between two readings; their endpoints do not count here."""
    first, second = ({s.key: (s.cluster_ips, s.ports, *_policies(s)) for s in objects.services} for objects in (before, after))
    return frozenset(key for key in first.keys() | second.keys() if first.get(key) != second.get(key))


def _policies(service: Service) -> tuple[object, ...]:
    return service.internal_traffic_policy, service.external_traffic_policy, service.session_affinity, service.traffic_distribution


def is_large(objects: ClusterObjects, mine: Mapping[tuple[str, str], Sequence[Endpoint]]) -> bool:
    """Whether kube-proxy is in its large-cluster mode: more than 1000 endpoints, each counted once a Service port.

    Args:
        objects: the Services.
        mine: ``by_service`` of them.
    """
    total = 0
    for service in objects.services:
        if not_proxied(service) is None:
            endpoints = mine.get((service.namespace, service.name), ())
            total += sum(e.ports.get((p.name, p.protocol)) is not None for p in service.ports for e in endpoints)
    return total > LARGE_CLUSTER


def expect(endpoints: Iterable[Endpoint], service: Service, port: ServicePort, node: str, family: int) -> Expected:
    """Tell where the node should send the port's traffic.

    Args:
        endpoints: the Service's endpoints (``ClusterObjects.endpoints_of``, or out of ``by_service``).
        service: the Service.
        port: one of its ports.
        node: the node's name.
        family: 4 or 6, that of the ClusterIP.
    """
    mine = [e for e in endpoints if e.ip.version == family and e.ports.get((port.name, port.protocol)) is not None]
    ready = [e for e in mine if e.ready is not False]
    leaving = [e for e in mine if e.ready is False and e.serving is not False and e.terminating]
    everywhere = ready or leaving
    here = [e for e in ready if e.node_name == node] or [e for e in leaving if e.node_name == node]
    local = service.internal_traffic_policy == "Local"
    external = bool(port.node_port or service.external_ips or service.load_balancer_ips)
    external_local = external and service.external_traffic_policy == "Local"
    uses_local, uses_cluster = local or external_local, not local or external
    sockets = _sockets(here if local else everywhere, port)
    # What comes from outside finds all endpoints by the Cluster chain, with policies Local too: Pods' own traffic takes it.
    reachable = _sockets([*(everywhere if uses_cluster else ()), *(here if uses_local else ())], port)
    chosen = bool(service.traffic_distribution) or any(endpoint.hints for endpoint in ready)
    return Expected(
        sockets=sockets,
        elsewhere=local and not here and bool(ready or leaving),
        local=local,
        exact=local or differs_by_policy(service, ready) is None,
        reachable=reachable,
        cluster_chain=uses_cluster and bool(everywhere),
        local_chain=uses_local and bool(here),
        # An address of a load balancer with ipMode Proxy makes no KUBE-EXT, and the model does not tell it from others.
        external_chain=bool(port.node_port or service.external_ips) and bool(everywhere),
        external_here=_sockets(here, port) if external_local else frozenset(),
        required=reachable if not chosen else sockets if local else frozenset(),
    )


def _sockets(endpoints: Iterable[Endpoint], port: ServicePort) -> frozenset[Socket]:
    numbers = ((e.ip, e.ports.get((port.name, port.protocol))) for e in endpoints)
    return frozenset(Socket(ip, number) for ip, number in numbers if number is not None)


def has_several_endpoints(objects: ClusterObjects, services: Iterable[Service]) -> bool:
    """Whether one of the Services has a port that several endpoints serve: the control of backend-choice."""
    return any(len(objects.serving(service, port)) > 1 for service in services for port in service.ports)
