"""The declared table of faults, read from catalogue/*.yaml and checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from lab.errors import LabError

FOLDER = Path(__file__).resolve().parent / "catalogue"
OUTCOMES = ("failed", "error", "skipped")
MACHINE = "machine"
NODES = "nodes"
ALL = "all"
_KEYS = (
    *("does", "where", "do", "undo", "seen", "stops", "restarts", "steps", "turns"),
    *("setup", "change", "disruptive", "beside", "quick"),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """One change at one place.

    Attributes:
        where: a host of the lab, "nodes" for each node, or "machine" for this machine, where kubectl is the administrator's.
        do: shell text that makes the change.
        undo: shell text that takes it back; safe where the change was not made, or only half.
        seen: shell text whose exit status 0 says that the change is in effect; it is awaited after ``do``, and its
            opposite after the undo, where there is one.
        stops: a component that is ended before ``do``, and started again by the undo.
        restarts: a component that the undo starts anew, so that it writes its rules afresh.
    """

    where: str
    do: str
    undo: str
    seen: str
    stops: str | None
    restarts: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class Turned:
    """What conclusions must turn to.

    Attributes:
        outcome: "failed", "error" or "skipped".
        conclusions: their ids; "all" alone stands for every one that is judged at these nodes.
        says: fragments of the message, each of which is in at least one verdict; every such verdict has at least one of them.
        at: the nodes where it may be so, and is so at each; None where it may be any node.
        chance: it depends on which backend chance gives to a single flow: it may be so and need not.
    """

    outcome: str
    conclusions: tuple[str, ...]
    says: tuple[str, ...]
    at: tuple[str, ...] | None
    chance: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        name: its plain name, and that of its row in docs/faults.md.
        does: one sentence.
        steps: in their order; undone in the opposite one.
        turns: everything that must not stay as it was; nothing for what must not disturb.
        disruptive: whether the conclusions that create or break something themselves are to be run, too.
        beside: whether a second run of the suite goes on at the same time.
        quick: one of the few, one of each kind, that are enough for a short look.
        group: the file that it is declared in.
        setup: the set-up in which it is made, as ``python -m lab set`` takes it ("kpr=true"); "" for the lab's own.
        change: the set-up that it turns the lab to while the inventory pins the one of before; None where it is no such change.
    """

    name: str
    does: str
    steps: tuple[Step, ...]
    turns: tuple[Turned, ...]
    disruptive: bool
    beside: bool
    quick: bool
    group: str
    setup: str = ""
    change: str | None = None

    @property
    def conclusions(self) -> frozenset[str]:
        """The conclusions that it bites: those that turn red."""
        return frozenset(c for turned in self.turns if turned.outcome == "failed" for c in turned.conclusions)


def load(folder: Path = FOLDER) -> dict[str, Fault]:
    """Return every fault by name, in the order of the files and in theirs.

    Raises:
        LabError: a file is not what it must be; the message names file, fault and what was expected.
    """
    faults: dict[str, Fault] = {}
    for path in sorted(folder.glob("*.yaml")):
        for name, said in (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).items():
            if name in faults:
                raise LabError(f"{path.name}: {name}: there is another fault of this name, in {faults[name].group}")
            faults[name] = _fault(name, said, path)
    return faults


def named(name: str, faults: dict[str, Fault]) -> Fault:
    """Return a fault by name.

    Raises:
        LabError: there is none.
    """
    if name not in faults:
        raise LabError(f"no fault named {name!r}: python -m lab fault list")
    return faults[name]


def _fault(name: str, said: Any, path: Path) -> Fault:
    where = f"{path.name}: {name}"
    _only(where, said, *_KEYS)
    does = said.get("does")
    if not isinstance(does, str) or not does.endswith("."):
        raise LabError(f"{where}: does: expected one sentence")
    steps = tuple(_step(f"{where}: steps", each) for each in said.get("steps", ()))
    if "where" in said:
        steps = (_step(where, {key: said[key] for key in Step.__slots__ if key in said}), *steps)
    near = tuple(dict.fromkeys(step.where for step in steps if step.where not in (MACHINE, NODES, "lan-client")))
    turns = tuple(_turned(f"{where}: turns", each, near) for each in said.get("turns", ()))
    flags = (bool(said.get("disruptive")), bool(said.get("beside")), bool(said.get("quick")))
    return Fault(name, does, steps, turns, *flags, group=path.stem, setup=said.get("setup", ""), change=said.get("change"))


def _step(where: str, said: Any) -> Step:
    _only(where, said, *Step.__slots__)
    if not said.get("where"):
        raise LabError(f"{where}: where: expected a host of the lab, {NODES} or {MACHINE}")
    if not said.get("seen"):
        raise LabError(f"{where}: seen: expected a shell command that tells whether the fault is in effect")
    do, undo, seen = (str(said.get(key, "")) for key in ("do", "undo", "seen"))
    return Step(str(said["where"]), do, undo, seen, said.get("stops"), said.get("restarts"))


def _turned(where: str, said: Any, near: tuple[str, ...]) -> Turned:
    _only(where, said, *OUTCOMES, "says", "at", "chance")
    outcomes = [outcome for outcome in OUTCOMES if outcome in said]
    if len(outcomes) != 1:
        raise LabError(f"{where}: expected exactly one of {', '.join(OUTCOMES)}")
    if not said.get("says"):
        raise LabError(f"{where}: says: expected a fragment of the message, or several")
    at = said.get("at") or near
    places = None if at == "any" or not at else tuple(_list(at))
    return Turned(outcomes[0], tuple(_list(said[outcomes[0]])), tuple(_list(said["says"])), places, bool(said.get("chance")))


def _list(said: Any) -> list[str]:
    return [said] if isinstance(said, str) else [str(each) for each in said]


def _only(where: str, said: Any, *known: str) -> None:
    if not isinstance(said, Mapping):
        raise LabError(f"{where}: expected keys and values")
    unknown = [str(key) for key in said if key not in known]
    if unknown:
        raise LabError(f"{where}: unknown key {', '.join(unknown)}; expected {', '.join(known)}")
