"""Every conclusion about traffic, run on a recorded experiment: green as it is, red or an error exactly where it is spoilt."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from selftests.traffic_ways import WAYS

ROOT = pathlib.Path(__file__).parent.parent
FILES = ("1_control_path", "4_routing_to_a_remote_podcidr", "5_host_traffic", "6_pod_traffic", "7_vxlan", "8_comparison")
PLUGINS = ("inventory", "facts", "host_facts", "setup", "flows", "counted", "paths", "disruption", "evidence")

# In the order of conclusions.md.
ALL = (
    "dataplanes_follow", "packets_skip_the_api", "full_size_packet", "dnat_adds_no_route",
    "host_answers", "host_counted_by_iptables", "host_marked_for_masquerade", "host_translated_by_conntrack", "host_sees_the_clusterip",
    "pod_answers", "pod_leaves_counters", "pod_translated_by_ebpf", "translated_at_the_pod", "counters_count_flows",
    "kpr_false_yet_clusterip", "tunnel_endpoints", "inner_is_the_pod", "no_clusterip_inside", "same_way_for_aaaa", "answer_comes_back",
    "host_inner_source", "local_backend_untunnelled", "path_matrix",
)  # fmt: skip
DISRUPTIVE = {"dataplanes_follow", "packets_skip_the_api", "dnat_adds_no_route"}
REMOTE = {"translated_at_the_pod", "tunnel_endpoints", "inner_is_the_pod", "same_way_for_aaaa", "answer_comes_back"}
OF_THE_POD = REMOTE | {"full_size_packet", "pod_answers", "pod_leaves_counters", "pod_translated_by_ebpf", "kpr_false_yet_clusterip"}
UNDERLAY = (REMOTE - {"translated_at_the_pod"}) | {"no_clusterip_inside", "host_sees_the_clusterip", "host_inner_source"}
# What is about kube-proxy's counters and chains, and what about packets that leave their socket for the ClusterIP.
OF_IPTABLES = {"host_counted_by_iptables", "host_marked_for_masquerade", "pod_leaves_counters", "counters_count_flows"}
BESIDE = {"host_translated_by_conntrack", "kpr_false_yet_clusterip", "dnat_adds_no_route"}
# What is skipped on the whole recording, by node and port.
SKIPPED = {
    "master dns": {"counters_count_flows", "local_backend_untunnelled"},
    "master dns-tcp": {"full_size_packet", "local_backend_untunnelled"},
    "master metrics": {"full_size_packet", "counters_count_flows", "same_way_for_aaaa", "local_backend_untunnelled"},
    "worker1 dns": REMOTE | {"full_size_packet", "counters_count_flows", "no_clusterip_inside", "host_inner_source"},
    "worker1 dns-tcp": REMOTE | {"full_size_packet", "no_clusterip_inside", "host_inner_source"},
    "worker1 metrics": REMOTE | {"full_size_packet", "counters_count_flows", "no_clusterip_inside", "host_inner_source"},
}

# Way → the conclusions that must be red, and a word of what they say.
RED = {
    "a host flow is not answered": ({"host_answers", "host_sees_the_clusterip", "path_matrix"}, "actual: no answer within 2 s"),
    "a host flow gets a wrong answer": ({"host_answers"}, "actual: NOERROR 10.9.9.9"),
    "the backend itself answers a host flow": ({"host_answers", "host_sees_the_clusterip"}, "10.42.1.145:53"),
    "one flow more is counted": ({"host_counted_by_iptables"}, "+10 packets (10 new flows), actual: +11 packets"),
    "the host's flows are not marked": ({"host_marked_for_masquerade"}, "actual: +0 packets"),
    "conntrack holds a host flow untranslated": ({"host_translated_by_conntrack", "path_matrix"}, "10.43.0.10"),
    "a host flow keeps a source that cannot be answered": ({"host_translated_by_conntrack"}, "CiliumInternalIP"),
    "a Pod flow is not answered": ({"pod_answers", "path_matrix"}, "actual: no answer within 2 s"),
    "a Pod flow is answered with another id": ({"pod_answers"}, "id 0xffff"),
    "iptables counts the Pod's flows": ({"pod_leaves_counters"}, "+0 packets (0 new flows), actual: +5 packets"),
    "the host's conntrack translates a Pod flow": ({"pod_translated_by_ebpf", "kpr_false_yet_clusterip", "path_matrix"}, "both"),
    "the host's conntrack holds a Pod flow": ({"pod_translated_by_ebpf", "kpr_false_yet_clusterip"}, "the host's conntrack holds the flow"),
    "Cilium does not translate a Pod flow": ({"pod_translated_by_ebpf", "kpr_false_yet_clusterip", "path_matrix"}, "nobody"),
    "the Pod's packets go plain": ({"tunnel_endpoints", "same_way_for_aaaa", "full_size_packet", "path_matrix"}, "10.42.1.145:53"),
    "Cilium's agent does not say its set-up": ({"kpr_false_yet_clusterip"}, "actual: not said"),
    "the Pod's packets are translated too early": ({"translated_at_the_pod"}, "translated before it left the Pod"),
    "the tunnel device gets the ClusterIP": ({"translated_at_the_pod"}, "no 10.43.0.10 after translation"),
    "a connection's packets are counted": ({"counters_count_flows"}, "+1 packets (1 new flows), actual: +3 packets"),
    "the tunnel leads to another node": ({"tunnel_endpoints", "same_way_for_aaaa"}, "192.168.55.12"),
    "another address than the Pod's is inside": ({"inner_is_the_pod", "same_way_for_aaaa"}, "10.42.77.77"),
    "the ClusterIP is inside": (UNDERLAY - {"tunnel_endpoints"}, "10.43.0.10"),
    "AAAA goes another way than A": ({"tunnel_endpoints", "same_way_for_aaaa"}, "192.168.55.12"),
    "the answer goes to another node": (
        {"tunnel_endpoints", "same_way_for_aaaa", "answer_comes_back", "host_inner_source"}, "192.168.55.12"
    ),
    "the host's flows keep the node's address inside": ({"host_inner_source"}, "actual: 192.168.55.10"),
    "local traffic enters the tunnel": ({"local_backend_untunnelled"}, "a packet where none belongs"),
    "local traffic is translated too early": ({"local_backend_untunnelled"}, "translated before it left the Pod"),
    "a packet as large as the MTU is broken": ({"full_size_packet"}, "the first of several outer fragments"),
    "a packet larger than the MTU crosses whole": ({"full_size_packet"}, "1451 bytes inside one outer packet"),
    "a packet as large as the MTU never leaves": ({"full_size_packet"}, "never reached the underlay"),
    "a Service does not arrive in Cilium's map": ({"dataplanes_follow"}, "load-balancing map: no"),
    "a deleted Service stays in the rules": ({"dataplanes_follow"}, "still there"),
    "a Service brings a route": ({"dnat_adds_no_route"}, "+ 10.43.77.7"),
    "the rules never changed": ({"dataplanes_follow"}, "iptables: no"),
    "without the API nothing is answered": ({"packets_skip_the_api"}, "actual: no answer within 2 s"),
}  # fmt: skip

# Way → the conclusions that must not be drawn, and a word of why.
UNSEEN = {
    "the underlay's capture lost the answers": (UNDERLAY, "holds not both directions"),
    "the client's capture lost the questions": ({"translated_at_the_pod"}, "holds not both directions"),
    "tcpdump dropped packets": (UNDERLAY | {"translated_at_the_pod", "full_size_packet", "path_matrix"}, "is not whole"),
    "tcpdump dropped packets at the tunnel": ({"local_backend_untunnelled"}, "the capture on cilium_vxlan is not whole"),
    "the underlay's capture is cut off": (UNDERLAY | {"full_size_packet", "path_matrix"}, "capture-underlay"),
    "the Pod's sender is cut off": (set(ALL) - DISRUPTIVE, "send-pod-pod: probe sender"),
    "the control flow is not counted": ({"pod_leaves_counters"}, "the control flow was not counted"),
    "the control flow is not in conntrack": ({"pod_leaves_counters", "pod_translated_by_ebpf"}, "absence proves nothing"),
    "no flow table holds a Pod flow": ({"pod_translated_by_ebpf", "kpr_false_yet_clusterip"}, "nothing tells who translated it"),
    "the agent does not answer": (
        (OF_THE_POD - {"pod_answers"}) | {"no_clusterip_inside", "local_backend_untunnelled", "path_matrix"}, "did not answer",
    ),
    "the counters are cut off": (set(ALL) - DISRUPTIVE - {"counters_count_flows", "pod_answers"}, "cut-2-nat"),
    "a host flow could not be sent": (
        {name for name in ALL if name.startswith("host_")} | {"no_clusterip_inside"}, "was not sent: source port"
    ),
    "somebody begins a flow while counters are read": ({"host_counted_by_iptables", "host_marked_for_masquerade"}, "1 flows of others"),
    "somebody used a source port before": (
        {name for name in ALL if name.startswith("host_")} | {"no_clusterip_inside"}, "was in use before: the host's conntrack may hold two"
    ),
    "the underlay's MTU is not listed": ({"full_size_packet"}, "the MTU of enp1s0"),
    "the node could not be reached": (set(ALL) - DISRUPTIVE, "ssh: timed out"),
    "the temporary address was in use before": ({"dataplanes_follow"}, "was in use before"),
    "the rules never changed": ({"dnat_adds_no_route"}, "the NAT rules did not change"),
    "no route was listed": ({"dnat_adds_no_route"}, "no route at all"),
    "the API answered all the while": ({"packets_skip_the_api"}, "the API answered"),
}  # fmt: skip

# Way → what is not there to be judged, and a word of the reason.
ABSENT = {
    "the node has no client Pod": (OF_THE_POD, "no Pod here that could be the client"),
    "kube-proxy runs in nftables mode": (OF_IPTABLES, "kube-proxy is in nftables mode"),
    "Cilium replaces kube-proxy": (OF_IPTABLES | BESIDE, "KubeProxyReplacement is True"),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Way → conclusion → outcome and text; one run for all."""
    folder = tmp_path_factory.mktemp("traffic")
    (folder / "inventory.yaml").write_text("kubeconfig: none.yaml\nnodes: {master: , worker1: }\nservices: [kube-system/kube-dns]\n")
    plugins = [word for name in PLUGINS for word in ("-p", f"fixtures.{name}")]
    command = [sys.executable, "-m", "pytest", "--noconftest", *plugins, "-p", "selftests.traffic_observed", "--disruptive", "-q"]
    tests = [f"tests/test_{file}.py::test_{name}" for name in ALL for file in FILES if f"def test_{name}(" in source(file)]
    told = {"TRAFFIC_OUTCOMES": str(folder / "outcomes.json"), "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "selftests")])}
    done = subprocess.run(
        [*command, f"--inventory={folder / 'inventory.yaml'}", *tests],
        cwd=ROOT, env=os.environ | told, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    found = json.loads((folder / "outcomes.json").read_text())
    assert {frozenset(tests) for tests in found.values()} == {frozenset(ALL)}, done.stdout[-3000:] + done.stderr
    return found


def source(file):
    return (ROOT / "tests" / f"test_{file}.py").read_text(encoding="utf-8")


def such(told, outcome):
    return {test for test, (became, _) in told.items() if became == outcome}


def skipped(way):
    """What the way's node and port leave out on the whole recording."""
    node, port, _ = WAYS[way]
    return SKIPPED[f"{node} {port.name}"]


def test_each_way_is_held_to_what_it_must_lead_to():
    assert set(WAYS) == {f"healthy {place}" for place in SKIPPED} | set(RED) | set(UNSEEN) | set(ABSENT)


@pytest.mark.parametrize("place", SKIPPED)
def test_all_hold_on_the_recording_as_it_is(outcomes, place):
    told = outcomes[f"healthy {place}"]

    assert such(told, "skipped") == SKIPPED[place]
    assert such(told, "passed") == set(ALL) - SKIPPED[place]
    assert all(place.split()[0] in told[test][1] for test in SKIPPED[place])


@pytest.mark.parametrize("way", RED)
def test_exactly_what_is_wrong_is_red_and_says_so(outcomes, way):
    told, (red, word) = outcomes[way], RED[way]

    assert such(told, "failed") == red
    assert such(told, "error") == UNSEEN.get(way, (set(), ""))[0]
    for test in red:
        text = told[test][1]
        assert all(part in text for part in ("expected: ", "actual: ")), text
        assert test == "path_matrix" or word in text, text


@pytest.mark.parametrize("way", UNSEEN)
def test_what_could_not_be_seen_is_an_error_and_no_verdict(outcomes, way):
    told, (unseen, word) = outcomes[way], UNSEEN[way]

    errors = such(told, "error")
    # One that is skipped all the same has nothing to be judged on this node or port; one that errs first does not come so far.
    assert errors | skipped(way) == unseen | skipped(way)
    assert such(told, "failed") == RED.get(way, (set(), ""))[0]
    for test in errors:
        assert "CouldNotSee" in told[test][1]
        assert word in told[test][1]


@pytest.mark.parametrize("way", ABSENT)
def test_what_is_absent_is_skipped_with_its_evidence(outcomes, way):
    told, (absent, word) = outcomes[way], ABSENT[way]

    assert such(told, "skipped") == absent | (skipped(way) & such(told, "skipped"))
    assert such(told, "failed") | such(told, "error") == set()
    assert all(word in told[test][1] for test in absent - skipped(way))
