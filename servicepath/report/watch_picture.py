"""The picture of a watch: time from left to right, a row a place, what was lost in red, how long answers took as a line.

Only geometry and text are worked out here, in SVG user units of a row's band; the template watch_picture.html.j2 draws it, so that
escaping is the template engine's, and stretches the bands to the page, so that it is read on a phone as well. Agents that stop and run
are marked in all rows, as the API told them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from servicepath.model.watched import Felt, Second, Summary

WIDTH, BAND = 1000, 30
_MOST_TICKS = 6
_FLOOR = 0.0001  # seconds: the foot of a row; its height is logarithmic, up to the time-out
_CEILING = 2.0


@dataclasses.dataclass(frozen=True, slots=True)
class Mark:
    """A vertical line in every row, with its words."""

    x: float
    kind: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Bar:
    """A piece of time in a row: "lost" or "unwatched", with what is said when it is pointed at."""

    x: float
    width: float
    kind: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One place: its heading, what is said beside it, the line of the slowest answers, its bars."""

    subject: str
    said: str
    bad: bool
    line: str
    bars: tuple[Bar, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class WatchPicture:
    """What watch_picture.html.j2 draws; ``band`` is a row's height, ``ticks`` are (per cent of the width, text)."""

    width: int
    band: int
    rows: tuple[Row, ...]
    marks: tuple[Mark, ...]
    ticks: tuple[tuple[float, str], ...]


def draw(found: Summary) -> WatchPicture:
    """Work the picture out."""
    span = max(found.ended - found.started, 1.0)

    def x_of(at: float) -> float:
        return WIDTH * min(max((at - found.started) / span, 0.0), 1.0)

    rows = []
    for felt in found.felt:
        bars = [_bar(x_of(gap.since), x_of(gap.until), "lost", f"{gap.lost} lost within {gap.seconds:.2f} s") for gap in felt.gaps]
        bars += [
            _bar(x_of(each.until), x_of(each.until), "broken", f"a standing connection was broken: {each.end}")
            for each in felt.broken
            if each.until is not None
        ]
        bars += [
            _bar(x_of(each.since), x_of(each.until), "unwatched", f"not watched: {each.why}")
            for each in found.unwatched
            if felt.subject.startswith(f"{each.subject} ")
        ]
        line = _line([(x_of(each.at), BAND - _height(each)) for each in felt.course if each.longest is not None])
        rows.append(Row(felt.subject, said(felt), bool(felt.lost or felt.broken), line, tuple(bars)))
    marks = tuple(Mark(x_of(event.at), event.what.split()[-1], f"{event.node}: {event.what}") for event in found.events)
    ticks = tuple((100 * at / span, f"{at:.0f} s") for at in _ticks(span))
    return WatchPicture(WIDTH, BAND, tuple(rows), marks, ticks)


def said(felt: Felt) -> str:
    """``3 of 12000 lost, longest gap 0.2 s; median 0.4 ms, 99 % 2 ms, longest 41 ms``."""
    if not felt.asked:
        broken = ", ".join(str(each.end) for each in felt.broken)
        return f"{len(felt.broken)} broken: {broken}" if felt.broken else "standing connections lasted"
    lost = f"{felt.lost} of {felt.asked} lost" + (f", longest gap {felt.longest_gap:.1f} s" if felt.lost else "")
    times = [f"{name} {value * 1000:.1f} ms" for name, value in (("median", felt.p50), ("99 %", felt.p99)) if value is not None]
    return f"{lost}; {', '.join(times)}" if times else lost


def _bar(since: float, until: float, kind: str, text: str) -> Bar:
    return Bar(round(since, 1), round(max(until - since, 2.0), 1), kind, text)


def _height(each: Second) -> float:
    assert each.longest is not None
    share = (math.log10(max(each.longest, _FLOOR)) - math.log10(_FLOOR)) / (math.log10(_CEILING) - math.log10(_FLOOR))
    return min(share, 1.0) * (BAND - 4)


def _line(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _ticks(span: float) -> list[float]:
    step = next(step for step in (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 36000, 360000, 1e9) if span / step <= _MOST_TICKS)
    return [number * step for number in range(int(span // step) + 1)]
