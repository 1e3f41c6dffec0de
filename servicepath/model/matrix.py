"""Build the path matrix (the notes' §9) from measured flows: one cell a source, node and frontend; nothing is inferred."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from .addresses import IPAddress
from .difference import Difference
from .flows import Source, Trace
from .judge_connect import not_at_connect
from .judge_flows import Translator, translator
from .mode import EXPECTED as OWN_SETUP
from .mode import REPLACING, Mode
from .packets import Packet
from .paths import Hop, PathCell
from .services import ServicePort

PLAIN = "plain on the underlay"
NOT_TESTED, UNEXPECTED, UNANSWERED, EXPECTED = "not tested", "not as expected", "unanswered", "as expected"
AT_CONNECT = "Cilium (socket LB)"


def expected_translator(source: Source, mode: Mode) -> str:
    """Who translates a flow from there in a set-up, in the matrix' words."""
    if mode.socket_lb and not (source is Source.POD and mode.hostns_only):
        return AT_CONNECT
    if source is Source.POD or mode.kpr in REPLACING:
        return Translator.EBPF.value
    return _by_proxy(mode)


def _by_proxy(mode: Mode) -> str:
    return f"kube-proxy ({mode.proxy_mode or 'iptables'})"


def _translator(trace: Trace, mode: Mode) -> str:
    """Who translated a flow. Of kube-proxy's modes conntrack tells nothing; at connect() is before there is a packet to be seen."""
    if mode.socket_lb and trace.backend and not not_at_connect((trace,), (trace.backend,)):
        return AT_CONNECT
    by = translator(trace)
    return _by_proxy(mode) if by is Translator.IPTABLES else by.value


def cell(
    node: str, port: ServicePort, source: Source, traces: Sequence[Trace], reason: str, pods: Collection[IPAddress] = (),
    mode: Mode = OWN_SETUP,
) -> PathCell:  # fmt: skip
    """The cell of one source on one node for one port.

    Args:
        node: the client's node.
        port: the frontend.
        source: host or Pod.
        traces: the port's flows from there; empty when none was sent.
        reason: why none was sent; shown only then.
        pods: addresses of Pods with a network of their own: what goes to another node's is expected in the tunnel.
        mode: the node's set-up, which decides who should translate.
    """
    wanted = expected_translator(source, mode)
    frontend = port.id
    answered = [t for t in traces if t.flow.answered]
    if not traces:
        return PathCell(source.value, node, frontend, None, None, NOT_TESTED, reason, expected=wanted)
    if not answered:
        said = f"none of {len(traces)} flows was answered"
        return PathCell(source.value, node, frontend, None, None, UNANSWERED, said, expected=wanted)
    sample = max(answered, key=lambda t: (t.backend_node not in (None, node), sum(map(len, t.packets.values()))))
    who = sorted({_translator(t, mode) for t in answered})
    how = sorted({transport(t) for t in answered} - {NOT_TESTED}) or [NOT_TESTED]
    bare = [t for t in answered if transport(t) == PLAIN and t.backend and t.backend.ip in pods]
    verdict = EXPECTED if who == [wanted] and not bare else UNEXPECTED
    lost = ""
    if len(answered) < len(traces):
        verdict, lost = UNANSWERED, f"{len(traces) - len(answered)} of {len(traces)} flows were not answered"
    return PathCell(source.value, node, frontend, " / ".join(who), " / ".join(how), verdict, lost, hops(sample, node), wanted)


def transport(trace: Trace) -> str:
    """What carried the flow, by where its packets were captured; one packet outside the tunnel is told, though others were inside."""
    under = trace.packets.get("underlay", ())
    if any(p.vni is None for p in under):
        return PLAIN
    if under:
        return "Cilium VXLAN"
    if trace.packets.get("backend-lxc"):
        return "local delivery"
    return NOT_TESTED


def hops(trace: Trace, node: str) -> tuple[Hop, ...]:
    """The question's way, place by place, each with the addresses that it was seen to carry there."""
    found = [_host_start(trace, node)] if trace.probe.source is Source.HOST else []
    for role, place in (("client-lxc", "the Pod's"), ("tunnel", "the tunnel device"), ("underlay", "the underlay")):
        packet = _question(trace, trace.packets.get(role, ()))
        if packet:
            outer = str(packet.outer) + f" VNI {packet.vni}" if packet.inner else None
            note = _ebpf_note(trace) if role == "client-lxc" else ""
            found.append(Hop(f"{place} {packet.interface} on {node}", str(packet.innermost), outer, note))
    arrived = _question(trace, trace.packets.get("backend-lxc", ()))
    if arrived:
        found.append(Hop(f"the backend's {arrived.interface} on {node}", str(arrived.innermost)))
    if trace.backend:
        found.append(Hop(f"backend on {trace.backend_node or 'an unknown node'}", str(trace.backend), None, "answers"))
    return tuple(found)


def _host_start(trace: Trace, node: str) -> Hop:
    """Where a host's flow starts, from conntrack: what the application said, and what netfilter made of it."""
    for entry in trace.conntrack:
        sent = f"{entry.original[0]} → {entry.original[1]}/{trace.probe.port.protocol}"
        if entry.original[1] != trace.probe.target:
            return Hop(f"a process on {node}", sent, None, f"{AT_CONNECT}: was to go to {trace.probe.target}")
        note = f"kube-proxy: DNAT to {entry.reply[0]}"
        if entry.reply[1] != entry.original[0]:
            note += f", source becomes {entry.reply[1]}"
        return Hop(f"a process on {node}", sent, None, note)
    return Hop(f"a process on {node}", f"port {trace.probe.sport} → {trace.probe.target}/{trace.probe.port.protocol}")


def _ebpf_note(trace: Trace) -> str:
    """What Cilium made of a Pod's flow, from its connection tracking."""
    for entry in trace.ct:
        if entry.direction == "OUT" and entry.destination != trace.probe.target:
            return f"Cilium (eBPF): {trace.probe.target} becomes {entry.destination}"
    return ""


def _question(trace: Trace, packets: Sequence[Packet]) -> Packet | None:
    """The first packet on the way to the Service or its backend."""
    toward = {trace.probe.target.ip} | ({trace.backend.ip} if trace.backend else set())
    return next((p for p in packets if p.innermost.destination in toward), None)


def _measured(cell: PathCell) -> str:
    """Who translated and what carried, as far as flows that were answered show it."""
    return f"{cell.translated_by or 'nobody seen'}, {cell.transported_by or 'nothing seen'}"


def unexpected(cells: Iterable[PathCell]) -> tuple[Difference, ...]:
    """The measured cells that are not as expected."""
    return tuple(
        Difference(
            f"{cell.source} on {cell.node} → {cell.frontend}",
            cell.verdict,
            cell.expected or "no translation and no answer",
            f"{_measured(cell)}; {cell.reason}" if cell.reason else _measured(cell),
            tuple(f"{hop.place}: {hop.header}" + (f" in {hop.outer}" if hop.outer else "") for hop in cell.hops),
        )
        for cell in cells
        if cell.verdict in (UNEXPECTED, UNANSWERED)
    )
