"""topology.yaml is the notes' cluster, and a wrong one is refused with the rule that it breaks."""

from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from lab import topology
from lab.errors import LabError


def test_it_is_the_notes_cluster():
    lab = topology.load()
    assert {node.name: node.address for node in lab.nodes} == {
        "master": IPv4Address("192.168.55.10"),
        "worker1": IPv4Address("192.168.55.11"),
        "worker2": IPv4Address("192.168.55.12"),
    }
    assert lab.cluster.cidr == IPv4Network("10.42.0.0/16")
    assert lab.cluster.dns_service == IPv4Address("10.43.0.10")
    assert [node.pod_cidr for node in lab.nodes[:2]] == [IPv4Network("10.42.0.0/24"), IPv4Network("10.42.1.0/24")]


def test_node_and_cilium_disagree_on_a_pod_cidr():
    assert any(node.pod_cidr != node.node_pod_cidr for node in topology.load().nodes)


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("192.168.55.11", "192.168.55.10", "no address is given twice"),
        ("192.168.55.12", "192.168.56.12", "every address lies in lan.network"),
        ("control_plane: true", "control_plane: false", "exactly one node has control_plane: true"),
        ("pod_cidr: 10.42.2.0/24, node", "pod_cidr: 10.42.1.0/24, node", "no two nodes share a PodCIDR"),
        ("service_cidr: 10.43.0.0/16", "service_cidr: 10.42.0.0/16", "the ranges do not overlap"),
        ("dns_node: worker1", "dns_node: worker9", "dns_node is a node"),
    ],
)
def test_a_wrong_topology_names_the_file_and_the_rule(tmp_path: Path, old: str, new: str, rule: str):
    path = tmp_path / "topology.yaml"
    path.write_text(topology.TOPOLOGY.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(LabError) as refusal:
        topology.load(path)
    assert rule in str(refusal.value)
    assert str(path) in str(refusal.value)


def test_a_missing_key_names_the_file_and_the_key(tmp_path: Path):
    path = tmp_path / "topology.yaml"
    path.write_text("lan: {network: 192.168.55.0/24}\n", encoding="utf-8")
    with pytest.raises(LabError, match=r"topology\.yaml: KeyError"):
        topology.load(path)


def test_an_unknown_host_is_answered_with_the_hosts_there_are():
    with pytest.raises(LabError, match="master, worker1, worker2, lan-client"):
        topology.load().host("worker3")
