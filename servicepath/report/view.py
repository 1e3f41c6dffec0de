"""The run arranged as the page shows it: conclusions with their verdicts, evidence embedded once, the matrix, the totals."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from servicepath.model.results import Exhibit, RunSummary, Verdict

WORST_FIRST = ("failed", "error", "passed", "skipped")
"""Which outcome speaks for several: one failure outweighs all else, one pass outweighs what was skipped."""

CLUSTER_COLUMN = "cluster"
_SHORT_ENOUGH_TO_REPEAT = 400  # characters; a reference takes about as much room as this


@dataclasses.dataclass(frozen=True, slots=True)
class Block:
    """A piece of evidence with the number under which it can be quoted (``E12``)."""

    number: int
    exhibit: Exhibit
    shown_at: str

    @property
    def anchor(self) -> str:
        """The id of its element in the page."""
        return f"E{self.number}"


@dataclasses.dataclass(frozen=True, slots=True)
class Use:
    """A block where a verdict shows it; ``embedded`` is False where the page only refers to an earlier place."""

    block: Block
    embedded: bool
    first: bool


@dataclasses.dataclass(frozen=True, slots=True)
class VerdictView:
    """A verdict with its place in the page."""

    verdict: Verdict
    anchor: str
    uses: tuple[Use, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class ConclusionView:
    """All verdicts of one conclusion, what does not hold first."""

    id: str
    section: str
    group: str
    sentence: str
    outcome: str
    counts: Mapping[str, int]
    verdicts: tuple[VerdictView, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class GroupView:
    """Conclusions under one heading."""

    title: str
    conclusions: tuple[ConclusionView, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class MatrixCell:
    """A conclusion on a node: the outcome that speaks for all its verdicts there, and how many say so."""

    outcome: str
    count: int
    of: int
    anchor: str


@dataclasses.dataclass(frozen=True, slots=True)
class Totals:
    """Verdicts and conclusions by outcome; a conclusion counts once, with its worst."""

    verdicts: Mapping[str, int]
    conclusions: Mapping[str, int]


def anchor(conclusion: str, case: str = "") -> str:
    """Return the id under which a conclusion, or its verdict on a case, is found in the page."""
    parts = (re.sub(r"[^A-Za-z0-9.]+", "-", part).strip("-") for part in (conclusion, case))
    return "--".join(part for part in parts if part) or "unnamed"


def worst(outcomes: Iterable[str]) -> str:
    """Return the outcome that speaks for all of them."""
    return min(outcomes, key=_rank)


def _rank(outcome: str) -> int:
    return WORST_FIRST.index(outcome) if outcome in WORST_FIRST else len(WORST_FIRST)


class _Catalogue:
    """Numbers evidence and remembers what the page already holds."""

    def __init__(self) -> None:
        self._blocks: dict[tuple[str, tuple[str, ...], str | None], Block] = {}

    def use(self, exhibit: Exhibit, shown_at: str) -> Use:
        key = (exhibit.command, exhibit.lines, exhibit.raw)
        known = self._blocks.get(key)
        if known is None:
            known = self._blocks[key] = Block(len(self._blocks) + 1, exhibit, shown_at)
            return Use(known, embedded=True, first=True)
        short = sum(map(len, exhibit.lines)) + len(exhibit.command) <= _SHORT_ENOUGH_TO_REPEAT
        return Use(dataclasses.replace(known, exhibit=exhibit), embedded=short, first=False)


def _by_conclusion(verdicts: Sequence[Verdict]) -> list[list[Verdict]]:
    found: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        found.setdefault(verdict.conclusion, []).append(verdict)
    return [sorted(mine, key=lambda verdict: _rank(verdict.outcome)) for mine in found.values()]


def conclusions(summary: RunSummary) -> tuple[ConclusionView, ...]:
    """Return every conclusion: those with a failure, then those with an error, then the others in the order of the run."""
    sorted_first = sorted(_by_conclusion(summary.verdicts), key=lambda mine: min(2, _rank(mine[0].outcome)))
    catalogue, taken = _Catalogue(), Counter[str]()
    return tuple(_conclusion(mine, catalogue, taken) for mine in sorted_first)


def _conclusion(mine: Sequence[Verdict], catalogue: _Catalogue, taken: Counter[str]) -> ConclusionView:
    views = []
    for verdict in mine:
        place = anchor(verdict.conclusion, verdict.case or "once")
        taken[place] += 1
        if taken[place] > 1:
            place = f"{place}-{taken[place]}"
        shown_at = f"{verdict.conclusion}, {verdict.case}" if verdict.case else verdict.conclusion
        uses = tuple(catalogue.use(exhibit, shown_at) for exhibit in verdict.exhibits)
        views.append(VerdictView(verdict, place, uses))
    first = mine[0]
    outcomes = Counter(verdict.outcome for verdict in mine)
    return ConclusionView(
        id=first.conclusion,
        section=first.section,
        group=first.group,
        sentence=first.sentence,
        outcome=worst(outcomes),
        counts=_in_order(outcomes),
        verdicts=tuple(views),
    )


def _in_order(counts: Mapping[str, int]) -> dict[str, int]:
    return {outcome: counts[outcome] for outcome in sorted(counts, key=_rank)}


def grouped(views: Iterable[ConclusionView]) -> tuple[GroupView, ...]:
    """Return the conclusions under the headings of the table, in the order in which the headings first come."""
    found: dict[str, list[ConclusionView]] = {}
    for view in views:
        found.setdefault(view.group, []).append(view)
    return tuple(GroupView(title, tuple(mine)) for title, mine in found.items())


def in_run_order(views: Iterable[ConclusionView], summary: RunSummary) -> tuple[ConclusionView, ...]:
    """Return the conclusions in the order in which the run's verdicts name them."""
    place = {conclusion: index for index, conclusion in enumerate(dict.fromkeys(v.conclusion for v in summary.verdicts))}
    return tuple(sorted(views, key=lambda view: place[view.id]))


def matrix_columns(summary: RunSummary) -> tuple[str, ...]:
    """Return the nodes that facts or verdicts name, and at the end a column for what was judged once for the cluster."""
    nodes = dict.fromkeys((*summary.nodes, *(v.node for v in summary.verdicts if v.node)))
    once = (CLUSTER_COLUMN,) if any(v.node is None for v in summary.verdicts) else ()
    return (*nodes, *once)


def matrix_row(view: ConclusionView, columns: Sequence[str]) -> tuple[MatrixCell | None, ...]:
    """Return the conclusion's cells, None where it was not judged."""
    mine: dict[str, list[VerdictView]] = {}
    for each in view.verdicts:
        mine.setdefault(each.verdict.node or CLUSTER_COLUMN, []).append(each)
    return tuple(_cell(mine.get(column, ())) for column in columns)


def _cell(mine: Sequence[VerdictView]) -> MatrixCell | None:
    if not mine:
        return None
    outcome = worst(view.verdict.outcome for view in mine)
    same = [view for view in mine if view.verdict.outcome == outcome]
    return MatrixCell(outcome, len(same), len(mine), same[0].anchor)


def totals(views: Sequence[ConclusionView]) -> Totals:
    """Return how many verdicts and conclusions came out how."""
    verdicts = Counter(v.verdict.outcome for view in views for v in view.verdicts)
    return Totals(_in_order(verdicts), _in_order(Counter(view.outcome for view in views)))
