"""A cgroup for each host, in every hierarchy that this machine has mounted.

A node's processes must be in the node's own cgroup, and not only in its namespaces: Cilium attaches socket load balancing
to the node's cgroup root, and a process elsewhere is not seen by it (kernel: cgroup BPF follows the cgroup, not the namespace).

Three layouts occur: cgroup v1 controllers beside a cgroup2 without any (called hybrid), cgroup2 alone (today's default of
distributions), and v1 alone, which Cilium cannot use.
"""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.paths import PREFIX
from lab.waiting import until

LEAF = "init"  # with cgroup2 alone, a cgroup that has controllers for its children may hold no process itself


@dataclass(frozen=True)
class Hierarchy:
    """One mounted cgroup hierarchy: where, of which file system type, and with which options to mount it again."""

    mount_point: Path
    kind: str
    options: str


def hierarchies(mountinfo: str | None = None) -> list[Hierarchy]:
    """Return this machine's cgroup hierarchies, from the text of /proc/self/mountinfo (proc_pid_mountinfo(5))."""
    text = Path("/proc/self/mountinfo").read_text(encoding="utf-8") if mountinfo is None else mountinfo
    found = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, super_options = after.split(" ", 2)
        if kind not in ("cgroup", "cgroup2"):
            continue
        wanted = [option for option in super_options.split(",") if option not in ("rw", "ro")]
        if kind == "cgroup" and any(option.startswith("name=") for option in wanted):
            wanted.insert(0, "none")
        found.append(Hierarchy(Path(before.split()[4]), kind, ",".join(wanted) if kind == "cgroup" else ""))
    return found


def unified() -> Path:
    """Return where the cgroup2 hierarchy is mounted.

    Raises:
        LabError: it is not mounted.
    """
    for hierarchy in hierarchies():
        if hierarchy.kind == "cgroup2":
            return hierarchy.mount_point
    raise LabError("no cgroup2 file system is mounted; mount one: mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified")


def only_unified() -> bool:
    """Tell whether cgroup2 is all there is, so that it also carries the controllers."""
    return all(hierarchy.kind == "cgroup2" for hierarchy in hierarchies())


def folders(host: str) -> list[Path]:
    """Return the host's cgroup in each hierarchy, as seen from this machine."""
    return [hierarchy.mount_point / f"{PREFIX}{host}" for hierarchy in hierarchies()]


def joined_files(host: str) -> list[Path]:
    """Return the files into which a process of the host writes its id to be in the host's cgroups."""
    leaf = LEAF if only_unified() else ""
    return [folder / leaf / "cgroup.procs" for folder in folders(host)]


def create(host: str) -> list[Path]:
    """Make the host's cgroups and return the files that its first process joins before it unshares the namespace."""
    for folder in folders(host):
        folder.mkdir(exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):  # v1: empty at first, and then no process may join
            parent, own = folder.parent / name, folder / name
            if parent.exists() and own.exists() and not own.read_text(encoding="ascii").strip():
                own.write_text(parent.read_text(encoding="ascii"), encoding="ascii")
        if only_unified():
            controllers = (folder.parent / "cgroup.controllers").read_text(encoding="ascii").split()
            enable = " ".join(f"+{controller}" for controller in controllers)
            (folder.parent / "cgroup.subtree_control").write_text(enable, encoding="ascii")
            (folder / LEAF).mkdir(exist_ok=True)
    return [folder / "cgroup.procs" for folder in folders(host)]


def settle(host: str, pid: int) -> None:
    """Move a process that joined at ``create`` to where all others are, out of the way of the controllers."""
    for path in joined_files(host):
        path.write_text(str(pid), encoding="ascii")


def left_over() -> list[Path]:
    """Return every cgroup of the lab that exists, in whatever hierarchy."""
    return [folder for hierarchy in hierarchies() for folder in sorted(hierarchy.mount_point.glob(f"{PREFIX}*"))]


def processes(folder: Path) -> set[int]:
    """Return the ids of the processes in a cgroup and in all below it."""
    found: set[int] = set()
    for path in folder.rglob("cgroup.procs"):
        try:
            found.update(int(pid) for pid in path.read_text(encoding="ascii").split())
        except FileNotFoundError:
            continue  # the cgroup went away between listing and reading: then it was empty
        except OSError:
            continue  # a threaded cgroup lists no processes of its own; its root does
    return found - {0}


def kill_and_remove(folder: Path, seconds: float = 10) -> None:
    """End every process of a cgroup and remove it with all below it.

    Raises:
        LabError: a process would not end, or the cgroup would not go, within ``seconds``.
    """

    def attempt() -> str | None:
        for pid in processes(folder):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue  # it ended by itself
        try:
            for below in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
                below.rmdir()
            folder.rmdir()
        except FileNotFoundError:
            return None if not folder.exists() else "it is being removed"
        except OSError as error:  # busy as long as a process is on its way out
            return f"{error.strerror}: processes {sorted(processes(folder))}"
        return None

    until(attempt, f"removing the cgroup {folder}", seconds=seconds, every=0.02)
