"""The inventory that the suite reads: the lab as a user would describe a cluster, nothing more."""

from pathlib import Path
from typing import Any

import yaml

from lab.paths import INVENTORY
from lab.ssh import USER
from lab.topology import Topology

API_PID = "$(cat /run/servicepath/kube-apiserver.pid)"


def content(topology: Topology, versions: dict[str, str]) -> dict[str, Any]:
    """Return the inventory; relative paths in it are meant from the folder that it lies in.

    Args:
        topology: the lab.
        versions: of "kubernetes" (with its v) and "cilium" (without), pinned as what the suite must find.
    """
    return {
        "kubeconfig": "kubeconfig.yaml",
        "ssh": {"user": USER, "config": "ssh/config"},
        "nodes": {node.name: {"host": node.name} for node in topology.nodes},
        "lan_client": {"host": topology.lan_client.name},
        "services": ["kube-system/kube-dns", "default/resolver"],
        "pods": [f"default/client-{node.name}" for node in topology.nodes],
        "api_outage": {"node": topology.master.name, "do": f"kill -STOP {API_PID}", "undo": f"kill -CONT {API_PID}"},
        "expect": {
            "proxy_mode": "iptables",
            "kube_proxy_replacement": "False",
            "socket_lb": False,
            "routing": "tunnel",
            "tunnel": "vxlan",
            "cluster_cidr": str(topology.cluster.cidr),
            **versions,
        },
    }


def write(topology: Topology, versions: dict[str, str], path: Path = INVENTORY) -> None:
    """Write the inventory; that it is there says that the lab is ready."""
    text = "# Written by `python -m lab up`; gone after `python -m lab down`.\n"
    text += yaml.safe_dump(content(topology, versions), sort_keys=False)
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.rename(path)
