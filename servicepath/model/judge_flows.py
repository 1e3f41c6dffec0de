"""Judge probe flows by the flow tables: were they answered, and who translated them?"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Collection, Iterable, Mapping, Sequence

from .addresses import IPAddress, Socket
from .difference import Difference
from .flows import Flow, Trace
from .judge_conntrack import judge_entry


class Translator(enum.Enum):
    """Who translated a flow's ClusterIP."""

    IPTABLES = "kube-proxy (iptables)"
    EBPF = "Cilium (eBPF)"
    BOTH = "both kube-proxy (iptables) and Cilium (eBPF)"
    NOBODY = "nobody"


def translator(trace: Trace) -> Translator:
    """Tell by the tables alone: a conntrack entry whose reply comes from elsewhere than the ClusterIP is iptables' work.

    Cilium's work is an OUT entry to a backend (written by the per-packet load balancer of bpf_lxc, Cilium 1.16 to 1.20).
    """
    by_iptables = any(e.original[1] == trace.probe.target and e.reply[0] != trace.probe.target for e in trace.conntrack)
    by_ebpf = any(c.direction == "OUT" and trace.probe.target not in (c.source, c.destination) for c in trace.ct)
    if by_iptables and by_ebpf:
        return Translator.BOTH
    if by_iptables or by_ebpf:
        return Translator.IPTABLES if by_iptables else Translator.EBPF
    return Translator.NOBODY


def unanswered(flows: Iterable[Flow], expected: Mapping[str, frozenset[str]]) -> tuple[Difference, ...]:
    """Flows that were not answered, or not with the value that the API says.

    An answer from another address than asked, or with another id, is none: resolvers drop it (RFC 5452, 9.1).

    Args:
        flows: the flows.
        expected: question (lower case) → the values that the answer must carry; an empty set is "no data".
    """
    wrong = []
    for flow in flows:
        probe = flow.probe
        subject = f"{probe.id}: {probe.source.value} port {probe.sport} → {probe.target}/{probe.port.protocol}"
        if not flow.answered:
            what = "an answer to every query" if probe.queries else "the TCP connection accepted"
            wrong.append(Difference(subject, "not answered", what, flow.error or "no answer"))
            continue
        for query, answer in zip(probe.queries, flow.answers, strict=True):
            values = expected.get(query.question.lower())
            if answer is None or values is None:
                continue
            if (answer.source, answer.dns_id) != (probe.target, query.dns_id):
                wanted, got = _whose(probe.target, query.dns_id), _whose(answer.source, answer.dns_id)
                wrong.append(Difference(subject, "an answer that no resolver takes", wanted, got))
                continue
            if answer.rcode != "NOERROR" or frozenset(answer.values) != values:
                wanted = ", ".join(sorted(values)) or "no data"
                got = f"{answer.rcode} {', '.join(answer.values) or 'no data'}"
                wrong.append(Difference(subject, f"wrong answer to {query.question.lower()}", f"NOERROR {wanted}", got))
    return tuple(wrong)


def not_answered(traces: Iterable[Trace], expected: Mapping[str, frozenset[str]]) -> tuple[Difference, ...]:
    """The same for traced flows, with what the flow tables and the captures last saw of each as evidence."""
    wrong = []
    for trace in traces:
        late = late_answer(trace)
        for difference in unanswered((trace.flow,), expected):
            told = dataclasses.replace(difference, evidence=(*_tables(trace), *_last_seen(trace)))
            if late is not None:
                told = dataclasses.replace(told, problem="answered too late", actual=f"an answer after {late:.1f} s: {difference.actual}")
            wrong.append(told)
    return tuple(wrong)


def late_answer(trace: Trace) -> float | None:
    """After how many seconds a capture saw the answer to a query that the application no longer waited for; None where none was seen.

    The way to the server and back works then: the server, or a whole node, did not get to run for that long.
    """
    unheard = {q.dns_id for q, answer in zip(trace.probe.queries, trace.flow.answers, strict=True) if answer is None}
    for found in trace.packets.values():
        asked = {p.dns_id: p.time for p in reversed(found) if p.dns_response is False}
        for packet in found:
            took = packet.time - asked.get(packet.dns_id, packet.time)
            if packet.dns_response and packet.dns_id in unheard and took > trace.probe.timeout:
                return took
    return None


def _last_seen(trace: Trace) -> tuple[str, ...]:
    """The last packet of the flow, wherever it was: from there on it is lost."""
    packets = [packet for found in trace.packets.values() for packet in found]
    last = max(packets, key=lambda packet: packet.time, default=None)
    return (f"last packet: {last}" if last else "last packet: none was captured",)


