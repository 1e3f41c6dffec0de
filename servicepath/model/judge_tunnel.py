"""Do a node's routes lead every remote PodCIDR into Cilium's tunnel, from the right address and with room for the tunnel's header?

Cilium 1.19.1: routes by pkg/datapath/linux/node.go, MTUs by pkg/mtu (the smallest MTU of all devices that the agent selects, or the
configured one, less 50 for a tunnel over IPv4 and 70 over IPv6, less what encryption takes).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from .addresses import IPAddress, IPNetwork
from .cilium import AgentStatus
from .difference import Difference
from .host import Interface, Route
from .routing import HostRouting
from .services import CiliumNode, Node
from .underlay import underlay_mtu

HOST_DEVICE = "cilium_host"
_TUNNEL_DEVICES = ("cilium_vxlan", "cilium_geneve")
_KEEP_BASE_MTU = (HOST_DEVICE, "cilium_net", *_TUNNEL_DEVICES)
_OVERHEAD = {4: 50, 6: 70}


def pod_routing(status: AgentStatus | None, config: Mapping[str, str] | None) -> str | None:
    """How Cilium carries Pod traffic to other nodes: tunnel or native; None when nothing tells.

    These judgements hold for a tunnel alone; with native routing (GKE's Dataplane V2, say) other routes are right.

    Args:
        status: the agent's word, which counts.
        config: cilium-config: ``routing-mode`` (Cilium 1.14 and later; tunnel where it is not said) or ``tunnel`` before.
    """
    if status is not None and status.routing is not None:
        return status.routing
    if config is None:
        return None
    return "native" if config.get("routing-mode") == "native" or config.get("tunnel") == "disabled" else "tunnel"


def lookups_silent(routing: HostRouting, own: CiliumNode, others: Sequence[CiliumNode]) -> str | None:
    """The kernel must have been asked for its way into each remote PodCIDR that is judged, and there must be an own address."""
    if not own.cilium_internal_ips:
        return f"the CiliumNode {own.name} names no CiliumInternalIP"
    families = {ip.version for ip in own.cilium_internal_ips}
    judged = [cidr for other in others for cidr in other.pod_cidrs if cidr.version in families]
    unasked = [str(cidr) for cidr in judged if not routing.lookups_in(cidr)]
    return f"the kernel was not asked for its way to {', '.join(unasked)}" if unasked else None


def judge_remote_routes(node: str, routing: HostRouting, own: CiliumNode, others: Sequence[CiliumNode]) -> tuple[Difference, ...]:
    """Every other node's PodCIDRs are reached through cilium_host, from the node's own CiliumInternalIP.

    Args:
        node: the node's name.
        routing: its tables, and the kernel's lookup of one address of each remote PodCIDR (routing.lookup_targets).
        own: the node's own CiliumNode; only PodCIDRs of a family in which it has a CiliumInternalIP are judged.
        others: the other nodes' CiliumNodes.
    """
    wrong: list[Difference] = []
    for other in others:
        for cidr in other.pod_cidrs:
            internal = [ip for ip in own.cilium_internal_ips if ip.version == cidr.version]
            if internal:
                wrong += _judge_route(f"{node}: {other.name}'s PodCIDR {cidr}", routing, cidr, internal)
                wrong += _judge_lookup(node, routing, cidr, internal)
    return tuple(wrong)


def judge_tunnel_device(node: str, interfaces: Sequence[Interface]) -> tuple[Difference, ...]:
    """Cilium's tunnel device is up; where it is not, a second VXLAN device on the same port is named, which keeps it from that."""
    tunnels = [i for i in interfaces if i.name in _TUNNEL_DEVICES]
    if not tunnels:
        return (Difference(node, "has no tunnel device", " or ".join(_TUNNEL_DEVICES), "neither", ()),)
    wrong = []
    for tunnel in tunnels:
        rivals = [i for i in interfaces if i.name not in _TUNNEL_DEVICES and i.up and i.vxlan_port and i.vxlan_port == tunnel.vxlan_port]
        if not tunnel.up:
            why = "".join(f"; {rival.name} holds UDP port {rival.vxlan_port}" for rival in rivals)
            evidence = tuple(str(i) for i in (tunnel, *rivals))
            wrong.append(Difference(f"{node}: {tunnel.name}", "is down", "up", f"down{why}", evidence))
    return tuple(wrong)


def judge_cilium_host(node: str, interfaces: Sequence[Interface], own: CiliumNode) -> tuple[Difference, ...]:
    """cilium_host holds every CiliumInternalIP that the CiliumNode names, in whatever scope."""
    device = next((interface for interface in interfaces if interface.name == HOST_DEVICE), None)
    expected = ", ".join(map(str, own.cilium_internal_ips))
    if device is None:
        return (Difference(f"{node}: {HOST_DEVICE}", "is not there", f"an interface with {expected}", "no such interface", ()),)
    held = ", ".join(str(address) for address in device.addresses) or "no address"
    return tuple(
        Difference(f"{node}: {HOST_DEVICE}", "lacks a CiliumInternalIP of its CiliumNode", str(ip), held, (str(device),))
        for ip in own.cilium_internal_ips
        if not device.holds(ip)
    )


@dataclasses.dataclass(frozen=True, slots=True)
class TunnelMtu:
    """What MTU remote routes should have.

    Attributes:
        base: the underlay's MTU, or the configured one.
        why: where base comes from ("the smallest of enp1s0 1500").
        ceiling: the underlay's MTU less the tunnel's header: no route may have more, whatever is configured.
        route: what a route should have without encryption.
        encryption: what takes more room (IPsec, WireGuard), None without.
    """

    base: int
    why: str
    ceiling: int
    route: int
    encryption: str | None

    def fits(self, mtu: int) -> bool:
        """With encryption a route may have less (how much depends on the keys); without it exactly that."""
        return 0 < mtu <= min(self.ceiling, self.route) and (mtu == self.route or self.encryption is not None)

    def __str__(self) -> str:
        """``1450 (1500 of enp1s0 less 50)``."""
        less = self.base - self.route
        return f"{'at most ' if self.encryption else ''}{self.route} ({self.why} less {less}" + (
            f", less what {self.encryption} takes)" if self.encryption else ")"
        )


def tunnel_mtu(underlay: Sequence[Interface], node: Node, config: Mapping[str, str], configured: int | None) -> TunnelMtu | None:
    """The MTU that remote routes should have; None when no device of the underlay has an MTU that was seen.

    Args:
        underlay: the devices that Cilium uses (underlay.underlay_devices).
        node: whose addresses tell the tunnel's family where the configuration does not.
        config: cilium-config: ``underlay-protocol``, ``enable-wireguard``, ``enable-ipsec``.
        configured: its ``mtu`` in bytes; None where Cilium takes the devices'.
    """
    smallest = underlay_mtu(underlay)
    if smallest is None:
        return None
    protocol = config.get("underlay-protocol", "")
    family = int(protocol[-1]) if protocol in ("ipv4", "ipv6") else min((ip.version for ip in node.internal_ips), default=4)
    why = "mtu of cilium-config" if configured else " and ".join(f"{i.mtu} of {i.name}" for i in underlay if i.mtu == smallest)
    encryption = [name for key, name in (("enable-wireguard", "WireGuard"), ("enable-ipsec", "IPsec")) if config.get(key) == "true"]
    base, overhead = configured or smallest, _OVERHEAD[family]
    return TunnelMtu(
        base, why if not configured else f"{configured}, the {why},", smallest - overhead, base - overhead, " and ".join(encryption) or None
    )


def judge_tunnel_mtu(
    node: str, expected: TunnelMtu, routing: HostRouting, interfaces: Sequence[Interface], others: Sequence[CiliumNode]
) -> tuple[Difference, ...]:
    """Remote routes have the underlay's MTU less the tunnel's overhead, and Cilium's devices keep the base.

    Args:
        node: the node's name.
        expected: of tunnel_mtu.
        routing: the node's tables.
        interfaces: the node's.
        others: the other nodes' CiliumNodes; their PodCIDRs' routes through cilium_host are judged.
    """
    wrong = []
    for cidr in (cidr for other in others for cidr in other.pod_cidrs):
        for route in _routes_to(routing, cidr):
            if route.mtu is None or not expected.fits(route.mtu):
                actual = "none, so the device's" if route.mtu is None else str(route.mtu)
                if route.mtu is not None and route.mtu > expected.ceiling:
                    actual += ": full-size packets do not fit into the tunnel"
                wrong.append(Difference(f"{node}: route to {cidr}", "has the wrong MTU", str(expected), actual, (str(route),)))
    for device in interfaces:
        if device.name in _KEEP_BASE_MTU and device.mtu is not None and device.mtu != expected.base:
            base = f"the base, {expected.base}"
            wrong.append(Difference(f"{node}: {device.name}", "does not keep the base MTU", base, str(device.mtu), (str(device),)))
    return tuple(wrong)


def _routes_to(routing: HostRouting, cidr: IPNetwork) -> tuple[Route, ...]:
    """The routes for exactly this prefix through cilium_host in tables that unmarked packets reach."""
    return tuple(route for route in routing.routes_for(cidr) if route.device == HOST_DEVICE)


def _judge_route(subject: str, routing: HostRouting, cidr: IPNetwork, internal: Sequence[IPAddress]) -> list[Difference]:
    """The configured route."""
    same = routing.routes_for(cidr)
    expected = f"dev {HOST_DEVICE} src {' or '.join(map(str, internal))}"
    if not same:
        best = routing.best(cidr.network_address)
        actual = "no way at all" if best is None else f"the route {best}"
        return [Difference(subject, "has no route of its own", expected, actual, () if best is None else (str(best),))]
    return [
        Difference(subject, "is routed another way", expected, str(route), (str(route),))
        for route in same
        if route.type != "unicast" or route.device != HOST_DEVICE or route.source not in internal or route.via not in (None, *internal)
    ]


def _judge_lookup(node: str, routing: HostRouting, cidr: IPNetwork, internal: Sequence[IPAddress]) -> list[Difference]:
    """The kernel's own answer for every address of the PodCIDR that it was asked for."""
    expected = f"dev {HOST_DEVICE} src {' or '.join(map(str, internal))}"
    return [
        Difference(f"{node}: ip route get {ip}", "does not go into the tunnel", expected, str(lookup), (str(lookup),))
        for ip, lookup in routing.lookups_in(cidr)
        if lookup.type != "unicast" or lookup.device != HOST_DEVICE or lookup.source not in internal
    ]
