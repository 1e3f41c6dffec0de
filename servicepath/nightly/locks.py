"""Two runs at once: one at a time on this machine and one at a time on the cluster; who comes second waits, or says who is at it.

On this machine it is a locked file: the kernel frees it with the last process that has it open, however that ends. On the cluster it is
a Lease, or where that is not allowed a locked file on the first node, held by a shell there that ends with the connection. The suite,
the night's child, has the file and the connection open, too: a night that is killed frees its locks when nothing of it goes on.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import platform
import pwd
import threading
import time
from collections.abc import Iterator
from typing import Protocol

from ..report.visible import one_line, visible
from . import stopping
from .stopping import Stopped, TimeIsUp

RETRY = 5.0  # seconds between two looks at the cluster's lock


class HeldByAnother(Exception):
    """Somebody else has the lock; the text says who, since when."""


class ClusterLock(Protocol):
    """A lock that the cluster keeps."""

    def take(self) -> str | None:
        """Take it; None, or who has it. Raises CouldNotSee when this kind of lock is not to be had here."""

    def release(self) -> None:
        """Give it back; also what a take() that was broken off may have taken."""

    def descriptors(self) -> tuple[int, ...]:
        """What holds it as long as any process has it open; empty when it is held by other means."""

    def lost(self) -> str | None:
        """Why it is ours no more, though it was not given back; None while it is ours."""


def holder() -> str:
    """Who we are: ``root@ops1, process 4711, since 2026-11-30 02:00:00 UTC``."""
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user without a line in passwd
        user = str(os.getuid())
    return f"{user}@{platform.node() or 'a machine without a name'}, process {os.getpid()}, since {since}"


@contextlib.contextmanager
def on_this_machine(path: pathlib.Path, wait: float) -> Iterator[int]:
    """Hold the file; it stays, and frees itself with the last process that has the descriptor, which is given.

    Raises:
        HeldByAnother: somebody else had it for all of ``wait`` seconds.
        OSError: the file cannot be made.
    """
    with path.open("a+", encoding="utf-8", errors="replace") as file:
        if not _locked(file.fileno(), wait):
            file.seek(0)
            who = visible(one_line(file.read(1000)))
            raise HeldByAnother(f"another run has {path}: {who or 'it does not say who it is'}")
        file.truncate(0)
        file.write(holder() + "\n")
        file.flush()
        try:
            yield file.fileno()
        finally:
            file.truncate(0)


def _locked(descriptor: int, wait: float) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        if wait <= 0:
            return False
    try:
        with stopping.within(wait):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    except TimeIsUp:
        return False
    return True


@contextlib.contextmanager
def on_the_cluster(lock: ClusterLock, wait: float, *, retry: float = RETRY) -> Iterator[None]:
    """Hold the cluster's lock.

    Raises:
        HeldByAnother: somebody else had it for all of ``wait`` seconds.
        CouldNotSee: this kind of lock is not to be had.
    """
    end, pause = time.monotonic() + wait, threading.Event()
    try:
        while who := lock.take():
            left = end - time.monotonic()
            if left <= 0:
                raise HeldByAnother(f"another run is at this cluster: {who}")
            pause.wait(min(retry, left))
    except Stopped:
        lock.release()
        raise
    try:
        yield
    finally:
        lock.release()
