"""All nodes side by side."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from .channel import Channel, Command
from .channels.batch import RoundTrip
from .deadline import Deadline
from .observation import Archive, CouldNotSee, Observation, Trouble

Answers = dict[str, Observation]
T = TypeVar("T")


_NO_WAY = Trouble(node="", problem="no way to reach this node is known", remedy="add it to nodes: in the inventory")


class LoggedChannel(Channel, Protocol):
    """A Channel that says what its batches cost, and can be closed."""

    log: list[RoundTrip]

    def close(self) -> None:
        """End what it holds open."""
        ...


class Fleet:
    """The channels of a run, by node name (and "lan-client" where there is one).

    Args:
        channels: node → channel; a Trouble for a node that is known to be out of reach.
        deadline: the end of the whole run.
        archive: where every Observation is kept; None keeps none.
        keep: told of every batch: node, phase, what came of it and what it cost.
    """

    def __init__(
        self, channels: Mapping[str, LoggedChannel | Trouble], deadline: Deadline, archive: Archive | None = None,
        keep: Callable[[str, str, Answers | Trouble, RoundTrip | None], None] | None = None,
    ) -> None:  # fmt: skip
        self.channels = dict(channels)
        self.deadline = deadline
        self.archive = archive
        self.keep = keep

    @property
    def nodes(self) -> tuple[str, ...]:
        """Their names, in the inventory's or the API's order."""
        return tuple(self.channels)

    def run(
        self, plan: Mapping[str, Sequence[Command]], *, phase: str, timeout: float = 60.0
    ) -> dict[str, Answers | Trouble]:
        """Run each node's batch, all nodes at a time.

        Args:
            plan: node → its commands; a node without commands costs no round trip and has an empty answer.
            phase: under what the round trips are counted ("snapshot", "traffic-pod", …).
            timeout: seconds for one node's batch; what is left of the deadline counts when it is shorter.

        Returns:
            Node → what its commands said, by name; or why nothing could be seen there.
        """
        jobs = {n: functools.partial(self.run_one, n, batch, phase=phase, timeout=timeout) for n, batch in plan.items()}
        return side_by_side(jobs)

    def run_one(
        self, node: str, commands: Sequence[Command], *, phase: str, timeout: float = 60.0, undoing: bool = False
    ) -> Answers | Trouble:  # fmt: skip
        """Run one node's batch; may be called from several threads. What undoes a change is run though the run's time is up."""
        if not commands and not isinstance(self.channels.get(node, _NO_WAY), Trouble):
            return {}
        answers = self._run(node, commands, phase, timeout, undoing)
        if self.keep:
            channel = self.channels.get(node)
            trips = [] if channel is None or isinstance(channel, Trouble) else [trip for trip in channel.log if trip.phase == phase]
            self.keep(node, phase, answers, trips[-1] if trips else None)
        return answers

    def _run(self, node: str, commands: Sequence[Command], phase: str, timeout: float, undoing: bool) -> Answers | Trouble:
        channel = self.channels.get(node)
        if isinstance(channel, Trouble):
            return channel
        if channel is None:
            return dataclasses.replace(_NO_WAY, node=node)
        left = timeout if undoing else self.deadline.limit(timeout)
        if left <= 0:
            return past(node, self.deadline, phase)
        try:
            answers = channel.run(commands, timeout=left, phase=phase)
        except CouldNotSee as unseen:
            return past(node, self.deadline, phase) if self.deadline.left() <= 0 and not undoing else unseen.trouble
        if self.archive:
            self.archive.add(answers.values())
        return answers

    def round_trips(self) -> tuple[RoundTrip, ...]:
        """Every round trip so far."""
        return tuple(trip for channel in self.channels.values() if not isinstance(channel, Trouble) for trip in channel.log)

    def phases(self) -> dict[str, dict[str, tuple[int, float]]]:
        """Phase → node → (round trips, seconds), as RunSummary.phases wants it."""
        found: dict[str, dict[str, tuple[int, float]]] = {}
        for trip in self.round_trips():
            count, seconds = found.setdefault(trip.phase, {}).get(trip.node, (0, 0.0))
            found[trip.phase][trip.node] = (count + 1, seconds + trip.took)
        return found

    def close(self) -> None:
        """Close every channel, all at a time."""
        side_by_side({n: c.close for n, c in self.channels.items() if not isinstance(c, Trouble)})


def past(node: str, deadline: Deadline, phase: str) -> Trouble:
    """The Trouble of a run whose time is up."""
    return Trouble(
        node=node, problem=f"the run's deadline of {deadline.seconds:.0f} s has passed (in: {phase})",
        remedy="give more time: deadline: in the inventory, or --deadline SECONDS",
    )  # fmt: skip


def side_by_side(jobs: Mapping[str, Callable[[], T]]) -> dict[str, T]:
    """Run the jobs in threads, one each; their results in the jobs' order. An exception is raised when all have ended."""
    if not jobs:
        return {}
    with concurrent.futures.ThreadPoolExecutor(max_workers=len(jobs)) as pool:
        futures = {name: pool.submit(job) for name, job in jobs.items()}
    return {name: future.result() for name, future in futures.items()}

