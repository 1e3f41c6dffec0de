"""A node's (or LAN host's) own network state: interfaces, routes, rules, listening sockets.

Fields follow ``ip -j`` of iproute2 5.10 to 6.x and ``ss -Htuln``.
"""

from __future__ import annotations

import dataclasses

from .addresses import IPAddress, IPInterface, IPNetwork, Socket


@dataclasses.dataclass(frozen=True, slots=True)
class Interface:
    """A network interface.

    ``kind`` is the link kind (veth, vxlan, …), None for physical ones or where not shown; ``link_index`` is the index of
    a veth's other end, in that end's own namespace.
    """

    name: str
    index: int | None
    mtu: int | None
    up: bool
    mac: str | None
    addresses: tuple[IPInterface, ...]
    kind: str | None = None
    link_netnsid: int | None = None
    link_index: int | None = None
    vxlan_id: int | None = None
    vxlan_port: int | None = None
    raw: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Route:
    """One route. ``type`` is unicast, local, broadcast, unreachable, …; ``table`` main, local, 2004, …; default is 0.0.0.0/0."""

    destination: IPNetwork
    type: str
    table: str
    via: IPAddress | None
    device: str | None
    source: IPAddress | None
    mtu: int | None
    metric: int | None
    protocol: str | None
    raw: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(frozen=True, slots=True)
class RoutingRule:
    """One line of ``ip rule``. ``fwmark`` is ``0x200`` or ``0x200/0xf00`` as printed; None: the rule takes any mark."""

    priority: int
    source: IPNetwork | None
    destination: IPNetwork | None
    fwmark: str | None
    table: str | None
    action: str | None
    raw: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket; ``address`` is None for a wildcard."""

    protocol: str
    address: IPAddress | None
    port: int
    process: str | None
    raw: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(frozen=True, slots=True)
class RouteLookup:
    """The kernel's answer to ``ip route get``."""

    destination: IPAddress
    device: str | None
    via: IPAddress | None
    source: IPAddress | None
    mtu: int | None
    type: str
    table: str | None
    raw: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(frozen=True, slots=True)
class ConntrackEntry:
    """One netfilter conntrack entry, both tuples.

    ``original`` is (source, destination) as first sent; ``reply`` is (source, destination) as the answer is expected.
    """

    protocol: str
    original: tuple[Socket, Socket]
    reply: tuple[Socket, Socket]
    state: str | None
    unreplied: bool
    assured: bool
    timeout: int | None
    mark: int | None
    raw: str = dataclasses.field(default="", compare=False)
