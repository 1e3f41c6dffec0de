"""The whole run as one JSON document, for programs and for comparing two runs.

``{"schema": 1, "started": …, "took": …, "cluster": {…}, "nodes": {…}, "paths": […], "verdicts": […], …}``: the fields of
model/results.py by their names; a phase's value is ``{"round_trips": n, "seconds": s}``.
"""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from servicepath.model.results import RunSummary

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
        "verdicts": [dataclasses.asdict(verdict) for verdict in summary.verdicts],
        "phases": {
            phase: {node: {"round_trips": trips, "seconds": round(took, 3)} for node, (trips, took) in nodes.items()}
            for phase, nodes in summary.phases.items()
        },
    }


def write(summary: RunSummary, path: Path) -> None:
    """Write the summary to ``path`` whole or not at all: into a temporary file beside it, then renamed.

    ASCII only, so that bytes which were no UTF-8 (lone surrogates) survive as escapes.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            json.dump(as_json(summary), file, indent=1)
            file.write("\n")
        os.chmod(temporary, 0o644)  # mkstemp's 0600 would hide the report from other readers
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
