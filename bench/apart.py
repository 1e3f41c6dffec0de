"""etcd and the lab's API server alone, in network, mount and process namespaces of their own, for a kube-proxy beside them.

There are no nodes, no kubelet and no Cilium: objects are made through the API as they are wanted. All processes and all rules go with
the namespaces.
"""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from typing import Any

from lab import builds, components, kubeconfig, pki, readiness
from lab.api import Api
from lab.process import run
from lab.progress import Progress
from lab.topology import Topology
from lab.waiting import until

WORKERS = 8
# A private /run holds iptables' lock; the processes end with the first one, and the rules with the network namespace.
_APART = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")

Creation = tuple[str, dict[str, Any]]


def call(module: str, arguments: Sequence[str | pathlib.Path], timeout: float) -> None:
    """Build the lab's Kubernetes where the cache does not have it, and run ``python -m MODULE ARGUMENTS`` in the namespaces.

    Raises:
        LabError: a part did not start or did not do its work in time; the message has its words.
    """
    builds.build({"kubernetes": builds.modules()["kubernetes"]}, Progress())
    run([*_APART, sys.executable, "-m", module, *arguments], timeout=timeout)


def begin(topology: Topology, *api_options: str) -> pathlib.Path:
    """Start etcd and the API server and return the folder of their files; for use within the namespaces alone."""
    run(["mount", "-t", "tmpfs", "tmpfs", "/run"])
    place = pathlib.Path(tempfile.mkdtemp(dir="/run"))
    authority = pki.create_all(topology, place / "pki")
    kubeconfig.write(place / "kube-proxy.kubeconfig", authority, topology.master.address, "kube-proxy")
    run(["ip", "link", "set", "lo", "up"])
    run(["ip", "addr", "add", f"{topology.master.address}/{topology.lan.network.prefixlen}", "dev", "lo"])
    start(place, components.etcd())
    start(place, [*components.apiserver(topology), *api_options])
    api = Api(topology, place / "pki")
    until(lambda: readiness.api_settled(api), "the API server", seconds=600)
    return place


def start(place: pathlib.Path, argv: Sequence[str], program: pathlib.Path | None = None) -> subprocess.Popen[bytes]:
    """Start a component of the lab with all its files in ``place``, from another ``program`` where one is given.

    It ends with the namespaces at the latest.
    """
    moved = {
        components.PROGRAMS: str(builds.modules()["kubernetes"].target),
        components.PKI: str(place / "pki"),
        components.KUBECONFIGS: str(place),
        "/run/servicepath": str(place),
        "/var/lib/etcd": str(place / "etcd"),
    }
    words = list(argv)
    for old, new in moved.items():
        words = [word.replace(old, new) for word in words]
    if program is not None:
        words[0] = str(program)
    with (place / f"{pathlib.Path(words[0]).name}.log").open("wb") as log:
        path = f"{place}:{os.environ['PATH']}"
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, "PATH": path})


def create(topology: Topology, place: pathlib.Path, objects: Sequence[Creation]) -> None:
    """Create the objects, several at a time, each worker by a connection of its own."""
    own = threading.local()

    def one(made: Creation) -> None:
        if not hasattr(own, "api"):
            own.api = Api(topology, place / "pki")
        own.api.create(*made)

    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for _ in pool.map(one, objects):
            pass
