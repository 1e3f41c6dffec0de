"""A recording in memory."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
from collections.abc import Mapping
from typing import Any

from ..inventory import Inventory
from ..model.baseline import Span
from ..observation import Observation, Trouble
from ..selection import Options

SCHEMA = 1
"""Raised when a file's meaning changes; what is merely added does not raise it."""

Round = Mapping[str, Observation] | Trouble
"""What one batch said, by name, in the order in which it was asked; or why nothing could be seen."""


class RecordingError(Exception):
    """The recording cannot be used; the text is one line: file, place, what was expected."""


@dataclasses.dataclass(frozen=True, slots=True)
class Head:
    """What recording.yaml says.

    Attributes:
        made: when, ``2026-11-30 08:00:00 UTC``.
        by: where: the name of the machine that recorded it.
        inventory: as far as verdicts depend on it: no way to connect, no credential.
        options: that the recording run was given.
        tools: tool → version, of the machine that recorded it.
        redacted: whether names and addresses are neutral ones.
    """

    made: str = "at an unknown time"
    by: str = "an unknown machine"
    inventory: Inventory = dataclasses.field(default_factory=Inventory)
    options: Options = dataclasses.field(default_factory=Options)
    tools: Mapping[str, str] = dataclasses.field(default_factory=dict)
    redacted: bool = False

    @property
    def origin(self) -> str:
        """When and where it was made, in words."""
        return f"made {self.made} on {self.by}" + (", with neutral names and addresses" if self.redacted else "")


@dataclasses.dataclass(frozen=True, slots=True)
class Cost:
    """What a round trip cost: seconds, and bytes received."""

    took: float
    received: int


@dataclasses.dataclass(frozen=True, slots=True)
class Recording:
    """Everything that a run saw; what is absent is "not in this recording".

    Attributes:
        nodes: node ("lan-client" for the LAN client) → round → what it said.
        api: round → name → answer.
        agents: node → round → what its Cilium agent said.
        plans: node → round → what was sent (plans.py), or why nothing was.
        clock: what was timed → readings in seconds.
        costs: node → round → cost.
        head: recording.yaml.
        source: what it was read from, for messages.
    """

    nodes: Mapping[str, Mapping[str, Round]]
    api: Mapping[str, Mapping[str, Observation | Trouble]]
    agents: Mapping[str, Mapping[str, Round]] = dataclasses.field(default_factory=dict)
    plans: Mapping[str, Mapping[str, Mapping[str, Any] | Trouble]] = dataclasses.field(default_factory=dict)
    clock: Mapping[str, tuple[float, ...]] = dataclasses.field(default_factory=dict)
    costs: Mapping[str, Mapping[str, Cost]] = dataclasses.field(default_factory=dict)
    head: Head = dataclasses.field(default_factory=Head)
    source: str = "the recording"

    @property
    def during(self) -> Span | None:
        """When the cluster was asked; None where the recording does not say it. By the clock of the machine that recorded it."""
        try:
            until = datetime.datetime.strptime(self.head.made, "%Y-%m-%d %H:%M:%S UTC").replace(tzinfo=datetime.UTC).timestamp()
        except ValueError:  # others' outputs
            return None
        begun = (each.started for answers in self.api.values() for each in answers.values() if isinstance(each, Observation))
        return Span(min((at for at in begun if 0 < at <= until), default=until), until)


class Numbers:
    """Running numbers, from 1, each for what it is asked for; safe in threads."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, ...], itertools.count[int]] = {}

    def next(self, *what: str) -> int:
        """The next number; setdefault and next are each one step of the interpreter."""
        return next(self._counts.setdefault(what, itertools.count(1)))
