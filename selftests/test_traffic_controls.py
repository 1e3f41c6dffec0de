"""Where a control is silent, the fixtures of traffic raise CouldNotSee or skip with the evidence; a test then never judges."""

import dataclasses
import ipaddress
import types

import pytest
from judging import fact

from fixtures import counted, flows, paths
from selftests import traffic_recording as recording
from servicepath.model import expected_endpoints, growth, matrix, mode
from servicepath.model.difference import explain
from servicepath.model.flows import Source
from servicepath.model.host import Interface
from servicepath.model.judge_wire import Underlay
from servicepath.observation import CouldNotSee, Observation, Trouble

KNOWN = recording.objects()
SERVICE = KNOWN.service("kube-system/kube-dns")
DNS, TCP, METRICS = SERVICE.ports
VIP = SERVICE.cluster_ips[0]
MASTER, WORKER = KNOWN.node("master"), KNOWN.node("worker1")
DEVICE = Interface("enp1s0", 2, 1500, True, None, ())


@pytest.fixture(scope="module")
def far():
    """The experiment of master, whose backend is on another node."""
    return recording.read("master", KNOWN)


@pytest.fixture(scope="module")
def near():
    """The experiment of worker1, whose backend is its own."""
    return recording.read("worker1", KNOWN)


def said(node, name):
    return recording.answers(node)[name].stdout


def pod(run, node):
    return fact(flows.pod_flows, run, DNS, VIP, "dns", node)


def ends(trace):
    """The nodes between which the flow's outer packets must travel."""
    return Underlay(frozenset(MASTER.internal_ips), frozenset(KNOWN.node(trace.backend_node).internal_ips), 8472)


def without_client(run):
    return dataclasses.replace(run, traffic=dataclasses.replace(run.traffic, clients=()))


def test_every_control_of_a_healthy_run_speaks(far, near):
    control = fact(flows.control_flows, far, DNS, "dns", MASTER)
    remote = fact(flows.remote_pod_flows, far, pod(far, MASTER), KNOWN, MASTER)
    host = fact(flows.host_flows, far, DNS, "dns")
    local = fact(flows.local_pod_flows, near, pod(near, WORKER), KNOWN, WORKER)

    fact(flows.seen_at_the_tunnel, far, remote)
    fact(flows.seen_on_the_underlay, far, remote, ends, far.traffic.client)
    fact(flows.seen_at_both_pods, near, local)
    assert len(fact(flows.remote_flows, far, host, KNOWN, MASTER)) == 15
    assert len(fact(flows.wired_host_flows, far, host, KNOWN, MASTER)) == 10
    assert len(fact(flows.remote_a_and_aaaa, far, remote, None, MASTER)) == 5
    assert fact(flows.pod_flows_to_pods, remote, KNOWN, MASTER) == remote
    assert fact(counted.control_growth, far, DNS, VIP, control).svc.packets == 1
    assert fact(flows.sized_flows, far, DNS, remote, (DEVICE,), KNOWN, MASTER).underlay_mtu == 1500


def test_many_packets_of_one_connection_were_captured(far):
    found = fact(counted.one_connection, far, TCP, VIP, "dns", KNOWN, MASTER)

    assert found.growth.svc.packets == 1
    assert len(found.flows[0].packets["underlay"]) > 6
    assert fact(counted.second_connection, far, TCP, VIP, "dns").growth.svc.packets == 1


@pytest.mark.parametrize("port", SERVICE.ports, ids=lambda port: port.id)
def test_host_counted_and_marked_bite(far, port):
    """The window of one control flow, judged as if ten had been sent: nine that iptables never saw."""
    found = growth.measure(far.windows["control"], VIP, port)
    host = fact(flows.host_flows, far, port, "dns")
    wrong = found.unlike(10, fact(counted.first_packets, host))

    assert [d.actual for d in wrong] == ["+1 packets"] * len(wrong)
    assert {"the jumps of the Service's chain", "the KUBE-SEP rules"} <= {d.subject.split(": ")[1].split(",")[0] for d in wrong}
    assert all(port.chain_key in d.subject and d.evidence for d in wrong)
    assert "expected: +10 packets (10 new flows), actual: +1 packets" in explain(found.unmarked(10))


