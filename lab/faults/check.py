"""``python -m lab fault check``: each fault applied, the suite run, the table compared, the fault reverted, and all seen green again."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab.errors import LabError
from lab.faults import actions, compare, setups, suite
from lab.faults.catalogue import Fault, load, named
from lab.faults.compare import Healthy
from lab.faults.suite import Judged
from lab.paths import PROJECT, cache
from lab.progress import Progress
from lab.topology import Topology

# What a result depends on: the suite, and how faults are made. A fault's own lines and programs count for that fault alone.
SOURCES = (
    *("conftest.py", "pytest.ini", "fixtures", "servicepath", "tests"),
    *("lab/faults/actions.py", "lab/faults/compare.py", "lab/faults/places.py", "lab/faults/prelude.sh", "lab/faults/setups.py"),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """What became of one fault: ``wrong`` has what is not as declared, ``red`` each verdict that turned."""

    name: str
    wrong: tuple[str, ...]
    red: tuple[Judged, ...]


class Results:
    """The results by fault, kept in the cache as long as neither the suite nor the fault has changed.

    Args:
        folder: where they are kept, a file a fault.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or cache() / "faults" / "results"
        self._tree = tree()

    def get(self, fault: Fault) -> Result | None:
        """The fault's result, if it is one of these very sources; what another version or a crash has left there is none."""
        try:
            kept = json.loads((self.folder / f"{fault.name}.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        if not isinstance(kept, dict) or kept.get("key") != self._key(fault):
            return None
        return Result(fault.name, tuple(kept["wrong"]), tuple(Judged(**{**each, "see": tuple(each["see"])}) for each in kept["red"]))

    def keep(self, fault: Fault, result: Result) -> None:
        """Keep a fault's result."""
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"key": self._key(fault), **dataclasses.asdict(result)}, indent=1, ensure_ascii=False)
        partial_file = self.folder / f"{fault.name}.partial"
        partial_file.write_text(text + "\n", encoding="utf-8")
        partial_file.replace(self.folder / f"{fault.name}.json")

    def _key(self, fault: Fault) -> str:
        text = " ".join(step.do for step in fault.steps)
        programs = [path.read_text(encoding="utf-8") for path in sorted(actions.PROGRAMS.iterdir()) if path.name in text]
        return hashlib.sha256(f"{self._tree}{fault}{programs}".encode()).hexdigest()


def tree(project: Path = PROJECT) -> str:
    """Return a hash of everything that decides what a fault turns red, but the faults' own lines."""
    total = hashlib.sha256()
    for pattern in SOURCES:
        for path in sorted(project.glob(pattern)):
            files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
            for file in files:
                total.update(f"{file.relative_to(project)}\0".encode() + file.read_bytes())
    return total.hexdigest()


@dataclasses.dataclass(frozen=True, slots=True)
class Manner:
    """How faults are checked.

    Attributes:
        together: all is seen green again after the last fault of a set-up alone, and not what each turned after each.
        record: the folder in which every run is recorded, by the fault's name; None for none.
    """

    together: bool = False
    record: Path | None = None

    def recording(self, name: str) -> Path | None:
        """Where the run of this name is recorded."""
        return self.record / f"{name}.tar.zst" if self.record else None


def check(faults: Sequence[Fault], topology: Topology, results: Results, progress: Progress, manner: Manner) -> list[Result]:
    """Check faults one by one, set-up by set-up, and return their results; what has one that still counts is not run again.

    Raises:
        LabError: the lab is not up or not well, a fault could not be applied, or could not be reverted.
    """
    clear(topology, progress)
    kept = {fault.name: found for fault in faults if (found := results.get(fault)) and not found.wrong and _recorded(fault, manner)}
    if kept:
        progress.say(f"{len(kept)} of {len(faults)} have a result of these very sources already")
    left = [fault for fault in faults if fault.name not in kept]
    try:
        for setup in dict.fromkeys(fault.setup for fault in left):
            mine = [fault for fault in left if fault.setup == setup]
            for result in _in_setup(setup, mine, topology, results, progress, manner):
                kept[result.name] = result
                progress.say(f"{len(kept)} of {len(faults)} are checked")
    finally:
        if left:
            setups.bring("", topology)
    return [kept[fault.name] for fault in faults]


