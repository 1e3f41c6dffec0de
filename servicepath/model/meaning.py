"""Facts by their meaning, for comparing two runs: the same cluster in the same state gives the same facts, whenever it is asked.

Put aside: order, counters, interface indices, clients' ports, times, and names and addresses that are made anew with the thing they
belong to. An address stands under the name of what holds it ("CiliumInternalIP of master", "Deployment kube-system/coredns").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from .addresses import IPAddress, Socket
from .baseline import Fact, Identity
from .cilium import AgentStatus, MapService, frontend
from .host import Interface, Route
from .routing import HostRouting
from .rules import Rule
from .service_rules import ServiceWalk
from .services import ClusterObjects, Node, Pod, Service, ServicePort

# Routes that come and go with addresses, and say nothing that the addresses do not.
_OF_ADDRESSES = frozenset({"local", "broadcast", "multicast", "anycast"})
_POD_DEVICE = re.compile(r"lxc\w+|lxc_health|veth\w+|cali\w+")

# Keys and values of a configuration that may be a secret, or may hold one.
_PRIVATE_KEY = re.compile(r"passw|secret|token|credential|private|api-?key|auth-key|psk|etcd-config|\bkey\b|-key$", re.IGNORECASE)
_HARMLESS = re.compile(r"true|false|\d*|/[\w./-]+", re.IGNORECASE)  # a switch, a number, a path
_PRIVATE_VALUE = re.compile(r"-----BEGIN|://[^/\s:@]*:[^/\s@]+@", re.IGNORECASE)
# Of Helm's values: keys whose value may be a secret whatever it looks like, and what every other value must look like to be told.
_SECRETIVE = re.compile(
    r"pass|pwd|secret|token|credential|private|auth|jwt|psk|docker|cert|webhook|env\b|env\.|script|annotation|[-_.]key|_key_|(?-i:Key)",
    re.IGNORECASE,
)
_SWITCH = re.compile(r"true|false|null|\{\}|", re.IGNORECASE)
_PLAIN = re.compile(
    r"-?\d[\d.]{0,11}[A-Za-z%]{0,3}"  # 1450, 0.0025, 256Mi, 30s
    r"|[A-Za-z][A-Za-z0-9.-]{0,39}"
    r"|(?:/[\w.-]{1,32})+/?"
    r"|[\da-fA-F]*[.:][\da-fA-F.:]*(?:/\d{1,3})?"  # an address or a network
    r"|[\w-]+\.[\w.-]+(?:/[\w.-]+)*(?::[\w.-]{1,40})?(?:@sha256:[\da-f]{64})?|sha256:[\da-f]{64}"  # an image, or its digest
)
LEFT_OUT = "(left out: it may be a secret)"


class Names:
    """What holds an address, by the API's word.

    Args:
        objects: one reading of the API.
    """

    def __init__(self, objects: ClusterObjects) -> None:
        self._known: dict[IPAddress, str] = {}
        for service in objects.services:
            self._known |= dict.fromkeys(service.cluster_ips, f"ClusterIP of {service.key}")
        for pod in objects.pods:
            if not pod.host_network:
                self._known |= dict.fromkeys(pod.ips, owner(pod))
        for cilium in objects.cilium_nodes:
            self._known |= dict.fromkeys(cilium.cilium_internal_ips, f"CiliumInternalIP of {cilium.name}")
        for node in objects.nodes:
            self._known |= dict.fromkeys(node.internal_ips, f"InternalIP of {node.name}")

    def of(self, address: IPAddress) -> str:
        """The holder's name, else the address itself."""
        return self._known.get(address) or str(address)

    def socket(self, socket: Socket) -> str:
        """``Deployment kube-system/coredns:53``."""
        return f"{self.of(socket.ip)}:{socket.port}"


def owner(pod: Pod) -> str:
    """What a Pod belongs to, without the parts of its name that are made anew with every Pod: ``Deployment kube-system/coredns``."""
    revision = pod.labels.get("pod-template-hash")
    if pod.owner_kind == "ReplicaSet" and pod.owner_name and revision and pod.owner_name.endswith(f"-{revision}"):
        return f"Deployment {pod.namespace}/{pod.owner_name.removesuffix(f'-{revision}')}"
    if pod.owner_kind and pod.owner_name and pod.owner_kind != "Node":
        return f"{pod.owner_kind} {pod.namespace}/{pod.owner_name}"
    return f"Pod {pod.key}"