CHAIN, ONE, OTHER = "KUBE-SVC-TCOU7JCQXEZGVUNU", "KUBE-SEP-DFDBAFSYQFHPWTDZ", "KUBE-SEP-AAAAAAAAAAAAAAAA"


def spread(text, first, second):
    """The rules as if kube-dns had a second endpoint; ``first`` and ``second`` are the counters of the two endpoints' rules."""
    lines = []
    for line in text.decode().splitlines():
        if f"-A {CHAIN} " in line and ONE in line:
            rule = line.partition("] ")[2]
            chance = "-m statistic --mode random --probability 0.50000000000 -j"
            lines += [f"[{first}] {rule.replace('-j', chance)}", f"[{second}] {rule.replace(ONE, OTHER).replace('.145', '.146')}"]
        elif ONE in line and "DNAT" in line:
            rule = line.partition("] ")[2]
            lines += [f"[{first}] {rule}", f"[{second}] {rule.replace(ONE, OTHER).replace('.145', '.146')}"]
        else:
            lines += [line, line.replace(ONE, OTHER).replace(".145", ".146")] if ONE in line else [line]
    return "\n".join(lines).encode()


def test_the_counters_of_several_endpoints_count_together():
    before, after = (said("master", f"cut-{n}-nat") for n in (0, 1))
    even, lost = spread(after, "7:735", "4:420"), spread(after, "7:735", "3:315")

    def measured(nat):
        run = recording.read("master", KNOWN, cut_0_nat=spread(before, "1:105", "0:0"), cut_1_nat=nat)
        return fact(counted.host_growth, run, DNS, VIP, "dns")

    assert measured(even).unlike(10, [105] * 10) == ()
    wrong = measured(lost).unlike(10, [105] * 10)
    assert [d.actual for d in wrong] == ["+9 packets"] * 2
    assert sum(line.startswith("[0:0] → [3:315] ") and OTHER in line for line in wrong[0].evidence) == 2


def test_bytes_of_the_hosts_flows_bite(far):
    found, host = growth.measure(far.windows["host"], VIP, DNS), fact(flows.host_flows, far, DNS, "dns")

    assert fact(counted.first_packets, host) == (105,) * 10
    assert "expected: +1060 bytes, actual: +1050 bytes" in explain(found.unlike(10, [106] * 10))


def test_a_control_flow_that_was_not_counted_is_no_verdict():
    run = recording.read("master", KNOWN, cut_3_nat=said("master", "cut-2-nat"))
    control = fact(flows.control_flows, run, DNS, "dns", MASTER)

    with pytest.raises(CouldNotSee, match="the control flow was not counted"):
        fact(counted.control_growth, run, DNS, VIP, control)


def test_a_control_flow_that_conntrack_does_not_hold_is_no_verdict(far):
    sport = far.traffic.of(DNS, Source.HOST, "control")[0].probe.sport
    tables = {f"cut-{number}-conntrack-{table}" for number in range(6) for table in (1, 2)}
    ours = b"sport=%d " % sport
    spoilt = {name: b"".join(x for x in said("master", name).splitlines(keepends=True) if ours not in x) for name in tables}
    run = recording.read("master", KNOWN, **{name.replace("-", "_"): text for name, text in spoilt.items()})

    with pytest.raises(CouldNotSee, match="not in the host's conntrack, so absence proves nothing"):
        fact(flows.control_flows, run, DNS, "dns", MASTER)


