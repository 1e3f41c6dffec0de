"""A run's observations, kept as they come."""

from __future__ import annotations

import dataclasses
import ipaddress
import pathlib
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from ..channel import Command
from ..channels.batch import RoundTrip
from ..cluster import Clock, Cluster
from ..experiments import api, private
from ..experiments.temporary_service import TemporaryService
from ..experiments.traffic import NodePlan
from ..fleet import Answers
from ..model.addresses import Socket
from ..model.services import ClusterObjects, Pod
from ..observation import CouldNotSee, Observation, Trouble
from . import codec, plans, storage
from .model import Cost, Head, Numbers, Recording, RecordingError

T = TypeVar("T")


class Recorder:
    """Writes a recording while the run goes on; safe in threads.

    Args:
        path: the folder or .tar.zst to be made; what is packed or rewritten is first gathered in a temporary folder.
        rewrite: what to make of the recording at its end (servicepath/redact); None: it is kept as it is.

    Raises:
        RecordingError: something is there already.
    """

    def __init__(self, path: pathlib.Path, rewrite: Callable[[Recording], Recording] | None = None) -> None:
        storage.check_new(path)
        self._path = path
        self._rewrite = rewrite
        apart = rewrite is not None or path.name.endswith(storage.PACKED)
        self._temporary = pathlib.Path(tempfile.mkdtemp(prefix="servicepath-")) if apart else None
        self.folder = self._temporary or path
        self._numbers = Numbers()
        self._clock: dict[str, list[float]] = {}
        self._lock = threading.Lock()

    def batch(self, node: str, phase: str, found: Answers | Trouble, trip: RoundTrip | None) -> None:
        """Keep what one batch said on a node, or why it said nothing, and what it cost."""
        self.round("nodes", node, phase, found, Cost(trip.took, trip.received) if trip else None)

    def round(self, kind: str, node: str, phase: str, found: Answers | Trouble, cost: Cost | None = None) -> None:
        """The same; ``kind`` is nodes or agents."""
        name = f"{phase}-{self._numbers.next(kind, node, phase)}"
        kept = _trouble(found) if isinstance(found, Trouble) else {key: _observation(each) for key, each in found.items()}
        storage.store(codec.encode_round(kind, node, name, kept, cost), self.folder)

    def answer(self, phase: str, name: str, found: Observation | Trouble) -> None:
        """Keep one answer of the API."""
        place = f"{phase}-{self._numbers.next('api', phase, name)}"
        kept = _trouble(found) if isinstance(found, Trouble) else _observation(found)
        storage.store(codec.encode_answer(place, name, kept), self.folder)

    def plan(self, node: str, phase: str, plan: NodePlan | Trouble) -> None:
        """Keep what is about to be sent, or why nothing is."""
        name = f"{phase}-{self._numbers.next('plan', node, phase)}"
        told = _trouble(plan) if isinstance(plan, Trouble) else plans.to_json(plan)
        storage.store([codec.encode_plan(node, name, told)], self.folder)

    def reading(self, what: str, seconds: float) -> None:
        """Keep a reading of the clock."""
        with self._lock:
            self._clock.setdefault(what, []).append(seconds)

    def finish(self, head: Head) -> None:
        """Say what the recording is; without this it is none.

        Raises:
            RecordingError: it cannot be written, or not be rewritten; then it is left where it was gathered, and the text says where.
        """
        clock = {what: tuple(readings) for what, readings in self._clock.items()}
        storage.store([codec.encode_clock(clock), codec.encode_head(head)], self.folder)
        if self._temporary and self._rewrite:
            try:
                storage.write(self._rewrite(storage.read(self._temporary)), self._path)
            except RecordingError as wrong:
                raise RecordingError(f"{wrong}; as it was recorded, names and all, it is left in {self._temporary}") from wrong
        elif self._temporary:
            storage.store(sorted(storage.files_of(self._temporary).items()), self._path)
        self.discard()

    def discard(self) -> None:
        """Remove the temporary folder, if there is one."""
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)


