"""One night: the suite, run into a folder of its own; whatever becomes of it, the folder says so."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence

from .. import baselines
from ..baselines import BaselineError
from ..model.baseline import Baseline
from ..report import baseline_json
from ..report.visible import visible
from .stopping import Stop, Stopped

SUITE = pathlib.Path(__file__).resolve().parent.parent.parent
BASELINE = "baseline.json"
_REFUSED = 4  # pytest.ExitCode.USAGE_ERROR
GRACE = 60.0  # seconds for a run that is broken off to undo what it changed and to write its report


class WrongUse(Exception):
    """pytest does not know an option, or cannot use what one names; the text is one line."""


@dataclasses.dataclass(frozen=True, slots=True)
class Night:
    """One night's folder and what was found; ``took`` in seconds."""

    folder: pathlib.Path
    run: Baseline
    took: float


def run(
    nights: pathlib.Path, arguments: Sequence[str], *, record: bool, limit: float, stop: Stop, holding: Sequence[int] = ()
) -> Night:  # fmt: skip
    """Run the suite.

    Args:
        nights: the folder of all nights; a new one is made in it.
        arguments: for pytest.
        record: whether all that is seen is kept, to be judged again.
        limit: seconds after which the run is broken off, as by ``stop``: as Ctrl-C does it, and for good after GRACE more.
        stop: who is asked to end this night.
        holding: descriptors that hold the night's locks. The suite inherits them, so that no lock is free while it goes on, whatever
            becomes of the night.

    Raises:
        WrongUse: pytest refused its arguments and judged nothing; that is no night, and nothing is kept of it.
        OSError: the folder cannot be made or written to.
    """
    started = time.time()
    folder = nights / time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime(started))
    folder.mkdir(parents=True)
    said = [f"--reports={folder}", f"--baseline-out={folder / BASELINE}"]
    said += [f"--record={folder / 'recording.tar.zst'}"] if record else []
    log = folder / "pytest.log"
    why, status = _pytest([*said, *arguments], log, limit, stop, holding)
    took = time.time() - started
    if status == _REFUSED and not (folder / BASELINE).exists():
        words = last_words(log).removeprefix("ERROR: ")
        shutil.rmtree(folder)
        raise WrongUse(f"the suite refused to begin: {words}")
    return Night(folder, _kept(folder, started, why), took)


def _pytest(
    arguments: Sequence[str], log: pathlib.Path, limit: float, stop: Stop, holding: Sequence[int]
) -> tuple[str | None, int | None]:  # fmt: skip
    """Why the run came to no end of its own, or None; and pytest's exit status, None where it came to none."""
    theirs, ours = os.pipe()
    # However this function is left, the pipe's end is the suite's (suite.py).
    with log.open("wb") as output, open(ours, "wb", buffering=0) as lifeline:
        try:
            # A session of its own: Ctrl-C at a terminal reaches the night alone, which passes it on once.
            suite = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.suite", str(theirs), "-q", "--color=no", *arguments], cwd=SUITE,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, pass_fds=(theirs, *holding), start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(theirs)
        try:
            with stop.raising():
                return None, suite.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            why = f"ended after {limit:.0f} s (--limit)"
        except Stopped as asked:
            why = f"stopped by {asked}"
        with contextlib.suppress(BrokenPipeError):  # it has just ended by itself
            lifeline.write(why.encode())
        try:
            suite.wait(timeout=GRACE)
        except subprocess.TimeoutExpired:
            suite.kill()
            suite.wait()
    return why, None


def _kept(folder: pathlib.Path, started: float, why: str | None) -> Baseline:
    """What the run kept, or an empty one in its place that says why there is none."""
    if (folder / BASELINE).exists():
        try:
            return baselines.load(folder / BASELINE)
        except BaselineError as wrong:
            why = str(wrong)
    at = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(started))
    empty = Baseline(at, None, (), (), (), (), why or last_words(folder / "pytest.log"))
    try:
        baseline_json.write(empty, folder / BASELINE)
    except OSError as wrong:  # a full disk; the night is told all the same, and what is too much of those before it goes
        return dataclasses.replace(empty, unfinished=f"{empty.unfinished}; {folder}: nothing can be written: {wrong.strerror}")
    return empty


def last_words(log: pathlib.Path) -> str:
    """The line of pytest's output that says most of why it did not run."""
    lines = [visible(line) for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    for line in lines:
        if line.startswith("pytest.main(): error: "):  # below the usage, which is an ERROR, too
            return line.partition(": error: ")[2]
    return next((line for line in lines if line.startswith(("ERROR", "INTERNALERROR"))), lines[-1] if lines else "it said nothing")
