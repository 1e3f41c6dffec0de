"""The cluster's lock as a locked file on a node, for where no Lease is allowed: held by a shell there that ends with the connection.

What the shell holds, the kernel frees when it ends: by release(), by a killed run, by a connection that is gone, at the latest
after some hours. The file goes with it. The shell waits for the end of its input, and that is a pipe which the suite, the night's child,
has open too: of a killed night the last one who ends it is whoever lives longest.
"""

from __future__ import annotations

import shlex
import subprocess
import tempfile

from ..channels.batch import BatchChannel
from ..observation import CouldNotSee, Trouble

FILE = "/run/servicepath-nightly.lock"
LONGEST = 6 * 3600  # seconds

# One compound command: the shell reads all of it before it runs any, so that standard input is cat's to wait on. A file that is not
# the one at the path any more was removed by its last holder: the next look takes the new one.
_SCRIPT = """{{
umask 077
exec 9<>{file} || exit 1
flock -n 9
case $? in 0) ;; 1) echo "held $(head -c 300 {file})"; exit 0;; *) exit 1;; esac
if ! [ {file} -ef /proc/self/fd/9 ]; then echo "held a run that ends just now"; exit 0; fi
printf '%s\\n' {holder} >&9
echo ours
timeout {longest} cat >/dev/null
rm -f {file}
exit 0
}}
"""


class NodeLock:
    """A file on one node, ours to hold.

    Args:
        channel: the way to the node.
        holder: who we are; it stands in the file while we hold it.
        file: its path there.
    """

    def __init__(self, channel: BatchChannel, holder: str, file: str = FILE) -> None:
        self._channel = channel
        self._script = _SCRIPT.format(file=shlex.quote(file), holder=shlex.quote(holder), longest=LONGEST)
        self._shell: subprocess.Popen[str] | None = None

    def take(self) -> str | None:
        """Take it; None, or who has it.

        Raises:
            CouldNotSee: no way to the node, or no flock there.
        """
        # Not a pipe: an ssh that becomes a multiplexing master keeps its standard error open (channels/process.py).
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - it goes with this object
        argv = self._channel.root_shell()
        # A session of its own: a signal for all that runs at this terminal, or in this group, must not free the lock before its time.
        shell = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        )  # fmt: skip
        self._shell = shell
        stdin, stdout = shell.stdin, shell.stdout
        if stdin is None or stdout is None:  # Popen made both; the type does not say so
            raise RuntimeError("no pipes")
        try:
            stdin.write(self._script)
            stdin.flush()
            word, _, who = stdout.readline().strip().partition(" ")
        except OSError:
            word, who = "", ""
        if word == "ours":
            return None
        self.release()
        if word == "held":
            return f"{who or 'a run that does not say who it is'} (by {self._channel.node})"
        problem = "no lock on this node: its shell could not be had, or flock is not there (package util-linux)"
        errors.seek(0)
        raise CouldNotSee(Trouble(self._channel.node, problem, self._channel.by_hand(), errors.read().decode("utf-8", "replace")))

    def release(self) -> None:
        """Give it back: the shell there sees the end of its input, and removes the file."""
        if self._shell:
            self._shell.communicate()
            self._shell = None

    def descriptors(self) -> tuple[int, ...]:
        """The writing end of the shell's input."""
        return (self._shell.stdin.fileno(),) if self._shell and self._shell.stdin else ()

    def lost(self) -> str | None:
        """A shell that has ended by itself holds nothing."""
        if self._shell is None or self._shell.poll() is None:
            return None
        return f"the connection to {self._channel.node}, which held it, is gone"
