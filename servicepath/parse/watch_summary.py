"""What ``python -m servicepath.watch`` wrote → Summary.

Sample:

    {"kind": "servicepath watch", "schema": 1, "started": 1764480001.0, "ended": 1764480601.0, "unseen": [],
     "identity": {"kube_system": "9b1c…", "kubernetes_ips": ["10.43.0.1"], "service_cidrs": ["10.43.0.0/16"]},
     "felt": [{"subject": "host on master → kube-dns:dns/UDP", "node": "master", "asked": 12000, "lost": 3, "p50": 0.0004, "p99": 0.002,
     "longest": 0.4, "gaps": [{"since": …, "until": …, "lost": 3}], "broken": [], "course": [{"at": …, "asked": 20, "lost": 0, …}]}],
     "events": [{"at": …, "node": "master", "what": "agent stops"}], "unwatched": []}

Times are Unix time, spans are in seconds.
"""

from __future__ import annotations

import pydantic

from ..model.watched import Felt, Summary
from . import kept
from .errors import ParseError

KIND = "servicepath watch"
SCHEMA = 1  # raised when a field is renamed, removed or changes its meaning

_TOOL = "watch"
_LONGEST = 2 * 86400.0  # seconds; servicepath.watch takes no more than a day
_SUMMARY: pydantic.TypeAdapter[Summary] = pydantic.TypeAdapter(Summary)


def parse_watch_summary(text: str) -> Summary:
    """Read a watch.

    Raises:
        ParseError: cut off, no watch, of a newer schema, a field has not its type, or numbers that contradict each other.
    """
    top = kept.document(_TOOL, text, KIND, SCHEMA, "servicepath.watch")
    started, ended = kept.moment(top, "started"), kept.moment(top, "ended")
    if not 0 <= ended - started <= _LONGEST:
        raise top.error("ended", ended, f"a time that is not before started ({started}), nor two days after it")
    try:
        found = _SUMMARY.validate_json(text, strict=True)
    except pydantic.ValidationError as wrong:
        first = wrong.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ParseError(_TOOL, 0, f"{place}: {first.get('input')}", first["msg"]) from None
    subjects = [felt.subject for felt in found.felt]
    for number, felt in enumerate(found.felt):
        if (wrong_with := _contradiction(felt)) or felt.subject in subjects[:number]:
            raise ParseError(_TOOL, 0, f"felt[{number}]: {felt.subject}", wrong_with or "each subject once")
    for number, event in enumerate(found.events):
        if not event.what.strip():
            raise ParseError(_TOOL, 0, f"events[{number}]: what: {event.what!r}", "what happened")
    return found


def _contradiction(felt: Felt) -> str | None:
    """What the numbers of a place should have been; None when they can be."""
    if not 0 <= felt.lost <= felt.asked or felt.lost != sum(gap.lost for gap in felt.gaps):
        return f"at most the {felt.asked} asked to be lost, and as many as in the gaps; found {felt.lost}"
    if any(gap.until < gap.since or gap.lost < 1 for gap in felt.gaps):
        return "gaps that end after they begin, with a loss in each"
    if any(took is not None and took < 0 for took in (felt.p50, felt.p99, felt.longest, *(piece.longest for piece in felt.course))):
        return "answers that took no less than no time"
    return "connections that broke somehow" if any(each.end is None for each in felt.broken) else None
