"""What a run asks besides the nodes: the Kubernetes API and the Cilium agents behind it, what to send, and the time.

As the nodes are behind a Channel, so that a recording can stand in for each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from .channel import Command
from .deadline import Deadline
from .experiments import agent, api, temporary_service
from .experiments.temporary_service import TemporaryService
from .experiments.traffic import NodePlan
from .fleet import Answers
from .model.addresses import Socket
from .model.services import ClusterObjects, Pod
from .observation import Observation, Trouble

AGENT_TIMEOUT = 30.0  # seconds for one node's commands in its agent


class Cluster(Protocol):
    """What is asked of the API. ``phase`` names the question's part of the run; a recording is read by it."""

    def get(self, name: str, path: str, *, phase: str, timeout: float = api.REQUEST_TIMEOUT) -> Observation:
        """One GET (see api.get); raises CouldNotSee when there is no answer."""
        ...

    def exec_in_agents(
        self, agents: Mapping[str, Pod], batch: Mapping[str, Sequence[Command]], *, phase: str
    ) -> dict[str, Answers | Trouble]:
        """Run each node's commands in its agent (see agent.exec_in_agents)."""
        ...

    def create_service(self, name: str, backend: Socket, protocol: str) -> TemporaryService:
        """Create the temporary Service (see temporary_service.create); a recorded one may have had another backend."""
        ...

    def delete_service(self, name: str) -> None:
        """Delete it (see temporary_service.delete)."""
        ...

    def delete_leftovers(self) -> tuple[str, ...]:
        """Delete what an interrupted run left (see temporary_service.delete_leftovers)."""
        ...


class LiveCluster:
    """A real one.

    Args:
        client: from ``api.connect``.
        deadline: the run's.
    """

    def __init__(self, client: Any, deadline: Deadline) -> None:
        self._client = client
        self._deadline = deadline

    def get(self, name: str, path: str, *, phase: str, timeout: float = api.REQUEST_TIMEOUT) -> Observation:
        """One GET."""
        return api.get(self._client, name, path, timeout=timeout)

    def exec_in_agents(
        self, agents: Mapping[str, Pod], batch: Mapping[str, Sequence[Command]], *, phase: str
    ) -> dict[str, Answers | Trouble]:
        """Run each node's commands in its agent, all nodes at a time."""
        return agent.exec_in_agents(self._client, agents, batch, deadline=self._deadline, phase=phase, timeout=AGENT_TIMEOUT)

    def create_service(self, name: str, backend: Socket, protocol: str) -> TemporaryService:
        """Create the temporary Service."""
        return temporary_service.create(self._client, name, backend, protocol)

    def delete_service(self, name: str) -> None:
        """Delete it."""
        temporary_service.delete(self._client, name)

    def delete_leftovers(self) -> tuple[str, ...]:
        """Delete what an interrupted run left."""
        return temporary_service.delete_leftovers(self._client)


class Plans(Protocol):
    """Who says what is sent: a planner, or a recording of what was sent."""

    def plan(self, node: str, phase: str, objects: ClusterObjects, make: Callable[[], NodePlan]) -> NodePlan:
        """What the phase's next round on the node sends; raises CouldNotSee when that cannot be told."""
        ...


class LivePlans:
    """Everything is planned now."""

    def plan(self, node: str, phase: str, objects: ClusterObjects, make: Callable[[], NodePlan]) -> NodePlan:
        """What ``make`` plans."""
        return make()


class Clock(Protocol):
    """The time by which something is judged, and the waiting in between. ``what`` names it for a recording."""

    def now(self, what: str) -> float:
        """Seconds of a clock that never goes back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class LiveClock:
    """The real time."""

    def now(self, what: str) -> float:
        """Seconds of the monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)
