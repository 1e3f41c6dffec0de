"""What the Cilium agent and its maps say on one node (cilium-dbg of 1.16 to 1.20; older text where it can be read)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TypeVar

from .addresses import IPAddress, Socket


@dataclasses.dataclass(frozen=True, slots=True)
class AgentStatus:
    """``cilium-dbg status``. None means that this version does not say, never that it is off.

    Attributes:
        version: ``1.19.1``; None for a build that does not know its own (``v-``) and for 1.7, which prints none.
        kube_proxy_replacement: the word as printed: True, False, Strict, Partial, Probe, Disabled.
        socket_lb: whether socket LB is on at all.
        socket_lb_hostns_only: None too while socket LB is off: ``Coverage: Full`` is printed then and means nothing.
        services: feature name (ClusterIP, NodePort, …) → enabled. Cilium prints ``ClusterIP: Enabled`` in every mode
            (pkg/client/client.go of 1.19 has it as a constant), so it tells nothing of the proxy replacement.
        routing: ``tunnel`` or ``native``; tunnel: ``vxlan`` or ``geneve``.
        host_routing: ``Legacy`` or ``BPF``.
        masquerading: as printed (``IPTables [IPv4: Enabled, IPv6: Disabled]``).
        devices: device name → its addresses, from the proxy replacement's device list.
        cluster_health: ``3/3 reachable``; only text has it.
        encryption: of packets between nodes: ``disabled``, ``ipsec``, ``wireguard``.
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
    encryption: str | None = None
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

    @property
    def serving(self) -> frozenset[Socket]:
        """The backends that get new connections: the active ones (and those without a state, before 1.12).

        When none is active, Cilium sends to the terminating ones (pkg/loadbalancer/reconciler of 1.19, KEP-1669).
        """
        active = frozenset(b.socket for b in self.backends if b.state in (None, "active"))
        return active or frozenset(b.socket for b in self.backends if b.state == "terminating")

    @property
    def retired(self) -> frozenset[Socket]:
        """Backends that get no new connection and may yet keep a slot in the map, behind the serving ones."""
        return frozenset(b.socket for b in self.backends) - self.serving


@dataclasses.dataclass(frozen=True, slots=True)
class MapService:
    """One frontend of ``cilium-dbg bpf lb list``: slots ≥ 1 are backends, slot 0 is the frontend itself.

    The list does not print how many slots are in use: behind the serving backends the map also keeps slots of terminating
    and quarantined ones, which get no new connection. Only the agent's list tells them apart.

    Attributes:
        protocol: None where the map does not tell protocols apart (before 1.16, and ``ANY`` entries kept over an upgrade).
        scope: ``external``, or ``internal`` for ``/i``: what clients in the cluster use of a Service with two scopes.
        type: ClusterIP, NodePort, LoadBalancer, …; None when slot 0 is not in the list.
        flags: the words behind the type ("non-routable", "Local", "two-scopes", "l7-load-balancer", …).
        backends: in the order of their slots.
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

    @property
    def l7(self) -> bool:
        """True when Envoy balances instead of slots: such a frontend has no backend by design."""
        return "l7-load-balancer" in self.flags


@dataclasses.dataclass(frozen=True, slots=True)
class CtEntry:
    """One line of ``cilium-dbg bpf ct list global``.

    ``direction`` is SVC, OUT, IN or RELATED; (``source``, ``destination``) is the flow as its sender sees it in that step:
    SVC is a Pod's flow to a ClusterIP, OUT the same flow to the backend that was chosen. Ports of ICMP are its id or 0.
    ``packets`` is 0 in every entry when accounting is off (the default since 1.17).
    """

    protocol: str
    direction: str
    source: Socket
    destination: Socket
    packets: int | None
    raw: str = dataclasses.field(default="", compare=False)


Frontend = TypeVar("Frontend", AgentService, MapService)


def frontend(entries: Iterable[Frontend], address: Socket, protocol: str) -> Frontend | None:
    """The entry that a client in the cluster uses for this address and protocol, or None.

    Of two scopes it is the internal one (bpf/lib/lb.h of 1.19 looks the external one up first and then, for a Service with
    two scopes, the internal one). An entry without a protocol stands for every protocol. Wildcard rows are no Service.
    """
    found = [e for e in entries if e.frontend == address and e.protocol in (protocol, None) and not getattr(e, "wildcard", False)]
    return min(found, key=lambda e: (e.protocol is None, e.scope != "internal"), default=None)
