"""One lab host as processes: its namespaces and cgroup, and how a command or a component is started inside.

A host is a network namespace (lab.network), mount, UTS, IPC, PID and cgroup namespaces, a cgroup in every hierarchy
(lab.cgroups), and copy-on-write copies of the machine's /etc, /home, /opt, /usr and /var: what happens on a host stays on it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab import cgroups, network
from lab.errors import LabError
from lab.paths import LAB, logs, node_folder
from lab.process import shown
from lab.state import Process, inner_pid, start_time
from lab.waiting import until

OVERLAYS = ("/etc", "/home", "/opt", "/usr", "/var")
# Below the host's folder on the lab's tmpfs → where the host sees it. containerd's folder cannot lie on an overlay, since
# its snapshots are overlays themselves; the kubelet's needs mounts that spread into containers. What this machine's own etcd or
# container engine keeps is none of the lab's. /run is last: it hides the rest.
PLACED = (
    ("containerd", "/var/lib/containerd"),
    ("kubelet", "/var/lib/kubelet"),
    ("etcd", "/var/lib/etcd"),
    ("cni", "/etc/cni/net.d"),
    ("pods", "/var/log/pods"),
    ("programs", "/opt/servicepath-lab/bin"),
    ("cilium", "/opt/servicepath-lab/cilium"),
    ("tmp", "/tmp"),  # noqa: S108 - a host's own /tmp, mounted by root
    ("run", "/run"),
)
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT = {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8"}
# Join the cgroups whose files come before "--", then become the command behind it.
JOIN = ["sh", "-c", 'while [ "$1" != -- ]; do echo $$ > "$1" || exit; shift; done; shift; exec "$@"', "join"]
# Of no terminal, and asked to end by the signals that this process may ignore while it takes something back.
APART = ["setsid", "--fork", "env", "--default-signal=INT,TERM"]
# Note the process id as the host sees it, then become the component.
AS_COMPONENT = ["sh", "-c", 'echo $$ > "/run/servicepath/$0.pid" && exec "$@"']
NOTHING = Path("/dev/null")
START_TIMEOUT = 20.0  # seconds
END_TIMEOUT = 30.0


@dataclass(frozen=True)
class Staged:
    """A folder of this machine that a host gets, below its own folder and placed as PLACED says."""

    source: Path
    below: str
    writable: bool = False


@dataclass(frozen=True)
class LabHost:
    """A running lab host."""

    name: str
    init: Process

    @property
    def proc(self) -> Path:
        """The host's own /proc, by way of its process 1."""
        return self.root / "proc"

    @property
    def root(self) -> Path:
        """The host's file system, by way of its process 1."""
        return Path(f"/proc/{self.init.pid}/root")

    def argv(self, command: Sequence[str | Path]) -> list[str]:
        """Return the command that runs another one inside: in the host's cgroups and in all its namespaces."""
        joined = [str(path) for path in cgroups.joined_files(self.name)]
        return [*JOIN, *joined, "--", "nsenter", "-t", str(self.init.pid), "-a", *(str(word) for word in command)]

    def run(self, command: Sequence[str | Path], timeout: float = 60, stdin: Path = NOTHING) -> "subprocess.CompletedProcess[str]":
        """Run a command inside to its end, with a file of this machine as its input, and return what it said, whatever its exit status.

        Raises:
            LabError: no end after ``timeout`` seconds.
        """
        argv = self.argv(command)
        try:
            with stdin.open("rb") as given:
                return subprocess.run(argv, capture_output=True, text=True, timeout=timeout, env=ENVIRONMENT, check=False, stdin=given)
        except subprocess.TimeoutExpired as error:
            raise LabError(f"{self.name}: {shown([str(word) for word in command])}: no end after {timeout:.0f} s") from error

    def start(self, name: str, command: Sequence[str | Path], environment: dict[str, str] | None = None) -> Process:
        """Start a component inside, a child of the host's process 1, and return it as the host sees it.

        Its output goes to the component's log, its process id to /run/servicepath/NAME.pid on the host.

        Raises:
            LabError: it did not start, or ended at once; the message names the log.
        """
        log = self.log(name)
        pid_file = self.root / "run/servicepath" / f"{name}.pid"
        pid_file.unlink(missing_ok=True)
        with log.open("ab") as out:
            argv = self.argv([*APART, *AS_COMPONENT, name, *command])
            subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={**ENVIRONMENT, **(environment or {})}, check=False)
        until(
            lambda: None if _number(pid_file) else "it has not begun",
            f"{self.name}: starting {name}",
            seconds=START_TIMEOUT,
            every=0.005,
            where=str(log),
        )
        pid = _number(pid_file) or 0
        begun = start_time(pid, self.proc)
        if begun is None:
            raise LabError(f"{self.name}: {name} ended at once (see {log})")
        return Process(pid, begun)

    def end(self, name: str, component: Process) -> None:
        """Ask a component to end, and return once it is gone.

        Raises:
            LabError: it does not end; the message names its log.
        """
        if self.runs(component):
            self.run(["kill", str(component.pid)])
        until(
            lambda: "it still runs" if self.runs(component) else None,
            f"{self.name}: ending {name}",
            seconds=END_TIMEOUT,
            every=0.02,
            where=str(self.log(name)),
        )

    def log(self, name: str) -> Path:
        """Return the log of a component of this host."""
        return logs() / self.name / f"{name}.log"

    def runs(self, component: Process) -> bool:
        """Tell whether a component still runs."""
        return self.init.alive() and component.alive(self.proc)


