"""A baseline as JSON → Baseline.

Sample:

    {"kind": "servicepath baseline", "schema": 1, "started": "2026-11-30 02:00:00 UTC", "options": [], "unfinished": null,
     "during": {"since": 1796004000.0, "until": 1796004090.5},
     "identity": {"kube_system": "9b1c…", "kubernetes_ips": ["10.43.0.1"], "service_cidrs": ["10.43.0.0/16"]},
     "facts": [{"subject": "master", "name": "Cilium", "value": ["1.19.1"], "unseen": null}],
     "judged": [{"conclusion": "no-interface", "sentence": "…", "group": "…", "case": "master", "outcome": "passed", "reason": ""}],
     "timings": [{"subject": "host on master → kube-dns:dns/UDP", "seconds": [0.0004]}]}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ..model.baseline import Baseline, Fact, Identity, Judged, Span, Timing
from . import kept
from .fields import Fields

_Keyed = TypeVar("_Keyed", Fact, Judged, Timing)

KIND = "servicepath baseline"
SCHEMA = 1  # raised when a field is renamed, removed or changes its meaning

_TOOL = "baseline"
_OUTCOMES = ("passed", "failed", "error", "skipped")
_LONGEST = 86400.0  # seconds that an answer can have taken


def parse_baseline(text: str) -> Baseline:
    """Read what ``pytest --baseline-out`` wrote.

    Raises:
        ParseError: cut off, no baseline, of a newer schema, a key is absent, a field has not its type, or something is told twice;
            names line or field.
    """
    top = kept.document(_TOOL, text, KIND, SCHEMA, "pytest --baseline-out")
    lists = dict.fromkeys(("facts", "judged", "timings"), "a list of objects, be it empty")
    kept.required(top, started="a text", identity="an object or null", options="a list of texts", unfinished="a text or null", **lists)
    for name in lists:
        if top.value[name] is None:
            raise top.error(name, None, lists[name])
    return Baseline(
        started=top.text("started"),
        identity=identity(top.child("identity")) if top.has("identity") else None,
        options=top.texts("options"),
        facts=_each_once(top, "facts", tuple(_fact(each) for each in top.children("facts"))),
        judged=_each_once(top, "judged", tuple(_judged(each) for each in top.children("judged"))),
        timings=_each_once(top, "timings", tuple(_timing(each) for each in top.children("timings"))),
        unfinished=top.optional_text("unfinished"),
        during=_span(top.child("during")) if top.has("during") else None,
    )


def identity(item: Fields) -> Identity:
    """Which cluster it was, as baselines and watches keep it."""
    kept.required(item, kube_system="a text or null", kubernetes_ips="a list of texts", service_cidrs="a list of texts")
    return Identity(item.optional_text("kube_system"), item.texts("kubernetes_ips"), item.texts("service_cidrs"))


def _span(item: Fields) -> Span:
    since, until = kept.moment(item, "since"), kept.moment(item, "until")
    if until < since:
        raise item.error("until", until, f"a time that is not before since ({since})")
    return Span(since, until)


def _each_once(top: Fields, name: str, found: tuple[_Keyed, ...]) -> tuple[_Keyed, ...]:
    seen: dict[object, int] = {}
    for number, each in enumerate(found):
        if (first := seen.setdefault(each.key, number)) != number:
            raise top.error(f"{name}[{number}]", each.key, f"something else than {name}[{first}] is about")
    return found


def _fact(item: Fields) -> Fact:
    kept.required(item, subject="a text", name="a text", value="a list of texts", unseen="a text or null")
    return Fact(item.optional_text("subject") or "", item.text("name"), item.texts("value"), item.optional_text("unseen"))


def _judged(item: Fields) -> Judged:
    kept.required(item, **dict.fromkeys(("conclusion", "sentence", "group", "case", "outcome", "reason"), "a text"))
    outcome = item.text("outcome")
    if outcome not in _OUTCOMES:
        raise item.error("outcome", outcome, f"one of {', '.join(_OUTCOMES)}")
    words = {name: item.optional_text(name) or "" for name in ("sentence", "group", "case", "reason")}
    return Judged(conclusion=item.text("conclusion"), outcome=outcome, **words)


def _timing(item: Fields) -> Timing:
    kept.required(item, subject="a text", seconds="a list of seconds")
    return Timing(item.text("subject"), tuple(_seconds(item, item.items("seconds"))))


def _seconds(item: Fields, found: Sequence[object]) -> Sequence[float]:
    seconds = []
    for number, each in enumerate(found):
        if isinstance(each, bool) or not isinstance(each, int | float) or not 0 <= each <= _LONGEST:
            raise item.error(f"seconds[{number}]", each, f"seconds, from 0 to {_LONGEST:.0f}")
        seconds.append(float(each))
    return seconds