def identity_of(objects: ClusterObjects) -> Identity:
    """What tells this cluster from others."""
    kubernetes = objects.service("default/kubernetes")
    ips = kubernetes.cluster_ips if kubernetes else ()
    return Identity(objects.uid, tuple(sorted(map(str, ips))), tuple(sorted(map(str, objects.service_cidrs))))


def configuration(prefix: str, values: Mapping[str, str]) -> Iterator[Fact]:
    """One fact a key; what may be a secret is left out."""
    for key, value in sorted(values.items()):
        private = (_PRIVATE_KEY.search(key) and not _HARMLESS.fullmatch(value)) or _PRIVATE_VALUE.search(value)
        yield Fact("", f"{prefix} {key}", (LEFT_OUT,) if private else tuple(value.splitlines()))


def helm_values(values: Mapping[str, str]) -> Iterator[Fact]:
    """One fact a value. They come out of a Secret: only what looks like a switch, number, name, path, address or image is told."""
    for key, value in sorted(values.items()):
        lines = value.splitlines()
        told = _SWITCH.fullmatch(value) or (not _SECRETIVE.search(key) and all(map(_PLAIN.fullmatch, lines)))
        yield Fact("", f"Helm value {key}", tuple(lines) if told else (LEFT_OUT,))


def of_cluster(objects: ClusterObjects, services: Iterable[Service]) -> Iterator[Fact]:
    """What is true of the cluster as a whole."""
    yield Fact("", "Kubernetes", (objects.server_version,))
    yield Fact("", "Service CIDR", tuple(sorted(map(str, objects.service_cidrs))))
    yield Fact("", "nodes", tuple(sorted(node.name for node in objects.nodes)))
    services = tuple(services)
    yield Fact("", "Services under test", tuple(sorted(service.key for service in services)))
    by_address = {ip: owner(pod) for pod in objects.pods for ip in pod.ips}
    for service in services:
        ports = (f"{port.name or port.port} {port.port}/{port.protocol}" for port in service.ports)
        yield Fact(service.key, "ClusterIP", tuple(map(str, service.cluster_ips)))
        yield Fact(service.key, "ports", tuple(sorted(ports)))
        yield Fact(service.key, "kind and policies", tuple(_policies(service)))
        yield Fact(service.key, "external addresses", tuple(sorted(map(str, (*service.external_ips, *service.load_balancer_ips)))))
        ready = [e for e in objects.endpoints_of(service) if e.ready is not False]
        yield Fact(service.key, "endpoints", _counted(by_address.get(e.ip) or str(e.ip) for e in ready))
        yield Fact(service.key, "endpoints run on", _counted(e.node_name or "an unknown node" for e in ready))
    yield from configuration("cilium-config", objects.cilium_config or {})


def _policies(service: Service) -> Iterator[str]:
    """What decides where a Service's packets may go, as far as it is said."""
    yield f"type {service.type}"
    yield f"internalTrafficPolicy {service.internal_traffic_policy}"
    if service.external_traffic_policy:
        yield f"externalTrafficPolicy {service.external_traffic_policy}"
    yield f"sessionAffinity {service.session_affinity}"
    if service.traffic_distribution:
        yield f"trafficDistribution {service.traffic_distribution}"
    yield from ("publishNotReadyAddresses",) if service.publish_not_ready else ()
    yield from (f"nodePort {port.node_port} for {port.name or port.port}" for port in service.ports if port.node_port)


def of_node(objects: ClusterObjects, node: Node) -> Iterator[Fact]:
    """What the API says of one node."""
    cilium = objects.cilium_node(node.name)
    for name, value in (
        ("Ready", ("yes" if node.ready else "no",)),
        ("kubelet", (node.kubelet_version,)),
        ("kernel", (node.kernel_version,)),
        ("operating system", (node.os_image,)),
        ("container runtime", (node.container_runtime,)),
        ("InternalIP", map(str, node.internal_ips)),
        ("PodCIDRs (CiliumNode)", map(str, cilium.pod_cidrs) if cilium else ()),
        ("PodCIDRs (Node.spec)", map(str, node.pod_cidrs)),
        ("CiliumInternalIP", map(str, cilium.cilium_internal_ips) if cilium else ()),
    ):
        yield Fact(node.name, name, tuple(sorted(value)))


def of_host(node: str, interfaces: Iterable[Interface], routing: HostRouting, names: Names) -> Iterator[Fact]:
    """A node's devices, routes and routing rules."""
    interfaces = tuple(interfaces)
    yield Fact(node, "MTU", tuple(sorted({f"{device(i.name)}: {i.mtu}" for i in interfaces if i.name != "lo" and i.mtu})))
    yield Fact(node, "routes", tuple(sorted({_route(r, names) for r in routing.routes if r.type not in _OF_ADDRESSES and _stays(r)})))
    yield Fact(node, "routing rules", tuple(sorted(set(map(str, routing.rules)))))


