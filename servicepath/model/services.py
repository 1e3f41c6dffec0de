"""What the API says: Services, EndpointSlices, Pods, Nodes and CiliumNodes.

Field meanings are those of Kubernetes v1.34 (core/v1, discovery.k8s.io/v1) and of cilium.io/v2 in Cilium 1.19.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

from .addresses import IPAddress, IPNetwork, Socket


@dataclasses.dataclass(frozen=True, slots=True)
class ServicePort:
    """One port of a Service. ``name`` is None where the API has none; ``protocol`` is upper case (UDP, TCP, SCTP).

    ``ambiguous``: another Service of the same name, in another namespace, is under test as well.
    """

    namespace: str
    service: str
    name: str | None
    protocol: str
    port: int
    target_port: str | None
    node_port: int | None
    app_protocol: str | None
    ambiguous: bool = dataclasses.field(default=False, compare=False)

    @property
    def id(self) -> str:
        """What a person reads in test ids: ``kube-dns:dns/UDP``, ``web:80/TCP`` for an unnamed port; unique in a run.

        The namespace stands in front where the name alone is ambiguous: ``blue/web:80/TCP``.
        """
        return self.full_id if self.ambiguous else self.full_id.partition("/")[2]

    @property
    def full_id(self) -> str:
        """The id with the namespace in front, ambiguous or not."""
        return f"{self.namespace}/{self.service}:{self.name or self.port}/{self.protocol}"

    @property
    def chain_key(self) -> str:
        """What kube-proxy hashes and comments with: ``namespace/service:port``; no colon when the port has no name."""
        return f"{self.namespace}/{self.service}" + (f":{self.name}" if self.name else "")

    def number_on(self, pod: Pod) -> int | None:
        """The number that the port has on the Pod; None when the Pod has no container port of the target's name and protocol.

        As FindPort of k8s.io/endpointslice v0.34 has it: an absent target port is the Service port itself.
        """
        if self.target_port is None:
            return self.port
        if self.target_port.isdigit():
            return int(self.target_port)
        return pod.container_ports.get((self.target_port, self.protocol))


@dataclasses.dataclass(frozen=True, slots=True)
class Service:
    """A Service. ``cluster_ips`` is empty for headless and ExternalName Services.

    ``selector`` is None where the Service has none: its endpoints are somebody's own work. ``families`` are its ipFamilies (4, 6).
    """

    namespace: str
    name: str
    type: str
    cluster_ips: tuple[IPAddress, ...]
    ports: tuple[ServicePort, ...]
    selector: Mapping[str, str] | None
    internal_traffic_policy: str
    external_traffic_policy: str | None
    session_affinity: str
    publish_not_ready: bool
    traffic_distribution: str | None
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    external_ips: tuple[IPAddress, ...] = ()
    load_balancer_ips: tuple[IPAddress, ...] = ()
    headless: bool = False
    families: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    def selects(self, pod: Pod) -> bool:
        """Whether the selector matches the Pod; never without a selector."""
        if not self.selector or pod.namespace != self.namespace:
            return False
        return all(pod.labels.get(key) == value for key, value in self.selector.items())


@dataclasses.dataclass(frozen=True, slots=True)
class Endpoint:
    """One address of one EndpointSlice with its conditions; None where the API leaves a condition out.

    ``pod`` is the target Pod as ``namespace/name``, None for hand-made endpoints. ``ports`` maps the Service port's name (None
    for unnamed) and protocol to the number behind it.
    """

    namespace: str
    service: str
    slice_name: str
    ip: IPAddress
    ready: bool | None
    serving: bool | None
    terminating: bool | None
    node_name: str | None
    pod: str | None
    ports: Mapping[tuple[str | None, str], int | None]
    hints: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Pod:
    """A Pod as far as it concerns Services. ``container_ports`` maps a named container port and protocol to its number."""

    namespace: str
    name: str
    node_name: str | None
    ips: tuple[IPAddress, ...]
    host_network: bool
    phase: str
    ready: bool
    terminating: bool
    labels: Mapping[str, str]
    container_ports: Mapping[tuple[str, str], int]
    owner_kind: str | None = None
    owner_name: str | None = None

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


@dataclasses.dataclass(frozen=True, slots=True)
class Node:
    """A Node; ``pod_cidrs`` are Node.spec.podCIDRs, which under cluster-pool IPAM are not what Cilium uses."""

    name: str
    internal_ips: tuple[IPAddress, ...]
    pod_cidrs: tuple[IPNetwork, ...]
    ready: bool
    kubelet_version: str
    kernel_version: str
    os_image: str
    container_runtime: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class CiliumNode:
    """A CiliumNode: the PodCIDRs that Cilium really uses, the node's CiliumInternalIPs, and its InternalIPs and ExternalIPs."""

    name: str
    pod_cidrs: tuple[IPNetwork, ...]
    internal_ips: tuple[IPAddress, ...]
    cilium_internal_ips: tuple[IPAddress, ...]
    external_ips: tuple[IPAddress, ...] = ()

    def __str__(self) -> str:
        """``worker1: PodCIDRs 10.42.1.0/24, CiliumInternalIP 10.42.1.182``."""
        cidrs, internal = (", ".join(map(str, listed)) or "none" for listed in (self.pod_cidrs, self.cilium_internal_ips))
        return f"{self.name}: PodCIDRs {cidrs}, CiliumInternalIP {internal}"


