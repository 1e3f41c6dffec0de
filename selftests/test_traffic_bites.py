"""Each conclusion about traffic holds on a recorded healthy experiment, and bites on the one thing spoilt in it."""

import dataclasses
import ipaddress

import pytest

from fixtures import counted, flows, traffic
from selftests import traffic_recording as recording
from servicepath.experiments.traffic import SIZE_WINDOW, WINDOWS
from servicepath.model import growth, judge_flows, judge_replacement, judge_size, judge_wire, matrix
from servicepath.model.addresses import Socket
from servicepath.model.cilium import AgentStatus
from servicepath.model.difference import explain
from servicepath.model.flows import Source
from servicepath.model.host import ConntrackEntry
from servicepath.model.judge_wire import Underlay
from servicepath.observation import CouldNotSee

KNOWN = recording.objects()
SERVICE = KNOWN.service("kube-system/kube-dns")
DNS, TCP, METRICS = SERVICE.ports
VIP = SERVICE.cluster_ips[0]
SERVING = {port: KNOWN.serving(SERVICE, port) for port in SERVICE.ports}
KUBERNETES = frozenset(map(str, KNOWN.service("default/kubernetes").cluster_ips))
ANSWERS = {
    "kubernetes.default.svc.cluster.local. a": KUBERNETES,
    "kubernetes.default.svc.cluster.local. aaaa": frozenset(),
}
STRANGER = ipaddress.ip_address("10.42.77.77")


@pytest.fixture(scope="module")
def far():
    """The experiment of master, whose backend is on another node."""
    return recording.read("master", KNOWN)


@pytest.fixture(scope="module")
def near():
    """The experiment of worker1, whose backend is its own."""
    return recording.read("worker1", KNOWN)


def underlay(trace):
    """The ends between which the outer packets of master's flows must travel."""
    ends = {node.name: frozenset(node.internal_ips) for node in KNOWN.nodes}
    return Underlay(ends["master"], ends[trace.backend_node], 8472)


def cilium_ips(node):
    return KNOWN.cilium_node(node).cilium_internal_ips


def of(run, source, port=DNS, window=None):
    return run.traffic.of(port, source, window or source.value.lower())


def repacked(traces, role, change):
    """The flows with every packet of a capture changed; None takes a packet out."""
    changed = [tuple(q for p in t.packets[role] if (q := change(p)) is not None) for t in traces]
    return tuple(dataclasses.replace(t, packets={**t.packets, role: packets}) for t, packets in zip(traces, changed, strict=True))


def inner(packet, **changes):
    """A packet whose innermost header has other addresses."""
    header = dataclasses.replace(packet.innermost, **changes)
    return dataclasses.replace(packet, inner=header) if packet.inner else dataclasses.replace(packet, outer=header)


def told(wrong, *words):
    """The differences, which there must be, name subject, expected, actual, and these words."""
    assert wrong
    text = explain(wrong)
    assert "expected:" in text
    assert "actual:" in text
    assert all(word in text for word in words), text


@pytest.mark.parametrize("port", SERVICE.ports, ids=lambda port: port.id)
@pytest.mark.parametrize("node", ["master", "worker1"])
def test_the_recording_is_whole(node, port):
    run = recording.read(node, KNOWN)

    assert run.missing == {}
    assert len(of(run, Source.HOST, port)) == 10
    assert len(of(run, Source.POD, port)) == 5
    assert {c.complete for c in run.traffic.captures.values()} == {True}


