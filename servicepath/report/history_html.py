"""The nights as a page: a strip a conclusion, what was broken since when, how often verdicts flip, how long answers took.

One file that needs no server; the nights' own reports are linked where they are still kept.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from servicepath.model.history import WORST_FIRST, History, Outcome, Strip, Trend

from . import files
from .html import environment, own_text

_STATUS = {0: "passed", 3: "error", 4: "failed"}
WIDTH, HEIGHT = 240, 36  # of a latency's picture, CSS pixels


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One conclusion's strip with what a person asks of it; ``cells`` has a word for each night."""

    strip: Strip
    cells: tuple[tuple[Outcome | None, str], ...]
    since: str
    told: str
    flake: str


@dataclasses.dataclass(frozen=True, slots=True)
class Spark:
    """One path's latency: runs of points for the line, and areas for the middle half, in pixels; the words beside it."""

    trend: Trend
    lines: tuple[str, ...]
    bands: tuple[str, ...]
    dots: tuple[tuple[float, float], ...]
    last: str
    change: str


def render(told: History, kept: Collection[str] = ()) -> str:
    """Return the page.

    Args:
        told: the nights, oldest first.
        kept: names of the nights whose reports are still there, under nights/ beside the page.
    """
    rows = sorted((_row(strip, told) for strip in told.strips), key=_trouble)
    return environment().get_template("history.html.j2").render(
        told=told, kept=frozenset(kept), status=_STATUS, rows=rows,
        sparks=tuple(spark(trend) for trend in told.trends), width=WIDTH, height=HEIGHT,
        style=own_text("style.css"), more_style=own_text("history.css"), folding=own_text("folding.js"),
    )  # fmt: skip


def write(told: History, kept: Collection[str], path: Path) -> None:
    """Write the page whole or not at all."""
    files.write_whole(path, render(told, kept))


def _trouble(row: Row) -> tuple[int, float]:
    """What is broken now comes first, then what was, then what flips."""
    last = row.strip.outcomes[-1] if row.strip.outcomes else None
    worst = WORST_FIRST.index(last.outcome) if last else len(WORST_FIRST)
    ever = any(each and each.outcome in ("failed", "error") for each in row.strip.outcomes)
    return (worst if worst < 2 else 2 if ever else 3), -(row.strip.flake_ratio or 0.0)


def _row(strip: Strip, told: History) -> Row:
    nights = [night.started for night in told.nights]
    cells = tuple((each, _word(each, nights[index])) for index, each in enumerate(strip.outcomes))
    since, ratio = strip.broken_now, strip.flake_ratio
    return Row(
        strip, cells,
        since=f"broken since {nights[since]}" if since is not None else "",
        told=_broken(strip, nights),
        flake="–" if ratio is None else f"{ratio:.0%}",
    )  # fmt: skip


def _broken(strip: Strip, nights: Sequence[str]) -> str:
    """When it was broken: the first time where it still is, else how often, when last, and what it is now."""
    broken, now = strip.broken_nights, strip.now
    if not broken or now is None:
        return ""
    if strip.broken_now is not None:
        return f"first seen broken {nights[broken[0]]}"
    judged = sum(1 for each in strip.outcomes if each and each.outcome != "skipped")
    held = {"passed": "holds now", "error": "not seen now", "skipped": "skipped now"}[now.outcome]
    return f"{held}; broken {len(broken)} of {judged} nights, last {nights[broken[-1]]}"


def _word(each: Outcome | None, night: str) -> str:
    if each is None:
        return f"{night}: not judged"
    word = {"passed": "held", "failed": "broken", "error": "could not be seen"}.get(each.outcome, each.outcome)
    where = f": {'; '.join(each.cases[:5])}" if each.outcome in ("failed", "error") and any(each.cases) else ""
    return f"{night}: {word}, {each.count} of {each.of}{where}"


def spark(trend: Trend) -> Spark:
    """Lay the picture out: time from left to right, nothing at the bottom, the slowest quarter at the top."""
    seen = [(index, pace) for index, pace in enumerate(trend.paces) if pace]
    top = max((pace.high for _, pace in seen), default=0.0) or 1.0
    step = WIDTH / max(len(trend.paces) - 1, 1)

    def at(index: int, seconds: float) -> tuple[float, float]:
        return round(index * step, 1), round(HEIGHT - 2 - (HEIGHT - 4) * seconds / top, 1)

    runs: list[list[int]] = []
    for index, _ in seen:
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    paces = dict(seen)
    lines = tuple(_points(at(index, paces[index].median) for index in run) for run in runs if len(run) > 1)
    bands = tuple(
        _points([*(at(index, paces[index].high) for index in run), *(at(index, paces[index].low) for index in reversed(run))])
        for run in runs if len(run) > 1
    )  # fmt: skip
    dots = tuple(at(run[0], paces[run[0]].median) for run in runs if len(run) == 1)
    last = seen[-1][1] if seen else None
    change = trend.change
    return Spark(
        trend, lines, bands, dots,
        last=f"{last.median * 1000:.2f} ms ({last.low * 1000:.2f} to {last.high * 1000:.2f})" if last else "–",
        change="–" if change is None else f"× {change:.1f}",
    )  # fmt: skip


def _points(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x},{y}" for x, y in points)
