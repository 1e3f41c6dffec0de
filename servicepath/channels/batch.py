"""What every channel does alike: build the script, run it by one shell of root's, take the answer apart, keep the books."""

from __future__ import annotations

import dataclasses
import shlex
import threading
from collections.abc import Mapping, Sequence

from .. import framing, troubles
from ..channel import Command
from ..observation import CouldNotSee, Observation, Trouble
from .process import Finished

# The login shell may be any shell, so the only thing it sees is one quoted word for /bin/sh. The script comes on standard
# input: its length is not limited to the 128 KiB of an argument, and `ps` on the node never shows it.
AS_ROOT = f'{framing.PATH}; if [ "$(id -u)" = 0 ]; then exec /bin/sh; fi; exec sudo -n /bin/sh'
LAUNCH = f"/bin/sh -c {shlex.quote(AS_ROOT)}"

# sshd allows ten sessions a connection (MaxSessions); two are left for whoever else shares it.
SESSIONS = 8


@dataclasses.dataclass(frozen=True, slots=True)
class RoundTrip:
    """One batch that was run: what the report counts.

    Attributes:
        node: where.
        phase: the part of the run it belonged to ("snapshot", "traffic", …).
        commands: how many commands it held.
        took: seconds, as seen from here.
        received: bytes of both streams.
    """

    node: str
    phase: str
    commands: int
    took: float
    received: int


class BatchChannel:
    """A Channel whose subclass only knows how to run one script.

    Several threads may use one channel.

    Args:
        node: the node's name, for Observations and errors.
        host: what is connected to.
    """

    def __init__(self, node: str, host: str, user: str | None = None) -> None:
        self.node = node
        self.host = host
        self.user = user
        self.log: list[RoundTrip] = []
        self._sessions = threading.BoundedSemaphore(SESSIONS)

    @property
    def round_trips(self) -> int:
        """How many batches were run."""
        return len(self.log)

    def run(self, commands: Sequence[Command], *, timeout: float, phase: str) -> dict[str, Observation]:
        """Run the commands one after the other as root and return what each said, by name.

        Args:
            commands: names must differ; each has its own time limit on the node.
            timeout: seconds for all of it, the connection included.
            phase: under what the round trip is counted.

        Raises:
            CouldNotSee: no connection, no root, time up, or output cut off; never a shorter answer.
        """
        boundary = framing.new_boundary()
        with self._sessions:
            finished = self._execute(framing.build(commands, boundary), timeout)
        self.log.append(RoundTrip(self.node, phase, len(commands), finished.took, len(finished.stdout) + len(finished.stderr)))
        if finished.status is None:
            raise CouldNotSee(self._late(finished, timeout, boundary, commands))
        try:
            return framing.take_apart(finished.stdout, finished.stderr, commands, boundary, self.node)
        except framing.CutOff as cut:
            raise CouldNotSee(self._explain(finished, str(cut), boundary, commands)) from cut

    def close(self) -> None:
        """End what the channel holds open; it may be called twice."""

    def by_hand(self) -> str:
        """The connection as a person would try it."""
        raise NotImplementedError

    def root_shell(self) -> tuple[str, ...]:
        """The command line, here, of a root shell there that reads its commands from standard input."""
        raise NotImplementedError

    def _execute(self, script: bytes, timeout: float) -> Finished:
        raise NotImplementedError

    def _late(self, finished: Finished, timeout: float, boundary: str, commands: Sequence[Command]) -> Trouble:
        last = framing.last_words(finished.stdout, boundary, commands)
        at = "while the connection was made" if not last else f"in: {last['command']}"
        return Trouble(
            node=self.node, problem=f"no answer within {timeout:.0f} s, {at}", command=self.by_hand(),
            output=_output(finished, last, boundary),
            remedy="a slow node or network: see it by hand with the command above, or give more time (--deadline)",
        )  # fmt: skip

    def _explain(self, finished: Finished, cut: str, boundary: str, commands: Sequence[Command]) -> Trouble:
        # Once the script runs, "Connection refused" may be a command's own word.
        if boundary.encode() not in finished.stdout:
            known = troubles.of_connection(self.node, self.host, self.by_hand(), finished.error_text, self.user)
            if known:
                return known
        last = framing.last_words(finished.stdout, boundary, commands)
        return Trouble(
            node=self.node, problem=f"{cut} (exit status {finished.status})",
            command=last.get("command", self.by_hand()), output=_output(finished, last, boundary),
            remedy=f"was sshd or the node restarted, or the session ended by a limit? By hand: {self.by_hand()}",
        )  # fmt: skip


def _output(finished: Finished, last: Mapping[str, str], boundary: str) -> str:
    """What a person may want to read of both streams: standard error without our markers, and the last command's output."""
    errors = [line for line in finished.error_text.splitlines() if line.strip() and boundary not in line]
    return "\n".join((*errors, last.get("output", "").strip())).strip()


