"""A comparison as one JSON document, for programs.

``{"schema": 1, "exit_status": 4, "headline": …, "before": …, "after": …, "before_during": {"since": …,
"until": …}, "after_during": …, "conclusions": […], "facts": […], "unseen": […], "unmet": […],
"notes": […]}``: the fields of model/comparison.py by their names. ``before`` is when the run was judged, ``before_during`` when the
cluster was asked (Unix time, seconds; null where that is not known), which for a recording is long before.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from servicepath.model.baseline import Span
from servicepath.model.comparison import Comparison, Difference

from . import comparison_text, files

SCHEMA = 1  # raised when a field is renamed, removed or changes its meaning


def as_json(found: Comparison) -> dict[str, Any]:
    """Return the comparison as JSON's own types."""
    return {
        "schema": SCHEMA,
        "exit_status": found.exit_status,
        "headline": comparison_text.headline(found),
        "before": found.before.started,
        "after": found.after.started,
        "before_during": _span(found.before.during),
        "after_during": _span(found.after.during),
        "conclusions": [_plain(each) for each in found.conclusions],
        "facts": [_plain(each) for each in found.facts],
        "unseen": list(found.unseen),
        "unmet": [str(rule) for rule in found.unmet],
        "notes": list(found.notes),
    }


def _span(during: Span | None) -> dict[str, float] | None:
    return dataclasses.asdict(during) if during else None


def _plain(each: Difference) -> dict[str, Any]:
    return {**dataclasses.asdict(each), "standing": each.standing.value}


def write(found: Comparison, path: Path) -> None:
    """Write it whole or not at all."""
    files.write_whole(path, json.dumps(as_json(found), indent=1) + "\n")
