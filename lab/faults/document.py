"""docs/faults.md: what was broken on purpose, and what turned red, by the results of ``python -m lab fault check``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from lab.faults.catalogue import ALL, Fault
from lab.faults.check import Result
from lab.faults.suite import Judged
from lab.paths import PROJECT

DOCUMENT = PROJECT / "docs" / "faults.md"
HEAD = """# What was broken on purpose, and what turned red

Written by `make faults`: each fault is made in the lab, the suite is run, everything that turned red or is skipped because of it is
compared with what the fault declares (`lab/faults/catalogue/`), the fault is taken back, and all is seen green again. A conclusion that
turns red unasked is as wrong as one that stays green, and so is one that is red for another reason. To make one of them yourself, in
the lab that `sudo make lab-up` starts: `sudo .venv/bin/python -m lab fault apply NAME`, then `sudo .venv/bin/python -m pytest`, then
`sudo .venv/bin/python -m lab fault revert NAME`.

[reading-a-red-line.md](reading-a-red-line.md) goes from a message to its cause and its cure.
"""
ORDER = ("failed", "error", "skipped")
MOST_LINES = 6  # of a message
CUT = "…"
TITLES = {
    "1-host": "On a host",
    "2-rules": "kube-proxy's rules",
    "3-endpoints": "Endpoints",
    "4-cilium": "Cilium",
    "5-way": "The way to another node",
    "6-undisturbed": "What must not disturb",
    "7-unseen": "What cannot be seen: ERROR, and never FAILED",
    "8-other-setups": "Another set-up than the expected one, and faults in other set-ups",
}


def write(faults: Iterable[Fault], results: Mapping[str, Result], path: Path = DOCUMENT) -> None:
    """Write the table of these faults' results."""
    path.write_text(text(list(faults), results), encoding="utf-8")


def text(faults: Sequence[Fault], results: Mapping[str, Result]) -> str:
    """Return the document; each fault needs a result."""
    parts = [HEAD, _bitten(faults)]
    for group, title in TITLES.items():
        mine = [fault for fault in faults if fault.group == group]
        if mine:
            rows = "\n".join(_row(fault, results[fault.name]) for fault in mine)
            parts.append(f"\n## {title}\n\n| fault | what it does | what turned red | the message |\n| --- | --- | --- | --- |\n{rows}\n")
    return "".join(parts)


def _bitten(faults: Sequence[Fault]) -> str:
    breaking = sum(bool(fault.conclusions) for fault in faults)
    bitten = {conclusion for fault in faults for conclusion in fault.conclusions}
    return f"\n{len(faults)} faults, of which {breaking} break something; {len(bitten)} conclusions are bitten.\n"


def _row(fault: Fault, result: Result) -> str:
    return f"| {fault.name} | {_cell(fault.does)} | {_red(result.red)} | {_message(fault, result.red)} |"


def _red(red: Sequence[Judged]) -> str:
    found: dict[str, dict[str, None]] = {}
    for judged in red:
        found.setdefault(judged.outcome, {})[judged.conclusion] = None
    return "<br>".join(f"{outcome.upper()}: {', '.join(found[outcome])}" for outcome in ORDER if outcome in found) or "nothing"


def _message(fault: Fault, red: Sequence[Judged]) -> str:
    """The telling message with what it was judged on, and how to see it by hand; the rest repeats it for other nodes and ports."""
    telling = next((judged for outcome in ORDER for judged in _declared(fault, red, outcome)), None)
    if telling is None:
        return ""
    where = (f"judged on: {telling.case}",) if telling.outcome == "failed" and telling.case else ()
    by_hand = tuple(f"by hand: {command}" for command in telling.see) if telling.outcome == "failed" else ()
    text = "\n".join((_shortened(telling.message), *where, *by_hand))
    return f"{telling.conclusion}: {_cell(text)}"


def _declared(fault: Fault, red: Sequence[Judged], outcome: str) -> Iterator[Judged]:
    """The verdicts of this outcome: those first that the fault declares first, by conclusion and by what the message says."""
    mine = [judged for judged in red if judged.outcome == outcome]
    for entry in (entry for entry in fault.turns if entry.outcome == outcome):
        wanted = dict.fromkeys(judged.conclusion for judged in mine) if entry.conclusions == (ALL,) else entry.conclusions
        for conclusion in wanted:
            for fragment in entry.says:
                yield from (judged for judged in mine if judged.conclusion == conclusion and fragment in judged.message)
    yield from mine


def _shortened(message: str) -> str:
    """Its first lines, and where some are left out a mark that says so; of an error the remedy, too, which stands last."""
    lines = [line for line in message.strip().split("\n") if "@@@@" not in line]
    remedy = [line for line in lines[MOST_LINES:] if line.startswith("  remedy: ")]
    cut = [f"{CUT} {len(lines) - MOST_LINES - len(remedy)} more lines"] if len(lines) > MOST_LINES + len(remedy) else []
    return "\n".join((*lines[:MOST_LINES], *cut, *remedy))


def _cell(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")
    return "<br>".join(line.strip() for line in escaped.split("\n"))
