"""A recording in place of nodes, API, agents, plans and clock. The code that asks them is the same as in a live run.

Every answer is found by where, phase, running number of the phase, and name. What is not there raises NotRecorded, at whatever
granularity: a node, a round, or one observation of a round (``RecordedAnswers``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..channel import Command
from ..channels.batch import RoundTrip
from ..experiments import api
from ..experiments.temporary_service import TemporaryService
from ..experiments.traffic import NodePlan
from ..fleet import Answers
from ..model.addresses import Socket
from ..model.services import ClusterObjects, Pod
from ..observation import CouldNotSee, NotRecorded, Observation, Trouble
from . import plans
from .model import Numbers, Recording, RecordingError, Round
from .recorder import read_created


class RecordedAnswers(Answers):
    """What a batch said; a name that was not recorded raises NotRecorded instead of KeyError."""

    def __init__(self, node: str, place: str, answers: Mapping[str, Observation]) -> None:
        super().__init__(answers)
        self.node = node
        self.place = place

    def __missing__(self, name: str) -> Observation:
        """A single observation that the recording does not hold."""
        raise NotRecorded(self.node, f"{self.place}/{name}")

    def __copy__(self) -> RecordedAnswers:
        return RecordedAnswers(self.node, self.place, self)


def _answers(node: str, kind: str, name: str, rounds: Mapping[str, Mapping[str, Round]]) -> RecordedAnswers:
    """One round of one node.

    Raises:
        CouldNotSee: the trouble that was recorded; NotRecorded when nothing was.
    """
    place = f"{kind}/{node}/{name}"
    found = rounds.get(node, {}).get(name)
    if found is None:
        raise NotRecorded(node, place)
    if isinstance(found, Trouble):
        raise CouldNotSee(found)
    return RecordedAnswers(node, place, found)


class ReplayingChannel:
    """A Channel to a recorded node: each batch of a phase is answered by the phase's next round, whatever it asks for."""

    def __init__(self, node: str, recording: Recording) -> None:
        self.node = node
        self.log: list[RoundTrip] = []
        self._recording = recording
        self._numbers = Numbers()

    @property
    def round_trips(self) -> int:
        """How many batches were answered."""
        return len(self.log)

    def run(self, commands: Sequence[Command], *, timeout: float, phase: str) -> Answers:
        """What was recorded; raises CouldNotSee as the live run did, or NotRecorded."""
        name = f"{phase}-{self._numbers.next(phase)}"
        cost = self._recording.costs.get(self.node, {}).get(name)
        if cost:
            self.log.append(RoundTrip(self.node, phase, len(commands), cost.took, cost.received))
        return _answers(self.node, "nodes", name, self._recording.nodes)

    def close(self) -> None:
        """Nothing is open."""


class ReplayingCluster:
    """A Cluster that answers from a recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._numbers = Numbers()

    def get(self, name: str, path: str, *, phase: str, timeout: float = api.REQUEST_TIMEOUT) -> Observation:
        """The phase's next answer of this name."""
        place = f"{phase}-{self._numbers.next(phase, name)}"
        found = self._recording.api.get(place, {}).get(name)
        if found is None:
            raise NotRecorded("api", f"api/{place}/{name}")
        if isinstance(found, Trouble):
            raise CouldNotSee(found)
        return found

    def exec_in_agents(
        self, agents: Mapping[str, Pod], batch: Mapping[str, Sequence[Command]], *, phase: str
    ) -> dict[str, Answers | Trouble]:
        """What the agents said in the phase's next round."""
        found: dict[str, Answers | Trouble] = {}
        for node in batch:
            try:
                found[node] = _answers(node, "agents", f"{phase}-{self._numbers.next(phase, node)}", self._recording.agents)
            except CouldNotSee as unseen:
                found[node] = unseen.trouble
        return found

    def create_service(self, name: str, backend: Socket, protocol: str) -> TemporaryService:
        """The temporary Service that there was."""
        return read_created(self.get("create", "", phase="service"))

    def delete_service(self, name: str) -> None:
        """It was deleted, or could not be."""
        self.get("delete", "", phase="service")

    def delete_leftovers(self) -> tuple[str, ...]:
        """What was deleted."""
        return tuple(self.get("leftovers", "", phase="service").text.split())


class ReplayingPlans:
    """What was sent, instead of a new plan."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._numbers = Numbers()

    def plan(self, node: str, phase: str, objects: ClusterObjects, make: Callable[[], NodePlan]) -> NodePlan:
        """The plan of the phase's next round on the node; ``make`` is not called."""
        name = f"{phase}-{self._numbers.next(phase, node)}"
        told = self._recording.plans.get(node, {}).get(name)
        if told is None:
            raise NotRecorded(node, f"nodes/{node}/{name}/_plan")
        if isinstance(told, Trouble):
            raise CouldNotSee(told)
        try:
            return plans.from_json(node, told, objects)
        except RecordingError as wrong:
            raise CouldNotSee(Trouble(node, f"{self._recording.source}: nodes/{node}/{name}/{wrong}")) from wrong


class ReplayingClock:
    """The recorded readings; waiting costs nothing."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._numbers = Numbers()

    def now(self, what: str) -> float:
        """The next reading of this kind."""
        number = self._numbers.next(what)
        readings = self._recording.clock.get(what, ())
        if number > len(readings):
            raise NotRecorded("clock", f"clock/{what}, reading {number}")
        return readings[number - 1]

    def sleep(self, seconds: float) -> None:
        """Go on at once."""
