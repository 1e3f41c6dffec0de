"""Which of a node's devices carry the tunnel's packets, as the Cilium agent finds them.

The agent's own list counts; with the proxy replacement off ``cilium-dbg status`` does not print it, and then its way of finding
devices is followed (v1.19.1, pkg/datapath/linux/devices_controller.go, isSelectedDevice; pkg/mtu/manager.go).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .addresses import IPAddress
from .cilium import AgentStatus
from .host import Interface
from .routing import HostRouting
from .services import Node

_EXCLUDED_PREFIXES = ("cilium_", "lo", "lxc", "cni", "docker")
_EXCLUDED_KINDS = frozenset({"bridge", "openvswitch", "ipoib"})
_WITHOUT_MTU_OF_THEIR_OWN = ("cilium_vxlan", "cilium_geneve", "cilium_ipip4", "cilium_ipip6")


def underlay_devices(
    interfaces: Sequence[Interface], routing: HostRouting, node: Node, status: AgentStatus | None, config: Mapping[str, str]
) -> tuple[Interface, ...]:
    """The devices from which Cilium takes its base MTU; empty when the listing shows none of them.

    Args:
        interfaces: the node's, with link kinds (``ip -d``).
        routing: the node's routes.
        node: the node; a device that holds its InternalIP stands in when nothing else is found.
        status: the agent's status; its device list counts where it has one.
        config: cilium-config; ``devices`` limits the choice (names, ``eth+`` for a prefix, ``!eth1`` for all but).
    """
    if status is not None and status.devices:
        return tuple(interface for interface in interfaces if interface.name in status.devices)
    patterns = re.split(r"[\s,]+", config.get("devices", "").strip()) if config.get("devices", "").strip() else []
    found = [i for i in interfaces if _is_selected(i, routing, patterns, force=config.get("force-device-detection") == "true")]
    usable = [i for i in found if i.name not in _WITHOUT_MTU_OF_THEIR_OWN and i.kind != "dummy"]
    return tuple(usable) or tuple(i for i in interfaces if any(i.holds(ip) for ip in node.internal_ips))


def underlay_mtu(devices: Sequence[Interface]) -> int | None:
    """The smallest MTU; None when none was seen."""
    return min((device.mtu for device in devices if device.mtu is not None), default=None)


def _is_selected(interface: Interface, routing: HostRouting, patterns: Sequence[str], *, force: bool) -> bool:
    if patterns:
        for pattern in patterns:
            name = pattern.removeprefix("!")
            if interface.name.startswith(name[:-1]) if name.endswith("+") else interface.name == name:
                return not pattern.startswith("!")
        if not force:
            return False
    if not interface.addresses or not interface.up or interface.master is not None:
        return False
    if interface.name.startswith(_EXCLUDED_PREFIXES) or interface.kind in _EXCLUDED_KINDS:
        return False
    routes = [r for r in routing.routes if interface.name in r.devices]
    if interface.kind == "veth" and not patterns and not any(r.destination.prefixlen == 0 and r.table == "main" for r in routes):
        return False
    return any(_is_global(r.destination.network_address) for r in routes)


def _is_global(address: IPAddress) -> bool:
    """As Go's netip.Addr.IsGlobalUnicast: private addresses are global in this sense, link-local ones are not."""
    return not (address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local)
