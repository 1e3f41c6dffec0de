"""Is a ClusterIP nowhere on a host: on no interface, at no socket, in no table that an unmarked packet reaches?

Each judgement has its control beside it: a function named ``…_silent`` that says why the same listing could not have shown the
opposite, or None when it could.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .addresses import IPAddress
from .difference import Difference
from .host import Interface, Listener, Route
from .routing import HostRouting, ServiceNetwork
from .services import ClusterObjects, Node

# Interfaces that hold ClusterIPs on purpose, and whose doing that is.
_KNOWN_HOLDERS = {
    "kube-ipvs0": "kube-proxy runs in IPVS mode, which puts every ClusterIP on this dummy interface",
    "nodelocaldns": "NodeLocal DNSCache listens on the DNS Service's ClusterIP",
}
_SSH_PORT = 22

# Kinds of routes and routing rules by which the kernel says that there is no way.
_REFUSED = ("unreachable", "blackhole", "prohibit")


def judge_no_interface(place: str, interfaces: Iterable[Interface], vips: Iterable[IPAddress]) -> tuple[Difference, ...]:
    """No interface, up or down, holds one of the ClusterIPs.

    Args:
        place: the host's name, for the message.
        interfaces: of ``ip addr``.
        vips: the ClusterIPs under test.
    """
    wanted = tuple(vips)
    return tuple(
        Difference(
            f"{place}: interface {interface.name}",
            f"holds the ClusterIP {vip}",
            "on no interface",
            _KNOWN_HOLDERS.get(interface.name, f"{vip} on {interface.name} ({'up' if interface.up else 'down'})"),
            (str(interface),),
        )
        for interface in interfaces
        for vip in wanted
        if interface.holds(vip)
    )


def interfaces_silent(interfaces: Sequence[Interface], node: Node) -> str | None:
    """The listing must show the node's own InternalIP."""
    if any(interface.holds(ip) for interface in interfaces for ip in node.internal_ips):
        return None
    own = ", ".join(map(str, node.internal_ips)) or "none"
    return f"the listing of {len(interfaces)} interfaces does not show the node's own InternalIP ({own})"


def judge_no_listener(place: str, listeners: Iterable[Listener], vips: Iterable[IPAddress]) -> tuple[Difference, ...]:
    """No socket, UDP or TCP, is bound to one of the ClusterIPs; one bound to every address is none of the ClusterIP's."""
    wanted = frozenset(vips)
    return tuple(
        Difference(
            f"{place}: {listener.protocol} socket {listener.address}:{listener.port}",
            "listens on a ClusterIP",
            "no socket there: a Service is not a process",
            f"process {listener.process or 'not shown'}",
            (listener.raw or str(listener),),
        )
        for listener in listeners
        if listener.address in wanted
    )


def listeners_silent(listeners: Sequence[Listener], *, by_ssh: bool) -> str | None:
    """The listing must show sshd's socket; on a node that was not reached by ssh, any listening TCP socket.

    sshd is known by its name or by port 22; an sshd that systemd starts on demand listens under systemd's name.
    """
    tcp = [listener for listener in listeners if listener.protocol == "TCP"]
    sshd = [listener for listener in tcp if listener.port == _SSH_PORT or (listener.process or "").startswith("sshd")]
    if sshd or (tcp and not by_ssh):
        return None
    return f"the listing of {len(listeners)} sockets shows no {'socket of sshd' if by_ssh else 'listening TCP socket'}"


def reachable_routes(routing: HostRouting, vips: Iterable[IPAddress]) -> tuple[Route, ...]:
    """The routes that an unmarked packet to one of the ClusterIPs may meet, each once."""
    return tuple(dict.fromkeys(route for vip in vips for route in routing.reachable_routes(vip)))


