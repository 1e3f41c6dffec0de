"""``python -m lab fault check``: each fault applied, the suite run, the table compared, the fault reverted, and all seen green again."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from lab.errors import LabError
from lab.faults import actions, compare, record, setups, suite
from lab.faults.catalogue import Fault, load, named
from lab.faults.compare import Healthy
from lab.faults.effect import NotTakenBackError, in_effect, take_back
from lab.faults.suite import Judged
from lab.interrupts import Interrupts
from lab.paths import PROJECT, cache
from lab.progress import Progress
from lab.topology import Topology

# What a result depends on: the suite, and how faults are made. A fault's own lines and programs count for that fault alone.
SOURCES = (
    *("conftest.py", "pytest.ini", "fixtures", "servicepath", "tests"),
    *("lab/faults/actions.py", "lab/faults/compare.py", "lab/faults/effect.py", "lab/faults/places.py"),
    *("lab/faults/prelude.sh", "lab/faults/setups.py"),
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


class CutOffError(LabError):
    """A check was cut off; the message says whether its fault was taken back."""

    status = 130


@dataclasses.dataclass(frozen=True, slots=True)
class Manner:
    """How faults are checked.

    Attributes:
        interrupts: how a check is cut off.
        together: all is seen green again after the last fault of a set-up alone, and not what each turned after each.
        record: the folder in which every run is recorded, by the fault's name; None for none.
    """

    interrupts: Interrupts
    together: bool = False
    record: Path | None = None

    def recording(self, name: str) -> Path | None:
        """Where the run of this name is recorded."""
        return self.record / f"{name}.tar.zst" if self.record else None


def kept(faults: Sequence[Fault], results: Results, manner: Manner) -> dict[str, Result]:
    """Return the results, by fault, that still count: of these very sources, as declared, and recorded where that is asked for."""
    found = {fault.name: result for fault in faults if (result := results.get(fault)) and not result.wrong}
    return {name: result for name, result in found.items() if (path := manner.recording(name)) is None or path.exists()}


def check(faults: Sequence[Fault], topology: Topology, results: Results, progress: Progress, manner: Manner) -> dict[str, Result]:
    """Check faults one by one, set-up by set-up, and return their results by name.

    Raises:
        CutOffError: it was cut off.
        LabError: the lab is not up or not well, a fault could not be applied, or could not be reverted.
    """
    done: dict[str, Result] = {}
    try:
        clear(topology, progress, manner.interrupts)
        for setup in dict.fromkeys(fault.setup for fault in faults):
            mine = [fault for fault in faults if fault.setup == setup]
            for result in _in_setup(setup, mine, topology, results, progress, manner):
                done[result.name] = result
                progress.say(f"{len(done)} of {len(faults)} are checked")
    except KeyboardInterrupt:
        raise CutOffError(f"interrupted: {'; '.join(record.told()) or 'no fault is applied'}; run again to go on") from None
    finally:
        # With a fault in it the lab would only be waited for in vain.
        if all(each.undone for each in record.applied().values()):
            with manner.interrupts.held():
                setups.bring("", topology)
    return done


def healthy_name(setup: str) -> str:
    """The name of the run without a fault in a set-up, for its recording."""
    return "-".join(("healthy", *setup.replace("=", "-").split()))


def _in_setup(
    setup: str, faults: Sequence[Fault], topology: Topology, results: Results, progress: Progress, manner: Manner
) -> Iterator[Result]:  # fmt: skip
    where = f"the lab with {setup}" if setup else "the lab"
    with progress.step(f"{where}: set up"):
        setups.bring(setup, topology)
    healthy = all_green(f"{where} without a fault", progress, recording=manner.recording(healthy_name(setup)))
    for fault in faults:
        result = _one(fault, topology, healthy, progress, manner)
        results.keep(fault, result)
        told = "as declared" if not result.wrong else f"NOT as declared: {len(result.wrong)} lines"
        progress.say(f"{fault.name}: {len(result.red)} verdicts turned: {told}")
        for line in result.wrong:
            progress.say(f"    {line}")
        yield result
    all_green(f"{where} after these faults", progress)


def clear(topology: Topology, progress: Progress, interrupts: Interrupts) -> None:
    """Revert what an interrupted run, or somebody by hand, has left applied.

    What was undone and is not seen gone stays: the run without a fault tells whether it matters.

    Raises:
        NotTakenBackError: something is still applied.
    """
    for name in reversed(record.applied()):
        progress.say(f"{name} is applied, by hand or by a check that was cut off: it is taken back before anything is looked at")
        try:
            take_back(named(name, load()), topology, progress, interrupts)
        except actions.StillSeenError as error:
            progress.say(str(error))


def all_green(what: str, progress: Progress, only: Sequence[str] = (), recording: Path | None = None) -> Healthy:
    """Run the suite and return every verdict by conclusion and case.

    Raises:
        LabError: something is red.
    """
    with progress.step(f"{what}: green"):
        with suite.start("healthy", disruptive=True, only=only, record=recording) as started:
            run = suite.finish(started)
        red = [f"{j.conclusion} {j.outcome} on {j.case}: {j.message}" for j in run if j.outcome in compare.RED]
        if red:
            raise LabError(f"{what} is not green: " + "\n".join(red[:5]))
    return {(judged.conclusion, judged.case): judged for judged in run}


def _one(fault: Fault, topology: Topology, healthy: Healthy, progress: Progress, manner: Manner) -> Result:
    found: list[tuple[Judged, ...]] = []
    wrong: list[str] = []
    try:
        with in_effect([fault], topology, progress, manner.interrupts), progress.step(f"{fault.name}: suite"):
            found = _runs(fault, manner)
    except KeyboardInterrupt:
        raise CutOffError(f"interrupted: {fault.name} was taken back; run again to go on") from None
    except NotTakenBackError:
        raise
    except LabError as error:
        wrong.append(str(error))
    if not found:
        return Result(fault.name, tuple(wrong), ())
    quiet = comparable(healthy, fault)
    wrong += [line for run in found for line in compare.wrong(fault, run, quiet)]
    red = compare.turned(found[0], quiet)
    if red and not manner.together:
        try:
            all_green(f"{fault.name}: afterwards", progress, only=sorted({each.conclusion for each in red}))
        except LabError as error:
            wrong.append(str(error))
    return Result(fault.name, tuple(wrong), tuple(red))


def _runs(fault: Fault, manner: Manner) -> list[tuple[Judged, ...]]:
    """Run the suite, or two of it side by side, and return what each judged."""
    with ExitStack() as running:
        runs = [running.enter_context(suite.start("run-1", disruptive=fault.disruptive, record=manner.recording(fault.name)))]
        if fault.beside:
            runs.append(running.enter_context(suite.start("run-2", disruptive=fault.disruptive)))
        return [suite.finish(run) for run in runs]


def comparable(healthy: Healthy, fault: Fault) -> Healthy:
    """What of the run without a fault stands beside the fault's own: it may not have been disruptive."""
    return {key: judged for key, judged in healthy.items() if fault.disruptive or key[0] not in DISRUPTIVE}


# The conclusions that only --disruptive judges.
DISRUPTIVE = frozenset({"dataplanes-follow", "packets-skip-the-api", "dnat-adds-no-route"})
