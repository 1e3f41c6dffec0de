"""What testinfra's back ends lack: standard input, and a time limit (its commands wait for ever)."""

from __future__ import annotations

from typing import Any

from testinfra.backend.base import BaseBackend, CommandResult

from .process import Finished


class LimitedBackend(BaseBackend):  # type: ignore[misc]  # testinfra publishes no types
    """Runs a command with standard input and a time limit; how it is started, the back end below says."""

    def run(self, command: str, *args: str, stdin: bytes = b"", timeout: float = 30.0, **_: Any) -> CommandResult:
        """Run a command as testinfra does; the exit status is 124 when the time was up (over ssh 255 when ssh itself failed)."""
        finished = self.execute(self.get_command(command, *args), stdin=stdin, timeout=timeout)
        status = 124 if finished.status is None else finished.status
        return CommandResult(
            backend=self, exit_status=status, command=command.encode(), _stdout=finished.stdout, _stderr=finished.stderr
        )

    def execute(self, command: str, *, stdin: bytes, timeout: float) -> Finished:
        """Run a command of the shell and return how it ended; ``timeout`` in seconds."""
        raise NotImplementedError
