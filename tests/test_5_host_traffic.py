"""Host traffic."""

import pytest

from servicepath.model import judge_flows, judge_wire
from servicepath.model.difference import explain

pytestmark = pytest.mark.traffic

DIG = "{node}$ dig +tries=1 +time=1 @{vip} kubernetes.default.svc.cluster.local A"
TCPDUMP = "{node}# timeout 15 tcpdump -ni any -nn -vv udp port 8472 or port 53"
COUNTERS = "{node}# iptables-save -c -t nat | grep {namespace}/{service}"


@pytest.mark.conclusion(section="§6, §10.4", see=(DIG,))
def test_host_answers(host_flows, expected_answers, evidence):
    """Every query from the host through the ClusterIP is answered, and with the value that the API says."""
    evidence.flows("Asked from the host, and answered", host_flows)

    wrong = judge_flows.not_answered(host_flows, expected_answers)

    assert not wrong, explain(wrong)


@pytest.mark.needs("iptables", "not-replaced")
@pytest.mark.conclusion(section="§6, §10.4", see=(COUNTERS, DIG, COUNTERS))
def test_host_counted_by_iptables(host_flows, host_growth, first_packets, evidence):
    """N new flows from the host raise KUBE-SVC's and the sum of its KUBE-SEP rules by N packets, and by their first packets' bytes."""
    evidence.growth("Counters around the host's flows", host_growth)

    wrong = host_growth.unlike(len(host_flows), first_packets)

    assert not wrong, explain(wrong)


@pytest.mark.needs("iptables", "not-replaced")
@pytest.mark.conclusion(section="§6", see=(COUNTERS, DIG, COUNTERS))
def test_host_marked_for_masquerade(host_flows, marked_growth, evidence):
    """Host flows hit the Service's own rule ``! -s <cluster CIDR>`` to KUBE-MARK-MASQ."""
    evidence.growth("Counters around the host's flows", marked_growth)

    wrong = marked_growth.unmarked(len(host_flows))

    assert not wrong, explain(wrong)


@pytest.mark.needs("not-replaced")
@pytest.mark.conclusion(section="§8, §10.4", see=(DIG, "{node}# conntrack -L -d {vip}"))
def test_host_translated_by_conntrack(host_flows, serving, cilium_internal_ips, objects, node, evidence):
    """The host's conntrack holds each flow: to the ClusterIP one way; from the backend, to a source it can answer, the other."""
    evidence.tables("The host's conntrack entries of the flows", host_flows)

    wrong = judge_flows.not_by_conntrack(host_flows, serving, cilium_internal_ips, node.name, objects.pod_ips)

    assert not wrong, explain(wrong)


@pytest.mark.needs("readable")
@pytest.mark.conclusion(section="§8", see=(TCPDUMP, DIG + "  # while tcpdump runs"))
def test_host_sees_the_clusterip(wired_host_flows, vip, evidence):
    """The host's application sees the answer come from the ClusterIP, while the wire shows the backend."""
    evidence.flows("What the application saw", wired_host_flows)
    evidence.packets("What the wire carried", wired_host_flows, "underlay", "backend-lxc")

    wrong = (
        *judge_flows.not_from_the_clusterip(wired_host_flows),
        *judge_wire.carrying(wired_host_flows, "underlay", vip),
        *judge_wire.carrying(wired_host_flows, "backend-lxc", vip),
    )

    assert not wrong, explain(wrong)
