"""Pod traffic."""

import pytest

from servicepath.model import judge_flows, judge_replacement, judge_wire
from servicepath.model.difference import explain

pytestmark = pytest.mark.traffic

NSLOOKUP = "kubectl -n {podns} exec {pod} -- nslookup kubernetes.default.svc.cluster.local {vip}"
ASK = NSLOOKUP + "  # while tcpdump runs"
THREE = "{node}$ dig +tcp +keepopen" + 3 * " @{vip} kubernetes.default.svc.cluster.local"
COUNTERS = "{node}# iptables-save -c -t nat | grep {namespace}/{service}"
STATUS = "kubectl -n kube-system exec {agent} -- cilium-dbg status --verbose | grep -A 20 KubeProxyReplacement"
CT = "kubectl -n kube-system exec {agent} -- cilium-dbg bpf ct list global | grep -E '{vip}:|:({flows}) '"


@pytest.mark.conclusion(section="§7, §10.5", see=(NSLOOKUP,))
def test_pod_answers(sent_pod_flows, expected_answers, evidence):
    """Every query from a Pod through the ClusterIP is answered, and with the value that the API says."""
    evidence.flows("Asked from the Pod, and answered", sent_pod_flows)

    wrong = judge_flows.not_answered(sent_pod_flows, expected_answers)

    assert not wrong, explain(wrong)


@pytest.mark.needs("iptables", "not-replaced")
@pytest.mark.conclusion(section="§7, §10.5", see=(COUNTERS, NSLOOKUP, COUNTERS))
def test_pod_leaves_counters(pod_flows, pod_growth, control_flows, control_growth, evidence):
    """N new flows from a Pod leave every rule of the Service unchanged, while one host flow right after raises them by one."""
    evidence.flows("The Pod's flows", pod_flows)
    evidence.growth("Counters around the Pod's flows", pod_growth)
    evidence.growth("Counters around the host's control flow", control_growth)

    wrong = pod_growth.unlike(0, ())

    assert not wrong, explain(wrong)


@pytest.mark.needs("per-packet", "untracked")
@pytest.mark.conclusion(section="§7, §10.5", see=(CT, "{node}# conntrack -L -d {vip}"))
def test_pod_translated_by_ebpf(pod_flows_to_pods, control_flows, serving, evidence):
    """Cilium's connection tracking holds each flow to the ClusterIP and to the backend; the host's conntrack holds it neither way."""
    evidence.tables("Flow tables of the Pod's flows", pod_flows_to_pods)
    evidence.tables("The host's control flow in the host's conntrack", control_flows)

    wrong = judge_flows.not_by_ebpf(pod_flows_to_pods, serving)

    assert not wrong, explain(wrong)


@pytest.mark.needs("per-packet", "encapsulated")
@pytest.mark.conclusion(section="§8, §10.7", see=("{node}# timeout 15 tcpdump -ni any -nn host {vip} or port 53", ASK))
def test_translated_at_the_pod(remote_pod_flows, seen_at_the_tunnel, client_ip, vip, evidence):
    """The packet leaves the Pod for the ClusterIP and enters the tunnel device for the backend."""
    evidence.packets("At the Pod's interface and at the tunnel device", remote_pod_flows, "client-lxc", "tunnel")

    wrong = (
        *judge_wire.not_to_the_clusterip(remote_pod_flows, "client-lxc"),
        *judge_wire.not_from_to(remote_pod_flows, "tunnel", {client_ip}),
        *judge_wire.carrying(remote_pod_flows, "tunnel", vip),
    )

    assert not wrong, explain(wrong)


@pytest.mark.needs("iptables", "not-replaced")
@pytest.mark.conclusion(section="§7", see=(COUNTERS, THREE, COUNTERS))
def test_counters_count_flows(one_connection, second_connection, evidence):
    """Many packets of one flow count once: nat counters count new flows, not packets."""
    evidence.growth("Counters around several queries in one TCP connection", one_connection.growth)
    evidence.packets("The connection's packets", one_connection.flows, "underlay", "backend-lxc")
    evidence.growth("Counters around a second connection", second_connection.growth)

    wrong = (*one_connection.growth.unlike(1, ()), *second_connection.growth.unlike(1, ()))

    assert not wrong, explain(wrong)


@pytest.mark.needs("not-replaced", "encapsulated")
@pytest.mark.conclusion(section="§10.8", see=(STATUS, CT))
def test_kpr_false_yet_clusterip(pod_flows_to_pods, agent_status, serving, node, evidence):
    """KubeProxyReplacement is False and socket LB is off, and yet Cilium translated this Pod's ClusterIP traffic."""
    evidence.show("cilium-dbg status", judge_replacement.status_lines(agent_status), command="cilium-dbg status -o json")
    evidence.tables("Flow tables of the Pod's flows", pod_flows_to_pods)

    wrong = (*judge_replacement.replacing(agent_status, node.name), *judge_flows.not_by_ebpf(pod_flows_to_pods, serving))

    assert not wrong, explain(wrong)
