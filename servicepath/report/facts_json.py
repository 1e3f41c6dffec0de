"""The whole run as one JSON document, for programs and for comparing two runs.

``{"schema": 1, "started": …, "took": …, "cluster": {…}, "nodes": {…}, "paths": […], "verdicts": […], …}``: the fields of
model/results.py by their names; a phase's value is ``{"round_trips": n, "seconds": s}``.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from servicepath.model.results import Exhibit, RunSummary, Verdict

from . import files

SCHEMA = 1  # raised when a field is renamed, removed or changes its meaning


def as_json(summary: RunSummary) -> dict[str, Any]:
    """Return the summary as JSON's own types."""
    plain = {
        field.name: getattr(summary, field.name)
        for field in dataclasses.fields(summary)
        if field.name not in ("paths", "verdicts", "phases")
    }
    return {
        "schema": SCHEMA,
        **plain,
        "paths": [dataclasses.asdict(path) for path in summary.paths],
        "verdicts": [_verdict(verdict) for verdict in summary.verdicts],
        "phases": {
            phase: {node: {"round_trips": trips, "seconds": round(took, 3)} for node, (trips, took) in nodes.items()}
            for phase, nodes in summary.phases.items()
        },
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    """Not by asdict(), which copies each line of evidence: a large cluster's run has hundreds of thousands."""
    return _fields(verdict) | {"exhibits": [_fields(exhibit) for exhibit in verdict.exhibits]}


def _fields(of: Verdict | Exhibit) -> dict[str, Any]:
    return {field.name: getattr(of, field.name) for field in dataclasses.fields(of)}


def write(summary: RunSummary, path: Path) -> None:
    """Write the summary to ``path`` whole or not at all.

    ASCII only, so that bytes which were no UTF-8 (lone surrogates) survive as escapes. A line for each verdict and each cell of the path
    matrix: indented throughout it takes Python ten times as long, seconds of a large cluster's run.
    """
    parts = (f"{json.dumps(key)}: {_in_lines(value)}" for key, value in as_json(summary).items())
    files.write_whole(path, "{\n" + ",\n".join(parts) + "\n}\n")


def _in_lines(value: Any) -> str:
    """JSON of a value; the items of a list on lines of their own."""
    return "[\n" + ",\n".join(map(json.dumps, value)) + "\n]" if isinstance(value, list) else json.dumps(value)
