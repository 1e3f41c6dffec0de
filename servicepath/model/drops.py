"""What Cilium's datapath says that it did not pass on, by reason: the likely cause beside a red, never a verdict."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

# Reasons of `cilium-dbg bpf metrics list` that are no loss (Cilium 1.16 to 1.20, pkg/monitor/api/drop.go: codes below 130 that
# count packets passed on).
PASSED_ON = frozenset(
    {
        "Success", "Interface", "Interface Decrypted", "Interface Decrypting", "Interface Encrypting",
        "LB: sock cgroup: Reverse entry delete succeeded",
    }
)  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class Metric:
    """One row of Cilium's datapath metrics. ``place`` is the datapath's source file and line; counts are since the agent's start."""

    reason: str
    direction: str
    place: str
    packets: int


def since(before: Iterable[Metric], after: Iterable[Metric]) -> tuple[str, ...]:
    """What was dropped between two readings, most packets first, as sentences; empty when nothing was."""
    known = {(m.reason, m.direction, m.place): m.packets for m in before}
    grown = [(m.packets - known.get((m.reason, m.direction, m.place), 0), m) for m in after if m.reason not in PASSED_ON]
    lost = sorted(((n, m) for n, m in grown if n > 0), key=lambda pair: -pair[0])
    return tuple(f"Cilium dropped {n} packets meanwhile: {m.reason} ({m.direction}, {m.place})" for n, m in lost)
