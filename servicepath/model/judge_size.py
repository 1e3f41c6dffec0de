"""Judge whether a packet as large as the route's MTU crosses the tunnel whole, and one byte more does not."""

from __future__ import annotations

import dataclasses

from .difference import Difference
from .flows import Trace
from .packets import Packet


@dataclasses.dataclass(frozen=True, slots=True)
class SizedFlows:
    """A Pod's two large packets to the same remote backend, with DF set and the path MTU ignored (IP_PMTUDISC_PROBE).

    Attributes:
        mtu: the MTU of the node's remote Pod routes, bytes.
        underlay_mtu: the MTU of the device that carries the tunnel, bytes.
        full: the flow whose IP packet is exactly as large as the route's MTU.
        larger: the flow whose packet is one byte larger.
    """

    mtu: int
    underlay_mtu: int
    full: Trace
    larger: Trace


def judge_size(flows: SizedFlows) -> tuple[Difference, ...]:
    """The full-size packet crosses in one outer packet that the underlay can carry, and is answered; the larger one does not.

    The kernel breaks an outer packet that is too large into fragments, since Cilium's tunnel leaves its DF bit unset (seen with
    Cilium 1.19.1 on Linux 6.18); the larger packet may also be refused at once, or vanish.
    """
    wrong = []
    full, larger = _carrying(flows.full, flows.mtu), _carrying(flows.larger, flows.mtu + 1)
    where = f"{flows.full.probe.id} to {flows.full.probe.target}"
    expected = f"one outer packet of at most {flows.underlay_mtu} bytes"
    for packet in full:
        if packet.outer.more_fragments or packet.outer.length > flows.underlay_mtu:
            problem, actual = "does not cross whole", "the first of several outer fragments" if packet.outer.more_fragments else "too large"
            wrong.append(Difference(where, problem, expected, f"{actual}: {packet.outer.length} bytes", (str(packet),)))
    if not full:
        wrong.append(Difference(where, "never reached the underlay", expected, flows.full.flow.error or "no such packet"))
    elif not flows.full.flow.answered:
        came, evidence = flows.full.flow.error or "none", tuple(map(str, full))
        wrong.append(Difference(where, "left and was not answered", "an answer, as to small packets", came, evidence))
    for packet in larger:
        if not packet.outer.more_fragments:
            expected = f"no packet of more than the route's MTU, {flows.mtu} bytes, in one piece"
            actual = f"{flows.mtu + 1} bytes inside one outer packet of {packet.outer.length}"
            wrong.append(Difference(flows.larger.probe.id, "crosses whole: the route's MTU is too small", expected, actual, (str(packet),)))
    return tuple(wrong)


def describe(flows: SizedFlows) -> tuple[str, ...]:
    """What was sent and what the underlay carried of it, for the report."""
    lines = [f"route MTU {flows.mtu} bytes, underlay MTU {flows.underlay_mtu} bytes"]
    for trace, size in ((flows.full, flows.mtu), (flows.larger, flows.mtu + 1)):
        came = "answered" if trace.flow.answered else trace.flow.error or "not answered"
        lines.append(f"{size} bytes from Pod port {trace.probe.sport} to {trace.probe.target}: {came}")
        for packet in _carrying(trace, size):
            lines.append(f"  {packet}{' | first fragment of the outer packet' if packet.outer.more_fragments else ''}")
    return tuple(lines)


def _carrying(trace: Trace, size: int) -> tuple[Packet, ...]:
    """The underlay's packets that carry the question itself: encapsulated, of that inner length."""
    return tuple(p for p in trace.packets.get("underlay", ()) if p.inner is not None and p.inner.length == size)