@pytest.mark.parametrize("role", ["tunnel", "underlay"])
@pytest.mark.parametrize("note", [b"3 packets dropped by kernel\n", b"0 packets dropped by kernel\nended before it was stopped\n"])
def test_absence_needs_whole_captures(role, note):
    """A local flow never enters the tunnel: that is known only if the captures there lost nothing and lasted to the end."""
    parts = said("worker1", "captures-stop").split(b"== ")
    spoilt = b"== ".join(p.replace(b"0 packets dropped by kernel\n", note) if p.startswith(role.encode()) else p for p in parts)
    run = recording.read("worker1", KNOWN, captures_stop=spoilt)
    local = fact(flows.local_pod_flows, run, pod(run, WORKER), KNOWN, WORKER)

    with pytest.raises(CouldNotSee, match="is not whole"):
        fact(flows.seen_at_both_pods, run, local)


def test_absence_needs_a_capture(near):
    captures = {role: capture for role, capture in near.traffic.captures.items() if role != "tunnel"}
    run = dataclasses.replace(near, traffic=dataclasses.replace(near.traffic, captures=captures))

    with pytest.raises(CouldNotSee, match="nothing was captured as tunnel"):
        fact(flows.seen_at_both_pods, run, fact(flows.local_pod_flows, run, pod(run, WORKER), KNOWN, WORKER))


def test_large_packets_tell_nothing_where_small_ones_are_not_answered(far):
    def silent(trace):
        return dataclasses.replace(trace, flow=dataclasses.replace(trace.flow, answers=(None,)))

    traffic = dataclasses.replace(far.traffic, traces=tuple(map(silent, far.traffic.traces)))
    run = dataclasses.replace(far, traffic=traffic)

    with pytest.raises(CouldNotSee, match="no small packet"):
        fact(flows.sized_flows, run, DNS, pod(run, MASTER), (DEVICE,), KNOWN, MASTER)


def test_large_packets_are_not_judged_by_half_a_capture():
    lost = said("master", "captures-stop").replace(b"\n0 packets dropped", b"\n1 packets dropped")
    run = recording.read("master", KNOWN, captures_stop=lost)

    with pytest.raises(CouldNotSee, match="is not whole"):
        fact(flows.sized_flows, run, DNS, pod(run, MASTER), (DEVICE,), KNOWN, MASTER)


@pytest.mark.parametrize("interfaces", [(), (dataclasses.replace(DEVICE, mtu=None),)], ids=["no device", "no MTU"])
def test_large_packets_are_not_judged_without_the_underlays_mtu(far, interfaces):
    with pytest.raises(CouldNotSee, match="the MTU of enp1s0"):
        fact(flows.sized_flows, far, DNS, pod(far, MASTER), interfaces, KNOWN, MASTER)


@pytest.mark.parametrize(
    ("changed", "missing"),
    [({"bpf_ct": b"no such line\n"}, "bpf ct"), ({"cut_2_nat": b"*nat\n:KUBE-SERVICES"}, "cuts"), ({"cut_5_conntrack_1": b"??\n"}, "cuts")],
)
def test_a_table_that_cannot_be_read_is_an_error_of_the_pods_tests(changed, missing):
    run = recording.read("master", KNOWN, **changed)

    assert set(run.missing) == {missing}
    with pytest.raises(CouldNotSee):
        pod(run, MASTER)


def failed(name, status, stderr):
    """The whole recording with one command that failed."""
    answers = recording.answers("master")
    answers[name] = Observation("master", name, (name,), status, b"", stderr, 0.0, 0.0)
    return recording.traffic_facts.read(recording.plan("master", KNOWN), answers, answers["bpf-ct"], KNOWN, 8472)


def test_without_tcpdump_the_counters_and_tables_still_tell():
    run = failed("captures-start", 127, b"sh: 1: tcpdump: not found\n")

    assert {name.split("-")[0] for name in run.missing} == {"capture"}
    assert run.missing["capture-underlay"].remedy == "install the Debian package tcpdump"
    assert pod(run, MASTER)
    with pytest.raises(CouldNotSee, match="tcpdump"):
        fact(flows.seen_on_the_underlay, run, fact(flows.remote_pod_flows, run, pod(run, MASTER), KNOWN, MASTER), ends, run.traffic.client)


