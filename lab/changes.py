"""Changing the running lab as its user would: Cilium through Helm and a rolling restart, kube-proxy by another command line.

Every change returns once its state was seen: in the kernel's rules, Cilium's own status and maps, and in answers to real queries.
What changes while Services are to stay reachable is done in the order that keeps somebody in charge of them at any time.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from lab import chart, components, images, other_cilium, readiness, rollout
from lab.api import Api
from lab.builds import Module
from lab.cluster import Cluster, unless_ended
from lab.errors import LabError
from lab.paths import logs
from lab.settings import Settings
from lab.topology import KubernetesNode
from lab.waiting import until

CHANGE_TIMEOUT = 240.0  # seconds for one state
ROLL_TIMEOUT = 600.0  # a rolling restart of three agents takes some twenty seconds, on a busy machine minutes


def apply(cluster: Cluster, wanted: Settings, cilium: Module) -> bool:
    """Bring the lab to a set-up; False: it had it already.

    Args:
        cluster: the lab, which is up.
        wanted: the set-up.
        cilium: Cilium in the version that ``wanted`` names; its programs are built.

    Raises:
        LabError: a step failed or its state did not come; the lab is then left as it is, for a look.
    """
    before = _settings(cluster)
    if wanted == before:
        return False
    begin(cluster)
    if before.kpr and not wanted.kpr:
        _start_proxies(cluster, wanted)
    if _cilium_of(wanted) != _cilium_of(before):
        _change_cilium(cluster, wanted, cilium)
    if wanted.kpr and not before.kpr:
        _remove_proxies(cluster)
    elif not before.kpr and wanted.proxy_mode != before.proxy_mode:
        _restart_proxies(cluster, wanted, cluster.topology.nodes)
    await_all(cluster, wanted)
    cluster.settled(wanted)
    return True


def restart_proxy(cluster: Cluster, nodes: Iterable[KubernetesNode]) -> None:
    """Restart kube-proxy on nodes, one after another, and return once each has written its rules again.

    Raises:
        LabError: with Cilium in its place there is no kube-proxy.
    """
    settings = _settings(cluster)
    if settings.kpr:
        raise LabError("there is no kube-proxy to restart: Cilium replaces it (python -m lab set kpr=false)")
    begin(cluster)
    _restart_proxies(cluster, settings, nodes)
    await_all(cluster, settings)
    cluster.settled(settings)


def restart_agents(cluster: Cluster) -> None:
    """Restart Cilium's agents as ``kubectl rollout restart`` does, and return once each is at work again."""
    begin(cluster)
    with cluster.progress.step("Cilium's agents restarted"):
        _roll(cluster, restart=True)
    await_all(cluster, _settings(cluster))
    cluster.settled(_settings(cluster))


def await_all(cluster: Cluster, settings: Settings) -> None:
    """Return once everything that shows the set-up was seen on every node.

    Raises:
        LabError: something was not, in time; the message has the last of it.
    """
    api, topology = Api(cluster.topology), cluster.topology
    found: list[readiness.Backend] = []

    def await_(check: Callable[[], str | None], what: str) -> None:
        until(partial(unless_ended, cluster.state, check), what, seconds=CHANGE_TIMEOUT, every=0.2, where=str(logs()))

    def backends() -> None:
        found[:] = readiness.backends(api)

    with cluster.progress.step("nodes, Pods, rules, maps and answers"):
        await_(partial(readiness.nodes_ready, api, topology), "the nodes")
        await_(partial(readiness.pods_ready, api, topology), "the Pods")
        await_(partial(readiness.endpoints_complete, api, topology), "the EndpointSlices")
        await_(backends, "the Services' backends")
        for node in topology.nodes:
            host = cluster.hosts[node.name]
            await_(partial(readiness.agent_status, host, settings), "Cilium's agent")
            await_(partial(readiness.proxy_state, host, found, settings), "kube-proxy's rules")
            await_(partial(readiness.cilium_maps, host, found), "Cilium's maps")
            await_(partial(readiness.answers, host, api, topology), "answers from the Services")


def _settings(cluster: Cluster) -> Settings:
    assert cluster.state.settings is not None  # cluster.running() has seen to it
    return cluster.state.settings


def _cilium_of(settings: Settings) -> Settings:
    """Return a set-up with kube-proxy's mode, which is none of Cilium's business, put aside."""
    return replace(settings, proxy_mode="")


def begin(cluster: Cluster) -> Settings:
    """Record that the lab is being changed, until it is settled again, and return its set-up."""
    cluster.state.phase = "changing"
    cluster.state.save()
    return _settings(cluster)


def _change_cilium(cluster: Cluster, wanted: Settings, cilium: Module) -> None:
    names = images.names_with(cluster.images, cilium)
    nodes = [cluster.hosts[node.name] for node in cluster.topology.nodes]
    if wanted.cilium != _settings(cluster).cilium:
        with cluster.progress.step(f"images of Cilium {wanted.cilium} on every node"):
            other_cilium.bring(cluster.images, names, cilium, nodes)
    with cluster.progress.step("helm upgrade"):
        chart.upgrade(cluster.modules["helm"], cilium, chart.values(cluster.topology, names, wanted))
    with cluster.progress.step("Cilium's agents restarted"):
        # A new version rolls out by itself; what only the ConfigMap says an agent reads when it starts.
        _roll(cluster, restart=wanted.cilium == _settings(cluster).cilium)


def _roll(cluster: Cluster, *, restart: bool) -> None:
    api = Api(cluster.topology)
    if restart:
        rollout.restart(api)
    check = partial(unless_ended, cluster.state, partial(rollout.complaint, api))
    until(check, "rolling out Cilium", seconds=ROLL_TIMEOUT, every=0.2, where=str(logs()))


def _start_proxies(cluster: Cluster, wanted: Settings) -> None:
    with cluster.progress.step(f"kube-proxy started, mode {wanted.proxy_mode}"):
        for node in cluster.topology.nodes:
            _start_proxy(cluster, node, wanted)


def _restart_proxies(cluster: Cluster, wanted: Settings, nodes: Iterable[KubernetesNode]) -> None:
    for node in nodes:
        with cluster.progress.step(f"kube-proxy restarted on {node.name}, mode {wanted.proxy_mode}"):
            cluster.end_component(node.name, "kube-proxy")
            _start_proxy(cluster, node, wanted)


def _start_proxy(cluster: Cluster, node: KubernetesNode, wanted: Settings) -> None:
    host = cluster.hosts[node.name]
    cluster.start_component(node.name, "kube-proxy", components.kube_proxy(node, cluster.topology, wanted.proxy_mode))
    where = str(host.log("kube-proxy"))
    until(partial(readiness.proxy_synced, host, wanted.proxy_mode), "kube-proxy's first sync", seconds=CHANGE_TIMEOUT, where=where)


def _remove_proxies(cluster: Cluster) -> None:
    """End kube-proxy on every node and take its rules away, as Cilium's documentation tells its users to."""
    with cluster.progress.step("kube-proxy and its rules removed"):
        for node in cluster.topology.nodes:
            host = cluster.hosts[node.name]
            cluster.end_component(node.name, "kube-proxy")
            done = host.run([f"{components.PROGRAMS}/kube-proxy", "--cleanup"])
            if done.returncode != 0:
                raise LabError(f"{node.name}: kube-proxy --cleanup: {done.stderr.strip()[-500:]}")
