"""One command at a time changes the lab, and one fills the cache."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from lab.paths import cache
from lab.progress import Progress


@contextmanager
def only_one(progress: Progress, what: str = "lab") -> Iterator[None]:
    """Hold a lock while the inside runs; who comes second says so and waits. The kernel frees it when its holder ends."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f"{what}.lock").open("w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.say(f"another command is busy with the {what}: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
