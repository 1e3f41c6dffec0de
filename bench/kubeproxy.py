"""What a real kube-proxy writes for ten thousand Services: ``python -m bench.kubeproxy FOLDER`` makes it anew (root, some minutes).

etcd, the lab's API server and its kube-proxy run alone in network, mount and process namespaces of their own, without nodes and
without Cilium; all of them and all rules go with those. Services and EndpointSlices are made through the API. FOLDER then holds
``iptables-nft-save`` and ``iptables-legacy-save`` (both with ``-c``) and the API's lists as JSON, as they were read.
"""

from __future__ import annotations

import ipaddress
import itertools
import json
import pathlib
import shutil
import sys
from collections.abc import Iterator

from bench import apart
from bench.apart import Creation
from lab import components
from lab import topology as topologies
from lab.api import Api
from lab.process import run
from lab.topology import Topology
from lab.waiting import until

SERVICES = 10_000
ENDPOINTS = 3
NAMESPACES = 20
API_LISTS = {
    "version": "/version",
    "services": "/api/v1/services",
    "endpointslices": "/apis/discovery.k8s.io/v1/endpointslices",
    "nodes": "/api/v1/nodes",
    "pods": "/api/v1/pods",
}
RULES = ("iptables-nft-save", "iptables-legacy-save")
# iptables-nft-restore 1.8.9 takes more than ten minutes for so many chains, the legacy one seconds; the text is the same.
_LEGACY = "xtables-legacy-multi"
_TIMEOUT = 1800.0  # seconds for all of it


def make(folder: pathlib.Path) -> None:
    """Make the folder's files.

    Raises:
        LabError: a part did not start or did not do its work in time; the message has its words.
    """
    apart.call("bench.kubeproxy", [folder, "apart"], _TIMEOUT)


def _inside(folder: pathlib.Path) -> None:
    """The work itself, in the namespaces."""
    topology = topologies.load()
    place = apart.begin(topology)
    apart.create(topology, place, list(_surroundings(topology)))
    apart.create(topology, place, list(_objects(topology)))
    for family, part in itertools.product(("iptables", "ip6tables"), ("", "-save", "-restore")):
        (place / f"{family}{part}").symlink_to(str(shutil.which(_LEGACY)))
    apart.start(place, components.kube_proxy(topology.master, topology))
    until(_missing, "kube-proxy's rules", seconds=600, every=1)
    folder.mkdir(parents=True, exist_ok=True)
    fresh = Api(topology, place / "pki")  # the server has closed the idle connection
    for name, path in API_LISTS.items():
        (folder / f"{name}.json").write_text(json.dumps(fresh.get(path)), encoding="utf-8")
    for tool in RULES:
        (folder / tool).write_text(run([tool, "-c"]), encoding="utf-8")


def _surroundings(topology: Topology) -> Iterator[Creation]:
    """The nodes, of which kube-proxy wants its own, and the namespaces."""
    for node in topology.nodes:
        status = {"addresses": [{"type": "InternalIP", "address": str(node.address)}]}
        spec = {"podCIDR": str(node.node_pod_cidr), "podCIDRs": [str(node.node_pod_cidr)]}
        yield "/api/v1/nodes", {"metadata": {"name": node.name}, "spec": spec, "status": status}
    for number in range(NAMESPACES):
        yield "/api/v1/namespaces", {"metadata": {"name": f"team-{number}"}}


def _objects(topology: Topology) -> Iterator[Creation]:
    """The Services, with one port each, and their EndpointSlices."""
    addresses = ipaddress.ip_network(topology.cluster.cidr).hosts()
    nodes = itertools.cycle(node.name for node in topology.nodes)
    for number in range(SERVICES):
        namespace, name = f"team-{number % NAMESPACES}", f"service-{number}"
        ports = [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080}]
        yield f"/api/v1/namespaces/{namespace}/services", {"metadata": {"name": name}, "spec": {"ports": ports}}
        endpoints = [
            {"addresses": [str(next(addresses))], "conditions": {"ready": True}, "nodeName": next(nodes)} for _ in range(ENDPOINTS)
        ]
        slice_ = {
            "metadata": {"name": f"{name}-abcde", "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
            "endpoints": endpoints,
        }
        yield f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices", slice_


def _missing() -> str | None:
    """What kube-proxy has still to write: a chain an endpoint, that of the API server itself included."""
    found = run(["iptables-legacy-save", "-t", "nat"]).count("\n:KUBE-SEP-")
    wanted = SERVICES * ENDPOINTS + 1
    return None if found == wanted else f"{found} of {wanted} chains of endpoints"


if __name__ == "__main__":
    if sys.argv[2:] == ["apart"]:
        _inside(pathlib.Path(sys.argv[1]))
    else:
        make(pathlib.Path(sys.argv[1]))
