"""Process 1 of a lab host: make the host's own view of the file system, then become an init that reaps.

Run by ``lab.host`` as ``python -I -S init.py PLAN`` in fresh mount, UTS, IPC, PID and cgroup namespaces and in the
host's network namespace; it needs the standard library alone. PLAN is JSON:

``hostname``: the host's name. ``folder``: its part of the lab's tmpfs. ``overlays``: folders of the machine of which
the host gets a copy-on-write copy (upper/ in ``folder``). ``staged``: [from, to below folder, "ro" or "rw"], mounted
before anything hides the source. ``placed``: [below folder, path in the host], mounted last. ``cgroups``:
[path, type, options]. ``leaf``: the cgroup below the host's own to move into, or "".
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path


def mount(*arguments: str) -> None:
    """Call mount."""
    subprocess.run(["mount", *arguments], check=True)


def main(plan: dict) -> None:  # type: ignore[type-arg]  # JSON: checked by the one caller
    """Make the mounts and become the init."""
    folder = Path(plan["folder"])
    socket.sethostname(plan["hostname"])
    mount("--make-rshared", "/")
    stage(plan["staged"], folder)
    overlay(plan["overlays"], folder)
    remount_sys(plan["cgroups"])
    for source, target in plan["placed"]:
        Path(target).mkdir(parents=True, exist_ok=True)
        mount("--rbind", str(folder / source), target)
    if plan["leaf"]:
        for path, kind, _ in plan["cgroups"]:
            if kind == "cgroup2":
                (Path(path) / plan["leaf"] / "cgroup.procs").write_text("0", encoding="ascii")
    Path("/run/servicepath/ready").touch()
    os.execv("/usr/bin/catatonit", ["catatonit", "-P"])  # noqa: S606 - this process is to become it


def stage(staged: list[list[str]], folder: Path) -> None:
    """Mount folders and files of the machine below the host's own, where later mounts do not hide them."""
    for source, below, mode in staged:
        target = folder / below
        if Path(source).is_dir():
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch()
        mount("--bind", source, str(target))
        if mode == "ro":
            mount("-o", "remount,bind,ro", str(target))


def overlay(names: list[str], folder: Path) -> None:
    """Lay a copy-on-write copy over each of the machine's folders."""
    for name in names:
        upper, work = folder / "upper" / name.lstrip("/"), folder / "work" / name.lstrip("/")
        for path in (upper, work):
            path.mkdir(parents=True, exist_ok=True)
        upper.chmod(Path(name).stat().st_mode & 0o7777)
        mount("-t", "overlay", "-o", f"lowerdir={name},upperdir={upper},workdir={work}", "overlay", name)


def remount_sys(cgroups: list[list[str]]) -> None:
    """Mount /sys anew: it then shows this network namespace, the cgroups from the host's own root, and an own bpffs."""
    subprocess.run(["umount", "--lazy", "--recursive", "/sys"], check=True)
    mount("-t", "sysfs", "sysfs", "/sys")
    mount("-t", "bpf", "bpf", "/sys/fs/bpf")
    if [path for path, _, _ in cgroups] != ["/sys/fs/cgroup"]:
        mount("-t", "tmpfs", "tmpfs", "/sys/fs/cgroup")
    for path, kind, options in cgroups:
        Path(path).mkdir(parents=True, exist_ok=True)
        mount("-t", kind, *(["-o", options] if options else []), kind, path)
    mount("--make-rshared", "/sys")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