def judge_no_route(place: str, routing: HostRouting, vips: Iterable[IPAddress], network: ServiceNetwork) -> tuple[Difference, ...]:
    """No table that an unmarked packet reaches has a route inside the Service CIDR, and the lookup ends at a wider prefix.

    Args:
        place: the host's name, for the message.
        routing: its rules, tables and the kernel's lookup of the ClusterIP.
        vips: the ClusterIPs.
        network: what is known of the Service CIDR.
    """
    return tuple(difference for vip in vips for difference in _judge_routes_to(place, routing, vip, network))


def _judge_routes_to(place: str, routing: HostRouting, vip: IPAddress, network: ServiceNetwork) -> tuple[Difference, ...]:
    inside = [route for route in routing.reachable_routes(vip) if network.holds(route.destination)]
    wrong = [
        Difference(
            f"{place}: table {route.table}",
            f"has a route inside the Service CIDR, reached by unmarked packets to {vip}",
            f"no route for the Service CIDR ({network})",
            f"{route.destination}, {route.type}" + (f" ({_KNOWN_HOLDERS[route.device]})" if route.device in _KNOWN_HOLDERS else ""),
            (str(route),),
        )
        for route in inside
    ]
    wrong += [
        Difference(
            f"{place}: routing rule {rule.priority}",
            f"refuses unmarked packets to {vip}",
            f"no rule for the Service CIDR ({network})",
            str(rule),
            (str(rule),),
        )
        for rule in routing.refusing(vip)
        if rule.destination is not None and not rule.negated and network.holds(rule.destination)
    ]
    return (*wrong, *_judge_lookup(place, routing, vip, network))


def routing_silent(routing: HostRouting, node: str, objects: ClusterObjects, vip: IPAddress) -> str | None:
    """The same listing must show another node's PodCIDR, and on a single node the node's own; and the kernel must have been asked.

    Where Cilium has no PodCIDRs (other IPAM) a network that holds the node's own InternalIP shows that the listing is one.
    """
    if vip not in routing.lookups:
        return f"the kernel was not asked for its way to {vip}"
    if routing.lookups[vip].type in _REFUSED:
        return None  # nothing is absent: the kernel itself says that there is no way, and may name a rule before all tables
    reachable = [route.destination for route in routing.reachable_routes(vip)]
    others = [cidr for n in objects.cilium_nodes if n.name != node for cidr in n.pod_cidrs if cidr.version == vip.version]
    own = [cidr for n in objects.cilium_nodes if n.name == node for cidr in n.pod_cidrs if cidr.version == vip.version]
    wanted = others or own
    if any(cidr in reachable for cidr in wanted):
        return None
    if not wanted:
        this = objects.node(node)
        if this is not None and any(ip in net for ip in this.internal_ips for net in reachable if net.prefixlen):
            return None
    listed = ", ".join(map(str, wanted)) or "of the node's own InternalIP"
    return f"the listing of {len(reachable)} routes shows none {'to ' if wanted else ''}{listed}"


def _judge_lookup(place: str, routing: HostRouting, vip: IPAddress, network: ServiceNetwork) -> tuple[Difference, ...]:
    """The kernel's own lookup: it must be there, be no delivery to this host, and go where the tables say."""
    subject, lookup = f"{place}: ip route get {vip}", routing.lookups.get(vip)
    best = routing.best(vip)
    if lookup is None:
        return ()  # the control says so
    evidence = (str(lookup), *([] if best is None else [str(best)]))
    if lookup.type in _REFUSED:
        # Routing comes before the OUTPUT chain: without a route a host process fails before anything is translated.
        return (Difference(subject, "has no way", "a route, usually the default", f"{lookup.type}: {lookup.raw}", evidence),)
    if lookup.type != "unicast":
        return (Difference(subject, "does not leave the host", "a unicast route, usually the default", lookup.type, evidence),)
    if best is None or network.holds(best.destination):
        return ()  # such a route is named already; without one the kernel knows better than the walk
    if best.devices and lookup.device not in best.devices:
        return (Difference(subject, "goes another way than the tables", _devices(best), f"{lookup.device}", evidence),)
    return ()


def _devices(route: Route) -> str:
    return f"{', '.join(sorted(route.devices))} of the route {route}"
