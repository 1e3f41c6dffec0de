"""``python -m lab soak N``: healthy runs in a row under foreign load and endpoint churn; none may be red, and nothing may grow."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from lab import preflight, status, topology
from lab.errors import LabError
from lab.faults import record, suite
from lab.faults.catalogue import load
from lab.faults.compare import RED
from lab.faults.effect import in_effect
from lab.interrupts import Interrupts, heard_once
from lab.locking import only_one
from lab.process import run
from lab.progress import Progress
from lab.topology import Topology

LOAD = ("flood-of-the-same-service", "endpoints-always-changing")
# How much more memory the later half of the runs may need at their peak than the first, in the median: noise, and no growth.
NOISE = 1.1
# Counted on each node after a run, when nothing of it may be left: processes that it could leave, its files, its connections.
LEFT = """
ps -eo comm= | grep -c -e tcpdump -e '^sudo' -e '^sleep' -e '^timeout' || true
find /tmp /run -maxdepth 1 -name 'servicepath-*' | wc -l
ss -Htn state established '( sport = :22 )' | wc -l
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Use:
    """What was in use right after a run; counts are of all nodes together but ``memory``.

    Attributes:
        memory: the most that the suite's process held, in MiB.
        processes: of kinds that a run starts on a node (tcpdump, timeout, …).
        files: the suite's files on nodes, and what is left in its folder for temporary files here.
        connections: ssh connections, as the nodes and as this machine see them.
    """

    memory: float
    processes: int
    files: int
    connections: int


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``soak`` to the lab's commands."""
    soak = commands.add_parser("soak", help="run the suite N times in a row under foreign load, and count what is red and what grows")
    soak.add_argument("number", metavar="N", type=number)
    soak.set_defaults(run=_soak)


def number(text: str) -> int:
    """Return how many runs a word asks for.

    Raises:
        argparse.ArgumentTypeError: it is no whole number of at least 1.
    """
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, not {text!r}")
    return int(text)


def _soak(arguments: argparse.Namespace) -> int:
    progress, wanted = Progress(), topology.load()
    preflight.check_root()
    with only_one(progress), heard_once() as interrupts:
        red, used = soak(arguments.number, wanted, progress, interrupts)
    for line in (*red, *(growth := grown(used))):
        progress.say(line)
    print(table(used))
    progress.say(f"{len(used)} runs, {len(red)} verdicts FAILED or ERROR, {len(growth) or 'nothing'} grew")
    return 1 if red or growth else 0


def soak(many: int, wanted: Topology, progress: Progress, interrupts: Interrupts) -> tuple[list[str], list[Use]]:
    """Run the suite so many times under foreign load; return each red verdict as a line, and what each run used.

    Raises:
        LabError: the lab is not well, a fault is applied, or the load could not be made or taken away.
    """
    faults = load()
    if there := [name for name, each in record.applied().items() if not each.undone]:
        raise LabError(f"{there[0]} is applied: python -m lab fault revert {there[0]}")
    red: list[str] = []
    used: list[Use] = []
    with in_effect([faults[name] for name in LOAD], wanted, progress, interrupts, alone=False):
        for count in range(1, many + 1):
            judged, use = _once(wanted)
            here = [f"run {count}: {j.conclusion} {j.outcome} on {j.case}: {j.message}" for j in judged if j.outcome in RED]
            red += here
            used.append(use)
            outcomes = ", ".join(f"{times} {outcome}" for outcome, times in sorted(Counter(j.outcome for j in judged).items()))
            progress.say(f"run {count} of {many}: {outcomes}; {use.memory:.0f} MiB{'; RED' if here else ''}")
    return red, used


def _once(wanted: Topology) -> tuple[tuple[suite.Judged, ...], Use]:
    with tempfile.TemporaryDirectory() as folder:
        with suite.start("soak", disruptive=True, environment={"TMPDIR": folder}) as started:
            _, code, usage = os.wait4(started.process.pid, 0)
            started.process.returncode = os.waitstatus_to_exitcode(code)
            judged = suite.finish(started)
        left = len(list(Path(folder).rglob("*")))
    counts = [_left(wanted, node.name) for node in wanted.nodes]
    here = run(["ss", "-Htn", "state", "established", "dst", str(wanted.lan.network), "dport = :22"]).splitlines()
    processes, files, connections = (sum(column) for column in zip(*counts, strict=True))
    return judged, Use(usage.ru_maxrss / 1024, processes, files + left, connections + len(here))


def _left(wanted: Topology, name: str) -> tuple[int, int, int]:
    done = status.running_host(wanted, name).run(["sh", "-c", LEFT])
    try:
        processes, files, connections = map(int, done.stdout.split())
    except ValueError as error:
        raise LabError(f"{name}: what a run left could not be counted: {done.stderr.strip() or done.stdout.strip()}") from error
    return processes, files, connections


def grown(used: Sequence[Use]) -> list[str]:
    """Return what grew over the runs, a line each.

    Counts may not be higher after the last run than after the first. A run's peak memory varies a little: the medians of the two
    halves are compared.
    """
    if len(used) < 2:
        return []
    found = [
        f"{name} grew: {getattr(used[0], name)} after the first run, {getattr(used[-1], name)} after the last"
        for name in ("processes", "files", "connections")
        if getattr(used[-1], name) > getattr(used[0], name)
    ]
    before, after = (_median([use.memory for use in half]) for half in (used[: len(used) // 2], used[len(used) // 2 :]))
    if after > before * NOISE:
        found.append(f"memory grew: {before:.0f} MiB in the first half, {after:.0f} MiB in the second")
    return found


def table(used: Sequence[Use]) -> str:
    """Return what the first, middle and last runs used, as JSON lines."""
    chosen = sorted({0, len(used) // 2, len(used) - 1})
    return "\n".join(json.dumps({"run": number + 1, **dataclasses.asdict(used[number])}) for number in chosen)


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]
