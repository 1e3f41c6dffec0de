"""What ``python -m servicepath.watch`` wrote → Summary.

Sample:

    {"kind": "servicepath watch", "schema": 1, "started": 1764480001.0, "ended": 1764480601.0, "unseen": [],
     "felt": [{"subject": "host on master → kube-dns:dns/UDP", "node": "master", "asked": 12000, "lost": 3, "p50": 0.0004, "p99": 0.002,
     "longest": 0.4, "gaps": [{"since": …, "until": …, "lost": 3}], "broken": [], "course": [{"at": …, "asked": 20, "lost": 0, …}]}],
     "events": [{"at": …, "node": "master", "what": "agent stops"}], "unwatched": []}

Times are Unix time, spans are in seconds.
"""

from __future__ import annotations

import json
from typing import Any

import pydantic

from ..model.watched import Summary
from .errors import ParseError

KIND = "servicepath watch"
SCHEMA = 1  # raised when a field is renamed, removed or changes its meaning

_TOOL = "watch"
_SUMMARY: pydantic.TypeAdapter[Summary] = pydantic.TypeAdapter(Summary)


def parse_watch_summary(text: str) -> Summary:
    """Read a watch.

    Raises:
        ParseError: cut off, no watch, of a newer schema, or a field has not its type.
    """
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise ParseError(_TOOL, getattr(wrong, "lineno", 0), text[-60:], "complete JSON (was it cut off?)") from None
    if not isinstance(value, dict) or value.get("kind") != KIND:
        raise ParseError(_TOOL, 0, text[:60], f"kind {KIND!r}: a file that servicepath.watch wrote")
    schema = value.get("schema")
    if schema != SCHEMA:
        raise ParseError(_TOOL, 0, f"schema {schema}", f"schema {SCHEMA}; a newer one was written by a newer version of the suite")
    try:
        return _SUMMARY.validate_python(value)
    except pydantic.ValidationError as wrong:
        first = wrong.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ParseError(_TOOL, 0, f"{place}: {first.get('input')}"[:200], first["msg"]) from None
