"""What ``pytest --replay`` of ``bench.recorded`` costs, beside what pytest alone costs for as many tests.

The floor is pytest with the same reporters (junit.xml, pytest-html's report.html) and the options of pytest.ini, on tests that do nothing:
as many as the replay judged, of which as many are skipped at the same place, before any fixture.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping

from bench import recorded

ROOT = pathlib.Path(__file__).resolve().parent.parent

_EMPTY = """
import pytest


def pytest_runtest_setup(item):
    if item.originalname == "test_skipped":
        pytest.skip("sends traffic, captures or executes in Pods, which --passive leaves out")


@pytest.mark.parametrize("number", range({ran}))
def test_empty(number):
    pass


@pytest.mark.parametrize("number", range({skipped}))
def test_skipped(number):
    pass
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Cost:
    """What one process cost: wall and CPU seconds, and MiB at its highest."""

    wall: float
    cpu: float
    peak: float


@dataclasses.dataclass(frozen=True, slots=True)
class Figures:
    """Of one replay: tests by outcome, and the costs."""

    nodes: int
    outcomes: Mapping[str, int]
    replay: Cost
    floor: Cost


def measure(nodes: int = recorded.NODES) -> Figures:
    """Make the recording, replay it, and run as many empty tests.

    Raises:
        SystemExit: something of the recording does not hold, or pytest could not run.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        recorded.write(place / "recording.tar.zst", nodes)
        replay = _pytest(ROOT, f"--replay={place / 'recording.tar.zst'}", f"--reports={place / 'reports'}", str(ROOT / "tests"))
        facts = json.loads((place / "reports" / "facts.json").read_text(encoding="utf-8"))
        outcomes = collections.Counter(verdict["outcome"] for verdict in facts["verdicts"])
        return Figures(nodes, outcomes, replay, _floor(place / "floor", outcomes))


def _floor(folder: pathlib.Path, outcomes: Mapping[str, int]) -> Cost:
    folder.mkdir()
    (folder / "pytest.ini").write_text((ROOT / "pytest.ini").read_text(encoding="utf-8"), encoding="utf-8")
    skipped = outcomes.get("skipped", 0)
    # A module of tests cannot hold hooks: the one file is both conftest.py and tests.
    (folder / "conftest.py").write_text(_EMPTY.format(ran=sum(outcomes.values()) - skipped, skipped=skipped), encoding="utf-8")
    (folder / "test_empty.py").write_text("from conftest import test_empty, test_skipped\n", encoding="utf-8")
    reports = ("--junitxml=junit.xml", "--html=report.html", "--self-contained-html")
    return _pytest(folder, *reports, "test_empty.py")


def _pytest(folder: pathlib.Path, *arguments: str) -> Cost:
    """Run it; a run in which a test fails is none to measure."""
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    started = time.monotonic()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, cwd=folder, stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            said.seek(0)
            raise SystemExit(f"bench: {' '.join(command)} failed:\n{said.read().decode(errors='replace')[-2000:]}")
    return Cost(time.monotonic() - started, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def lines(figures: Figures) -> tuple[str, ...]:
    """The figures as the bench prints them."""
    told = ", ".join(f"{count} {outcome}" for outcome, count in figures.outcomes.items())
    replay, floor = figures.replay, figures.floor
    return (
        f"replay of {figures.nodes} nodes     {replay.cpu:6.1f} s CPU, {replay.wall:.1f} s wall, {replay.peak:.0f} MiB; {told}",
        f"floor: as many empty tests {floor.cpu:3.1f} s CPU, {floor.wall:.1f} s wall, {floor.peak:.0f} MiB",
        f"replay / floor          {replay.cpu / floor.cpu:6.1f} × CPU, {replay.wall / floor.wall:.1f} × wall",
    )


if __name__ == "__main__":
    print("\n".join(lines(measure(*map(int, sys.argv[1:])))))
