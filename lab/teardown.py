"""Taking the lab away, whole or in whatever state a crash or a kill left it.

The order matters: processes first (they hold everything else), then the network, cgroups and mounts. Processes are those
that the lab recorded, which are still the same by their start time, and all that are in the lab's own cgroups.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab import cgroups, containerd, network, state
from lab.errors import LabError
from lab.paths import RUN
from lab.process import run
from lab.progress import Progress
from lab.waiting import until

END_TIMEOUT = 10.0  # seconds for killed processes to be gone


def left_over() -> list[str]:
    """Return what of the lab is on this machine, in words; empty after a complete ``down``."""
    found = [f"cgroup {path}" for path in cgroups.left_over()]
    found += [f"network namespace {name}" for name in network.left_over()]
    if RUN.exists():
        found.append(f"{'mount' if RUN.is_mount() else 'folder'} {RUN}")
    if containerd.scratch().exists():
        found.append(f"mount {containerd.scratch()}")
    return found


def down(progress: Progress) -> None:
    """End every process of the lab and remove everything it made outside the cache.

    Raises:
        LabError: something would not go; everything else is gone, and the message says what is left and why.
    """
    troubles: list[str] = []

    @contextmanager
    def part(name: str) -> Iterator[None]:
        """Go on with the other parts where one fails."""
        try:
            with progress.step(name):
                yield
        except LabError as error:
            troubles.append(str(error))

    with part("processes ended"):
        _end_recorded()
        for folder in cgroups.left_over():
            cgroups.kill_and_remove(folder)
    with part("network removed"):
        network.remove()
    with part("mounts removed"):
        containerd.clean_up()
        _remove_run()
    left = left_over()
    if troubles or left:
        raise LabError("; ".join([*troubles, *(f"still there: {item}" for item in left)]))


def _end_recorded() -> None:
    """Kill each host's process 1, and with it by the kernel's own doing all else on that host (pid_namespaces(7))."""
    recorded = state.read()
    inits = recorded.inits.values() if recorded else ()
    for process in inits:
        if process.alive():
            os.kill(process.pid, signal.SIGKILL)
    until(
        lambda: next((f"process {process.pid} has not ended" for process in inits if process.alive()), None),
        "ending the hosts",
        seconds=END_TIMEOUT,
        every=0.01,
    )


def _remove_run(folder: Path = RUN) -> None:
    if folder.is_mount():
        run(["umount", "--lazy", folder])
    if folder.exists():
        folder.rmdir()