@pytest.mark.parametrize("port", SERVICE.ports, ids=lambda port: port.id)
@pytest.mark.parametrize("node", ["master", "worker1"])
def test_all_holds(node, port):
    run = recording.read(node, KNOWN)
    host, pod = of(run, Source.HOST, port), of(run, Source.POD, port)
    away = judge_flows.remote(pod, node)
    found = {window: growth.measure(run.windows[window], VIP, port) for window in ("host", "pod", "control")}

    assert judge_flows.unanswered([t.flow for t in (*host, *pod)], ANSWERS) == ()
    assert judge_flows.not_by_conntrack(host, SERVING[port], cilium_ips(node), node, KNOWN.pod_ips) == ()
    assert judge_flows.not_by_ebpf(pod, SERVING[port]) == ()
    assert judge_flows.not_from_the_clusterip(host) == ()
    assert found["host"].unlike(10, [growth.first_packet_length(t) for t in host]) == ()
    assert found["host"].unmarked(10) == ()
    assert found["pod"].unlike(0, ()) == ()
    assert found["control"].unlike(1, ()) == ()
    assert judge_wire.not_between_nodes(away, underlay) == ()
    assert judge_wire.not_from_to(away, "underlay", {run.traffic.client}) == ()
    assert judge_wire.not_reversed(away) == ()
    assert judge_wire.carrying((*host, *pod), "underlay", VIP) == ()
    assert len(away) == (5 if node == "master" else 0)


def test_host_answers_bites(far):
    first = of(far, Source.HOST)[0].flow
    silent = dataclasses.replace(first, answers=(None,), error="no answer within 2 s")
    other = dataclasses.replace(first, answers=(dataclasses.replace(first.answers[0], values=("10.9.9.9",)),))

    told(judge_flows.unanswered([silent], ANSWERS), "not answered", "no answer within 2 s")
    told(judge_flows.unanswered([other], ANSWERS), "wrong answer", "10.9.9.9")


def test_an_answer_that_came_when_nobody_waited_any_more_is_told_and_measured_again(far):
    first = of(far, Source.POD)[0]
    silent = dataclasses.replace(first, flow=dataclasses.replace(first.flow, answers=(None,), error="no answer within 5 s"))
    (late,) = repacked([silent], "client-lxc", lambda p: dataclasses.replace(p, time=p.time + 6.3) if p.dns_response else p)
    run = dataclasses.replace(far, traffic=dataclasses.replace(far.traffic, traces=(late,)))

    told(judge_flows.not_answered([late], ANSWERS), "answered too late", "an answer after 6.3 s: no answer within 5 s")
    told(judge_flows.not_answered([silent], ANSWERS), "not answered")
    assert traffic.disturbance(run, []) == f"1 answers came too late, that to {first.probe.id} after 6.3 s: a server did not get to run"
    assert judge_flows.late_answer(silent) is None
    assert judge_flows.late_answer(first) is None


def test_a_port_that_somebody_used_before_is_measured_again(far):
    first = of(far, Source.HOST)[0]
    window = far.windows["host"]
    before = dataclasses.replace(window.before, conntrack=(first.conntrack, window.before.conntrack[1]))
    run = dataclasses.replace(far, windows={**far.windows, "host": dataclasses.replace(window, before=before)})

    assert traffic.disturbance(far, []) is None
    assert f"source port {first.probe.sport} was in use before anything was sent" in traffic.disturbance(run, [])


def test_a_negative_answer_is_no_data(far):
    first = of(far, Source.POD)[0].flow
    refused = dataclasses.replace(first, answers=(dataclasses.replace(first.answers[0], rcode="SERVFAIL", values=()),))

    told(judge_flows.unanswered([refused], ANSWERS), "SERVFAIL")


def test_host_translated_by_conntrack_bites(far):
    host = of(far, Source.HOST)
    entry = host[0].conntrack[0]
    untranslated = dataclasses.replace(entry, reply=(entry.original[1], entry.original[0]))
    stale = dataclasses.replace(entry, reply=(Socket(STRANGER, 53), entry.reply[1]))
    unanswerable = dataclasses.replace(entry, reply=(entry.reply[0], entry.original[0]))

    def judged(*entries):
        spoilt = [dataclasses.replace(host[0], conntrack=entries)]
        return judge_flows.not_by_conntrack(spoilt, SERVING[DNS], cilium_ips("master"), "master", KNOWN.pod_ips)

    told(judged(untranslated), "never translated", str(VIP))
    told(judged(stale), "no serving endpoint", str(STRANGER))
    told(judged(unanswerable), "CiliumInternalIP")
    told(judged(), "not in the host's conntrack")


