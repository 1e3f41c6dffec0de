"""Do kube-proxy's rules, Cilium's Service list and Cilium's load-balancing map send to the same backends as the EndpointSlices?

Each source is compared with the EndpointSlices, and Cilium's two views with each other, since the map can be wrong while the list
is right and everything looks healthy (cilium/cilium#9684). What a node should send to is kube-proxy's rule (expected_endpoints);
Cilium 1.19 (pkg/loadbalancer) has the same, unless topology hints narrow it, which Cilium follows only when told to.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from .addresses import IPAddress, Socket
from .cilium import AgentService, MapService, frontend
from .difference import Difference
from .expected_endpoints import differs_by_policy, expect, not_proxied
from .services import ClusterObjects, Service, ServicePort

RULES = "kube-proxy's rules"
AGENT = "Cilium's Service list"
MAP = "Cilium's load-balancing map"


@dataclasses.dataclass(frozen=True, slots=True)
class View:
    """What one source holds for a Service port.

    Attributes:
        source: kube-proxy's rules, Cilium's Service list or Cilium's load-balancing map.
        present: whether the source knows the frontend at all.
        protocol: None where the source does not tell protocols apart: then one entry stands for all ports of that number.
        backends: where new connections are sent.
        expected: what the EndpointSlices say they should be.
        missing: ids of backends that the map names and does not hold.
        l7: Envoy balances for the map, which holds no backend by design.
        lines: the source's own text.
        seen: False for a source that was not looked at (others' outputs may leave it out): nothing is judged by it.
    """

    source: str
    present: bool
    protocol: str | None
    backends: frozenset[Socket]
    expected: frozenset[Socket]
    missing: tuple[int, ...] = ()
    l7: bool = False
    lines: tuple[str, ...] = ()
    seen: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Dataplanes:
    """One Service port at one ClusterIP on one node, as its three dataplanes hold it; two, where Cilium takes kube-proxy's place.

    ``narrowed`` says why a node may rightly use only some of the serving endpoints (topology hints); None: it must use all.
    """

    node: str
    port: ServicePort
    frontend: Socket
    views: tuple[View, ...]
    narrowed: str | None

    @property
    def name(self) -> str:
        """``kube-system/kube-dns:dns/UDP (10.43.0.10:53)``."""
        return f"{self.port.full_id} ({self.frontend})"

    @property
    def serving_lines(self) -> tuple[str, ...]:
        """What the EndpointSlices say that this node should send to, a line a backend, and what lets it choose among them."""
        sockets = sorted(self.views[0].expected, key=lambda s: (s.ip.version, s))
        choice = (f"(of these the node may choose: {self.narrowed})",) if self.narrowed else ()
        return (*(map(str, sockets) if sockets else ("no serving endpoint",)), *choice)

    def view(self, source: str) -> View:
        """The view of that source."""
        return next(view for view in self.views if view.source == source)


def not_judged(objects: ClusterObjects, service: Service, port: ServicePort) -> str | None:
    """Why the three cannot be compared for this Service port; None: they can."""
    if reason := not_proxied(service):
        return reason
    config = objects.cilium_config or {}
    if port.protocol == "SCTP" and config.get("enable-sctp") != "true":
        return f"{service.key}: Cilium handles SCTP only with enable-sctp, which cilium-config does not set"
    return None


def gather(
    objects: ClusterObjects,
    service: Service,
    port: ServicePort,
    vip: IPAddress,
    node: str,
    *,
    rules: frozenset[Socket] | None,
    rule_lines: tuple[str, ...],
    agent: Iterable[AgentService],
    lb_map: Iterable[MapService],
) -> Dataplanes:
    """Put side by side what a node holds for a Service port at one of its ClusterIPs.

    Args:
        objects: the API of that time.
        service: the port's Service.
        port: the port.
        vip: the ClusterIP; endpoints of its address family alone count.
        node: the node's name.
        rules: where kube-proxy's rules lead (``service_rules.walk(…).sockets``); empty when they have no chain for it; None: there
            is no kube-proxy on the node, whose place Cilium takes.
        rule_lines: those rules.
        agent: the agent's Service list.
        lb_map: the load-balancing map.
    """
    address = Socket(vip, port.port)

    def expected(protocol: str | None) -> frozenset[Socket]:
        return _expected(objects, service, port, vip, node, protocol)

    views = [] if rules is None else [View(RULES, bool(rules), port.protocol, rules, expected(port.protocol), lines=rule_lines)]
    views += _cilium_views(address, port, agent, lb_map, expected)
    return Dataplanes(node, port, address, tuple(views), _narrowed(objects, service))


def _cilium_views(
    address: Socket, port: ServicePort, agent: Iterable[AgentService], lb_map: Iterable[MapService],
    expected: Callable[[str | None], frozenset[Socket]],
) -> tuple[View, View]:  # fmt: skip
    """Cilium's list and map; the map keeps slots of retired backends behind the serving ones, which get no new connection."""
    listed = frontend(agent, address, port.protocol)
    mapped = frontend(lb_map, address, port.protocol)
    views = [View(source, False, port.protocol, frozenset(), expected(port.protocol)) for source in (AGENT, MAP)]
    if listed:
        lines = tuple(listed.raw.splitlines())
        views[0] = View(AGENT, True, listed.protocol, listed.serving, expected(listed.protocol), lines=lines)
    if mapped:
        serving = frozenset(mapped.backends) - (listed.retired if listed else frozenset())
        lines = tuple(mapped.raw.splitlines())
        views[1] = View(MAP, True, mapped.protocol, serving, expected(mapped.protocol), mapped.missing, mapped.l7, lines)
    return views[0], views[1]


def differing(dataplanes: Dataplanes) -> tuple[Difference, ...]:
    """One Difference for each source that is unlike the EndpointSlices, and one when Cilium's two views are unlike each other."""
    found = [_unlike_slices(dataplanes, view) for view in dataplanes.views if view.seen]
    return tuple(d for d in (*found, _map_unlike_list(dataplanes)) if d is not None)


def silent(kubernetes: Dataplanes) -> tuple[str, ...]:
    """The control: the sources that do not even hold the Service ``default/kubernetes``, so that their silence proves nothing."""
    return tuple(view.source for view in kubernetes.views if view.seen and (not view.present or not (view.backends or view.missing)))


def _expected(
    objects: ClusterObjects, service: Service, port: ServicePort, vip: IPAddress, node: str, protocol: str | None
) -> frozenset[Socket]:
    """Where the node should send; without a protocol, for all ports of the same number together."""
    endpoints = objects.endpoints_of(service)
    ports = [port] if protocol else [p for p in service.ports if p.port == port.port]
    return frozenset(s for p in ports for s in expect(endpoints, service, p, node, vip.version).sockets)


def _narrowed(objects: ClusterObjects, service: Service) -> str | None:
    # internalTrafficPolicy Local is no choice of the node's: kube-proxy and Cilium both take the node's own endpoints.
    return None if service.internal_traffic_policy == "Local" else differs_by_policy(service, objects.endpoints_of(service))


def _unlike_slices(dataplanes: Dataplanes, view: View) -> Difference | None:
    subject = f"{dataplanes.node}: {view.source}, {dataplanes.name}"
    expected = f"{_listed(view.expected)} (EndpointSlices)"
    if not view.present:
        if not view.expected:
            return None
        # kube-proxy's rules may take the Service's packets and lead them nowhere.
        taken = any(f'"{dataplanes.port.chain_key} cluster IP"' in line for line in view.lines)
        problem, actual = ("leads to no backend", "no backend") if taken else ("does not have this Service port", "no entry")
        return Difference(subject, problem, expected, actual, view.lines)
    many, few = view.backends - view.expected, view.expected - view.backends
    if view.l7 or (dataplanes.narrowed and view.backends):
        few = frozenset()
    if not many and not few and not view.missing:
        return None
    problem = "; ".join(
        [f"{_listed(many)} too many"] * bool(many)
        + [f"{_listed(few)} missing"] * bool(few)
        + [f"names backends that it does not hold: {', '.join(map(str, view.missing))}"] * bool(view.missing)
    )
    return Difference(subject, problem, expected, _listed(view.backends), view.lines)


def _map_unlike_list(dataplanes: Dataplanes) -> Difference | None:
    listed, mapped = dataplanes.view(AGENT), dataplanes.view(MAP)
    if not (listed.seen and mapped.seen) or listed.protocol != mapped.protocol or mapped.l7 or listed.backends == mapped.backends:
        return None
    many, few = mapped.backends - listed.backends, listed.backends - mapped.backends
    problem = "; ".join(
        [f"{_listed(many)} too many in the map"] * bool(many) + [f"{_listed(few)} missing from the map"] * bool(few)
    )
    subject = f"{dataplanes.node}: {AGENT} and {MAP}, {dataplanes.name}"
    return Difference(
        subject, problem, f"{_listed(listed.backends)} (list)", f"{_listed(mapped.backends)} (map)", (*listed.lines, *mapped.lines)
    )


def _listed(sockets: frozenset[Socket]) -> str:
    return ", ".join(map(str, sorted(sockets, key=lambda s: (s.ip.version, s)))) or "no backend"
