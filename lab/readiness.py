"""What must be seen before the lab is ready: every conclusion about a Service's path can then be asserted.

Each check returns None, or what is still missing (lab.waiting). They look at what decides: the API's conditions, the rules in
each node's kernel, Cilium's maps on each node, and answers to real queries from each node and from a Pod on it.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lab.api import Api, ApiError
from lab.host import LabHost
from lab.settings import Settings
from lab.topology import Topology

CILIUM_DBG = "/opt/servicepath-lab/cilium/cilium-dbg"
# A rule of kube-proxy (v1.34, iptables mode) that sends a packet to a backend, as iptables-save writes it.
DNAT = re.compile(r"^-A KUBE-SEP-\S+ -p (?P<protocol>\w+) .*--to-destination (?P<to>\S+)$", re.MULTILINE)
# The same in nftables mode, as nft 1.0 lists it: meta l4proto udp dnat to 10.42.1.5:53
NFT_DNAT = re.compile(r"l4proto (?P<protocol>\w+) dnat to (?P<to>\S+)")
SYNCED = re.compile(r'^kubeproxy_sync_proxy_rules_last_timestamp_seconds(?:\{ip_family="IPv4"\})? (?!0$)\S+$', re.MULTILINE)
SERVICES = (("kube-system", "kube-dns"), ("default", "resolver"))


@dataclass(frozen=True)
class Backend:
    """One address behind one port of a Service."""

    service: str
    port: int
    protocol: str
    address: str
    target: int


def nodes_ready(api: Api, topology: Topology) -> str | None:
    """Every node has the condition Ready."""
    ready = {item["metadata"]["name"] for item in api.get("/api/v1/nodes")["items"] if _is_ready(item)}
    missing = [node.name for node in topology.nodes if node.name not in ready]
    return f"nodes that are not Ready: {', '.join(missing)}" if missing else None


def pods_ready(api: Api, topology: Topology) -> str | None:
    """Every Pod that belongs to the lab is there and Ready."""
    count = len(topology.nodes)
    wanted = {"coredns": 1, "cilium-operator": 1, "cilium": count, "resolver": count, "client": count}
    ready = dict.fromkeys(wanted, 0)
    for pod in api.get("/api/v1/pods")["items"]:
        kind = _kind(pod["metadata"]["name"], wanted)
        if kind and _is_ready(pod):
            ready[kind] += 1
    missing = [f"{name} {ready[name]} of {number}" for name, number in wanted.items() if ready[name] < number]
    return f"Pods Ready: {', '.join(missing)}" if missing else None


def pods_started(api: Api, node: str, since: str) -> str | None:
    """Every Pod of a node is Ready, by containers that were started at ``since`` (RFC 3339, UTC) or later."""
    pods = api.get(f"/api/v1/pods?fieldSelector=spec.nodeName={node}")["items"]
    old = [pod["metadata"]["name"] for pod in pods if not _is_ready(pod) or _started(pod) < since]
    return f"not started again: {', '.join(sorted(old))}" if old else None


def _started(pod: Mapping[str, Any]) -> str:
    """Return when the first of a Pod's running containers was started; "" where one does not run."""
    states = (container["state"] for container in pod["status"].get("containerStatuses") or [])
    return min((state["running"]["startedAt"] if "running" in state else "" for state in states), default="")


