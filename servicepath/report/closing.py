"""The few lines at the end of a run in a terminal: what does not hold, and what could not be seen."""

from __future__ import annotations

from collections.abc import Iterator

from servicepath.model.results import RunSummary, Verdict

from . import view
from .visible import visible

_LINES_EACH = 4
_MARKS = {"failed": "✗", "error": "!"}


def lines(summary: RunSummary) -> Iterator[str]:
    """Yield one line of totals, then for each failed verdict and each error its place and the beginning of its message.

    Nothing at all is yielded when every conclusion held: pytest's own last line says that.
    """
    troubled = [each for each in view.conclusions(summary) if each.outcome in _MARKS]
    if not troubled:
        return
    of = len({verdict.conclusion for verdict in summary.verdicts})
    failed = sum(each.outcome == "failed" for each in troubled)
    unseen = len(troubled) - failed
    yield f"{of} conclusions: {failed} not so, {unseen} could not be seen"
    for conclusion in troubled:
        for item in conclusion.verdicts:
            if item.verdict.outcome in _MARKS:
                yield from _lines_of(item.verdict)


def _lines_of(verdict: Verdict) -> Iterator[str]:
    place = f"{verdict.conclusion} on {verdict.case}" if verdict.case else verdict.conclusion
    yield visible(f"{_MARKS[verdict.outcome]} {place}")
    said = verdict.message.split("\n")
    for line in said[:_LINES_EACH]:
        yield visible(f"    {line}")
    if len(said) > _LINES_EACH:
        yield f"    … {len(said) - _LINES_EACH} more lines in the report"
    for cause in verdict.cause[:1]:
        yield visible(f"    likely cause: {cause}")
