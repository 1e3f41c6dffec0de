"""Read ``cilium-dbg bpf metrics list -o json`` (Cilium 1.16 to 1.20).

    [{"reason": "Policy denied", "direction": "ingress", "packets": 3, "bytes": 222, "line": 1271, "file": "bpf_lxc.c"}]

Releases before 1.17 have ``values`` by direction instead of file and line; the sums are read the same.
"""

from __future__ import annotations

from ..model.drops import Metric
from .fields import Fields, json_objects

_TOOL = "cilium-dbg bpf metrics list"


def parse_metrics(text: str) -> tuple[Metric, ...]:
    """All rows.

    Raises:
        ParseError: no JSON, or a row without reason and packets.
    """
    return tuple(metric for row in json_objects(_TOOL, text) for metric in _metrics(row))


def _metrics(row: Fields) -> tuple[Metric, ...]:
    if row.has("values"):
        ways = row.child("values")
        return tuple(Metric(row.text("description"), way, "no place given", _packets(ways.child(way))) for way in ways.value)
    place = f"{row.optional_text('file') or 'no file given'}:{row.number('line') or 0}"
    return (Metric(row.text("reason"), row.optional_text("direction") or "", place, _packets(row)),)


def _packets(counted: Fields) -> int:
    found = counted.number("packets")
    if found is None or found < 0:
        raise counted.error("packets", found, "a number of packets")
    return found
