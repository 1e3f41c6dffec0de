"""This very machine: a run on a node itself, or the LAN client that runs pytest."""

from __future__ import annotations

from typing import Any

from testinfra.backend.base import CommandResult
from testinfra.backend.local import LocalBackend

from . import process
from .batch import LAUNCH, BatchChannel
from .process import Finished


class LimitedLocalBackend(LocalBackend):  # type: ignore[misc]  # testinfra publishes no types
    """Testinfra's local backend with standard input and a time limit."""

    def run(self, command: str, *args: str, stdin: bytes = b"", timeout: float = 30.0, **_: Any) -> CommandResult:
        """Run a command as testinfra does; the exit status is 124 when the time was up."""
        finished = self.execute(self.get_command(command, *args), stdin=stdin, timeout=timeout)
        status = 124 if finished.status is None else finished.status
        return CommandResult(
            backend=self, exit_status=status, command=command.encode(), _stdout=finished.stdout, _stderr=finished.stderr
        )

    def execute(self, command: str, *, stdin: bytes, timeout: float) -> Finished:
        """Run a shell command and return how it ended."""
        return process.run(("/bin/sh", "-c", command), stdin=stdin, timeout=timeout)


class LocalChannel(BatchChannel):
    """A Channel to this machine: directly as root, else by ``sudo -n``."""

    def __init__(self, node: str) -> None:
        super().__init__(node, "this machine")
        self.backend = LimitedLocalBackend()

    def by_hand(self) -> str:
        """The connection as a person would try it."""
        return "sudo -n /bin/sh -c id"

    def _execute(self, script: bytes, timeout: float) -> Finished:
        return self.backend.execute(f"exec {LAUNCH}", stdin=script, timeout=timeout)