def test_without_the_agent_only_the_pods_tests_are_errors():
    answers = recording.answers("master")
    trouble = Trouble("master", "the agent did not answer")
    run = recording.traffic_facts.read(recording.plan("master", KNOWN), answers, trouble, KNOWN, 8472)

    assert len(fact(flows.host_flows, run, DNS, "dns")) == 10
    with pytest.raises(CouldNotSee, match="the agent did not answer"):
        pod(run, MASTER)


def test_without_the_sender_nothing_can_be_judged():
    with pytest.raises(CouldNotSee, match="python3"):
        failed("send-host-host", 127, b"sh: 1: python3: not found\n")


def test_a_nodes_own_trouble_is_its_error():
    with pytest.raises(CouldNotSee, match="ssh: timed out"):
        fact(flows.run, MASTER, {"master": Trouble("master", "ssh: timed out")})


def test_what_is_absent_is_skipped_with_its_evidence(far, near):
    with pytest.raises(pytest.skip.Exception, match="no Pod here that could be the client"):
        pod(without_client(far), MASTER)
    with pytest.raises(pytest.skip.Exception, match="no client Pod"):
        fact(flows.client_ip, without_client(far), VIP)
    six = ipaddress.ip_address("fd00::a")
    with pytest.raises(pytest.skip.Exception, match="has no IPv6 address to ask fd00::a from"):
        fact(flows.pod_flows, far, DNS, six, "dns", MASTER)
    with pytest.raises(pytest.skip.Exception, match="fd00::a is IPv6, of which no counters were read"):
        fact(counted.host_growth, far, DNS, six, "dns")
    with pytest.raises(pytest.skip.Exception, match="none of 5 flows reached a Pod on this node: 5 ×"):
        fact(flows.local_pod_flows, far, pod(far, MASTER), KNOWN, MASTER)
    with pytest.raises(pytest.skip.Exception, match="none of 5 flows reached a Pod on another node: 5 ×"):
        fact(flows.remote_pod_flows, near, pod(near, WORKER), KNOWN, WORKER)
    with pytest.raises(pytest.skip.Exception, match="not both A and AAAA"):
        fact(flows.remote_a_and_aaaa, far, pod(far, MASTER)[:1], None, MASTER)
    with pytest.raises(pytest.skip.Exception, match="no remote Pod that speaks DNS over UDP"):
        fact(flows.sized_flows, far, TCP, pod(far, MASTER), (DEVICE,), KNOWN, MASTER)


def test_a_port_that_cannot_be_probed_is_skipped():
    serving, none = (expected_endpoints.expect(listed, SERVICE, DNS, "master", 4) for listed in (KNOWN.endpoints_of(SERVICE), ()))

    assert fact(flows.probed, DNS, "dns", serving, MASTER) == "dns"
    with pytest.raises(pytest.skip.Exception, match="name it under probes:"):
        fact(flows.probed, METRICS, None, serving, MASTER)
    with pytest.raises(pytest.skip.Exception, match="no serving endpoint"):
        fact(flows.probed, DNS, "dns", none, MASTER)


def test_a_kube_proxy_without_a_cluster_cidr_marks_nothing(far):
    plain = b"\n".join(
        line for line in said("master", "cut-1-nat").splitlines() if not (b"-A KUBE-SVC-" in line and b"-j KUBE-MARK-MASQ" in line)
    )
    run = recording.read("master", KNOWN, cut_0_nat=plain, cut_1_nat=plain)
    free, pinned = (types.SimpleNamespace(expect=types.SimpleNamespace(cluster_cidr=cidr)) for cidr in (None, "10.42.0.0/16"))
    found = growth.measure(far.windows["host"], VIP, DNS)

    assert fact(counted.marked_growth, far, found, free, MASTER) is found
    assert fact(counted.marked_growth, run, found, pinned, MASTER) is found
    with pytest.raises(pytest.skip.Exception, match="without a cluster CIDR"):
        fact(counted.marked_growth, run, found, free, MASTER)