def _observation(observation: Observation) -> Observation:
    """It without credentials that a person's own command may hold, or print (api_outage: do, undo)."""
    kept = dataclasses.replace(observation, argv=tuple(map(private.without_credentials, observation.argv)))
    if not observation.name.startswith(("outage-begin", "outage-end")):
        return kept
    streams = (private.without_credentials(text).encode() for text in (observation.text, observation.error_text))
    return dataclasses.replace(kept, stdout=next(streams), stderr=next(streams))


def _trouble(trouble: Trouble) -> Trouble:
    command = private.without_credentials(trouble.command) if trouble.command else None
    return dataclasses.replace(trouble, command=command, output=private.without_credentials(trouble.output))


@dataclasses.dataclass(frozen=True, slots=True)
class RecordedCluster:
    """A Cluster whose answers are kept."""

    live: Cluster
    recorder: Recorder

    def get(self, name: str, path: str, *, phase: str, timeout: float = api.REQUEST_TIMEOUT) -> Observation:
        """One GET."""
        return self._kept(phase, name, lambda: self.live.get(name, path, phase=phase, timeout=timeout))

    def exec_in_agents(
        self, agents: Mapping[str, Pod], batch: Mapping[str, Sequence[Command]], *, phase: str
    ) -> dict[str, Answers | Trouble]:
        """Run each node's commands in its agent."""
        found = self.live.exec_in_agents(agents, batch, phase=phase)
        for node, answers in found.items():
            self.recorder.round("agents", node, phase, answers)
        return found

    def create_service(self, name: str, backend: Socket, protocol: str) -> TemporaryService:
        """Create the temporary Service."""

        def ask() -> Observation:
            made = self.live.create_service(name, backend, protocol)
            return _said("create", f"{made.vip} {made.backend.ip} {made.backend.port} {made.protocol}")

        return read_created(self._kept("service", "create", ask))

    def delete_service(self, name: str) -> None:
        """Delete it."""
        def ask() -> Observation:
            self.live.delete_service(name)
            return _said("delete", "")

        self._kept("service", "delete", ask)

    def delete_leftovers(self) -> tuple[str, ...]:
        """Delete what an interrupted run left."""
        names = self._kept("service", "leftovers", lambda: _said("leftovers", " ".join(self.live.delete_leftovers())))
        return tuple(names.text.split())

    def _kept(self, phase: str, name: str, ask: Callable[[], Observation]) -> Observation:
        return _kept(ask, lambda found: self.recorder.answer(phase, name, found))


def _kept(ask: Callable[[], T], keep: Callable[[T | Trouble], None]) -> T:
    """What ``ask`` gives, kept; where it could not be seen, the trouble is kept and raised."""
    try:
        found = ask()
    except CouldNotSee as unseen:
        keep(unseen.trouble)
        raise
    keep(found)
    return found


def read_created(answer: Observation) -> TemporaryService:
    """The temporary Service of a recorded answer; raises CouldNotSee."""
    try:
        vip, ip, port, protocol = answer.text.split()
        return TemporaryService(ipaddress.ip_address(vip), Socket(ipaddress.ip_address(ip), int(port)), protocol)
    except ValueError as wrong:
        raise CouldNotSee(Trouble("api", f"the recorded temporary Service cannot be read: {wrong}", output=answer.text)) from wrong


def _said(name: str, text: str) -> Observation:
    """What came of a change, in the form of an answer."""
    return Observation("api", name, (name,), 0, text.encode(), b"", 0.0, 0.0)


@dataclasses.dataclass(frozen=True, slots=True)
class RecordedPlans:
    """Plans that are made and kept."""

    recorder: Recorder

    def plan(self, node: str, phase: str, objects: ClusterObjects, make: Callable[[], NodePlan]) -> NodePlan:
        """Make the plan of the phase's next round on the node."""
        return _kept(make, lambda made: self.recorder.plan(node, phase, made))


@dataclasses.dataclass(frozen=True, slots=True)
class RecordedClock:
    """A Clock whose readings are kept."""

    live: Clock
    recorder: Recorder

    def now(self, what: str) -> float:
        """Seconds of a clock that never goes back."""
        seconds = self.live.now(what)
        self.recorder.reading(what, seconds)
        return seconds

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self.live.sleep(seconds)
