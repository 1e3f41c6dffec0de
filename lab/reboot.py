"""Turning a node off and on again: every process ends at once, /run, /tmp and all that the kernel knew are gone, the disk stays."""

import os
import shutil
import signal
from datetime import UTC, datetime
from functools import partial

from lab import cgroups, changes, components, host, network, readiness
from lab.api import Api
from lab.cluster import Cluster, staged, unless_ended
from lab.errors import LabError
from lab.paths import logs, node_folder
from lab.topology import KubernetesNode
from lab.waiting import until

OFF_TIMEOUT = 10.0  # seconds
READY_TIMEOUT = 240.0  # seconds; some thirty are usual


def node(cluster: Cluster, name: str) -> KubernetesNode:
    """Return a node of the lab by name.

    Raises:
        LabError: there is none; the message lists the names there are.
    """
    for each in cluster.topology.nodes:
        if each.name == name:
            return each
    raise LabError(f"no node named {name!r} in the lab; there are {', '.join(each.name for each in cluster.topology.nodes)}")


def reboot(cluster: Cluster, each: KubernetesNode) -> None:
    """Turn a node off and on, and return once all that ran there runs again and its Services answer.

    Raises:
        LabError: a part did not come back in time; the message names it and its log.
    """
    settings = changes.begin(cluster)
    with cluster.progress.step(f"{each.name} off"):
        _off(cluster, each)
    since = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    with cluster.progress.step(f"{each.name} on"):
        _on(cluster, each)
    with cluster.progress.step(f"every Pod of {each.name} started again"):
        check = partial(unless_ended, cluster.state, partial(readiness.pods_started, Api(cluster.topology), each.name, since))
        until(check, f"the Pods of {each.name}", seconds=READY_TIMEOUT, every=0.2, where=str(logs() / each.name))
    changes.await_all(cluster, settings)
    cluster.settled(settings)


def _off(cluster: Cluster, each: KubernetesNode) -> None:
    init = cluster.hosts[each.name].init
    os.kill(init.pid, signal.SIGKILL)  # and with it, by the kernel's own doing, all else on that host
    until(lambda: "it still runs" if init.alive() else None, f"{each.name}: going off", seconds=OFF_TIMEOUT, every=0.02)
    for folder in cgroups.folders(each.name):
        cgroups.kill_and_remove(folder)
    for below in ("run", "tmp"):
        shutil.rmtree(node_folder(each.name) / below)
    network.plug_anew(cluster.topology, each)


def _on(cluster: Cluster, each: KubernetesNode) -> None:
    topology, name = cluster.topology, each.name
    cluster.hosts[name] = host.start(name, staged(cluster, True, name))
    cluster.state.inits[name], cluster.state.components[name] = cluster.hosts[name].init, {}
    if each.control_plane:
        cluster.start_component(name, "etcd", components.etcd())
        cluster.start_component(name, "kube-apiserver", components.apiserver(topology))
    cluster.start_component(name, "sshd", components.sshd())
    cluster.start_component(name, "containerd", components.containerd())
    log = cluster.hosts[topology.master.name].log("kube-apiserver")
    until(partial(readiness.api_settled, Api(topology)), "the API server", seconds=READY_TIMEOUT, where=str(log))
    if each.control_plane:
        cluster.start_component(name, "kube-controller-manager", components.controller_manager(topology))
        cluster.start_component(name, "kube-scheduler", components.scheduler())
    cluster.start_component(name, "kubelet", components.kubelet(each))
    settings = cluster.state.settings
    if settings is not None and not settings.kpr:
        cluster.start_component(name, "kube-proxy", components.kube_proxy(each, topology, settings.proxy_mode))