def _recorded(fault: Fault, manner: Manner) -> bool:
    path = manner.recording(fault.name)
    return path is None or path.exists()


def healthy_name(setup: str) -> str:
    """The name of the run without a fault in a set-up, for its recording."""
    return "-".join(("healthy", *setup.replace("=", "-").split()))


def _in_setup(
    setup: str, faults: Sequence[Fault], topology: Topology, results: Results, progress: Progress, manner: Manner
) -> Iterator[Result]:  # fmt: skip
    where = f"the lab with {setup}" if setup else "the lab"
    with progress.step(f"{where}: set up"):
        setups.bring(setup, topology)
    healthy = all_green(f"{where} without a fault", progress, record=manner.recording(healthy_name(setup)))
    for fault in faults:
        result = _one(fault, topology, healthy, progress, manner)
        results.keep(fault, result)
        told = "as declared" if not result.wrong else f"NOT as declared: {len(result.wrong)} lines"
        progress.say(f"{fault.name}: {len(result.red)} verdicts turned: {told}")
        for line in result.wrong:
            progress.say(f"    {line}")
        yield result
    all_green(f"{where} after these faults", progress)


def clear(topology: Topology, progress: Progress) -> None:
    """Revert what an interrupted run has left applied."""
    for name in reversed(actions.applied()):
        progress.say(f"{name} is still applied: reverting it")
        actions.revert(named(name, load()), topology)


def all_green(what: str, progress: Progress, only: Sequence[str] = (), record: Path | None = None) -> Healthy:
    """Run the suite and return every verdict by conclusion and case.

    Raises:
        LabError: something is red.
    """
    with progress.step(f"{what}: green"):
        run = suite.finish(suite.start("healthy", disruptive=True, only=only, record=record))
        red = [f"{j.conclusion} {j.outcome} on {j.case}: {j.message}" for j in run if j.outcome in compare.RED]
        if red:
            raise LabError(f"{what} is not green: " + "\n".join(red[:5]))
    return {(judged.conclusion, judged.case): judged for judged in run}


def _one(fault: Fault, topology: Topology, healthy: Healthy, progress: Progress, manner: Manner) -> Result:
    runs: list[suite.Run] = []
    try:
        with progress.step(f"{fault.name}: applied"):
            actions.apply(fault, topology)
        with progress.step(f"{fault.name}: suite"):
            runs.append(suite.start("run-1", disruptive=fault.disruptive, record=manner.recording(fault.name)))
            if fault.beside:
                runs.append(suite.start("run-2", disruptive=fault.disruptive))
            found = [suite.finish(run) for run in runs]
    except LabError as error:
        return Result(fault.name, (str(error),), ())
    finally:
        for each in runs:
            suite.end(each)
        with progress.step(f"{fault.name}: reverted"):
            actions.revert(fault, topology)
    quiet = comparable(healthy, fault)
    wrong = [line for run in found for line in compare.wrong(fault, run, quiet)]
    red = compare.turned(found[0], quiet)
    if red and not manner.together:
        try:
            all_green(f"{fault.name}: afterwards", progress, only=sorted({each.conclusion for each in red}))
        except LabError as error:
            wrong.append(str(error))
    return Result(fault.name, tuple(wrong), tuple(red))


def comparable(healthy: Healthy, fault: Fault) -> Healthy:
    """What of the run without a fault stands beside the fault's own: it may not have been disruptive."""
    return {key: judged for key, judged in healthy.items() if fault.disruptive or key[0] not in DISRUPTIVE}


# The conclusions that only --disruptive judges.
DISRUPTIVE = frozenset({"dataplanes-follow", "packets-skip-the-api", "dnat-adds-no-route"})
