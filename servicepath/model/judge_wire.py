"""Judge probe flows by their packets: what the underlay, the tunnel device and the Pods' interfaces carried."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable

from . import judge_capture
from .addresses import IPAddress, Socket
from .difference import Difference
from .flows import Trace
from .judge_capture import OthersCapture
from .packets import Header, Packet


@dataclasses.dataclass(frozen=True, slots=True)
class Underlay:
    """The two ends between which a flow's outer packets must travel, and the tunnel's UDP port."""

    client_node: frozenset[IPAddress]
    backend_node: frozenset[IPAddress]
    tunnel_port: int


def lines(trace: Trace, *roles: str) -> tuple[str, ...]:
    """All packets of the flow in these captures, in time order, as a report shows them."""
    found = sorted((p for role in roles for p in trace.packets.get(role, ())), key=lambda p: p.time)
    return tuple(str(p) for p in found)


def sockets(header: Header) -> tuple[Socket, Socket] | None:
    """Source and destination with ports; None for a packet without ports."""
    if header.sport is None or header.dport is None:
        return None
    return Socket(header.source, header.sport), Socket(header.destination, header.dport)


def unseen(traces: Iterable[Trace], role: str) -> tuple[Trace, ...]:
    """Flows of which the capture does not hold both directions; a test about such a flow cannot be judged."""
    missing = []
    for trace in traces:
        ends = [sockets(p.innermost) for p in trace.packets.get(role, ())]
        forward = {e[0] for e in ends if e}
        backward = {e[1] for e in ends if e}
        if not forward & backward:
            missing.append(trace)
    return tuple(missing)


def _packets(trace: Trace, role: str, wrong: Callable[[Packet], tuple[str, str, str] | None]) -> Iterable[Difference]:
    for packet in trace.packets.get(role, ()):
        found = wrong(packet)
        if found:
            subject = f"{trace.probe.id}: {trace.probe.source.value} port {trace.probe.sport} on {packet.interface}"
            yield Difference(subject, *found, (str(packet),))


def not_between_nodes(traces: Iterable[Trace] | OthersCapture, underlay: Callable[[Trace], Underlay]) -> tuple[Difference, ...]:
    """Packets on the underlay that are not VXLAN from node to node, to the tunnel port; of others' captures every packet of the tunnel."""
    if isinstance(traces, OthersCapture):
        return judge_capture.between_nodes(traces)

    def judge(ends: Underlay) -> Callable[[Packet], tuple[str, str, str] | None]:
        def wrong(packet: Packet) -> tuple[str, str, str] | None:
            expected = f"UDP to port {ends.tunnel_port} between {_some(ends.client_node)} and {_some(ends.backend_node)}"
            if packet.vni is None:
                return "not encapsulated", expected, str(packet.outer)
            pair = (packet.outer.source, packet.outer.destination)
            there = pair[0] in ends.client_node and pair[1] in ends.backend_node
            back = pair[0] in ends.backend_node and pair[1] in ends.client_node
            if not (there or back) or packet.outer.dport != ends.tunnel_port:
                return "wrong tunnel ends", expected, str(packet.outer)
            return None

        return wrong

    return tuple(d for t in traces for d in _packets(t, "underlay", judge(underlay(t))))


def not_from_to(traces: Iterable[Trace] | OthersCapture, role: str, source: Collection[IPAddress]) -> tuple[Difference, ...]:
    """Packets whose innermost header is not between one of ``source`` and the flow's backend, in either direction."""
    if isinstance(traces, OthersCapture):
        return judge_capture.inner_ends(traces)

    def judge(trace: Trace) -> Callable[[Packet], tuple[str, str, str] | None]:
        def wrong(packet: Packet) -> tuple[str, str, str] | None:
            expected = f"between {_some(source)} and {trace.backend}"
            ends = sockets(packet.innermost)
            if ends is None:
                return None  # a later fragment has no ports; its first one is judged
            client_end = ends[0] if ends[1] == trace.backend else ends[1] if ends[0] == trace.backend else None
            if client_end is None:
                return "not to or from the backend", expected, str(packet.innermost)
            if client_end.ip not in source:
                return "another client address", expected, str(packet.innermost)
            return None

        return wrong

    return tuple(d for t in traces for d in _packets(t, role, judge(t)))


