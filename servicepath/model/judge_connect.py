"""Judge flows that socket LB should have translated: before the first packet, at connect() or sendmsg()."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from .addresses import Socket
from .difference import Difference
from .flows import Trace
from .judge_wire import carrying, lines


def not_at_connect(traces: Iterable[Trace], serving: Collection[Socket]) -> tuple[Difference, ...]:
    """Flows of which a table or a packet knows the ClusterIP, or that went to no serving backend.

    Args:
        traces: flows that were captured; the host's conntrack and, for a Pod, Cilium's connection tracking were read after them.
        serving: the port's serving endpoints.
    """
    wrong: list[Difference] = []
    for trace in traces:
        probe = trace.probe
        subject = f"{probe.id}: {probe.source.value} port {probe.sport} → {probe.target}/{probe.port.protocol}"
        entries = [e.raw for e in trace.conntrack if probe.target in (*e.original, *e.reply)]
        entries += [c.raw for c in trace.ct if probe.target in (c.source, c.destination)]
        if entries:
            known = f"{len(entries)} entries"
            wrong.append(Difference(subject, "a flow table knows the ClusterIP", "the backend alone", known, tuple(entries)))
        if trace.backend not in serving:
            expected = ", ".join(map(str, sorted(serving, key=str)))
            evidence = lines(trace, *trace.packets)
            wrong.append(Difference(subject, "went to no serving endpoint", expected, str(trace.backend or "no backend seen"), evidence))
        for role in trace.packets:
            wrong += carrying([trace], role, probe.target.ip)
    return tuple(wrong)
