"""What the Cilium agents know, asked by pods/exec: one exec a node, all nodes side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..channel import Command
from ..deadline import Deadline
from ..fleet import Answers
from ..model.services import Pod
from ..observation import Trouble

CONTAINER = "cilium-agent"


def commands() -> tuple[Command, ...]:
    """The state that every conclusion about Cilium needs.

    Names: agent-status (JSON), agent-status-verbose (text), agent-services (JSON), agent-lb-list (JSON).
    """
    return (
        dbg("agent-status", "status", "-o", "json"),
        dbg("agent-status-verbose", "status", "--verbose"),
        dbg("agent-services", "service", "list", "-o", "json"),
        dbg("agent-lb-list", "bpf", "lb", "list", "-o", "json"),
    )


def flows(name: str) -> Command:
    """Cilium's connection tracking table as text (``bpf ct list global``), under a name of the caller's ("cut-2-agent-ct")."""
    return dbg(name, "bpf", "ct", "list", "global")


def dbg(name: str, *arguments: str) -> Command:
    """A command of cilium-dbg (called cilium before Cilium 1.15)."""
    return Command(name, ("cilium-dbg", *arguments), timeout=20)


def exec_in_agents(
    client: Any, agents: Mapping[str, Pod], batch: Mapping[str, Sequence[Command]], *, deadline: Deadline, phase: str, timeout: float = 30.0
) -> dict[str, Answers | Trouble]:
    """Run each node's commands in its agent.

    Args:
        client: from ``api.connect``.
        agents: node → the agent's Pod (ClusterObjects.agents).
        batch: node → commands.
        deadline: the run's.
        phase: named in errors.
        timeout: seconds for one node.

    Returns:
        Node → what its commands said, by name; or why nothing could be seen there (no agent, not running, forbidden, time up).
    """
    raise NotImplementedError
