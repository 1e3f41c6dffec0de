"""A comparison arranged as the page shows it: what is the same on several nodes or paths is said once."""

from __future__ import annotations

import calendar
import dataclasses
import re
import time
from collections.abc import Iterable, Sequence

from servicepath.model.absence import node_of
from servicepath.model.baseline import Baseline
from servicepath.model.comparison import Difference

_PLACES = 6
_PORT = re.compile(r"(?<=the backend):\d+|/(TCP|UDP|SCTP)\b")  # as model/meaning_paths.py writes them


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """One line of a fact; ``kind`` is "gone" (only before), "come" (only after) or "" (both)."""

    text: str
    kind: str


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """Differences that say the same of several subjects."""

    differences: tuple[Difference, ...]

    @property
    def first(self) -> Difference:
        """The difference that speaks for all."""
        return self.differences[0]

    @property
    def subjects(self) -> tuple[str, ...]:
        """What it is said of; empty when it is said of the cluster."""
        return tuple(each.subject for each in self.differences if each.subject)

    @property
    def where(self) -> str:
        """The subjects in few words: the only one, or ``9 paths (Pod on master → …; …; and 3 more)``."""
        if len(self.subjects) < 2:
            return "".join(self.subjects)
        more = f"; and {len(self.subjects) - _PLACES} more" if len(self.subjects) > _PLACES else ""
        return f"{self.count} ({'; '.join(self.subjects[:_PLACES])}{more})"

    @property
    def count(self) -> str:
        """How many subjects there are, of which kind: ``9 ports``."""
        (kind, *others) = sorted({_kind(subject) for subject in self.subjects}) or ["place"]
        return f"{len(self.subjects)} {'place' if others else kind}{'s' if len(self.subjects) != 1 else ''}"

    @property
    def alike(self) -> bool:
        """Whether the same is said of all of them, line by line."""
        return len({(each.before, each.after) for each in self.differences}) == 1

    @property
    def before(self) -> tuple[Line, ...]:
        """The earlier run's lines; of a verdict, what it came to and why."""
        if self.first.sentence:
            return _said(self.first.change.partition("→")[0], self.first.before)
        return _marked(self.first.before, self.first.after, "gone")

    @property
    def after(self) -> tuple[Line, ...]:
        """The later run's lines; of a verdict, what it came to and why."""
        if self.first.sentence:
            return _said(self.first.change.rpartition("→")[2], self.first.after)
        return _marked(self.first.after, self.first.before, "come")


def _kind(subject: str) -> str:
    """What a subject is (model/baseline.py): a path, a port on a node, a Service or a node."""
    return "path" if " → " in subject else "port" if ":" in subject else "Service" if "/" in subject else "node"


def when(run: Baseline) -> str:
    """``2026-11-30 02:00:00 to 2026-11-30 02:01:30 UTC``, and of a recording also when it was judged: ``, judged again …``."""
    if run.during is None:
        return run.started
    return f"{run.during}, judged again {run.started}" if _judged_after(run.started, run.during.until) else str(run.during)


def _judged_after(started: str, until: float) -> bool:
    """Whether a run began only when all had been asked, so that it is one of a recording; so it is where the zone is not known."""
    try:
        at = time.strptime(started, "%Y-%m-%d %H:%M:%S %Z")
    except ValueError:
        return True
    return (calendar.timegm(at) if started.endswith((" UTC", " GMT")) else time.mktime(at)) > until


def _said(word: str, reasons: Sequence[str]) -> tuple[Line, ...]:
    return (Line(word, "word"), *(Line(line.strip(), "") for reason in reasons for line in reason.split("\n")))


def _marked(lines: Sequence[str], others: Sequence[str], kind: str) -> tuple[Line, ...]:
    return tuple(Line(line, "" if line in others else kind) for line in lines)


def grouped(differences: Iterable[Difference], *, loosely: bool = False) -> tuple[Group, ...]:
    """Put together what differs in nothing but its subject, in the order in which it first comes.

    Verdicts of one conclusion are told apart by the first line of their reasons, which names node and port, only where they broke.

    Args:
        differences: in any order.
        loosely: whether lines that differ in their node's name, in ports and protocols say the same.
    """
    found: dict[tuple[object, ...], list[Difference]] = {}
    for each in differences:
        told = [_placeless(lines, each.subject) if loosely else lines for lines in (each.before, each.after) if not each.sentence]
        found.setdefault((each.name, each.change, each.standing, each.because, bool(each.sentence), *told), []).append(each)
    return tuple(Group(tuple(mine)) for mine in found.values())


def _placeless(lines: Sequence[str], subject: str) -> tuple[str, ...]:
    """Lines without the name of the node that they are told of, ports and protocols."""
    named = re.compile(rf"(?<![a-z0-9]){re.escape(node)}(?![a-z0-9])" if (node := node_of(subject)) else "(?!)")
    return tuple(_PORT.sub("", named.sub("", line)) for line in lines)
