"""The run beside the declared table: every verdict that is not as it was without the fault must be declared, and the other way round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lab.faults.catalogue import ALL, Fault, Turned
from lab.faults.suite import Judged

RED = ("failed", "error")
Healthy = Mapping[tuple[str, str], Judged]
"""The verdicts of a run without any fault, by conclusion and case."""


def turned(run: Sequence[Judged], healthy: Healthy) -> list[Judged]:
    """Return the verdicts of a run that are red, and those skipped that passed when all was well."""
    passed = {key for key, judged in healthy.items() if judged.outcome == "passed"}
    return [j for j in run if j.outcome in RED or (j.outcome == "skipped" and (j.conclusion, j.case) in passed)]


def wrong(fault: Fault, run: Sequence[Judged], healthy: Healthy) -> list[str]:
    """Return what is not as declared, a line each; nothing where the table holds exactly.

    Unasked: a verdict turned that no entry of the table covers, by outcome, conclusion and node. Another reason: an entry covers
    it, but its message has none of the entry's fragments. Unseen: an entry has no such verdict, or not at one of its nodes. Not
    judged: a case of the healthy run is missing.
    """
    found = []
    changed = turned(run, healthy)
    for judged in changed:
        entries = [entry for entry in fault.turns if _covers(entry, judged)]
        if not entries:
            found.append(f"unasked: {_named(judged)}: {_head(judged.message)}")
        elif not any(fragment in judged.message for entry in entries for fragment in entry.says):
            wanted = " or ".join(repr(f) for entry in entries for f in entry.says)
            found.append(f"another reason: {_named(judged)}: expected {wanted} in: {_head(judged.message)}")
    for entry in (entry for entry in fault.turns if not entry.chance):
        found += _unseen(entry, [judged for judged in changed if _covers(entry, judged)], healthy)
    return [*found, *_not_judged(fault, run, healthy)]


def _covers(entry: Turned, judged: Judged) -> bool:
    if judged.outcome != entry.outcome:
        return False
    if entry.conclusions == (ALL,):
        return entry.at is None or judged.node in entry.at
    return judged.conclusion in entry.conclusions and (entry.at is None or judged.node is None or judged.node in entry.at)


def _unseen(entry: Turned, seen: Sequence[Judged], healthy: Healthy) -> Iterable[str]:
    for conclusion in _conclusions(entry, healthy):
        mine = [judged for judged in seen if judged.conclusion == conclusion]
        places = {judged.node for judged in mine}
        if not mine:
            yield f"unseen: {conclusion} should have turned {entry.outcome}"
        elif entry.at and None not in places and not set(entry.at) <= places:
            yield f"unseen: {conclusion} should have turned {entry.outcome} on {', '.join(sorted(set(entry.at) - places))}, too"
    for fragment in entry.says:
        if seen and not any(fragment in judged.message for judged in seen):
            yield f"unseen: no message that has turned {entry.outcome} says {fragment!r}"


def _conclusions(entry: Turned, healthy: Healthy) -> Sequence[str]:
    """The entry's conclusions; all are those that hold at its nodes when all is well."""
    if entry.conclusions != (ALL,):
        return entry.conclusions
    here = [j for j in healthy.values() if j.outcome == "passed" and (entry.at is None or j.node in entry.at)]
    return sorted({judged.conclusion for judged in here})


def _not_judged(fault: Fault, run: Sequence[Judged], healthy: Healthy) -> Iterable[str]:
    """What the healthy run judged and this one did not; a conclusion whose cases could not be told, as the API is not seen, was judged."""
    cases = {(judged.conclusion, judged.case) for judged in run}
    whole = {j.conclusion for j in run if j.outcome == "error"} if any(e.conclusions == (ALL,) for e in fault.turns) else set()
    for conclusion, case in healthy:
        if (conclusion, case) not in cases and conclusion not in whole:
            yield f"not judged: {conclusion} on {case or 'the cluster'}"


def _named(judged: Judged) -> str:
    return f"{judged.conclusion} {judged.outcome} on {judged.case or 'the cluster'}"


def _head(message: str) -> str:
    return message.split("\n", 1)[0][:300]
