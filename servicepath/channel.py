"""How to reach a node."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

from .observation import Observation


@dataclasses.dataclass(frozen=True, slots=True)
class Command:
    """One command of a batch.

    Attributes:
        name: becomes the Observation's name.
        argv: run exactly so, without a shell in between; for shell text say ``("sh", "-c", text)``.
        stdin: fed to it; empty otherwise.
        timeout: seconds after which it is ended on the node.
        netns: path of a network namespace to run it in (``/run/netns/cni-…``), None for the host's.
    """

    name: str
    argv: tuple[str, ...]
    stdin: bytes = b""
    timeout: float = 10.0
    netns: str | None = None


class Channel(Protocol):
    """A way to run a batch of commands, as root, on one node in one round trip."""

    node: str

    @property
    def round_trips(self) -> int:
        """How many batches were run so far."""
        ...

    def run(self, commands: Sequence[Command], *, timeout: float, phase: str) -> dict[str, Observation]:
        """Run the commands one after the other and return what each said, by name.

        A command that fails or times out is an Observation with its status; only when nothing can be seen (ssh, sudo, host
        key, deadline, output cut off) CouldNotSee is raised, with the command and its output.
        """
        ...
