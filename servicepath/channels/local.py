"""This very machine: a run on a node itself, or the LAN client that runs pytest."""

from __future__ import annotations

from testinfra.backend.local import LocalBackend

from . import process
from .batch import LAUNCH, BatchChannel
from .limited import LimitedBackend
from .process import Finished


class LimitedLocalBackend(LimitedBackend, LocalBackend):  # type: ignore[misc]  # testinfra publishes no types
    """Testinfra's local backend with standard input and a time limit."""

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

    def root_shell(self) -> tuple[str, ...]:
        """A shell of this machine."""
        return ("/bin/sh", "-c", f"exec {LAUNCH}")

    def _execute(self, script: bytes, timeout: float) -> Finished:
        return self.backend.execute(f"exec {LAUNCH}", stdin=script, timeout=timeout)
