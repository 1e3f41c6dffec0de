"""VXLAN."""

import pytest

from servicepath.model import judge_wire
from servicepath.model.difference import explain

pytestmark = [pytest.mark.traffic, pytest.mark.needs("tunnel", "readable")]

ASK = "kubectl -n {podns} exec {pod} -- nslookup kubernetes.default.svc.cluster.local {vip}  # while tcpdump runs"
DIG = "{node}$ dig +tries=1 +time=1 @{vip} kubernetes.default.svc.cluster.local A  # while tcpdump runs"
TCPDUMP = "{node}# timeout 15 tcpdump -ni any -nn -vv udp port 8472"


@pytest.mark.conclusion(section="§8, §10.7", see=(TCPDUMP, ASK))
def test_tunnel_endpoints(remote_pod_flows, seen_on_the_underlay, underlay, evidence):
    """A query travels from node IP to node IP, UDP to the tunnel port."""
    evidence.packets("On the underlay", remote_pod_flows, "underlay")

    wrong = judge_wire.not_between_nodes(remote_pod_flows, underlay)

    assert not wrong, explain(wrong)


@pytest.mark.conclusion(section="§8, §10.7", see=(TCPDUMP, ASK))
def test_inner_is_the_pod(remote_pod_flows, seen_on_the_underlay, client_ip, evidence):
    """The inner header goes from the client Pod's IP to the backend's IP and port."""
    evidence.packets("On the underlay", remote_pod_flows, "underlay")

    wrong = judge_wire.not_from_to(remote_pod_flows, "underlay", {client_ip})

    assert not wrong, explain(wrong)


@pytest.mark.conclusion(section="§8, §10.7", see=(TCPDUMP, ASK, DIG))
def test_no_clusterip_inside(remote_flows, vip, evidence):
    """Neither inside VXLAN nor plain on the underlay does a Pod's or host's flow carry the ClusterIP, either way."""
    evidence.packets("On the underlay", remote_flows, "underlay")

    wrong = judge_wire.carrying(remote_flows, "underlay", vip)

    assert not wrong, explain(wrong)


@pytest.mark.conclusion(section="§8", see=(TCPDUMP, ASK))
def test_same_way_for_aaaa(remote_a_and_aaaa, underlay, client_ip, evidence):
    """A and AAAA queries, each on a socket of its own, take the same way."""
    evidence.packets("On the underlay", remote_a_and_aaaa, "underlay")

    wrong = (
        *judge_wire.not_between_nodes(remote_a_and_aaaa, underlay),
        *judge_wire.not_from_to(remote_a_and_aaaa, "underlay", {client_ip}),
    )

    assert not wrong, explain(wrong)


@pytest.mark.conclusion(section="§8, §10.7", see=(TCPDUMP, ASK))
def test_answer_comes_back(remote_pod_flows, seen_on_the_underlay, evidence):
    """The answer has the question's outer IPs, inner IPs and inner ports reversed."""
    evidence.packets("On the underlay", remote_pod_flows, "underlay")

    wrong = judge_wire.not_reversed(remote_pod_flows)

    assert not wrong, explain(wrong)


@pytest.mark.conclusion(section="§8", see=(TCPDUMP, DIG, "{node}# conntrack -L -d {vip}"))
def test_host_inner_source(remote_host_flows, cilium_internal_ips, evidence):
    """Host traffic is translated before encapsulation: inside it goes from the CiliumInternalIP to the backend, and back to it."""
    evidence.packets("On the underlay", remote_host_flows, "underlay")
    evidence.tables("The host's conntrack entries of the flows", remote_host_flows)

    wrong = (
        *judge_wire.not_from_to(remote_host_flows, "underlay", cilium_internal_ips),
        *judge_wire.not_reversed(remote_host_flows),
    )

    assert not wrong, explain(wrong)


@pytest.mark.conclusion(section="§8", see=("{node}# timeout 15 tcpdump -ni any -nn host {vip} or port 53", ASK))
def test_local_backend_untunnelled(local_pod_flows, seen_at_both_pods, client_ip, agent_status, evidence):
    """Traffic to a local backend leaves the client's lxc for the ClusterIP, reaches the backend's lxc, and never enters the tunnel."""
    evidence.packets("At both Pods' interfaces", local_pod_flows, "client-lxc", "backend-lxc", "tunnel", "underlay")

    wrong = (
        *judge_wire.not_as_sent(local_pod_flows, "client-lxc", client_ip, socket_lb=agent_status.socket_lb is True),
        *judge_wire.not_from_to(local_pod_flows, "backend-lxc", {client_ip}),
        *judge_wire.anywhere(local_pod_flows, "tunnel"),
        *judge_wire.anywhere(local_pod_flows, "underlay"),
    )

    assert not wrong, explain(wrong)
