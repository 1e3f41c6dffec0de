"""What a fault's shell text may name: the lab's addresses and Pods as they are when the fault is applied."""

from __future__ import annotations

import re

from lab.api import Api
from lab.host import PATH
from lab.paths import ADMIN_KUBECONFIG
from lab.topology import Topology


def variables(topology: Topology, api: Api) -> dict[str, str]:
    """Return the variables, by name.

    ``DNS_VIP``, ``RESOLVER_VIP``; for each host ``MASTER``, ``WORKER1`` …, ``LAN_CLIENT``: its address; for each node ``CIDR_NODE``
    (its PodCIDR), ``CILIUM_NODE`` (its agent's Pod), ``CLIENT_NODE`` and ``RESOLVER_NODE`` (addresses of its Pods), ``CLIENT_POD_NODE``
    and ``RESOLVER_POD_NODE`` (their names); ``COREDNS``: the address of kube-dns' Pod; ``SERVICE_CIDR``, ``CLUSTER_CIDR``.
    """
    found = {_name(host.name): str(host.address) for host in topology.hosts}
    found |= {f"CIDR_{_name(node.name)}": str(node.pod_cidr) for node in topology.nodes}
    found |= {"SERVICE_CIDR": str(topology.cluster.service_cidr), "CLUSTER_CIDR": str(topology.cluster.cidr)}
    found["DNS_VIP"] = str(topology.cluster.dns_service)
    found["RESOLVER_VIP"] = api.get("/api/v1/namespaces/default/services/resolver")["spec"]["clusterIP"]
    for pod in api.get("/api/v1/pods")["items"]:
        found |= _pod(pod["metadata"], pod["spec"].get("nodeName"), pod["status"].get("podIP"))
    return found


def _pod(metadata: dict[str, object], node: str | None, address: str | None) -> dict[str, str]:
    name = str(metadata["name"])
    if node is None or address is None or "deletionTimestamp" in metadata:
        return {}
    if name.startswith("coredns-"):
        return {"COREDNS": address}
    if name.startswith(("resolver-", "client-")):
        kind = _name(name.split("-")[0])
        return {f"{kind}_{_name(node)}": address, f"{kind}_POD_{_name(node)}": name}
    if re.fullmatch(r"cilium-[a-z0-9]{5}", name):
        return {f"CILIUM_{_name(node)}": name}
    return {}


def on_machine(kubectl: str) -> dict[str, str]:
    """Return the variables with which kubectl on this machine is the administrator's; ``kubectl`` is the folder that it lies in."""
    return {"KUBECONFIG": str(ADMIN_KUBECONFIG), "PATH": f"{kubectl}:{PATH}"}


def _name(text: str) -> str:
    return text.upper().replace("-", "_")
