"""What a Service's users felt while it was asked again and again: queries lost, gaps, how long answers took, connections broken."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Sequence

from .baseline import Identity, Span

NEAR = 1.0  # seconds


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """One question: when it was sent (Unix time), how long its answer took in seconds (None: lost), and what was wrong."""

    at: float
    took: float | None
    error: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class Held:
    """One standing TCP connection: since when, until when, and how it ended.

    ``end`` is "reset" (a TCP reset came), "closed" (the other end closed it, as one that is restarted does), "time-out" (no answer
    any more), "refused" (it never stood), or None: it lasted as long as it was looked at.
    """

    since: float | None
    until: float | None
    end: str | None
    error: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class Series:
    """All questions of one kind from one place; ``subject`` as a path of the report ("host on master → kube-dns:dns/UDP")."""

    subject: str
    node: str
    asked: tuple[Asked, ...] = ()
    held: tuple[Held, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """Something that the API said meanwhile: when (Unix time), on which node, what ("agent stops", "agent runs")."""

    at: float
    node: str
    what: str


@dataclasses.dataclass(frozen=True, slots=True)
class Unwatched:
    """A time in which a place asked nothing, such as a reboot's: what was lost then is not known."""

    subject: str
    since: float
    until: float
    why: str


@dataclasses.dataclass(frozen=True, slots=True)
class Watch:
    """The whole of it; ``started`` and ``ended`` are Unix time."""

    started: float
    ended: float
    series: tuple[Series, ...]
    events: tuple[Event, ...]
    unwatched: tuple[Unwatched, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Gap:
    """Questions lost one after another: from when the last answered one was sent to when the next answered one was."""

    since: float
    until: float
    lost: int

    @property
    def seconds(self) -> float:
        """How long it was."""
        return self.until - self.since


@dataclasses.dataclass(frozen=True, slots=True)
class Second:
    """One piece of time: its start, how many were asked and lost, and the median, 99th percentile and longest time in seconds."""

    at: float
    asked: int
    lost: int
    p50: float | None
    p99: float | None
    longest: float | None


def gaps(asked: Sequence[Asked]) -> tuple[Gap, ...]:
    """The gaps, in order. Time in which nothing was asked is none: only lost questions make a gap.

    A gap begins and ends at the answered questions beside it; where there is none within ``NEAR`` seconds, since the asking program
    itself was not run, at its first or last lost question.
    """
    found = []
    groups = [(lost, list(group)) for lost, group in itertools.groupby(asked, key=lambda each: each.took is None)]
    for index, (lost, group) in enumerate(groups):
        if lost:
            first, last = group[0].at, group[-1].at
            since = groups[index - 1][1][-1].at if index else first
            until = groups[index + 1][1][0].at if index + 1 < len(groups) else last
            found.append(Gap(since if first - since <= NEAR else first, until if until - last <= NEAR else last, len(group)))
    return tuple(found)


def lost(asked: Iterable[Asked]) -> int:
    """How many questions had no answer, or a wrong one."""
    return sum(each.took is None for each in asked)


def percentile(values: Sequence[float], share: float) -> float | None:
    """The smallest of the values that at least ``share`` (0 to 1) of them do not exceed; None of none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def by_time(asked: Sequence[Asked], since: float, width: float) -> tuple[Second, ...]:
    """The questions in pieces of ``width`` seconds from ``since`` on; pieces in which nothing was asked are left out."""
    pieces: dict[int, list[Asked]] = {}
    for each in asked:
        pieces.setdefault(int((each.at - since) // width), []).append(each)
    found = []
    for number in sorted(pieces):
        took = [each.took for each in pieces[number] if each.took is not None]
        counts = len(pieces[number]), len(pieces[number]) - len(took)
        found.append(Second(since + number * width, *counts, percentile(took, 0.5), percentile(took, 0.99), max(took, default=None)))
    return tuple(found)


def broken(held: Iterable[Held]) -> tuple[Held, ...]:
    """The connections that stood and did not last."""
    return tuple(each for each in held if each.since is not None and each.end is not None)


@dataclasses.dataclass(frozen=True, slots=True)
class Felt:
    """What was felt at one place: counts, times in seconds, the gaps, the connections that broke, and the course of it all."""

    subject: str
    node: str
    asked: int
    lost: int
    p50: float | None
    p99: float | None
    longest: float | None
    gaps: tuple[Gap, ...]
    broken: tuple[Held, ...]
    course: tuple[Second, ...]

    @property
    def longest_gap(self) -> float:
        """Seconds of the longest gap; 0 where nothing was lost."""
        return max((gap.seconds for gap in self.gaps), default=0.0)


@dataclasses.dataclass(frozen=True, slots=True)
class Summary:
    """A watch, summed up: what is written to a file, drawn, and taken into a comparison.

    Attributes:
        started: when it began, in Unix time.
        ended: when it ended.
        felt: what was felt at each place.
        events: what the API said meanwhile.
        unwatched: when a place asked nothing.
        unseen: what the watch does not know.
        identity: which cluster it was; None in a file of before that was kept.
    """

    started: float
    ended: float
    felt: tuple[Felt, ...]
    events: tuple[Event, ...]
    unwatched: tuple[Unwatched, ...]
    unseen: tuple[str, ...]
    identity: Identity | None = None

    @property
    def during(self) -> Span:
        """When it was."""
        return Span(self.started, self.ended)


def sum_up(watch: Watch, unseen: Iterable[str], identity: Identity | None = None, width: float = 1.0) -> Summary:
    """Sum a watch of this cluster up, its course in pieces of ``width`` seconds."""
    felt = []
    for each in watch.series:
        took = [one.took for one in each.asked if one.took is not None]
        percentiles = percentile(took, 0.5), percentile(took, 0.99), max(took, default=None)
        course = by_time(each.asked, watch.started, width)
        found = gaps(each.asked), broken(each.held), course
        felt.append(Felt(each.subject, each.node, len(each.asked), lost(each.asked), *percentiles, *found))
    return Summary(watch.started, watch.ended, tuple(felt), watch.events, watch.unwatched, tuple(unseen), identity)


def fact_lines(felt: Felt) -> tuple[str, ...]:
    """What was felt at a place as a comparison states it; empty: nothing."""
    lines = [f"{felt.lost} of {felt.asked} lost, the longest gap {felt.longest_gap:.1f} s"] if felt.lost else []
    return (*lines, *(f"a standing connection was broken: {each.end}" for each in felt.broken))


def restarts(seen: Iterable[tuple[float, Iterable[tuple[str, str, float | None, bool]]]], started: float) -> tuple[Event, ...]:
    """When agents stopped and ran, by readings of the API.

    Args:
        seen: (when read, its agents' Pods: (node, container's own name of this life, since when it runs or None, is it to go)).
        started: agents that ran before then are no event.
    """
    events: dict[tuple[str, str, str], Event] = {}
    for when, pods in seen:
        for node, life, since, going in pods:
            if going:
                events.setdefault((node, life, "stops"), Event(when, node, "agent stops"))
            if since is not None and since >= started:
                events.setdefault((node, life, "runs"), Event(since, node, "agent runs"))
    return tuple(sorted(events.values(), key=lambda event: (event.at, event.node)))
