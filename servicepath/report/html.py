"""The run as a page: one piece of HTML with its own style and script, which pytest-html puts into its self-contained report.

Everything that is not this project's own text is escaped by Jinja2 (autoescape, also in SVG and attributes) after `visible` has
spelled out what a reader could not see.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from markupsafe import Markup, escape

from servicepath.model.paths import PathCell
from servicepath.model.results import RunSummary

from . import facts_table, picture, view
from .visible import visible

_HERE = Path(__file__).parent
_GLYPHS = {"passed": "✓", "failed": "✗", "error": "!", "skipped": "–"}
_WORDS = {"error": "could not be seen"}
_PATH_OUTCOMES = {"as expected": "passed", "not as expected": "failed", "unanswered": "failed", "not tested": "skipped"}
_COUNTER = re.compile(r"\[\d+:\d+\]")


@dataclasses.dataclass(frozen=True, slots=True)
class PathView:
    """A cell of the path matrix with the picture of its hops, where there are any."""

    cell: PathCell
    anchor: str | None
    picture: picture.Picture | None


@dataclasses.dataclass(frozen=True, slots=True)
class PathRow:
    """A source on a node; a slot a frontend, each with what was measured there."""

    source: str
    node: str
    slots: tuple[tuple[PathView, ...], ...]


def render(summary: RunSummary, *, raw_base: str = "raw/") -> str:
    """Return the report as HTML for the body of a page.

    ``raw_base`` is where reports/raw/ lies as seen from the page: a relative URL that ends in a slash.
    """
    conclusions = view.conclusions(summary)
    columns = view.matrix_columns(summary)
    ordered = view.in_run_order(conclusions, summary)
    frontends = tuple(dict.fromkeys(cell.frontend for cell in summary.paths))
    paths = tuple(map(_path_view, range(1, len(summary.paths) + 1), summary.paths))
    first, more = _pictures(paths)
    template = environment().get_template("report.html.j2")
    return template.render(
        summary=summary,
        style=own_text("style.css"),
        behaviour=own_text("behaviour.js"),
        folding=own_text("folding.js"),
        raw_base=raw_base,
        fact_rows=facts_table.rows(summary.nodes),
        frontends=frontends,
        path_rows=_path_rows(paths, frontends),
        pictures=first,
        more_pictures=more,
        rail_x=picture.RAIL_X,
        totals=view.totals(conclusions),
        columns=columns,
        matrix=view.grouped(ordered),
        rows={each.id: view.matrix_row(each, columns) for each in conclusions},
        troubled=tuple(each for each in conclusions if each.outcome in ("failed", "error")),
        calm=view.grouped(each for each in conclusions if each.outcome not in ("failed", "error")),
        phase_nodes=tuple(dict.fromkeys(node for nodes in summary.phases.values() for node in nodes)),
    )


def environment() -> jinja2.Environment:
    """The templates, with everything escaped but this project's own text."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(
        anchor=view.anchor,
        evidence=_evidence,
        glyph=lambda outcome: _GLYPHS.get(outcome, "–"),
        outcome_class=lambda outcome: outcome if outcome in _GLYPHS else "other",
        outcome_word=lambda outcome: _WORDS.get(outcome, outcome),
        path=quote,
        path_outcome=lambda verdict: _PATH_OUTCOMES.get(verdict, "other"),
        seconds=_seconds,
    )
    return found


def _shown(value: Any) -> Any:
    """What Jinja2 prints: Markup of our own as it is, all else with hidden characters spelled out (then escaped)."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def own_text(name: str) -> Markup:
    """A style or script of this folder, put into a page as it is."""
    return Markup((_HERE / name).read_text(encoding="utf-8"))  # noqa: S704 - the project's own file


def _evidence(lines: str | Iterable[str]) -> Markup:
    """Lines of evidence, each in an element of its own so that a wrapped one is told from two; counters stand out."""
    listed = lines.rstrip("\n").split("\n") if isinstance(lines, str) else lines
    # Not by Markup's own format and join: they escape each part anew, and take half of the time of a report.
    return Markup("\n".join(f"<span>{_counters(visible(line))}</span>" for line in listed))  # noqa: S704 - escaped in _counters


def _counters(line: str) -> str:
    """The line as HTML."""
    return _COUNTER.sub(r"<b>\g<0></b>", str(escape(line)))


def _seconds(took: float) -> str:
    if took < 1:
        return f"{took * 1000:.0f} ms"
    return f"{took:.1f} s" if took < 60 else f"{int(took // 60)} min {took % 60:.0f} s"


def _path_view(number: int, cell: PathCell) -> PathView:
    if not cell.hops:
        return PathView(cell, None, None)
    return PathView(cell, f"path-{number}", picture.draw(cell))


def _path_rows(paths: Iterable[PathView], frontends: tuple[str, ...]) -> tuple[PathRow, ...]:
    found: dict[tuple[str, str], dict[str, list[PathView]]] = {}
    for path in paths:
        found.setdefault((path.cell.source, path.cell.node), {}).setdefault(path.cell.frontend, []).append(path)
    return tuple(
        PathRow(source, node, tuple(tuple(slots.get(frontend, ())) for frontend in frontends))
        for (source, node), slots in sorted(found.items(), key=lambda item: _source_order(item[0][0]))
    )


def _source_order(source: str) -> int:
    known = ("host", "Pod", "LAN host")
    return known.index(source) if source in known else len(known)


def _pictures(paths: Iterable[PathView]) -> tuple[tuple[PathView, ...], tuple[PathView, ...]]:
    """The pictures to look at first (a source's with the most hops, since it tells most, and those not as expected); and all others."""
    drawn = sorted((path for path in paths if path.picture), key=lambda path: _source_order(path.cell.source))
    best: dict[str, PathView] = {}
    for path in drawn:
        known = best.get(path.cell.source)
        if known is None or len(path.cell.hops) > len(known.cell.hops):
            best[path.cell.source] = path
    chosen = [path in best.values() or _PATH_OUTCOMES.get(path.cell.verdict) == "failed" for path in drawn]
    first = tuple(path for path, wanted in zip(drawn, chosen, strict=True) if wanted)
    return first, tuple(path for path, wanted in zip(drawn, chosen, strict=True) if not wanted)
