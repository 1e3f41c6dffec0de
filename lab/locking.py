"""One command at a time changes the lab, and one fills the cache."""

import fcntl
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TextIO

from lab.errors import RefusedError
from lab.paths import cache
from lab.progress import Progress


@contextmanager
def only_one(progress: Progress, what: str = "lab", *, wait: bool = True) -> Iterator[None]:
    """Hold a lock while the inside runs. The kernel frees it when its holder ends; the file says who that is.

    Args:
        progress: is told whom this command waits for.
        what: "lab" or "cache".
        wait: whether to wait for another command that holds it.

    Raises:
        RefusedError: another one holds it, and this one is not to wait.
    """
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f"{what}.lock").open("a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            busy = f"another command is busy with the {what}: {_holder(lock)}"
            if not wait:
                raise RefusedError(f"{busy}; nothing was done: run this again when that has ended") from None
            progress.say(f"{busy}: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        lock.truncate(0)
        print(f"{shlex.join(sys.orig_argv)} (process {os.getpid()}, since {datetime.now():%H:%M:%S})", file=lock, flush=True)
        yield


def _holder(lock: TextIO) -> str:
    lock.seek(0)
    return lock.read().strip() or "it does not say which"
