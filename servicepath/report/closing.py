"""The few lines at the end of a run in a terminal: what does not hold, and what could not be seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from servicepath.model.results import RunSummary, Verdict

from . import view
from .visible import visible

_PLACES = 3
_MARKS = {"failed": "✗", "error": "!"}


def lines(summary: RunSummary) -> Iterator[str]:
    """Yield one line of totals, then the first line of each different message with the places that it was said of.

    One node out of reach troubles a hundred tests with one message: it is said once. The whole messages stand above, in pytest's own
    sections. Nothing at all is yielded when every conclusion held: pytest's own last line says that.
    """
    troubled = [each for each in view.conclusions(summary) if each.outcome in _MARKS]
    if not troubled:
        return
    of = len({verdict.conclusion for verdict in summary.verdicts})
    failed = sum(each.outcome == "failed" for each in troubled)
    unseen = len(troubled) - failed
    yield f"{of} conclusion{'' if of == 1 else 's'}: {failed} not so, {unseen} could not be seen"
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for conclusion in troubled:
        for item in conclusion.verdicts:
            if item.verdict.outcome in _MARKS:
                groups.setdefault((item.verdict.outcome, item.verdict.message), []).append(item.verdict)
    for (outcome, message), verdicts in groups.items():
        yield from _lines_of(outcome, message, verdicts)


def _lines_of(outcome: str, message: str, verdicts: Sequence[Verdict]) -> Iterator[str]:
    places = [f"{v.conclusion} on {v.case}" if v.case else v.conclusion for v in verdicts]
    more = f"; and {len(places) - _PLACES} more" if len(places) > _PLACES else ""
    yield visible(f"{_MARKS[outcome]} {'; '.join(places[:_PLACES])}{more}")
    yield visible(f"    {message.split(chr(10), 1)[0]}")
    for cause in verdicts[0].cause[:1]:
        yield visible(f"    likely cause: {cause}")
