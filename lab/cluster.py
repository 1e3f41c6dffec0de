"""Bringing the lab up: from nothing to a cluster on which every conclusion can be asserted."""

import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from lab import chart, components, filesystem, host, inventory, kubeconfig, network, pki, readiness, ssh, state, status
from lab.api import Api, ApiError
from lab.builds import Module
from lab.errors import LabError
from lab.host import LabHost, Staged
from lab.images import Images
from lab.paths import ADMIN_KUBECONFIG, PROJECT, RUN, SUITE_KUBECONFIG, logs, node_folder
from lab.process import run
from lab.progress import Progress
from lab.settings import Settings
from lab.state import State
from lab.templates import render
from lab.topology import Topology
from lab.waiting import until

RBAC = PROJECT / "docs" / "rights" / "rbac.yaml"
TMPFS = "mode=0700,size=8g"
API_TIMEOUT = 90.0  # seconds; some four are usual
READY_TIMEOUT = 240.0  # seconds; some twenty are usual

Result = TypeVar("Result")


@dataclass
class Cluster:
    """A lab that is being brought up or changed: what it is made of and what runs of it."""

    topology: Topology
    modules: Mapping[str, Module]
    images: Images
    progress: Progress
    state: State
    hosts: dict[str, LabHost]

    def start_component(self, name: str, component: str, argv: list[str]) -> None:
        """Start a component on a host and record it."""
        process = self.hosts[name].start(component, argv)
        self.state.components.setdefault(name, {})[component] = process
        self.state.save()

    def end_component(self, name: str, component: str) -> None:
        """End a component on a host, where it runs, and return once it is gone."""
        process = self.state.components[name].pop(component, None)
        if process is not None:
            self.hosts[name].end(component, process)
        self.state.save()

    def settled(self, settings: Settings) -> None:
        """Record the set-up that was seen to work, and write the inventory that pins it."""
        inventory.write(self.topology, settings, self.modules["kubernetes"].version)
        self.state.settings, self.state.phase = settings, "ready"
        self.state.save()


def up(topology: Topology, modules: Mapping[str, Module], images: Images, progress: Progress) -> None:
    """Start everything and return once it was seen to work; the inventory is then written.

    Raises:
        LabError: a part did not start or did not get ready; the message names it and its log. What runs is left for a look;
            ``down`` takes it away.
    """
    shutil.rmtree(logs(), ignore_errors=True)
    logs().mkdir(parents=True)
    RUN.mkdir(mode=0o700)
    run(["mount", "-t", "tmpfs", "-o", TMPFS, "tmpfs", RUN])
    run(["mount", "--make-private", RUN])
    cluster = Cluster(topology, modules, images, progress, State(), {})
    cluster.state.save()
    with progress.step("hosts: network, certificates, file systems"):
        _start_hosts(cluster)
    with progress.step("API server"):
        _start_control_plane(cluster)
    with progress.step("kubelet and kube-proxy started, manifests applied"):
        _start_nodes(cluster)
    _await_ready(cluster)
    cluster.settled(own_settings(modules))


def own_settings(modules: Mapping[str, Module]) -> Settings:
    """Return the set-up with which the lab comes up."""
    return Settings(modules["cilium"].version.removeprefix("v"))


def running(topology: Topology, modules: Mapping[str, Module], images: Images, progress: Progress) -> Cluster:
    """Return the lab that is up, to be changed.

    Raises:
        LabError: there is none, or it was not brought up (or changed) to the end.
    """
    recorded = state.read()
    if recorded is None or recorded.settings is None or recorded.phase != "ready":
        raise LabError("the lab is not up, or not whole: python -m lab up")
    hosts = {name: LabHost(name, init) for name, init in recorded.inits.items()}
    return Cluster(topology, modules, images, progress, recorded, hosts)


def _start_hosts(cluster: Cluster) -> None:
    topology = cluster.topology
    network.create(topology)
    authority = pki.create_all(topology)
    ssh.create(topology)
    kubeconfig.write(ADMIN_KUBECONFIG, authority, topology.master.address, "admin")
    kubeconfig.write(SUITE_KUBECONFIG, authority, topology.master.address, "suite")
    for each in topology.hosts:
        filesystem.fill_host(each, topology)
    for node in topology.nodes:
        filesystem.fill_node(node, topology, authority, cluster.images.names["pause"])
        cluster.images.copy_databases(node_folder(node.name) / "containerd")
    nodes = {node.name for node in topology.nodes}
    starts = {each.name: partial(host.start, each.name, staged(cluster, each.name in nodes, each.name)) for each in topology.hosts}
    cluster.hosts = _at_once(starts)
    cluster.state.inits = {name: each.init for name, each in cluster.hosts.items()}
    cluster.state.save()