def _whose(source: Socket, dns_id: int | None) -> str:
    return f"from {source}, " + ("no DNS message" if dns_id is None else f"id {dns_id:#06x}")


def not_by_conntrack(
    traces: Iterable[Trace], serving: frozenset[Socket], remote_sources: Collection[IPAddress], node: str, pods: Collection[IPAddress]
) -> tuple[Difference, ...]:  # fmt: skip
    """Host flows that the host's conntrack does not hold as translated to a serving backend, with a way back.

    Args:
        traces: host flows.
        serving: the port's serving endpoints.
        remote_sources: addresses that a remote backend can answer: the node's CiliumInternalIPs.
        node: the client's node; flows to a backend on it may keep the node's own address.
        pods: addresses of Pods with a network of their own; a backend in another node's network answers the node's address.
    """
    wrong: list[Difference] = []
    for trace in traces:
        subject = f"{trace.probe.id}: host port {trace.probe.sport} → {trace.probe.target}/{trace.probe.port.protocol}"
        entries = [e for e in trace.conntrack if e.original[1] == trace.probe.target]
        if not entries:
            wrong.append(Difference(subject, "not in the host's conntrack", "one entry", "none", _tables(trace)))
        far = trace.backend_node not in (None, node) and trace.backend is not None and trace.backend.ip in pods
        for entry in entries:
            wrong += judge_entry(entry, trace.probe.target.ip, trace.probe.port, serving, remote_sources, remote_pod=far)
    return tuple(wrong)


def not_by_ebpf(traces: Iterable[Trace], serving: Collection[Socket]) -> tuple[Difference, ...]:
    """Pod flows that Cilium did not translate, or that the host's conntrack translated (as well)."""
    wrong = []
    for trace in traces:
        subject = f"{trace.probe.id}: Pod port {trace.probe.sport} → {trace.probe.target}/{trace.probe.port.protocol}"
        by = translator(trace)
        if by is not Translator.EBPF:
            wrong.append(Difference(subject, "wrong translator", Translator.EBPF.value, by.value, _tables(trace)))
        elif trace.conntrack:
            held = f"{len(trace.conntrack)} entries"
            wrong.append(Difference(subject, "the host's conntrack holds the flow", "no entry", held, _tables(trace)))
        elif not any(c.direction == "SVC" for c in trace.ct):
            wrong.append(Difference(subject, "no SVC entry in Cilium's connection tracking", "one", "none", _tables(trace)))
        elif trace.backend not in serving:
            expected = ", ".join(map(str, sorted(serving, key=str)))
            wrong.append(Difference(subject, "translated to no serving endpoint", expected, str(trace.backend), _tables(trace)))
    return tuple(wrong)


def not_from_the_clusterip(traces: Iterable[Trace]) -> tuple[Difference, ...]:
    """Answers that the application saw come from elsewhere than the ClusterIP, or that did not reach it."""
    return tuple(
        Difference(
            f"{t.probe.id}: {t.probe.source.value} port {t.probe.sport}",
            "no answer reached the application" if answer is None else "the application saw another address answer",
            f"an answer from {t.probe.target}",
            (t.flow.error or "none") if answer is None else str(answer.source),
            _tables(t),
        )
        for t in traces
        for answer in t.flow.answers
        if answer is None or answer.source != t.probe.target
    )


def untold(traces: Iterable[Trace]) -> tuple[Trace, ...]:
    """Flows that were answered and that neither flow table holds: the tables do not tell who translated them."""
    return tuple(t for t in traces if t.flow.answered and not (t.conntrack or t.ct))


def _tables(trace: Trace) -> tuple[str, ...]:
    """What both flow tables said of the flow, for a message."""
    host = [f"conntrack: {e.raw}" for e in trace.conntrack] or ["conntrack: no entry"]
    cilium = [f"bpf ct: {c.raw}" for c in trace.ct] or ["bpf ct: no entry"]
    return (*host, *(cilium if trace.probe.source.value == "Pod" else ()))


def remote(traces: Sequence[Trace], node: str) -> tuple[Trace, ...]:
    """Flows whose backend is on another node."""
    return tuple(t for t in traces if t.backend_node is not None and t.backend_node != node)


def local(traces: Sequence[Trace], node: str) -> tuple[Trace, ...]:
    """Flows whose backend is on the client's own node."""
    return tuple(t for t in traces if t.backend_node == node)
