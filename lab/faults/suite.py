"""A run of the conclusions on the lab, as a person would start it, and what became of each."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from lab.errors import LabError
from lab.paths import INVENTORY, PROJECT, cache

TIMEOUT = 900.0  # seconds for one run; some 15 are usual
# How a run that is not wanted any more is ended, with seconds for each: the first one lets it take back what it made on the nodes.
ENDING = ((signal.SIGINT, 60.0), (signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0))


@dataclasses.dataclass(frozen=True, slots=True)
class Judged:
    """What became of one test.

    Attributes:
        conclusion: the conclusion's id.
        case: what it was judged on.
        node: the node, or None for a conclusion that is drawn once.
        outcome: "passed", "failed", "error" or "skipped".
        message: why, for all but passed.
        see: commands by which a person sees what was judged.
    """

    conclusion: str
    case: str
    node: str | None
    outcome: str
    message: str
    see: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """One run that goes on by itself, and where it puts its reports; as a context manager it does not outlive the inside."""

    folder: Path
    process: subprocess.Popen[str]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end(self)


def start(
    name: str, *, disruptive: bool, only: Sequence[str] = (), environment: Mapping[str, str] | None = None, record: Path | None = None
) -> Run:  # fmt: skip
    """Start a run.

    Args:
        name: of the folder in the lab's cache that its reports go to.
        disruptive: whether with ``--disruptive``.
        only: conclusions to judge; without any, all.
        environment: variables set on top of this process's own.
        record: where the run is recorded, in place of what may be there; None for no recording.
    """
    folder = cache() / "faults" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "reports" / "facts.json").unlink(missing_ok=True)
    if record:
        record.unlink(missing_ok=True)
    chosen = ["-k", " or ".join(f"test_{each.replace('-', '_')}" for each in only)] if only else []
    argv = [
        # What is read of it is facts.json; a page for people would take time and show nothing else.
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:html", f"--reports={folder / 'reports'}", f"--inventory={INVENTORY}"),
        *(["--disruptive"] if disruptive else []), *([f"--record={record}"] if record else []), *chosen, "tests",
    ]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | dict(environment or {})
    with (folder / "said").open("w", encoding="utf-8") as said:
        # Of a group of its own: a terminal's Ctrl-C is heard by the lab alone, which then interrupts the run, once.
        process = subprocess.Popen(
            argv, cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=said, stderr=said, text=True, env=env, process_group=0
        )
    return Run(folder, process)


def finish(run: Run) -> tuple[Judged, ...]:
    """Wait for a run and return what it judged.

    Raises:
        LabError: it made no report, or took too long; the message has the last of what it said.
    """
    try:
        run.process.wait(TIMEOUT)
    except subprocess.TimeoutExpired:
        end(run)
    try:
        facts = json.loads((run.folder / "reports" / "facts.json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        said = (run.folder / "said").read_text(encoding="utf-8")[-2000:]
        raise LabError(f"the suite made no report (exit status {run.process.returncode}): {said}") from error
    if facts["unfinished"]:
        raise LabError(f"the suite did not come to its end: {facts['unfinished']}")
    return judged(facts)


def end(run: Run) -> None:
    """End a run that still goes on, as Ctrl-C does: what it began is undone, and nothing goes on behind who waited for it."""
    for number, seconds in ENDING:
        if run.process.poll() is not None:
            return
        run.process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.process.wait(seconds)


def judged(facts: Mapping[str, Any]) -> tuple[Judged, ...]:
    """Return what a run judged, by its facts.json."""
    return tuple(
        Judged(verdict["conclusion"], verdict["case"], verdict["node"], verdict["outcome"], verdict["message"], tuple(verdict["see"]))
        for verdict in facts["verdicts"]
    )
