"""The inventory that the suite reads: the lab as a user would describe a cluster, nothing more."""

from pathlib import Path
from typing import Any

import yaml

from lab.paths import INVENTORY
from lab.settings import Settings
from lab.ssh import USER
from lab.topology import Topology

API_PID = "$(cat /run/servicepath/kube-apiserver.pid)"


def content(topology: Topology, settings: Settings, kubernetes: str) -> dict[str, Any]:
    """Return the inventory; relative paths in it are meant from the folder that it lies in.

    Args:
        topology: the lab.
        settings: the set-up that it has, pinned as what the suite must find.
        kubernetes: its version, with its v.
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
            "routing": "tunnel",
            "tunnel": "vxlan",
            # Only kube-proxy's iptables rules show which CIDR it was given.
            **({"cluster_cidr": str(topology.cluster.cidr)} if settings.pins().get("proxy_mode") == "iptables" else {}),
            **settings.pins(),
            "kubernetes": kubernetes,
        },
    }


def write(topology: Topology, settings: Settings, kubernetes: str, path: Path = INVENTORY) -> None:
    """Write the inventory; that it is there says that the lab is ready."""
    text = "# Written by `python -m lab up`; gone after `python -m lab down`.\n"
    text += yaml.safe_dump(content(topology, settings, kubernetes), sort_keys=False)
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.rename(path)