def carrying(traces: Iterable[Trace] | OthersCapture, role: str, vip: IPAddress) -> tuple[Difference, ...]:
    """Packets that carry the ClusterIP anywhere, outer or inner, source or destination."""
    if isinstance(traces, OthersCapture):
        return judge_capture.carrying(traces, vip)

    def wrong(packet: Packet) -> tuple[str, str, str] | None:
        headers = [h for h in (packet.outer, packet.inner) if h is not None]
        if any(vip in (h.source, h.destination) for h in headers):
            where = "inside VXLAN" if packet.inner and vip in (packet.inner.source, packet.inner.destination) else "plain"
            return f"the ClusterIP {where}", f"no {vip} after translation", str(packet.innermost)
        return None

    return tuple(d for t in traces for d in _packets(t, role, wrong))


def not_reversed(traces: Iterable[Trace] | OthersCapture) -> tuple[Difference, ...]:
    """Flows whose answer on the underlay has not the question's outer and inner ends reversed, or that never went to the backend."""
    if isinstance(traces, OthersCapture):
        return judge_capture.answered(traces)
    wrong = []
    for trace in traces:
        packets = trace.packets.get("underlay", ())
        there = {_ends(p) for p in packets if sockets(p.innermost) and p.innermost.destination == _ip(trace.backend)}
        back = {_ends(p) for p in packets if sockets(p.innermost) and p.innermost.source == _ip(trace.backend)}
        if not there or {(o[::-1], i[::-1] if i else None) for o, i in there} != back:
            subject = f"{trace.probe.id}: {trace.probe.source.value} port {trace.probe.sport}"
            expected = _way((o[::-1], i[::-1] if i else None) for o, i in there) if there else f"one from {trace.backend}"
            evidence = lines(trace, "underlay")
            wrong.append(Difference(subject, "the answer takes another way", expected, _way(back), evidence))
    return tuple(wrong)


def _ends(packet: Packet) -> tuple[tuple[IPAddress, IPAddress], tuple[Socket, Socket] | None]:
    """Outer addresses and inner sockets; the outer source port is a hash and the VNI an identity, so neither is compared."""
    return (packet.outer.source, packet.outer.destination), sockets(packet.innermost)


def _way(ends: Iterable[tuple[tuple[IPAddress, IPAddress], tuple[Socket, Socket] | None]]) -> str:
    """Ends as a message shows them."""
    ways = sorted(f"{inner[0]} → {inner[1]} in {outer[0]} → {outer[1]}" for outer, inner in ends if inner)
    return "; ".join(ways) or "no answer from the backend"


def _ip(socket: Socket | None) -> IPAddress | None:
    return socket.ip if socket else None


def _some(addresses: Collection[IPAddress]) -> str:
    return " or ".join(sorted(map(str, addresses))) or "an address that the API does not name"


def not_as_sent(traces: Iterable[Trace], role: str, client: IPAddress, *, socket_lb: bool) -> tuple[Difference, ...]:
    """Packets at the client Pod between it and anything but the ClusterIP; with socket LB, which translates sooner, but the backend."""
    return not_from_to(traces, role, {client}) if socket_lb else not_to_the_clusterip(traces, role)


def not_to_the_clusterip(traces: Iterable[Trace], role: str) -> tuple[Difference, ...]:
    """Packets between the client and anything but the ClusterIP, at a place where nothing is translated yet."""

    def judge(trace: Trace) -> Callable[[Packet], tuple[str, str, str] | None]:
        def wrong(packet: Packet) -> tuple[str, str, str] | None:
            ends = sockets(packet.innermost)
            if ends is None or trace.probe.target in ends:
                return None
            return "translated before it left the Pod", f"to or from {trace.probe.target}", str(packet.innermost)

        return wrong

    return tuple(d for t in traces for d in _packets(t, role, judge(t)))


def anywhere(traces: Iterable[Trace], role: str) -> tuple[Difference, ...]:
    """Packets of the flows at a place where none of them may be seen."""

    def wrong(packet: Packet) -> tuple[str, str, str] | None:
        return "a packet where none belongs", "delivery on the node itself", str(packet.innermost)

    return tuple(d for t in traces for d in _packets(t, role, wrong))