def device(name: str) -> str:
    """A device's name, "a Pod's" for the host's end of a Pod's veth."""
    return "a Pod's" if _POD_DEVICE.fullmatch(name) else name


def _stays(route: Route) -> bool:
    # IPv6's own routes of each link say nothing of the cluster.
    return not (route.destination.version == 6 and (route.destination.is_link_local or route.destination.is_multicast))


def _route(route: Route, names: Names) -> str:
    single = route.destination.prefixlen == route.destination.max_prefixlen
    target = names.of(route.destination.network_address) if single else str(route.destination)
    words = [] if route.type == "unicast" else [route.type]
    words.append("default" if route.destination.prefixlen == 0 else target)
    parts: tuple[tuple[str, object], ...] = (
        ("via", names.of(route.via) if route.via else None),
        ("dev", device(route.device) if route.device else None),
        ("table", None if route.table == "main" else route.table),
        ("src", names.of(route.source) if route.source else None),
        ("metric", route.metric),
        ("mtu", route.mtu),
    )
    words += [f"{key} {value}" for key, value in parts if value is not None]
    words += sorted(f"nexthop via {names.of(hop.via) if hop.via else '–'} dev {device(hop.device or '–')}" for hop in route.nexthops)
    return " ".join(words)


def of_walk(node: str, port: ServicePort, walk: ServiceWalk, names: Names) -> Iterator[Fact]:
    """What kube-proxy's rules (iptables mode) do with a new connection to a Service's port: chains, chances, backends."""
    subject = f"{node}, {port.id}"
    masquerade = walk.masquerade_rule
    lines = [f"the rule to mark for masquerade: {_masquerade(masquerade) if masquerade else 'none'}"]
    lines += [f"session affinity: {len(walk.affinity)} rules"] if walk.affinity else []
    lines += [f"refused by: {rule.target}" for rule in walk.refusals]
    shape = f"{walk.chain[:9]}…" if walk.chain else "none"
    yield Fact(subject, "chains", (f"chain: {shape}", *lines, f"jumps to endpoints: {len(walk.choices)}"))
    yield Fact(subject, "kube-proxy's backends", _backends(walk.sockets, names))


def _masquerade(rule: Rule) -> str:
    if rule.source is None:
        return f"for what comes by {rule.in_interface}" if rule.in_interface else "for every source"
    return f"{'! ' if rule.source.negated else ''}-s {rule.source.network}"


def of_map(node: str, port: ServicePort, vip: IPAddress, entries: Iterable[MapService], names: Names) -> Fact:
    """The backends that Cilium's load-balancing map holds for a Service's port."""
    entry = frontend(entries, Socket(vip, port.port), port.protocol)
    return Fact(f"{node}, {port.id}", "Cilium's backends", _backends(entry.backends, names) if entry else ())


def _backends(sockets: Iterable[Socket], names: Names) -> tuple[str, ...]:
    return _counted(names.socket(socket) for socket in set(sockets))


def _counted(values: Iterable[str]) -> tuple[str, ...]:
    """Each value with how often it is there: ``3 × Deployment default/resolver:53``."""
    found: dict[str, int] = {}
    for value in values:
        found[value] = found.get(value, 0) + 1
    return tuple(f"{count} × {value}" if count > 1 else value for value, count in sorted(found.items()))


def of_agent(node: str, status: AgentStatus) -> Iterator[Fact]:
    """A Cilium agent's set-up; what this version does not say is no fact."""
    said = {True: "Enabled", False: "Disabled", None: None}
    for name, value in (
        ("Cilium", status.version),
        ("KubeProxyReplacement", status.kube_proxy_replacement),
        ("socket LB", said[status.socket_lb]),
        ("socket LB in the host's namespace only", said[status.socket_lb_hostns_only]),
        ("routing", status.routing),
        ("tunnel", status.tunnel),
        ("host routing", status.host_routing),
        ("masquerading", status.masquerading),
        ("IPAM", None if status.ipam is None else re.sub(r"\d+/(\d+) allocated", r"\1 addresses", status.ipam)),
    ):
        if value is not None:
            yield Fact(node, name, (value,))
    details = (f"{name}: {said[on]}" for name, on in status.services.items())
    yield Fact(node, "KubeProxyReplacement's details", tuple(sorted(details)))
    yield Fact(node, "Cilium's devices", tuple(sorted(status.devices)))
