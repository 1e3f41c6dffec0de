"""A baseline as JSON → Baseline.

Sample:

    {"kind": "servicepath baseline", "schema": 1, "started": "2026-11-30 02:00:00 UTC", "options": [], "unfinished": null,
     "identity": {"kube_system": "9b1c…", "kubernetes_ips": ["10.43.0.1"], "service_cidrs": ["10.43.0.0/16"]},
     "facts": [{"subject": "master", "name": "Cilium", "value": ["1.19.1"], "unseen": null}],
     "judged": [{"conclusion": "no-interface", "sentence": "…", "group": "…", "case": "master", "outcome": "passed", "reason": ""}],
     "timings": [{"subject": "host on master → kube-dns:dns/UDP", "seconds": [0.0004]}]}
"""

from __future__ import annotations

import json

from ..model.baseline import Baseline, Fact, Identity, Judged, Timing
from .errors import ParseError
from .fields import Fields

KIND = "servicepath baseline"
SCHEMA = 1  # raised when a field is renamed, removed or changes its meaning

_TOOL = "baseline"
_OUTCOMES = ("passed", "failed", "error", "skipped")


def parse_baseline(text: str) -> Baseline:
    """Read what ``pytest --baseline-out`` wrote.

    Raises:
        ParseError: cut off, no baseline, of a newer schema, or a field has not its type; names line or field.
    """
    try:
        value = json.loads(text)
    except ValueError as wrong:
        line = getattr(wrong, "lineno", 0)
        raise ParseError(_TOOL, line, text[-60:], "complete JSON (was it cut off?)") from None
    except RecursionError:
        raise ParseError(_TOOL, 0, text[:60], "a baseline, not JSON nested without end") from None
    top = Fields(_TOOL, value)
    if top.value.get("kind") != KIND:
        raise top.error("kind", top.value.get("kind"), f"{KIND!r}: a file that pytest --baseline-out wrote")
    schema = top.number("schema")
    if schema is None or schema < 1:
        raise top.error("schema", schema, f"a whole number from 1 to {SCHEMA}")
    if schema > SCHEMA:
        raise top.error("schema", schema, f"at most {SCHEMA}: it was written by a newer version of the suite; update this one")
    return Baseline(
        started=top.text("started"),
        identity=_identity(top.child("identity")) if top.has("identity") else None,
        options=top.texts("options"),
        facts=tuple(_fact(each) for each in top.children("facts")),
        judged=tuple(_judged(each) for each in top.children("judged")),
        timings=tuple(_timing(each) for each in top.children("timings")),
        unfinished=top.optional_text("unfinished"),
    )


def _identity(item: Fields) -> Identity:
    return Identity(item.optional_text("kube_system"), item.texts("kubernetes_ips"), item.texts("service_cidrs"))


def _fact(item: Fields) -> Fact:
    return Fact(item.optional_text("subject") or "", item.text("name"), item.texts("value"), item.optional_text("unseen"))


def _judged(item: Fields) -> Judged:
    outcome = item.text("outcome")
    if outcome not in _OUTCOMES:
        raise item.error("outcome", outcome, f"one of {', '.join(_OUTCOMES)}")
    words = {name: item.optional_text(name) or "" for name in ("sentence", "group", "case", "reason")}
    return Judged(conclusion=item.text("conclusion"), outcome=outcome, **words)


def _timing(item: Fields) -> Timing:
    seconds = item.items("seconds")
    if any(isinstance(each, bool) or not isinstance(each, int | float) or each < 0 for each in seconds):
        raise item.error("seconds", seconds, "a list of seconds")
    return Timing(item.text("subject"), tuple(float(each) for each in seconds))