def test_a_backend_in_another_nodes_own_network_answers_the_node(far):
    host = of(far, Source.HOST)[0]
    entry = host.conntrack[0]
    unmasked = dataclasses.replace(host, conntrack=(dataclasses.replace(entry, reply=(entry.reply[0], entry.original[0])),))

    assert judge_flows.not_by_conntrack([unmasked], SERVING[DNS], cilium_ips("master"), "master", frozenset()) == ()


def test_host_sees_the_clusterip_bites(far):
    flow = of(far, Source.HOST)[0]
    answer = dataclasses.replace(flow.flow.answers[0], source=Socket(STRANGER, 53))
    misled = dataclasses.replace(flow, flow=dataclasses.replace(flow.flow, answers=(answer,)))

    told(judge_flows.not_from_the_clusterip([misled]), str(STRANGER))


def test_pod_translated_by_ebpf_bites(far):
    pod = of(far, Source.POD)[0]
    ours = Socket(far.traffic.client, pod.probe.sport)
    entry = ConntrackEntry("UDP", (ours, pod.probe.target), (next(iter(SERVING[DNS])), ours), None, False, True, 30, 0, "udp 17 …")

    def judged(**changes):
        return judge_flows.not_by_ebpf([dataclasses.replace(pod, **changes)], SERVING[DNS])

    told(judged(conntrack=(entry,), ct=()), "kube-proxy (iptables)", "bpf ct: no entry")
    told(judged(conntrack=(entry,)), "both")
    told(judged(ct=()), "nobody")
    told(judge_flows.not_by_ebpf([pod], frozenset({Socket(STRANGER, 53)})), "no serving endpoint")


def test_pod_leaves_counters_bites(far):
    """The Pod's window judged by the counters of the host's: what would be seen if iptables translated the Pod's flows."""
    found = growth.measure(far.windows["host"], VIP, DNS)

    told(found.unlike(0, ()), "+10 packets", "[")


def test_counters_count_flows_bites(far):
    found = growth.measure(far.windows["one-connection"], VIP, TCP)

    assert found.unlike(1, ()) == ()
    told(found.unlike(3, ()), "+3 packets", "+1 packets")


@pytest.mark.parametrize(
    ("status", "word"), [({"kube_proxy_replacement": "True"}, "KubeProxyReplacement"), ({"socket_lb": True}, "socket LB")]
)
def test_kpr_false_yet_clusterip_bites(status, word):
    healthy = AgentStatus("1.19.1", "False", False, False, {"ClusterIP": True}, "tunnel", "vxlan", "Legacy", None, {})

    assert judge_replacement.replacing(healthy, "master") == ()
    told(judge_replacement.replacing(dataclasses.replace(healthy, **status), "master"), word)


def test_translated_at_the_pod_bites(far):
    pod = of(far, Source.POD)
    early = repacked(pod, "client-lxc", lambda p: inner(p, destination=pod[0].backend.ip) if p.innermost.destination == VIP else p)
    late = repacked(pod, "tunnel", lambda p: inner(p, destination=VIP) if p.innermost.destination == pod[0].backend.ip else p)

    assert judge_wire.not_to_the_clusterip(pod, "client-lxc") == ()
    told(judge_wire.not_to_the_clusterip(early, "client-lxc"), "before it left the Pod")
    told(judge_wire.carrying(late, "tunnel", VIP), "ClusterIP")
    told(judge_wire.not_from_to(late, "tunnel", {far.traffic.client}), "not to or from the backend")


