"""What traffic showed, by its meaning: who translated and what transported each path, and which addresses it carried where.

Which backend a flow gets is chance. So what depends on the backend's place is told apart by it ("to another node", "on its own
node"), and a place that no flow of a run reached is no fact of that run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .addresses import IPAddress
from .baseline import Fact, Timing
from .flows import Source, Trace
from .judge_flows import translator
from .matrix import NOT_TESTED, transport
from .meaning import Names
from .packets import Header, Packet
from .paths import PathCell
from .services import ServicePort

_ROLES = {
    "client-lxc": "at the Pod's device",
    "tunnel": "at the tunnel device",
    "underlay": "on the underlay",
    "backend-lxc": "at the backend's device",
}


def subject_of(source: Source, node: str, port: ServicePort) -> str:
    """``Pod on master → kube-dns:dns/UDP``."""
    return f"{source.value} on {node} → {port.id}"


def of_path(node: str, port: ServicePort, source: Source, traces: Iterable[Trace], names: Names) -> Iterator[Fact]:
    """The facts of one source, node and port; none where nothing was sent.

    Args:
        node: the client's node.
        port: the Service's port.
        source: host or Pod.
        traces: the port's flows from there.
        names: of addresses.
    """
    traces = tuple(trace for trace in traces if not trace.flow.unsent)
    subject = subject_of(source, node, port)
    if not traces:
        return
    answered = tuple(trace for trace in traces if trace.flow.answered)
    yield Fact(subject, "answered", ("all" if len(answered) == len(traces) else "none" if not answered else "some",))
    if not answered:
        return
    yield Fact(subject, "translated by", tuple(sorted({translator(trace).value for trace in answered})))
    for where, mine in _by_place(node, answered).items():
        carried = {transport(trace) for trace in mine} - {NOT_TESTED}
        if carried:
            yield Fact(subject, f"transported by, {where}", tuple(sorted(carried)))
        for role, said in _ROLES.items():
            seen = {_addresses(p, trace, names) for trace in mine for p in trace.packets.get(role, ())}
            if seen:
                yield Fact(subject, f"addresses {said}, {where}", tuple(sorted(seen)))


def _by_place(node: str, traces: Iterable[Trace]) -> dict[str, list[Trace]]:
    found: dict[str, list[Trace]] = {}
    for trace in traces:
        if trace.backend_node is not None:
            found.setdefault("on its own node" if trace.backend_node == node else "to another node", []).append(trace)
    return found


def _addresses(packet: Packet, trace: Trace, names: Names) -> str:
    """The packet's addresses under their holders' names, without the client's port and the outer source port (a hash)."""
    inner = _header(packet.innermost, trace, names)
    if packet.inner is None:
        return inner
    outer = packet.outer
    ends = f"{_end(outer.source, trace, names)} → {_end(outer.destination, trace, names)}"
    return f"{inner}, inside {ends}:{outer.dport}/{outer.protocol}"


def _header(header: Header, trace: Trace, names: Names) -> str:
    served = {trace.probe.target.port} | ({trace.backend.port} if trace.backend else set())
    client_first = header.dport in served and header.sport not in served
    source = _end(header.source, trace, names) + ("" if client_first or header.sport not in served else f":{header.sport}")
    destination = _end(header.destination, trace, names) + (f":{header.dport}" if client_first else "")
    return f"{source} → {destination}/{header.protocol}"


def _end(address: IPAddress, trace: Trace, names: Names) -> str:
    """The holder's name; the backend and its node under those words, since chance chooses them."""
    if trace.backend and address == trace.backend.ip:
        return "the backend"
    name = names.of(address)
    if trace.backend_node is not None and name.endswith(f" of {trace.backend_node}"):
        return name.removesuffix(trace.backend_node) + "the backend's node"
    return name


def timing(node: str, port: ServicePort, source: Source, traces: Iterable[Trace]) -> Timing | None:
    """How long the answers took, in seconds; None where none came."""
    took = tuple(round(a.took, 6) for trace in traces for a in trace.flow.answers if a is not None)
    return Timing(subject_of(source, node, port), took) if took else None


def of_cells(cells: Iterable[PathCell]) -> Iterator[Fact]:
    """What the LAN host got, by the matrix's cells."""
    for cell in cells:
        if cell.source == "LAN host" and cell.translated_by is not None:
            yield Fact(f"LAN host → {cell.frontend}", "translated by", (cell.translated_by,))