def backends(api: Api) -> list[Backend]:
    """Return every ready address behind the lab's Services, port by port."""
    found = []
    for namespace, name in SERVICES:
        service = api.get(f"/api/v1/namespaces/{namespace}/services/{name}")["spec"]
        ports = {port["name"]: port["port"] for port in service["ports"]}
        label = f"labelSelector=kubernetes.io/service-name={name}"
        slices = api.get(f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?{label}")["items"]
        for item in slices:
            for endpoint in item.get("endpoints") or []:
                if endpoint["conditions"].get("ready"):
                    for port in item["ports"]:
                        frontend = service["clusterIP"], ports[port["name"]], port["protocol"]
                        found.append(Backend(*frontend, endpoint["addresses"][0], port["port"]))
    return found


def endpoints_complete(api: Api, topology: Topology) -> str | None:
    """The Services' EndpointSlices have all their backends."""
    wanted = 3 + 2 * len(topology.nodes)  # kube-dns: three ports, one Pod; resolver: two ports, a Pod on every node
    number = len(backends(api))
    return None if number == wanted else f"{number} of {wanted} backends in the EndpointSlices"


def proxy_state(host: LabHost, wanted: Iterable[Backend], settings: Settings) -> str | None:
    """kube-proxy's rules on a node are all there, and none of another mode; none at all where Cilium replaces it."""
    others = {"iptables", "nftables"} if settings.kpr else {"iptables", "nftables"} - {settings.proxy_mode}
    for mode in sorted(others):
        if left := _there(host, mode):
            return f"{host.name}: {len(left)} rules of kube-proxy in {mode} mode are still there"
    return None if settings.kpr else proxy_rules(host, wanted, settings.proxy_mode)


def proxy_synced(host: LabHost, mode: str) -> str | None:
    """The kube-proxy that runs now is in the mode and has written its rules once."""
    said = host.run(["curl", "-s", "-m", "1", "http://127.0.0.1:10249/proxyMode"]).stdout.strip()
    if said != mode:
        return f"{host.name}: kube-proxy says {said or 'nothing'} of its mode, not {mode}"
    metrics = host.run(["curl", "-s", "-m", "2", "http://127.0.0.1:10249/metrics"]).stdout
    return None if SYNCED.search(metrics) else f"{host.name}: kube-proxy has not synced yet"


def agent_status(host: LabHost, settings: Settings) -> str | None:
    """Cilium's agent on a node runs in the version and with the settings."""
    done = host.run([CILIUM_DBG, "status", "-o", "json"])
    if done.returncode != 0:
        return f"{host.name}: cilium-dbg status: {(done.stderr or done.stdout).strip()[-300:]}"
    status = json.loads(done.stdout)
    replacement = status["kube-proxy-replacement"]
    said = status["cilium"]["msg"].split()[0], replacement["mode"], replacement["features"]["socketLB"].get("enabled", False)
    wanted = settings.cilium, str(settings.kpr), settings.socket_lb
    return None if said == wanted else f"{host.name}: the agent says {said} of version, KubeProxyReplacement and socket LB, not {wanted}"


def proxy_rules(host: LabHost, wanted: Iterable[Backend], mode: str = "iptables") -> str | None:
    """kube-proxy's rules on a node translate to every backend."""
    there = _there(host, mode)
    wanted_rules = [(backend.protocol.lower(), f"{backend.address}:{backend.target}") for backend in wanted]
    missing = [f"{to}/{protocol}" for protocol, to in wanted_rules if (protocol, to) not in there]
    return f"{host.name}: no kube-proxy rule for {', '.join(missing)}" if missing else None


def _there(host: LabHost, mode: str) -> set[tuple[str, str]]:
    """Return where kube-proxy's rules of a mode lead: (protocol, address:port); nothing where there are none."""
    argv, rules = (["iptables-save", "-t", "nat"], DNAT) if mode == "iptables" else (["nft", "list", "table", "ip", "kube-proxy"], NFT_DNAT)
    return {(rule["protocol"], rule["to"]) for rule in rules.finditer(host.run(argv).stdout)}


def cilium_maps(host: LabHost, wanted: Iterable[Backend]) -> str | None:
    """Cilium's load-balancing map on a node has every backend of every frontend."""
    done = host.run([CILIUM_DBG, "bpf", "lb", "list", "-o", "json"])
    if done.returncode != 0:
        return f"{host.name}: cilium-dbg bpf lb list: {(done.stderr or done.stdout).strip()[-300:]}"
    rows: Mapping[str, list[str]] = json.loads(done.stdout)
    missing = []
    for backend in wanted:
        frontend = f"{backend.service}:{backend.port}/{backend.protocol}"
        said = " ".join(" ".join(values) for key, values in rows.items() if key.startswith(frontend))
        if f"{backend.address}:{backend.target}/{backend.protocol}" not in said:
            missing.append(f"{frontend} → {backend.address}")
    return f"{host.name}: not in Cilium's map: {', '.join(missing)}" if missing else None


def answers(host: LabHost, api: Api, topology: Topology) -> str | None:
    """The Services answer on every port, asked from a node itself and from its client Pod's network."""
    pod = api.get(f"/api/v1/namespaces/default/pods/client-{host.name}")
    namespace = _pod_namespace(host, pod["status"]["podIP"])
    if namespace is None:
        return f"{host.name}: no network namespace has the address {pod['status']['podIP']} of client-{host.name}"
    frontends = sorted({(backend.service, backend.port, backend.protocol) for backend in backends(api)})
    for source, prefix in ((host.name, []), (f"client-{host.name}", ["ip", "netns", "exec", namespace])):
        for address, port, protocol in frontends:
            done = host.run([*prefix, *_question(address, port, protocol, topology)])
            if done.returncode != 0 or "timed out" in done.stdout:
                return f"{source}: no answer from {address}:{port}/{protocol}"
    return None


def _question(address: str, port: int, protocol: str, topology: Topology) -> list[str]:
    if port != 53:
        return ["curl", "-s", "-m", "1", "-o", "/dev/null", f"http://{address}:{port}/metrics"]
    name = f"kubernetes.default.svc.{topology.cluster.domain}"
    return ["dig", "+short", "+tries=1", "+time=1", *(["+tcp"] if protocol == "TCP" else []), f"@{address}", name]


def _pod_namespace(host: LabHost, address: str) -> str | None:
    """Return the name of the network namespace on a node that has an address; the names are the CNI's (cni-…)."""
    for path in sorted((host.root / "run/netns").glob("cni-*")):
        done = host.run(["ip", "-n", path.name, "-4", "-o", "addr", "show"])
        if f" {address}/" in done.stdout:
            return path.name
    return None


def _is_ready(item: Mapping[str, Any]) -> bool:
    conditions = item.get("status", {}).get("conditions") or []
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _kind(pod: str, kinds: Iterable[str]) -> str | None:
    """Return which of the lab's kinds of Pods a name belongs to: the longest beginning, since one may begin another."""
    return max((kind for kind in kinds if pod.startswith(f"{kind}-")), key=len, default=None)


def api_settled(api: Api) -> str | None:
    """The API server is ready and has made its own namespaces."""
    complaint = api.ready()
    if complaint:
        return complaint
    for namespace in ("default", "kube-system"):
        try:
            api.get(f"/api/v1/namespaces/{namespace}")
        except ApiError as error:
            return str(error)
    return None
