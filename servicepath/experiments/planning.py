"""Plan one node's traffic experiment from what the snapshot and the API said: which probes, from where, captured where."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Iterator, Sequence

from ..model.addresses import IPAddress, Socket
from ..model.flows import Probe, Source
from ..model.services import ServicePort
from . import capture, probe
from .traffic import SIZE_WINDOW, NodePlan

# Seconds to wait for the answer to a packet of a size that may not cross: what it says decides nothing, so nothing waits longer.
# The full-size packet must be answered, and is waited for like any other: a busy node is no broken way.
LARGER_TIMEOUT = 0.5

# How often each cut of another attempt reads the counters.
READINGS_AGAIN = 6

# So many backends' packets are looked for outside the tunnel, too: a longer filter would slow the capture down.
MOST_BACKENDS = 64

# UDP (8) and IPv4 (20) or IPv6 (40) headers in front of a DNS message.
UDP_HEADERS = {4: 28, 6: 48}


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """A Service port to probe.

    Attributes:
        port: the port.
        vip: its ClusterIP.
        speaks: "dns" or "tcp"; ports that speak neither are not probed.
        serving: its serving endpoints.
        remote: one serving endpoint on another node than the client's, None when there is none.
    """

    port: ServicePort
    vip: IPAddress
    speaks: str
    serving: frozenset[Socket]
    remote: Socket | None


@dataclasses.dataclass(frozen=True, slots=True)
class PodPlace:
    """Where a Pod of the node is: its addresses, its network namespace's path, the host's end of its veth."""

    ips: tuple[IPAddress, ...]
    netns: str
    interface: str


@dataclasses.dataclass(frozen=True, slots=True)
class Surroundings:
    """What of the node the captures need: the client Pod and local backends (None, empty: there is none), devices, addresses.

    ``node_addresses`` are its InternalIPs, ``internal_addresses`` its CiliumInternalIPs, ``backends`` those serving endpoints, of any
    node, that are Pods with a network of their own: their packets belong into the tunnel.
    """

    client: PodPlace | None
    local_backends: tuple[PodPlace, ...]
    underlay: str
    tunnel: str | None
    tunnel_port: int
    node_addresses: tuple[IPAddress, ...]
    internal_addresses: tuple[IPAddress, ...]
    route_mtu: int | None
    backends: tuple[IPAddress, ...] = ()


def plan(
    node: str, save_tool: tuple[str, ...], targets: Sequence[Target], name: str, around: Surroundings, used: Container[int]
) -> NodePlan:  # fmt: skip
    """The plan for one node.

    Args:
        node: the node's name.
        save_tool: the command that prints the nat table with counters, of the back end in use.
        targets: the ports to probe.
        name: the DNS name to ask for.
        around: the node's surroundings.
        used: source ports that a flow table of the node still holds.
    """
    ports = probe.source_ports(used)
    probes: list[Probe] = []
    for target in targets:
        probes += _host_probes(target, name, ports)
        if around.client and any(ip.version == target.vip.version for ip in around.client.ips):
            probes += _pod_probes(target, name, ports, around.route_mtu)
    vips = tuple(dict.fromkeys(t.vip for t in targets))
    client = around.client
    netns, ips = (client.netns, client.ips) if client else (None, ())
    return NodePlan(node, save_tool, (*vips, *ips), tuple(probes), _taps(around, vips), netns, ips, around.route_mtu)


def renewed(old: NodePlan, used: Container[int]) -> NodePlan:
    """The same plan with other source ports and DNS ids, for another attempt: an old port's flow would be no new one.

    Each cut reads the counters several times: what disturbed the first attempt may be somebody who begins flows all the time.
    """
    mine = {p.sport for p in old.probes}
    fresh = (port for port in probe.source_ports(used) if port not in mine)
    # New ids and spellings, too: a late answer to the first attempt's query is none to this one's.
    probes = tuple(dataclasses.replace(p, sport=next(fresh), queries=tuple(map(probe.again, p.queries))) for p in old.probes)
    return dataclasses.replace(old, probes=probes, readings=READINGS_AGAIN)


def _host_probes(target: Target, name: str, ports: Iterator[int]) -> Iterator[Probe]:
    """Ten flows (§6), a control flow (§7), and over TCP one connection with three queries and a second one with one."""
    count = probe.flow_count(len(target.serving), probe.NOTES_HOST_FLOWS)
    yield from _send(target, name, Source.HOST, "host", ["A"] * count, ports)
    yield from _send(target, name, Source.HOST, "control", ["A"], ports)
    if target.speaks == "dns" and target.port.protocol == "TCP":
        for window, queries in (("one-connection", 3), ("second-connection", 1)):
            group = tuple(probe.query(name) for _ in range(queries))
            yield from probe.probes_for(target.port, target.vip, Source.HOST, window, [group], ports)


def _pod_probes(target: Target, name: str, ports: Iterator[int], route_mtu: int | None) -> Iterator[Probe]:
    """Five flows (§7), A and AAAA in turn (§8); and two packets as large as the route's MTU and one byte larger."""
    count = probe.flow_count(len(target.serving), probe.NOTES_POD_FLOWS)
    yield from _send(target, name, Source.POD, "pod", ["A", "AAAA"] * (count // 2) + ["A"] * (count % 2), ports)
    if target.speaks == "dns" and target.port.protocol == "UDP" and target.remote and route_mtu:
        for extra in (0, 1):
            query = probe.query(name, size=route_mtu - UDP_HEADERS[target.remote.ip.version] + extra)
            label = f"size-{target.port.id}-{route_mtu + extra}"
            timeout = LARGER_TIMEOUT if extra else probe.ANSWER_TIMEOUT
            yield Probe(label, SIZE_WINDOW, Source.POD, target.port, target.remote, next(ports), (query,), timeout, dont_fragment=True)


def _send(target: Target, name: str, source: Source, window: str, kinds: Sequence[str], ports: Iterator[int]) -> Sequence[Probe]:
    groups = [(probe.query(name, kind),) if target.speaks == "dns" else () for kind in kinds]
    return probe.probes_for(target.port, target.vip, source, window, groups, ports)


def _taps(around: Surroundings, vips: Sequence[IPAddress]) -> tuple[capture.Tap, ...]:
    """Where to capture: the underlay, the tunnel device, the client Pod's veth and those of local backends."""
    client = around.client.ips if around.client else ()
    ours = (*client, *around.node_addresses, *around.internal_addresses)
    bare = (*vips, *around.backends[:MOST_BACKENDS])
    taps = [capture.Tap("underlay", around.underlay, capture.underlay_filter(ours, vips, bare, around.tunnel_port))]
    if around.tunnel:
        # Not the CiliumInternalIPs: the host's own flows are judged on the underlay, and would double this capture.
        taps.append(capture.Tap("tunnel", around.tunnel, capture.host_filter((*client, *around.node_addresses, *vips))))
    if around.client:
        taps.append(capture.Tap("client-lxc", around.client.interface, capture.host_filter(client)))
    for number, backend in enumerate(around.local_backends, 1):
        taps.append(capture.Tap(f"backend-lxc-{number}", backend.interface, capture.host_filter((*ours, *vips))))
    return tuple(taps)
