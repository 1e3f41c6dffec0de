"""Many nights of one cluster: what held when, what was seen broken first, how often a verdict flips, how long answers took."""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence

from .baseline import Baseline

WORST_FIRST = ("failed", "error", "passed", "skipped")
HELD, UNSEEN, BROKEN = 0, 3, 4


@dataclasses.dataclass(frozen=True, slots=True)
class Night:
    """One night.

    Attributes:
        name: of its folder, which sorts by time ("2026-11-30T020000Z").
        started: as its report says it.
        status: 0 held, 3 could not be seen, 4 broken.
        versions: what was running: "Cilium" → "1.19.1", "Kubernetes" → "v1.34.4".
        changed: in one line, what was unlike the night before; empty when nothing was.
        counts: outcome → verdicts.
    """

    name: str
    started: str
    status: int
    versions: Mapping[str, str]
    changed: str
    counts: Mapping[str, int]


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What a conclusion came to in one night: the worst of its verdicts, how many say so, of how many, and where."""

    outcome: str
    count: int
    of: int
    cases: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Strip:
    """One conclusion over the nights, oldest first; None for a night in which nobody judged it."""

    conclusion: str
    sentence: str
    outcomes: tuple[Outcome | None, ...]

    @property
    def flake_ratio(self) -> float | None:
        """The share of the steps from one judged night to the next in which it went from held to not held or back; None under two."""
        judged = [each.outcome == "passed" for each in self.outcomes if each and each.outcome != "skipped"]
        steps = list(itertools.pairwise(judged))
        return sum(first != second for first, second in steps) / len(steps) if steps else None

    @property
    def broken_now(self) -> int | None:
        """Index of the night since which it is broken without a break; None when it is not."""
        since = None
        for index in range(len(self.outcomes) - 1, -1, -1):
            each = self.outcomes[index]
            if each is None:
                continue
            if each.outcome != "failed":
                break
            since = index
        return since

    @property
    def now(self) -> Outcome | None:
        """What it came to when it was last judged; None when nobody ever did."""
        return next((each for each in reversed(self.outcomes) if each), None)

    @property
    def broken_nights(self) -> tuple[int, ...]:
        """Indices of the nights in which it was broken."""
        return tuple(index for index, each in enumerate(self.outcomes) if each and each.outcome == "failed")

    @property
    def first_broken(self) -> int | None:
        """Index of the first of these nights in which it was broken; None when it never was."""
        return next((index for index, each in enumerate(self.outcomes) if each and each.outcome == "failed"), None)


@dataclasses.dataclass(frozen=True, slots=True)
class Pace:
    """How long the answers on one path took in one night, in seconds: median, and the middle half."""

    median: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True, slots=True)
class Trend:
    """One path over the nights; None where nothing was answered."""

    subject: str
    paces: tuple[Pace | None, ...]

    @property
    def change(self) -> float | None:
        """The last night's median as a part of the median of the nights before it; None under three nights."""
        seen = [pace.median for pace in self.paces if pace]
        usual = statistics.median(seen[:-1]) if len(seen) > 2 else 0.0
        return seen[-1] / usual if usual else None


@dataclasses.dataclass(frozen=True, slots=True)
class History:
    """What the page shows: nights oldest first, and a strip or trend with one place for each of them."""

    nights: tuple[Night, ...]
    strips: tuple[Strip, ...]
    trends: tuple[Trend, ...]


def status_of(run: Baseline | None) -> int:
    """What a run comes to: 4 a conclusion is broken, 3 something could not be seen (or there is no run), 0 the rest held."""
    if run is None:
        return UNSEEN
    outcomes = {judged.outcome for judged in run.judged}
    if "failed" in outcomes:
        return BROKEN
    return UNSEEN if "error" in outcomes or run.unfinished or not run.judged else HELD


def worst(outcomes: Iterable[tuple[str, str]]) -> Outcome:
    """What several verdicts of a conclusion come to; pairs of case and outcome, at least one."""
    found = list(outcomes)
    say = min((outcome for _, outcome in found), key=WORST_FIRST.index)
    cases = tuple(case for case, outcome in found if outcome == say)
    return Outcome(say, len(cases), len(found), cases)


def pace(seconds: Sequence[float]) -> Pace:
    """The median and the middle half; at least one value."""
    if len(seconds) == 1:
        return Pace(seconds[0], seconds[0], seconds[0])
    low, middle, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return Pace(middle, low, high)
