"""What the lab remembers of what it started, so that it ends that and nothing else.

A process is known by its id and the time it started: an id alone may have been given to another process since.
"""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lab.paths import STATE
from lab.settings import Settings


@dataclass(frozen=True)
class Process:
    """A process: its id and its start time (field 22 of /proc/PID/stat, in clock ticks since boot; proc_pid_stat(5))."""

    pid: int
    start: int

    def alive(self, proc: Path = Path("/proc")) -> bool:
        """Tell whether this very process still runs, by the /proc of its process id namespace."""
        return start_time(self.pid, proc) == self.start


@dataclass
class State:
    """The lab's state: ``phase`` is "starting" until everything was seen to work, then "ready", and "changing" while it is changed.

    ``settings`` is the set-up that was seen to work last, None before the first. ``inits`` has each host's process 1 as this
    machine sees it; ``components`` has, by host and name, each component as the host itself sees it.
    """

    phase: str = "starting"
    settings: Settings | None = None
    inits: dict[str, Process] = field(default_factory=dict)
    components: dict[str, dict[str, Process]] = field(default_factory=dict)

    def save(self, path: Path = STATE) -> None:
        """Write the state so that a reader sees either the old or the new one."""
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")
        partial.rename(path)


def read(path: Path = STATE) -> State | None:
    """Return the recorded state, or None where no lab has recorded one."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    return State(
        phase=data["phase"],
        settings=Settings(**data["settings"]) if data.get("settings") else None,
        inits={host: Process(**process) for host, process in data["inits"].items()},
        components={
            host: {name: Process(**process) for name, process in processes.items()} for host, processes in data["components"].items()
        },
    )


def start_time(pid: int, proc: Path = Path("/proc")) -> int | None:
    """Return when a process started, in clock ticks since boot; None if there is none or it is a zombie."""
    try:
        stat = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError, NotADirectoryError):
        return None
    after_name = stat.rpartition(")")[2].split()  # the name before it may hold blanks and parentheses
    return None if after_name[0] in "ZX" else int(after_name[19])


def inner_pid(pid: int) -> int | None:
    """Return a process's id in its innermost process id namespace; None if it is gone."""
    try:
        status = (Path("/proc") / str(pid) / "status").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return None
    line = next(line for line in status.splitlines() if line.startswith("NSpid:"))
    return int(line.split()[-1]) if os.path.exists(f"/proc/{pid}") else None
