"""What a lab may leave on this machine, taken before and after so that the two can be compared."""

from dataclasses import dataclass
from pathlib import Path

from lab import cgroups
from lab.paths import MACHINE_LEG, PREFIX, RUN


@dataclass(frozen=True)
class Traces:
    """Processes in the lab's cgroups or with its namespaces, its mounts, cgroups, links, namespaces and files."""

    processes: frozenset[str]
    mounts: frozenset[str]
    cgroups: frozenset[str]
    links: frozenset[str]
    namespaces: frozenset[str]
    files: frozenset[str]


def take() -> Traces:
    """Return this machine's traces now: all mounts, links and namespaces there are, not only those that look like the lab's."""
    return Traces(
        processes=frozenset(_processes()),
        mounts=frozenset(line.split()[4] for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()),
        cgroups=frozenset(str(path) for hierarchy in cgroups.hierarchies() for path in hierarchy.mount_point.iterdir() if path.is_dir()),
        links=frozenset(path.name for path in Path("/sys/class/net").iterdir()),
        namespaces=frozenset(path.name for path in Path("/run/netns").glob("*")),
        files=frozenset(str(path) for path in (RUN, Path("/var/lib/cilium"), Path("/etc/cni"), Path("/opt/cni")) if path.exists()),
    )


def of_the_lab() -> Traces:
    """Return the traces that carry the lab's name."""
    now = take()
    return Traces(
        processes=now.processes,
        mounts=frozenset(path for path in now.mounts if "servicepath" in path),
        cgroups=frozenset(path for path in now.cgroups if PREFIX in path),
        links=frozenset(name for name in now.links if name == MACHINE_LEG),
        namespaces=frozenset(name for name in now.namespaces if name.startswith(PREFIX)),
        files=frozenset(path for path in now.files if path == str(RUN)),
    )


def _processes() -> set[str]:
    """Return the living processes in a cgroup of the lab, at the top of its hierarchy: other people's containers come and go.

    One that has ended and waits for this machine's process 1 to take note (a zombie) is gone as far as the lab can see to it.
    """
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            ended = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] in "ZX"
            if not ended and f":/{PREFIX}" in (folder / "cgroup").read_text(encoding="utf-8"):
                found.add(f"{folder.name} {(folder / 'comm').read_text(encoding='utf-8').strip()}")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
    return found