def test_tunnel_endpoints_bites(far):
    pod = of(far, Source.POD)
    elsewhere = repacked(pod, "underlay", lambda p: dataclasses.replace(p, outer=dataclasses.replace(p.outer, destination=STRANGER)))
    plain = repacked(pod, "underlay", lambda p: dataclasses.replace(p, outer=p.inner, inner=None, vni=None))

    told(judge_wire.not_between_nodes(elsewhere, underlay), "wrong tunnel ends", str(STRANGER))
    told(judge_wire.not_between_nodes(plain, underlay), "not encapsulated")


def test_inner_is_the_pod_bites(far):
    pod, client = of(far, Source.POD), far.traffic.client
    masked = repacked(pod, "underlay", lambda p: inner(p, source=STRANGER) if p.innermost.source == client else p)

    told(judge_wire.not_from_to(masked, "underlay", {client}), "another client address", str(STRANGER))


def test_no_clusterip_inside_bites(far):
    pod = of(far, Source.POD)
    leaking = repacked(pod, "underlay", lambda p: inner(p, source=VIP) if p.innermost.source == pod[0].backend.ip else p)
    plain = repacked(leaking, "underlay", lambda p: dataclasses.replace(p, outer=p.inner, inner=None, vni=None))

    told(judge_wire.carrying(leaking, "underlay", VIP), "inside VXLAN", str(VIP))
    told(judge_wire.carrying(plain, "underlay", VIP), "plain", str(VIP))


def test_same_way_for_aaaa_bites(far):
    pod = of(far, Source.POD)
    aaaa = [t for t in pod if t.probe.queries[0].question.endswith("AAAA")]
    other = repacked(aaaa, "underlay", lambda p: dataclasses.replace(p, outer=dataclasses.replace(p.outer, source=STRANGER)))

    assert len(aaaa) == 2
    told(judge_wire.not_between_nodes(other, underlay), str(STRANGER))


def test_answer_comes_back_bites(far):
    pod = of(far, Source.POD)
    back = pod[0].backend.ip
    crooked = repacked(pod, "underlay", lambda p: inner(p, dport=1) if p.innermost.source == back else p)

    told(judge_wire.not_reversed(crooked), "another way")


def test_host_inner_source_bites(far):
    host = of(far, Source.HOST)
    own = cilium_ips("master")
    node_ip = KNOWN.node("master").internal_ips[0]
    unmasked = repacked(host, "underlay", lambda p: inner(p, source=node_ip) if p.innermost.source in own else p)

    assert judge_wire.not_from_to(host, "underlay", own) == ()
    told(judge_wire.not_from_to(unmasked, "underlay", own), str(node_ip))


def test_local_backend_untunnelled_bites(near):
    pod, client = of(near, Source.POD), near.traffic.client

    assert [t.backend_node for t in pod] == ["worker1"] * 5
    assert judge_wire.not_to_the_clusterip(pod, "client-lxc") == ()
    assert judge_wire.not_from_to(pod, "backend-lxc", {client}) == ()
    assert (*judge_wire.anywhere(pod, "tunnel"), *judge_wire.anywhere(pod, "underlay")) == ()
    tunnelled = [dataclasses.replace(t, packets={**t.packets, "tunnel": t.packets["backend-lxc"]}) for t in pod]
    told(judge_wire.anywhere(tunnelled, "tunnel"), "where none belongs")


def test_full_size_packet_bites(far):
    full, larger = far.traffic.of(DNS, Source.POD, SIZE_WINDOW)
    sized = judge_size.SizedFlows(far.plan.route_mtu, 1500, full, larger)

    def broken(trace, more):
        return repacked([trace], "underlay", lambda p: dataclasses.replace(p, outer=dataclasses.replace(p.outer, more_fragments=more)))[0]

    assert judge_size.judge_size(sized) == ()
    told(judge_size.judge_size(dataclasses.replace(sized, full=broken(full, True))), "does not cross whole")
    told(judge_size.judge_size(dataclasses.replace(sized, larger=broken(larger, False))), "crosses whole")
    told(judge_size.judge_size(dataclasses.replace(sized, full=repacked([full], "underlay", lambda p: None)[0])), "never reached")
    silent = dataclasses.replace(full, flow=dataclasses.replace(full.flow, answers=(None,), error="no answer within 0.5 s"))
    told(judge_size.judge_size(dataclasses.replace(sized, full=silent)), "not answered")


