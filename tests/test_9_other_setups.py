"""Other set-ups: what the notes' conclusions become with kube-proxy in nftables mode, socket LB on, or kube-proxy replaced."""

import pytest

from servicepath.model import judge_connect, judge_dataplanes, judge_nft, judge_other_tables
from servicepath.model.difference import explain

NFT = "{node}# nft list table ip kube-proxy"
OTHERS = "{node}# nft list chains | grep -B 1 -E '^table|hook (prerouting|output)'"
LEFT = '{node}# for tool in iptables-nft-save iptables-legacy-save; do echo $tool; $tool | grep -E "KUBE-(SERVICES|SVC|SEP)"; done'
AGENT = "kubectl -n kube-system exec {agent} -- cilium-dbg"
TCPDUMP = "{node}# timeout 15 tcpdump -ni any -nn host {vip} or port 53"
ASK = "kubectl -n {podns} exec {pod} -- nslookup kubernetes.default.svc.cluster.local {vip}  # while tcpdump runs"
DIG = "{node}$ dig +tries=1 +time=1 @{vip} kubernetes.default.svc.cluster.local A"


@pytest.mark.needs("nftables", "beside-kube-proxy")
@pytest.mark.conclusion(section="§3", see=(NFT + ' | grep -A 20 "map service-ips"', OTHERS))
def test_nft_service(node, port, vip, nft_table, endpoints_then, other_tables, both_read, exhibit):
    """In nftables mode the verdict map service-ips leads ClusterIP, protocol and port to the serving endpoints, with equal chances,
    and nothing in iptables or in another program's table can translate before.
    """  # noqa: D205 - one sentence, over two lines
    way = judge_nft.walk(nft_table, vip, port.protocol, port.port)
    exhibit.show("From the hooks to the endpoints", way.lines, command="nft -j list table ip kube-proxy")
    exhibit.show("nftables chains beside kube-proxy's own", judge_other_tables.describe(other_tables), command="nft list chains")

    wrong = (
        *judge_nft.service_rule(node.name, port, vip, nft_table, endpoints_then),
        *judge_nft.backend_choice(node.name, port, vip, nft_table, endpoints_then),
        *judge_other_tables.judge_other_tables(node.name, port, other_tables),
        *judge_other_tables.judge_iptables(node.name, port, vip, both_read),
    )

    assert not wrong, explain(wrong)


@pytest.mark.needs("nftables", "beside-kube-proxy")
@pytest.mark.conclusion(section="§3", see=(LEFT,))
def test_nft_alone(node, both_read, nft_table, exhibit):
    """In nftables mode no rule of kube-proxy's is left in either iptables back end."""
    exhibit.show("Chains of Services in iptables", judge_nft.chains_left(both_read), command="iptables-nft-save; iptables-legacy-save")

    wrong = judge_nft.left_in_iptables(node.name, both_read)

    assert not wrong, explain(wrong)


@pytest.mark.traffic
@pytest.mark.needs("socket-lb", "readable")
@pytest.mark.conclusion(section="§6, §10.4", see=(DIG, "{node}# conntrack -L -d {vip}"))
def test_host_translated_at_connect(wired_host_flows, serving, evidence):
    """With socket LB the host's flow is translated before it is a packet: the host's conntrack and the wire know the backend alone."""
    evidence.tables("The host's conntrack entries of the flows", wired_host_flows)
    evidence.packets("What the wire carried", wired_host_flows, "underlay", "backend-lxc")

    wrong = judge_connect.not_at_connect(wired_host_flows, serving)

    assert not wrong, explain(wrong)


@pytest.mark.traffic
@pytest.mark.needs("socket-lb-in-pods")
@pytest.mark.conclusion(section="§7, §10.5", see=(TCPDUMP, ASK))
def test_pod_translated_at_connect(pod_flows_seen_leaving, serving, evidence):
    """With socket LB not even the Pod's own interface sees a packet to the ClusterIP: the Pod's socket already sent to the backend."""
    evidence.packets("At the Pod's interface", pod_flows_seen_leaving, "client-lxc")
    evidence.tables("Flow tables of the Pod's flows", pod_flows_seen_leaving)

    wrong = judge_connect.not_at_connect(pod_flows_seen_leaving, serving)

    assert not wrong, explain(wrong)


@pytest.mark.traffic
@pytest.mark.needs("iptables", "socket-lb", "beside-kube-proxy")
@pytest.mark.conclusion(section="§6, §10.4", see=("{node}# iptables-save -c -t nat | grep {namespace}/{service}", DIG))
def test_host_leaves_counters(wired_host_flows, host_growth, evidence):
    """With socket LB on host flows leave kube-proxy's rules alone, which are still there."""
    evidence.flows("Asked from the host, and answered", wired_host_flows)
    evidence.growth("Counters around the host's flows", host_growth)

    wrong = host_growth.unlike(0, ())

    assert not wrong, explain(wrong)


@pytest.mark.needs("replaced")
@pytest.mark.conclusion(section="§2, §10.1", see=(AGENT + " service list | grep -A 3 {vip}:", AGENT + " bpf lb list | grep -A 3 {vip}:"))
def test_replacement_programmed(dataplanes, exhibit):
    """With Cilium in kube-proxy's place its Service list and its load-balancing map hold the same backends as the EndpointSlices."""
    exhibit.show("The EndpointSlices' serving backends", dataplanes.serving_lines, command="kubectl get endpointslices")
    exhibit.show("Cilium's Service list", dataplanes.view(judge_dataplanes.AGENT).lines, command="cilium-dbg service list")
    exhibit.show("Cilium's load-balancing map", dataplanes.view(judge_dataplanes.MAP).lines, command="cilium-dbg bpf lb list")

    wrong = judge_dataplanes.differing(dataplanes)

    assert not wrong, explain(wrong)
