"""Faults in effect for a while: applied, and taken back whatever comes in between, be it an interrupt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lab.errors import LabError
from lab.faults import actions, record
from lab.faults.catalogue import Fault
from lab.interrupts import Interrupts
from lab.progress import Progress
from lab.topology import Topology


class NotTakenBackError(LabError):
    """A fault is still applied; the message ends with the command that takes it back."""


@contextmanager
def in_effect(
    faults: Sequence[Fault], topology: Topology, progress: Progress, interrupts: Interrupts, *, alone: bool = True
) -> Iterator[None]:  # fmt: skip
    """Apply faults, and take those back that were applied, the last one first.

    Args:
        faults: in the order in which they are applied.
        topology: the lab.
        progress: is told when each is applied and reverted.
        interrupts: one cuts the inside off, but no undo: it is raised after that.
        alone: whether another fault must not be applied.

    Raises:
        NotTakenBackError: one could not be taken back.
        LabError: one could not be applied, or is still seen after its undo.
    """
    before = record.applied()
    with interrupts.held():
        try:
            with interrupts.let_through():
                for fault in faults:
                    with progress.step(f"{fault.name}: applied"):
                        actions.apply(fault, topology, alone=alone)
                yield
        finally:
            there = record.applied().keys() - before.keys()
            for fault in reversed(faults):
                if fault.name in there:
                    take_back(fault, topology, progress, interrupts)


def take_back(fault: Fault, topology: Topology, progress: Progress, interrupts: Interrupts) -> None:
    """Revert a fault to the end, whatever is heard; a step that Ctrl-C has ended in the undo's own programs is done again.

    Raises:
        NotTakenBackError: it is still applied.
        StillSeenError: it was undone, but is not seen gone.
    """
    if interrupts.heard:
        progress.say(f"interrupted: {fault.name} is taken back first; further interrupts are ignored until it is")
    try:
        with interrupts.held(), progress.step(f"{fault.name}: reverted"):
            _revert(fault, topology, interrupts)
    except actions.StillSeenError:
        raise
    except LabError as error:
        raise NotTakenBackError(f"{error}; {fault.name} is still applied: python -m lab fault revert {fault.name}") from error


def _revert(fault: Fault, topology: Topology, interrupts: Interrupts) -> None:
    before = interrupts.heard
    try:
        actions.revert(fault, topology)
    except actions.StillSeenError:
        raise
    except LabError:
        if before or not interrupts.heard:
            raise
        actions.revert(fault, topology)