def start(name: str, staged: Sequence[Staged]) -> LabHost:
    """Start a host whose folder (lab.paths.node_folder) has been filled, and return it once its mounts are made.

    Raises:
        LabError: its process 1 did not come up; the message names its log.
    """
    folder = node_folder(name)
    for below, _ in PLACED:
        (folder / below).mkdir(parents=True, exist_ok=True)
    (folder / "tmp").chmod(0o1777)
    for below in ("run/servicepath", "run/netns", "run/lock", "run/sshd"):
        (folder / below).mkdir(parents=True, exist_ok=True)
    (logs() / name).mkdir(parents=True, exist_ok=True)
    log = logs() / name / "init.log"
    joining = cgroups.create(name)
    with log.open("wb") as out:
        outer = subprocess.Popen(_start_argv(name, joining, staged), stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def made() -> str | None:
        if outer.poll() is not None:
            raise LabError(f"{name}: its process 1 ended with status {outer.returncode} (see {log})")
        return None if (folder / "run/servicepath/ready").exists() else "its mounts are not made yet"

    until(made, f"{name}: starting the host", seconds=START_TIMEOUT, every=0.01, where=str(log))
    if cgroups.only_unified():
        cgroups.settle(name, outer.pid)
    return LabHost(name, _find_init(name))


def _start_argv(name: str, joining: Sequence[Path], staged: Sequence[Staged]) -> list[str]:
    plan = {
        "hostname": name,
        "folder": str(node_folder(name)),
        "overlays": [path for path in OVERLAYS if Path(path).is_dir()],
        "staged": [[str(item.source), item.below, "rw" if item.writable else "ro"] for item in staged],
        "placed": PLACED,
        "cgroups": [[str(item.mount_point), item.kind, item.options] for item in cgroups.hierarchies()],
        "leaf": cgroups.LEAF if cgroups.only_unified() else "",
    }
    return [
        *(*JOIN, *(str(path) for path in joining), "--"),
        *("setsid", "nsenter", f"--net=/run/netns/{network.namespace(name)}"),
        *("unshare", "--mount", "--uts", "--ipc", "--pid", "--cgroup", "--fork", "--kill-child", "--mount-proc"),
        *(sys.executable, "-I", "-S", str(LAB / "node" / "init.py"), json.dumps(plan)),
    ]


def _find_init(name: str) -> Process:
    """Return the host's process 1: of all in its cgroup the one that has the id 1 inside."""
    pids = {pid for folder in cgroups.folders(name) for pid in cgroups.processes(folder)}
    for pid in sorted(pids):
        begun = start_time(pid)
        if begun is not None and inner_pid(pid) == 1:
            return Process(pid, begun)
    raise LabError(f"{name}: no process 1 among {sorted(pids)} (see {logs() / name / 'init.log'})")


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii") or 0) or None
    except FileNotFoundError:
        return None


def become(host: LabHost, command: Sequence[str]) -> None:
    """Replace this process by a command inside the host, with this process's own terminal, input and output."""
    argv = host.argv(command)
    os.execvpe(argv[0], argv, {**ENVIRONMENT, "TERM": os.environ.get("TERM", "dumb")})  # noqa: S606 - this very thing
