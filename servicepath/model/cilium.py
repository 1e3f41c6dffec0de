"""What the Cilium agent and its maps say on one node (cilium-dbg of 1.16 to 1.20; older text where it can be read)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from .addresses import IPAddress, Socket


@dataclasses.dataclass(frozen=True, slots=True)
class AgentStatus:
    """``cilium-dbg status``. None means that this version does not say, never that it is off.

    Attributes:
        kube_proxy_replacement: the word as printed: True, False, Strict, Partial, Probe, Disabled.
        socket_lb: whether socket LB is on at all.
        services: feature name (ClusterIP, NodePort, …) → enabled.
        routing: ``tunnel`` or ``native``; tunnel: ``vxlan`` or ``geneve``.
        masquerading: as printed (``IPTables [IPv4: Enabled, IPv6: Disabled]``).
        devices: device name → its addresses, from the proxy replacement's device list.
    """

    version: str | None
    kube_proxy_replacement: str | None
    socket_lb: bool | None
    socket_lb_hostns_only: bool | None
    services: Mapping[str, bool]
    routing: str | None
    tunnel: str | None
    host_routing: str | None
    masquerading: str | None
    devices: Mapping[str, tuple[IPAddress, ...]]
    cluster_health: str | None = None
    ipam: str | None = None
    raw: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(frozen=True, slots=True)
class AgentBackend:
    """A backend in the agent's view; ``state`` is active, terminating, quarantined, maintenance, …; None where not shown."""

    socket: Socket
    state: str | None
    node: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class AgentService:
    """One frontend of ``cilium-dbg service list``; ``protocol`` None before 1.17's text, ``scope`` external or internal."""

    frontend: Socket
    protocol: str | None
    type: str | None
    scope: str
    namespace: str | None
    name: str | None
    backends: tuple[AgentBackend, ...]
    raw: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(frozen=True, slots=True)
class MapService:
    """One frontend of ``cilium-dbg bpf lb list``: slots ≥ 1 are backends, slot 0 is the frontend itself.

    Attributes:
        wildcard: True for ``VIP:0/ANY`` rows of Cilium 1.19, which are no Service.
        missing: backend ids that the map names but does not hold (``backend 235 not found``).
    """

    frontend: Socket
    protocol: str | None
    scope: str
    type: str | None
    flags: tuple[str, ...]
    backends: tuple[Socket, ...]
    missing: tuple[int, ...]
    wildcard: bool
    raw: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(frozen=True, slots=True)
class CtEntry:
    """One line of ``cilium-dbg bpf ct list global``.

    ``direction`` is SVC, OUT, IN or RELATED; (``source``, ``destination``) is the flow as its sender sees it in that step.
    """

    protocol: str
    direction: str
    source: Socket
    destination: Socket
    packets: int | None
    raw: str = dataclasses.field(default="", compare=False)