def test_path_matrix_bites(far):
    host, pod = of(far, Source.HOST), of(far, Source.POD)
    as_expected = [matrix.cell("master", DNS, Source.HOST, host, ""), matrix.cell("master", DNS, Source.POD, pod, "")]
    swapped = matrix.cell("master", DNS, Source.POD, [dataclasses.replace(t, ct=(), conntrack=host[0].conntrack) for t in pod], "")

    assert matrix.unexpected(as_expected) == ()
    assert [cell.translated_by for cell in as_expected] == ["kube-proxy (iptables)", "Cilium (eBPF)"]
    assert [cell.transported_by for cell in as_expected] == ["Cilium VXLAN"] * 2
    told(matrix.unexpected([swapped]), "Cilium (eBPF)", "iptables")
    assert matrix.unexpected([matrix.cell("master", DNS, Source.POD, (), "no client Pod on this node")]) == ()


def test_a_silent_capture_is_no_verdict(far):
    pod = of(far, Source.POD)
    back = pod[0].backend.ip
    one_way = repacked(pod, "underlay", lambda p: None if p.innermost.source == back else p)

    flows.require_seen(far, pod, "underlay")
    with pytest.raises(CouldNotSee, match="holds not both directions"):
        flows.require_seen(far, one_way, "underlay")


def test_a_capture_that_dropped_packets_is_no_verdict():
    said = recording.answers("master")["captures-stop"].stdout.replace(b"\n0 packets dropped", b"\n7 packets dropped")
    run = recording.read("master", KNOWN, captures_stop=said)

    with pytest.raises(CouldNotSee, match="is not whole"):
        flows.require_seen(run, of(run, Source.POD), "underlay")


def test_a_capture_cut_off_is_an_error_of_its_own_tests_alone():
    said = recording.answers("master")["capture-underlay"].stdout
    run = recording.read("master", KNOWN, capture_underlay=said[: len(said) // 2 + 1])

    assert set(run.missing) == {"capture-underlay"}
    with pytest.raises(CouldNotSee):
        flows.require_seen(run, of(run, Source.POD), "underlay")
    assert judge_flows.not_by_ebpf(of(run, Source.POD), SERVING[DNS]) == ()


def test_probes_cut_off_are_an_error():
    said = recording.answers("master")["send-pod-pod"].stdout

    with pytest.raises(CouldNotSee, match="probe sender"):
        recording.read("master", KNOWN, send_pod_pod=said[: len(said) // 2])


def test_a_flow_that_could_not_be_sent_is_no_verdict():
    said = recording.answers("master")["send-host-host"].stdout.replace(b'"unsent": false', b'"unsent": true', 1)
    run = recording.read("master", KNOWN, send_host_host=said)

    with pytest.raises(CouldNotSee, match="was not sent"):
        flows.sent(run, DNS, Source.HOST, "host")


@pytest.mark.parametrize("window", WINDOWS[:3])
def test_counters_written_anew_are_no_verdict(window):
    number = WINDOWS.index(window) + 1
    fresh = b"\n".join(
        b"[0:0]" + line[line.index(b"]") + 1 :] if line.startswith(b"[") else line
        for line in recording.answers("master")[f"cut-{number}-nat"].stdout.splitlines()
    )
    run = recording.read("master", KNOWN, **{f"cut_{number}_nat": fresh})

    with pytest.raises(CouldNotSee, match="could not be judged"):
        counted._growth(run, window, DNS, VIP)