def staged(cluster: Cluster, is_node: bool, name: str) -> list[Staged]:
    """Return what of this machine a host gets: a place for its Pods' logs; a node also the programs and images."""
    pods = logs() / name / "pods"
    pods.mkdir(parents=True, exist_ok=True)
    given = [Staged(pods, "pods", writable=True)]
    if is_node:
        given += [Staged(cluster.modules["kubernetes"].target, "programs"), Staged(cluster.modules["cilium"].target, "cilium")]
        given += cluster.images.staged()
    return given


def _start_control_plane(cluster: Cluster) -> None:
    topology, master = cluster.topology, cluster.topology.master.name
    cluster.start_component(master, "etcd", components.etcd())
    cluster.start_component(master, "kube-apiserver", components.apiserver(topology))
    for each in topology.hosts:
        cluster.start_component(each.name, "sshd", components.sshd())
    for node in topology.nodes:
        cluster.start_component(node.name, "containerd", components.containerd())
    api = Api(topology)
    log = cluster.hosts[master].log("kube-apiserver")
    settled = partial(unless_ended, cluster.state, partial(readiness.api_settled, api))
    until(settled, "the API server", seconds=API_TIMEOUT, where=str(log))
    cluster.start_component(master, "kube-controller-manager", components.controller_manager(topology))
    cluster.start_component(master, "kube-scheduler", components.scheduler())


def _start_nodes(cluster: Cluster) -> None:
    topology, images = cluster.topology, cluster.images.names
    api = Api(topology)
    api.apply(chart.definitions(cluster.modules["cilium"]))
    until(
        lambda: None if api.serves("/apis/cilium.io/v2", "ciliumnodes") else "not served yet",
        "Cilium's resource definitions",
        seconds=API_TIMEOUT,
    )
    api.apply(render("nodes.yaml.j2", topology=topology))
    for node in topology.nodes:
        cluster.start_component(node.name, "kubelet", components.kubelet(node))
        cluster.start_component(node.name, "kube-proxy", components.kube_proxy(node, topology))
    values = chart.values(topology, images, own_settings(cluster.modules))
    api.apply(chart.rendered(cluster.modules, values))
    api.apply(render("workloads.yaml.j2", topology=topology, images=images))
    api.apply(RBAC.read_text(encoding="utf-8"))


def _await_ready(cluster: Cluster) -> None:
    topology, api = cluster.topology, Api(cluster.topology)

    def await_(check: Callable[[], str | None], what: str) -> None:
        until(partial(unless_ended, cluster.state, check), what, seconds=READY_TIMEOUT, every=0.1, where=str(logs()))

    with cluster.progress.step("nodes Ready"):
        await_(partial(readiness.nodes_ready, api, topology), "the nodes")
    with cluster.progress.step("Pods Ready"):
        await_(partial(readiness.pods_ready, api, topology), "the Pods")
    with cluster.progress.step("rules, maps and answers on every node"):
        await_(partial(readiness.endpoints_complete, api, topology), "the EndpointSlices")
        wanted = readiness.backends(api)
        for node in topology.nodes:
            each = cluster.hosts[node.name]
            await_(partial(readiness.proxy_rules, each, wanted), "kube-proxy's rules")
            await_(partial(readiness.cilium_maps, each, wanted), "Cilium's maps")
            await_(partial(readiness.answers, each, api, topology), "answers from the Services")


def unless_ended(started: State, check: Callable[[], str | None]) -> str | None:
    """Ask a check; a component that has ended is no state to wait for, and an API server that is too busy to answer is one.

    Raises:
        LabError: a component has ended.
    """
    gone = status.ended(started)
    if gone:
        raise LabError("; ".join(gone))
    try:
        return check()
    except ApiError as error:
        if error.code:
            raise
        return str(error)


def _at_once(calls: Mapping[str, Callable[[], Result]]) -> dict[str, Result]:
    """Make independent calls side by side and return their results by name; the first failure is raised."""
    with ThreadPoolExecutor(max_workers=len(calls)) as pool:
        futures = {name: pool.submit(call) for name, call in calls.items()}
        return {name: future.result() for name, future in futures.items()}
