"""``python -m bench``: how fast the lab comes up and goes, what it weighs, and how fast and gentle the suite is on it.

Everything is measured in one run on one machine, which is named with the figures; a ratio to a bare start of pytest stands beside the
suite's wall time, since machines differ and are shared. Needs root and a warm cache of built programs.
"""

from __future__ import annotations

import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

from bench import kubeproxy, replayed
from lab import builds, paths

ROOT = pathlib.Path(__file__).resolve().parent.parent
NODES = ("master", "worker1", "worker2")
CGROUPS = pathlib.Path("/sys/fs/cgroup")

# Runs of the suite; the median is told, with the fastest and slowest.
RUNS = 5


def timed(arguments: Sequence[str]) -> float:
    """Run a command of this project and return its wall time in seconds.

    Raises:
        SystemExit: it failed; its output is shown.
    """
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"bench: {' '.join(arguments)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return time.monotonic() - started


def cpu(node: str) -> float:
    """CPU seconds that all processes of a node have used, by its cgroup (v1's cpuacct, else cgroup2's cpu.stat)."""
    old = CGROUPS / "cpuacct" / f"servicepath-{node}" / "cpuacct.usage"
    if old.exists():
        return int(old.read_text()) / 1e9
    for line in (CGROUPS / f"servicepath-{node}" / "cpu.stat").read_text().splitlines():
        if line.startswith("usage_usec"):
            return int(line.split()[1]) / 1e6
    raise SystemExit(f"bench: no CPU account of {node} in {CGROUPS}")


def memory() -> float:
    """GiB of resident memory of all processes of the lab (their Pss, so that shared pages count once)."""
    total = 0
    for node in NODES:
        folder = next(f for f in (CGROUPS / "pids" / f"servicepath-{node}", CGROUPS / f"servicepath-{node}") if f.exists())
        for procs in folder.rglob("cgroup.procs"):
            total += sum(_pss(int(pid)) for pid in procs.read_text().split())
    return total / 1024**2


def _pss(pid: int) -> int:
    """KiB of one process; 0 for one that has ended meanwhile."""
    try:
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))


def lab() -> None:
    """The lab, from nothing to "every conclusion can be asserted", and away."""
    timed(["lab", "down"])
    up = timed(["lab", "up"])
    weight = memory()
    down = timed(["lab", "down"])
    again = timed(["lab", "up"])
    print(f"lab up, warm cache      {up:6.1f} s, again {again:.1f} s")
    print(f"lab down                {down:6.1f} s")
    print(f"lab's processes         {weight:6.2f} GiB")


def suite() -> None:
    """The whole suite on the lab, report included, and what it costs the nodes."""
    bare = timed(["pytest", "--collect-only", "-q"])
    walls, costs = [], []
    for _ in range(RUNS):
        idle = {node: cpu(node) for node in NODES}
        time.sleep(5)  # the nodes' own load, to be taken off: a rate has no event to wait for
        before, started = {node: cpu(node) for node in NODES}, time.monotonic()
        rates = {node: (before[node] - idle[node]) / 5 for node in NODES}
        walls.append(timed(["pytest", "-q"]))
        took = time.monotonic() - started
        costs.append(max(cpu(node) - before[node] - rates[node] * took for node in NODES))
    facts = json.loads((ROOT / "reports" / "facts.json").read_text(encoding="utf-8"))
    trips = {phase: max(seen["round_trips"] for seen in nodes.values()) for phase, nodes in facts["phases"].items()}
    spread = f"(fastest {min(walls):.1f}, slowest {max(walls):.1f}, of {RUNS})"
    print(f"suite, wall             {statistics.median(walls):6.1f} s {spread}, {statistics.median(walls) / bare:.1f} × a bare collection")
    print(f"CPU on the busiest node {statistics.median(costs):6.1f} s beyond its own load")
    print(f"ssh round trips a node  {', '.join(f'{phase} {count}' for phase, count in trips.items())}")


def scale() -> None:
    """Ten thousand Services' rules, written by a real kube-proxy, and a capture of a million packets; CPU seconds of processes alone."""
    version = builds.modules()["kubernetes"].version
    rules = paths.cache() / f"bench-kube-proxy-{version}-{kubeproxy.SERVICES}"
    if not (rules / kubeproxy.RULES[-1]).exists():
        kubeproxy.make(rules)
    for what in (str(rules), "capture"):
        done = subprocess.run([sys.executable, "-m", "bench.judge", what], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"bench: {what}: {done.stderr[-2000:]}")
        figures = json.loads(done.stdout)
        floor = next(figures[name] for name in figures if name.startswith("floor"))
        for name, figure in figures.items():
            unit = "MiB" if name.startswith("MiB") else f"s CPU, {figure / floor:.0f} × the floor"
            print(f"{name:<70} {figure:6.2f} {unit}")


def main() -> None:
    """Measure and print."""
    if os.geteuid() != 0:
        raise SystemExit("bench: the lab is root's: run this as root (sudo make bench)")
    print(f"{os.cpu_count()} cores, Linux {platform.release()}, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}")
    scale()
    print("\n".join(replayed.lines(replayed.measure())))
    lab()
    suite()


if __name__ == "__main__":
    main()
