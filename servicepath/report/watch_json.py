"""A watch as one JSON document: written for programs and for the comparison, which reads it by parse/watch_summary.py.

The fields of model/watched.Summary by their names, beside ``kind`` and ``schema``. Times are Unix time, spans are in seconds.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from servicepath.model.watched import Summary
from servicepath.parse.watch_summary import KIND, SCHEMA

from . import files


def as_text(found: Summary) -> str:
    """The document."""
    return json.dumps({"kind": KIND, "schema": SCHEMA, **dataclasses.asdict(found)}) + "\n"


def write(found: Summary, path: Path) -> None:
    """Write it whole or not at all."""
    files.write_whole(path, as_text(found))