@dataclasses.dataclass(frozen=True, slots=True)
class Policy:
    """A NetworkPolicy, CiliumNetworkPolicy or CiliumClusterwideNetworkPolicy: whom it selects, and whether it limits egress.

    ``match_labels`` is None when the selector cannot be judged by labels alone (matchExpressions): it may select any Pod.
    """

    kind: str
    namespace: str | None
    name: str
    match_labels: Mapping[str, str] | None
    limits_egress: bool


@dataclasses.dataclass(frozen=True)  # without slots: a cluster of hundreds of nodes or ten thousand Services is indexed once
class ClusterObjects:
    """One reading of the API. ``cilium_config`` is the cilium-config ConfigMap, None where it could not be found.

    Attributes:
        server_version: gitVersion of the API server, as it spells it (``v1.34.4+k3s1``).
        agents: node name → the Cilium agent's Pod.
        service_cidrs: of the ServiceCIDR objects (networking.k8s.io/v1, Kubernetes 1.33 and later); empty where there are none.
        uid: of the Namespace kube-system, which tells clusters apart; None where it may not be read.
    """

    server_version: str
    services: tuple[Service, ...]
    endpoints: tuple[Endpoint, ...]
    pods: tuple[Pod, ...]
    nodes: tuple[Node, ...]
    cilium_nodes: tuple[CiliumNode, ...]
    policies: tuple[Policy, ...]
    agents: Mapping[str, Pod]
    cilium_config: Mapping[str, str] | None
    service_cidrs: tuple[IPNetwork, ...] = ()
    uid: str | None = None

    @functools.cached_property
    def by_service(self) -> Mapping[tuple[str, str], tuple[Endpoint, ...]]:
        """All endpoints by (namespace, Service)."""
        found: dict[tuple[str, str], list[Endpoint]] = {}
        for endpoint in self.endpoints:
            found.setdefault((endpoint.namespace, endpoint.service), []).append(endpoint)
        return {key: tuple(endpoints) for key, endpoints in found.items()}

    @functools.cached_property
    def _services(self) -> Mapping[str, Service]:
        return {service.key: service for service in reversed(self.services)}  # the first of a name counts

    @functools.cached_property
    def _node_by_ip(self) -> Mapping[IPAddress, str]:
        """By Pod, else by EndpointSlice."""
        found: dict[IPAddress, str] = {}
        for pod in (pod for pod in self.pods if pod.node_name):
            for ip in pod.ips:
                found.setdefault(ip, pod.node_name or "")
        for endpoint in (endpoint for endpoint in self.endpoints if endpoint.node_name):
            found.setdefault(endpoint.ip, endpoint.node_name or "")
        return found

    def service(self, key: str) -> Service | None:
        """The Service called ``namespace/name``, or None."""
        return self._services.get(key)

    def node(self, name: str) -> Node | None:
        """The Node of that name, or None."""
        return next((n for n in self.nodes if n.name == name), None)

    def cilium_node(self, name: str) -> CiliumNode | None:
        """The CiliumNode of that name, or None."""
        return next((n for n in self.cilium_nodes if n.name == name), None)

    def tunnel_ips(self, name: str) -> frozenset[IPAddress]:
        """The addresses between which Cilium tunnels: the CiliumNode's InternalIPs, of a family that has none its ExternalIPs.

        As GetNodeIP of Cilium 1.19 has it (pkg/node/types). Without a CiliumNode that names any, the Node's InternalIPs.
        """
        cilium, node = self.cilium_node(name), self.node(name)
        internal, external = (cilium.internal_ips, cilium.external_ips) if cilium else ((), ())
        families = {ip.version for ip in internal}
        found = frozenset((*internal, *(ip for ip in external if ip.version not in families)))
        return found or frozenset(node.internal_ips if node else ())

    def endpoints_of(self, service: Service) -> tuple[Endpoint, ...]:
        """All endpoints of the Service's EndpointSlices, ready or not."""
        return self.by_service.get((service.namespace, service.name), ())

    def selected_pods(self, service: Service) -> tuple[Pod, ...]:
        """The Pods that belong into the Service's EndpointSlices, ready or not.

        As the EndpointSlice controller of Kubernetes v1.34 has it: the selector matches, the Pod has an address, and it has not
        come to its end (phase Succeeded or Failed).
        """
        mine = (pod for pod in self.pods if service.selects(pod))
        return tuple(pod for pod in mine if pod.ips and pod.phase not in ("Succeeded", "Failed"))

    def serving(self, service: Service, port: ServicePort) -> frozenset[Socket]:
        """Where kube-proxy and Cilium should send the port's traffic, cluster-wide.

        Ready endpoints; when there is none, those that serve while they terminate (Kubernetes v1.34, pkg/proxy/topology.go).
        """
        mine = self.endpoints_of(service)
        # A condition that is left out counts as true (discovery.k8s.io/v1).
        chosen = [e for e in mine if e.ready is not False]
        if not chosen:
            chosen = [e for e in mine if e.serving is not False and e.terminating]
        numbers = ((e.ip, e.ports.get((port.name, port.protocol))) for e in chosen)
        return frozenset(Socket(ip, number) for ip, number in numbers if number is not None)

    @functools.cached_property
    def pod_ips(self) -> frozenset[IPAddress]:
        """The addresses of all Pods that have a network of their own."""
        return frozenset(ip for pod in self.pods if not pod.host_network for ip in pod.ips)

    def hosts_elsewhere(self, name: str) -> frozenset[IPAddress]:
        """The addresses from which other nodes' own networks send: InternalIPs and CiliumInternalIPs of all but the named one."""
        nodes = (ip for node in self.nodes if node.name != name for ip in node.internal_ips)
        ciliums = (ip for node in self.cilium_nodes if node.name != name for ip in (*node.internal_ips, *node.cilium_internal_ips))
        return frozenset((*nodes, *ciliums))

    def node_of(self, ip: IPAddress) -> str | None:
        """The node on which a backend with this address runs: by Pod, EndpointSlice, Node or PodCIDR; None when unknown."""
        found = self._node_by_ip.get(ip)
        return found or next((n.name for n in self.cilium_nodes if any(ip in cidr for cidr in n.pod_cidrs)), None)
