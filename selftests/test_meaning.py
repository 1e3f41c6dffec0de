"""Facts by their meaning: what is made anew changes none of them, and what matters changes one."""

import dataclasses

import host_samples as sample
import pytest

from selftests import traffic_recording as recording
from servicepath.model import meaning, meaning_paths
from servicepath.model.flows import Source
from servicepath.model.meaning import LEFT_OUT, Names

OBJECTS = recording.objects()
PORT = OBJECTS.service("kube-system/kube-dns").ports[0]
MOVED = (
    sample.ROUTES.replace("10.42.0.9", "10.42.0.77"),
    sample.INTERFACES.replace("lxc1@if6", "lxc9c5@if88").replace("7: lxc", "99: lxc").replace("12:b1:e4:fb:04:d3", "de:ad:be:ef:00:01"),
)


def cluster(internal="10.42.0.9"):
    """Three nodes, the first of which has this CiliumInternalIP."""
    nodes = (sample.cilium_node("master", "10.42.0.0/24", internal), *sample.NODES[1:])
    return dataclasses.replace(OBJECTS, nodes=(sample.node(),), cilium_nodes=nodes, pods=(), services=())


def host(routes=sample.ROUTES, interfaces=sample.INTERFACES, internal="10.42.0.9"):
    """Name → value of a host's facts."""
    facts = meaning.of_host("master", sample.interfaces(interfaces), sample.routing(routes=routes), Names(cluster(internal)))
    return {fact.name: fact.value for fact in facts}


def test_other_indices_names_and_order_are_the_same_facts():
    backwards = "\n".join(reversed(MOVED[0].splitlines())) + "\n"

    assert host() == host(backwards, MOVED[1], "10.42.0.77")


@pytest.mark.parametrize(
    ("routes", "interfaces", "changed"),
    [
        (sample.ROUTES.replace("mtu 1450", "mtu 1400", 1), sample.INTERFACES, "routes"),
        (sample.ROUTES.replace("1.0/24 via 10.42.0.9 dev cilium_host", "1.0/24 via 192.168.55.11 dev enp1s0"), sample.INTERFACES, "routes"),
        (sample.ROUTES, sample.INTERFACES.replace("mtu 1500", "mtu 9000", 1), "MTU"),
    ],
)  # fmt: skip
def test_what_matters_changes_one_fact(routes, interfaces, changed):
    before, after = host(), host(routes, interfaces)

    assert [name for name in before if before[name] != after[name]] == [changed]


def test_a_route_names_what_holds_its_addresses():
    assert "10.42.1.0/24 via CiliumInternalIP of master dev cilium_host src CiliumInternalIP of master mtu 1450" in host()["routes"]


def test_a_pods_owner_has_no_generated_name():
    labels = {"pod-template-hash": "7d764666f9"}
    pod = sample.pod("coredns-7d764666f9-x2x4z", labels=labels, owner_kind="ReplicaSet", owner_name="coredns-7d764666f9")

    assert meaning.owner(pod) == "Deployment kube-system/coredns"
    assert meaning.owner(dataclasses.replace(pod, labels={})) == "ReplicaSet kube-system/coredns-7d764666f9"
    assert meaning.owner(dataclasses.replace(pod, owner_kind="DaemonSet", owner_name="dns")) == "DaemonSet kube-system/dns"
    assert meaning.owner(dataclasses.replace(pod, owner_kind="Node", owner_name="master")) == "Pod kube-system/coredns-7d764666f9-x2x4z"


@pytest.mark.parametrize(
    ("key", "value", "kept"),
    [
        ("bpf-lb-sock", "false", True),
        ("hubble-tls-key-file", "/var/lib/cilium/tls/server.key", True),
        ("enable-policy-secrets-sync", "true", True),
        ("agent-token", "abc", False),
        ("etcd-config", "endpoints: [http://a]", False),
        ("kvstore-opt", "https://user:pw@etcd:2379", False),
        ("ca", "-----BEGIN CERTIFICATE-----", False),
        ("clustermesh.password", "x", False),
    ],
)
def test_a_configurations_secrets_are_left_out(key, value, kept):
    (fact,) = meaning.configuration("cilium-config", {key: value})

    assert fact.value == ((value,) if kept else (LEFT_OUT,))


def paths(source, run):
    """Name → value of one path's facts."""
    names = Names(OBJECTS)
    traces = run.traffic.of(PORT, source, source.value.lower())
    return {fact.name: fact.value for fact in meaning_paths.of_path(run.traffic.node, PORT, source, traces, names)}


def test_a_recorded_pods_path_by_its_meaning():
    facts = paths(Source.POD, recording.read("master", OBJECTS))

    assert facts["translated by"] == ("Cilium (eBPF)",)
    assert facts["transported by, to another node"] == ("Cilium VXLAN",)
    (client,) = {line.split(" → ")[0] for line in facts["addresses at the Pod's device, to another node"] if line.startswith("Pod")}
    assert facts["addresses on the underlay, to another node"] == (
        f"{client} → the backend:53/UDP, inside InternalIP of master → InternalIP of the backend's node:8472/UDP",
        f"the backend:53 → {client}/UDP, inside InternalIP of the backend's node → InternalIP of master:8472/UDP",
    )
    assert f"{client} → ClusterIP of kube-system/kube-dns:53/UDP" in facts["addresses at the Pod's device, to another node"]


def test_a_recorded_hosts_path_goes_out_from_the_cilium_internal_ip():
    facts = paths(Source.HOST, recording.read("master", OBJECTS))

    assert facts["translated by"] == ("kube-proxy (iptables)",)
    seen = facts["addresses on the underlay, to another node"]
    assert any(line.startswith("CiliumInternalIP of master → the backend:53/UDP") for line in seen)


def test_lost_answers_are_a_fact():
    run = recording.read("master", OBJECTS)
    silent = tuple(
        dataclasses.replace(t, flow=dataclasses.replace(t.flow, answers=(None,) * len(t.flow.answers), connected=False))
        for t in run.traffic.of(PORT, Source.POD, "pod")
    )  # fmt: skip
    facts = list(meaning_paths.of_path("master", PORT, Source.POD, silent, Names(OBJECTS)))

    assert [(fact.name, fact.value) for fact in facts] == [("answered", ("none",))]
    assert meaning_paths.timing("master", PORT, Source.POD, silent) is None
    assert list(meaning_paths.of_path("master", PORT, Source.POD, (), Names(OBJECTS))) == []
