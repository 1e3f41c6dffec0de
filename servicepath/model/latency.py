"""How long answers took in two runs, by their middle halves."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence

from .baseline import Timing
from .upgrade_rules import Change


def changes(before: Iterable[Timing], after: Iterable[Timing]) -> Iterator[Change]:
    """What became of each kind of probe that both runs have answers to, as the rules see it."""
    first = {each.subject: each for each in before if each.seconds}
    for new in after:
        old = first.get(new.subject)
        if old is None or not new.seconds:
            continue
        moved = _moved(old.seconds, new.seconds)
        name = {0: "latency", 1: "latency, slower", -1: "latency, faster"}[moved]
        yield Change("fact", name, new.subject, "changed" if moved else "same", (_spread(old),), (_spread(new),))


def _quartiles(seconds: Sequence[float]) -> tuple[float, float, float]:
    if len(seconds) == 1:
        return seconds[0], seconds[0], seconds[0]
    low, middle, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return low, middle, high


def _moved(before: Sequence[float], after: Sequence[float]) -> int:
    """1: slower, -1: faster, 0: within the spread. Moved are medians that differ by half and whose middle halves lie apart."""
    (low, was, high), (low2, now, high2) = _quartiles(before), _quartiles(after)
    if low2 > high and now > was * 1.5:
        return 1
    return -1 if high2 < low and now * 1.5 < was else 0


def _spread(timing: Timing) -> str:
    """``0.41 ms (half of them 0.35 to 0.62 ms, 15 answers)``."""
    low, middle, high = (f"{value * 1000:.2f}" for value in _quartiles(timing.seconds))
    return f"{middle} ms (half of them {low} to {high} ms, {len(timing.seconds)} answers)"
