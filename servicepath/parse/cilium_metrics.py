"""Read ``cilium-dbg bpf metrics list -o json`` (Cilium 1.16 to 1.20).

    [{"reason": "Policy denied", "direction": "ingress", "packets": 3, "bytes": 222, "line": 1271, "file": "bpf_lxc.c"}]

Releases before 1.17 have ``values`` by direction instead of file and line; the sums are read the same.
"""

from __future__ import annotations

import json
from typing import Any

from ..model.drops import Metric
from .errors import ParseError

_TOOL = "cilium-dbg bpf metrics list"


def parse_metrics(text: str) -> tuple[Metric, ...]:
    """All rows.

    Raises:
        ParseError: no JSON, or a row without reason and packets.
    """
    try:
        rows = json.loads(text)
    except ValueError as error:
        raise ParseError(_TOOL, 0, text, "JSON") from error
    if not isinstance(rows, list):
        raise ParseError(_TOOL, 0, text, "a list of rows")
    return tuple(metric for row in rows for metric in _metrics(row))


def _metrics(row: Any) -> tuple[Metric, ...]:
    try:
        if "values" in row:
            pairs = row["values"].items()
            return tuple(Metric(str(row["description"]), str(way), "no place given", int(v["packets"])) for way, v in pairs)
        place = f"{row.get('file', 'no file given')}:{row.get('line', 0)}"
        return (Metric(str(row["reason"]), str(row.get("direction", "")), place, int(row["packets"])),)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ParseError(_TOOL, 0, str(row), "reason, direction and packets") from error