def cells(runs, monkeypatch):
    """The matrix of hosts and Pods for kube-dns."""
    monkeypatch.setattr(paths, "inventory_of", lambda config: None)
    monkeypatch.setattr(paths, "options_of", lambda config: None)
    monkeypatch.setattr(paths, "mode_of", lambda config, node: mode.EXPECTED)
    monkeypatch.setattr(paths, "select_services", lambda objects, options, inventory: [SERVICE])
    monkeypatch.setattr(paths, "speaks", lambda port, inventory: "dns")
    found = paths.traffic_cells(None, KNOWN, runs)
    return {(c.node, c.source): c for c in found if c.frontend == DNS.id}


def test_each_cell_is_from_its_own_measurement(far, near, monkeypatch):
    found = cells({"master": far, "worker1": near}, monkeypatch)

    assert {(key, c.translated_by, c.transported_by) for key, c in found.items()} == {
        (("master", "host"), "kube-proxy (iptables)", "Cilium VXLAN"),
        (("master", "Pod"), "Cilium (eBPF)", "Cilium VXLAN"),
        (("worker1", "host"), "kube-proxy (iptables)", "local delivery"),
        (("worker1", "Pod"), "Cilium (eBPF)", "local delivery"),
    }
    assert {c.verdict for c in found.values()} == {matrix.EXPECTED}


def test_a_cell_that_could_not_be_measured_says_so(far, monkeypatch):
    unsent = [dataclasses.replace(t, flow=dataclasses.replace(t.flow, unsent=True, answers=(None,))) for t in far.traffic.traces]
    taken = dataclasses.replace(far, traffic=dataclasses.replace(far.traffic, traces=tuple(unsent)))
    blind = dataclasses.replace(far, missing={"bpf ct": Trouble("worker1", "no such file")})
    found = cells({"master": taken, "worker1": blind, "worker2": Trouble("worker2", "ssh: timed out")}, monkeypatch)

    assert {c.verdict for key, c in found.items() if key != ("worker1", "host")} == {matrix.NOT_TESTED}
    assert found["master", "host"].reason == "could not be seen: no source port was to be had, or no flow table holds the flows"
    assert found["worker1", "Pod"].reason == "could not be seen: no such file"
    assert found["worker1", "host"].verdict == matrix.EXPECTED
    assert found["worker2", "Pod"].reason == "could not be seen: ssh: timed out"
    assert "Pod on worker1 → " in str(found["worker1", "Pod"])


def test_of_several_readings_that_one_counts_during_which_nobody_began_a_flow():
    """In the first a flow of others began while the counters were read; the second is still, and so it is certain what was counted."""
    foreign = b"udp 17 29 src=10.9.9.9 dst=10.43.0.10 sport=40000 dport=53 src=10.42.1.113 dst=10.9.9.9 sport=53 dport=40000 mark=0 use=1\n"
    later = said("master", "cut-1-conntrack-2") + foreign
    again = {"cut_1_conntrack_2": later, "cut_1_nat_2": said("master", "cut-1-nat"), "cut_1_conntrack_3": later}

    once = recording.read("master", KNOWN, cut_1_conntrack_2=later).windows["host"].after
    twice = recording.read("master", KNOWN, **again).windows["host"].after

    assert len(once.conntrack[1]) == len(once.conntrack[0]) + 1
    assert len(twice.conntrack[1]) == len(twice.conntrack[0])


def test_a_packet_that_is_wrong_needs_no_answer_to_be_told(far):
    remote = fact(flows.remote_pod_flows, far, pod(far, MASTER), KNOWN, MASTER)
    asked = [
        dataclasses.replace(t, packets={"underlay": tuple(p for p in t.packets["underlay"] if p.innermost.source == far.traffic.client)})
        for t in remote
    ]

    with pytest.raises(CouldNotSee, match="holds not both directions"):
        fact(flows.seen_on_the_underlay, far, asked, ends, far.traffic.client)
    fact(flows.seen_on_the_underlay, far, asked, ends, ipaddress.ip_address("10.42.0.99"))
