"""The lab's machines and address ranges, read from topology.yaml and checked."""

from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import yaml

from lab.errors import LabError
from lab.paths import LAB

TOPOLOGY = LAB / "topology.yaml"


@dataclass(frozen=True)
class Host:
    """A machine of the LAN that one can log in to."""

    name: str
    address: IPv4Address


@dataclass(frozen=True)
class KubernetesNode(Host):
    """A host that is a node of the cluster.

    ``pod_cidr`` is the CiliumNode's, from which Pods get their addresses; ``node_pod_cidr`` is Node.spec.podCIDR,
    which Cilium's cluster-pool IPAM does not look at.
    """

    control_plane: bool
    pod_cidr: IPv4Network
    node_pod_cidr: IPv4Network


@dataclass(frozen=True)
class Lan:
    """The one Ethernet that all hosts share."""

    network: IPv4Network
    interface: str
    gateway: IPv4Address
    machine: IPv4Address


@dataclass(frozen=True)
class Cluster:
    """Address ranges and well-known addresses of the cluster."""

    cidr: IPv4Network
    node_mask: int
    service_cidr: IPv4Network
    api_service: IPv4Address
    dns_service: IPv4Address
    dns_node: str
    domain: str


@dataclass(frozen=True)
class Topology:
    """Everything that topology.yaml says."""

    lan: Lan
    nodes: tuple[KubernetesNode, ...]
    lan_client: Host
    cluster: Cluster

    @cached_property
    def hosts(self) -> tuple[Host, ...]:
        """Every host that one can log in to: the nodes and the LAN client."""
        return (*self.nodes, self.lan_client)

    @cached_property
    def master(self) -> KubernetesNode:
        """The one node that runs the control plane."""
        return next(node for node in self.nodes if node.control_plane)

    def host(self, name: str) -> Host:
        """Return the host of that name.

        Raises:
            LabError: there is none; the message lists the names there are.
        """
        for host in self.hosts:
            if host.name == name:
                return host
        raise LabError(f"no host named {name!r} in the lab; there are {', '.join(host.name for host in self.hosts)}")


def load(path: Path = TOPOLOGY) -> Topology:
    """Read and check a topology file.

    Raises:
        LabError: a key is missing or a value is not what it must be; the message names the file.
    """
    try:
        topology = _parse(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (KeyError, TypeError, ValueError) as error:
        raise LabError(f"{path}: {type(error).__name__}: {error}") from error
    _check(topology, path)
    return topology


def _parse(data: dict[str, Any]) -> Topology:
    lan, cluster = data["lan"], data["cluster"]
    (client_name, client), *_ = data["lan_client"].items()
    return Topology(
        lan=Lan(
            network=IPv4Network(lan["network"]),
            interface=str(lan["interface"]),
            gateway=IPv4Address(lan["gateway"]),
            machine=IPv4Address(lan["machine"]),
        ),
        nodes=tuple(_parse_node(name, node) for name, node in data["nodes"].items()),
        lan_client=Host(client_name, IPv4Address(client["address"])),
        cluster=Cluster(
            cidr=IPv4Network(cluster["cidr"]),
            node_mask=int(cluster["node_mask"]),
            service_cidr=IPv4Network(cluster["service_cidr"]),
            api_service=IPv4Address(cluster["api_service"]),
            dns_service=IPv4Address(cluster["dns_service"]),
            dns_node=str(cluster["dns_node"]),
            domain=str(cluster["domain"]),
        ),
    )


def _parse_node(name: str, node: dict[str, Any]) -> KubernetesNode:
    return KubernetesNode(
        name=name,
        address=IPv4Address(node["address"]),
        control_plane=bool(node["control_plane"]),
        pod_cidr=IPv4Network(node["pod_cidr"]),
        node_pod_cidr=IPv4Network(node["node_pod_cidr"]),
    )


def _check(topology: Topology, path: Path) -> None:
    lan, cluster = topology.lan, topology.cluster
    addresses = [lan.gateway, lan.machine, *(host.address for host in topology.hosts)]
    rules = {
        "exactly one node has control_plane: true": sum(node.control_plane for node in topology.nodes) == 1,
        "every address lies in lan.network": all(address in lan.network for address in addresses),
        "no address is given twice": len(set(addresses)) == len(addresses),
        "every PodCIDR lies in cluster.cidr": all(
            cidr.subnet_of(cluster.cidr) and cidr.prefixlen == cluster.node_mask
            for node in topology.nodes
            for cidr in (node.pod_cidr, node.node_pod_cidr)
        ),
        "no two nodes share a PodCIDR": len({node.pod_cidr for node in topology.nodes}) == len(topology.nodes),
        "the ranges do not overlap": not cluster.cidr.overlaps(cluster.service_cidr)
        and not any(lan.network.overlaps(cidr) for cidr in (cluster.cidr, cluster.service_cidr)),
        "the Services' addresses lie in service_cidr": cluster.api_service in cluster.service_cidr
        and cluster.dns_service in cluster.service_cidr,
        "dns_node is a node": any(node.name == cluster.dns_node for node in topology.nodes),
    }
    for rule, holds in rules.items():
        if not holds:
            raise LabError(f"{path}: it does not hold that {rule}")
