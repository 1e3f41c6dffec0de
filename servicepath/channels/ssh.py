"""A node over OpenSSH: multiplexed, host keys checked, never asking, never hanging.

The user's own OpenSSH configuration counts (aliases, keys, ProxyJump, known_hosts); only what a run without a terminal needs is
set on top of it.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shlex
import shutil
import stat
import tempfile
import threading
import time
import urllib.parse

from testinfra.backend.ssh import SshBackend

from . import process
from .batch import LAUNCH, BatchChannel
from .limited import LimitedBackend
from .process import Finished

CONNECT_TIMEOUT = 10  # seconds; sshd behind a busy small machine takes up to 5
# ssh puts 17 characters of its own behind ControlPath while it makes the socket; a socket's path holds 108 with its NUL
# (104 on macOS and the BSDs).
_SOCKET_PATH_LIMIT = 104 - 18
# Seconds. Not sooner: a process in another container that shares /tmp has a number of its own.
FORSAKEN_AFTER = 24 * 3600


@dataclasses.dataclass(frozen=True, slots=True)
class SshLogin:
    """How to log in; None means what OpenSSH's own configuration says."""

    user: str | None = None
    config: pathlib.Path | None = None
    identity: pathlib.Path | None = None
    port: int | None = None


class SocketFolder:
    """A private folder for the sockets of multiplexed connections, short enough for a socket's path.

    A run that was killed leaves its folder behind; the next one removes it. The connections in it have ended by themselves.
    """

    def __init__(self) -> None:
        base = tempfile.gettempdir()
        if len(base) + len("/sp-4194304-12345678/99") > _SOCKET_PATH_LIMIT:
            base = "/tmp"  # noqa: S108  (mkdtemp makes a folder of its own in it, mode 0700)
        for folder in pathlib.Path(base).glob("sp-*-*"):
            if _forsaken(folder):
                shutil.rmtree(folder, ignore_errors=True)
        self.path = pathlib.Path(tempfile.mkdtemp(prefix=f"sp-{os.getpid()}-", dir=base))
        self._count = 0
        self._lock = threading.Lock()

    def new(self) -> pathlib.Path:
        """The path of one more socket."""
        with self._lock:
            self._count += 1
            return self.path / str(self._count)

    def remove(self) -> None:
        """Remove the folder; the masters must have been told to exit before."""
        shutil.rmtree(self.path, ignore_errors=True)


def _forsaken(folder: pathlib.Path) -> bool:
    """Whether a run of ours made this folder that is gone: its process is, and for longer than a run takes to begin."""
    number = folder.name.split("-")[1]
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return False
    ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and number.isdecimal()
    return ours and time.time() - status.st_mtime > FORSAKEN_AFTER and not pathlib.Path(f"/proc/{number}").exists()


class LimitedSshBackend(LimitedBackend, SshBackend):  # type: ignore[misc]  # testinfra publishes no types
    """Testinfra's ssh backend with standard input, a time limit, and no shell on this side."""

    def argv(self, command: str) -> list[str]:
        """The ssh command line that runs a command."""
        parts, values = self._build_ssh_command(command)
        return shlex.split(self.quote(" ".join(parts), *(str(value) for value in values)))

    def execute(self, command: str, *, stdin: bytes, timeout: float) -> Finished:
        """Run a command of the remote shell and return how ssh ended."""
        return process.run(self.argv(command), stdin=stdin, timeout=timeout)


class SshChannel(BatchChannel):
    """A Channel over ssh, as root or by ``sudo -n``.

    Args:
        node: the node's name, for Observations and errors.
        host: what ssh is to connect to: an alias, a name or an address.
        login: what the inventory says about logging in.
        sockets: where the multiplexed connection's socket goes.
    """

    def __init__(self, node: str, host: str, login: SshLogin, sockets: SocketFolder) -> None:
        super().__init__(node, host, login.user)
        self._login = login
        self._socket = sockets.new()
        self.backend = LimitedSshBackend(
            _hostspec(host, login), ssh_config=str(login.config) if login.config else None,
            ssh_identity_file=str(login.identity) if login.identity else None, ssh_extra_args=_options(self._socket),
        )  # fmt: skip

    def by_hand(self) -> str:
        """The connection as a person would try it."""
        said = (("-F", self._login.config), ("-i", self._login.identity), ("-p", self._login.port), ("-l", self._login.user))
        options = [word for flag, value in said if value for word in (flag, str(value))]
        return shlex.join(("ssh", *options, self.host, "sudo -n /bin/sh -c id"))

    def root_shell(self) -> tuple[str, ...]:
        """The ssh command line of a shell there."""
        return tuple(self.backend.argv(LAUNCH))

    def close(self) -> None:
        """Tell the multiplexing master to exit, so that no ssh is left behind."""
        if self._socket.exists():
            # The answer does not matter: with no master there is nothing to end, and it would end by itself after a minute.
            process.run(self._exit_argv(), timeout=5)

    def _exit_argv(self) -> list[str]:
        argv = self.backend.argv("true")
        return [*argv[:-2], "-O", "exit", argv[-2]]

    def _execute(self, script: bytes, timeout: float) -> Finished:
        return self.backend.execute(LAUNCH, stdin=script, timeout=timeout)


def _hostspec(host: str, login: SshLogin) -> str:
    quoted = urllib.parse.quote(host, safe=":")
    if ":" in quoted:
        quoted = f"[{quoted}]"
    user = f"{urllib.parse.quote(login.user, safe='')}@" if login.user else ""
    return f"{user}{quoted}" + (f":{login.port}" if login.port else "")


def _options(socket: pathlib.Path) -> str:
    options = (
        "BatchMode=yes", "StrictHostKeyChecking=yes", f"ConnectTimeout={CONNECT_TIMEOUT}",
        "ServerAliveInterval=5", "ServerAliveCountMax=3",
        "ControlMaster=auto", "ControlPersist=60", f"ControlPath={socket}",
        # What a user's configuration may ask for an interactive session and what would break this one.
        "RequestTTY=no", "RemoteCommand=none", "PermitLocalCommand=no", "ClearAllForwardings=yes", "ForwardAgent=no",
        "ForwardX11=no",
    )  # fmt: skip
    return "-T " + " ".join(f"-o {shlex.quote(option)}" for option in options)
