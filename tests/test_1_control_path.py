"""Control path."""

import pytest

from servicepath.model import following, judge_dataplanes, judge_endpoints, judge_flows, mode
from servicepath.model.difference import explain
from servicepath.model.pins import unpinned

AGENT = "kubectl -n kube-system exec {agent} -- cilium-dbg"
RULES = "{node}# iptables-save -t nat | grep {namespace}/{service}"
SLICES = "kubectl -n {namespace} get endpointslices -l kubernetes.io/service-name={service} -o yaml"


@pytest.mark.conclusion(
    section="§2",
    see=(
        SLICES,
        "kubectl -n {namespace} get service {service} -o yaml; kubectl -n {namespace} get pods -o wide --show-labels",
    ),
)
def test_endpoints_ready(endpoint_objects, judged_service, port, exhibit):
    """The Service's endpoints with ready=true are exactly the ready Pods that its selector matches."""
    lines = judge_endpoints.describe(endpoint_objects, judged_service)
    exhibit.show("Endpoints, and the Pods that the selector matches", lines, command="kubectl get endpointslices,pods --output wide")

    wrong = judge_endpoints.judge_endpoints(endpoint_objects, judged_service, port)

    assert not wrong, explain(wrong)


@pytest.mark.needs("beside-kube-proxy")
@pytest.mark.conclusion(
    section="§2, §10.1",
    see=(
        RULES,
        AGENT + " service list | grep -A 3 {vip}:",
        AGENT + " bpf lb list | grep -A 3 {vip}:",
        SLICES,
    ),
)
def test_dataplanes_programmed(dataplanes, exhibit):
    """kube-proxy's rules, Cilium's Service list and Cilium's load-balancing map hold the same serving backends as the EndpointSlices."""
    exhibit.show("The EndpointSlices' serving backends", dataplanes.serving_lines, command="kubectl get endpointslices")
    exhibit.show("kube-proxy's rules", dataplanes.view(judge_dataplanes.RULES).lines, command="iptables-save -c -t nat")
    exhibit.show("Cilium's Service list", dataplanes.view(judge_dataplanes.AGENT).lines, command="cilium-dbg service list")
    exhibit.show("Cilium's load-balancing map", dataplanes.view(judge_dataplanes.MAP).lines, command="cilium-dbg bpf lb list")

    wrong = judge_dataplanes.differing(dataplanes)

    assert not wrong, explain(wrong)


@pytest.mark.disruptive
@pytest.mark.conclusion(
    section="§2, §10.1",
    see=(
        (
            "kubectl -n servicepath-test create service clusterip trial --tcp=53535:53; sleep 5",  # without an endpoint: a REJECT
            "{node}# iptables-save | grep servicepath-test/trial",
            AGENT + " service list | grep :53535",
            "kubectl -n servicepath-test delete service trial; sleep 5",
            "{node}# iptables-save | grep servicepath-test/trial",
            AGENT + " service list | grep :53535",
        ),
    ),
)
def test_dataplanes_follow(followed, exhibit):
    """A Service created now appears in all three dataplanes, and leaves them when deleted."""
    exhibit.show("Before, with and after the temporary Service", following.lines(followed), command="every 0.3 s until it was so")

    wrong = following.not_followed(followed)

    assert not wrong, explain(wrong)


@pytest.mark.disruptive
@pytest.mark.traffic
@pytest.mark.conclusion(
    section="§2",
    see=(
        "kubectl get --raw /readyz --request-timeout 2s",
        "{nodes}$ dig +tries=1 +time=1 @{vip} kubernetes.default.svc.cluster.local A",
        "kubectl -n {podns} exec {pod} -- nslookup kubernetes.default.svc.cluster.local {vip}  # once the API answers again",
    ),
)
def test_packets_skip_the_api(outage_flows, outage_seen, expected_answers, evidence):
    """With the API server unreachable the Service is still resolved from host and Pod."""
    evidence.show("The API call of that moment", outage_seen.api_said, command="GET /version")
    evidence.asked("Asked meanwhile, and answered", outage_flows)

    wrong = judge_flows.unanswered(outage_flows, expected_answers)

    assert not wrong, explain(wrong)


@pytest.mark.conclusion(
    section="§1, §10.8",
    see=(
        "{node}$ curl -s 127.0.0.1:10249/proxyMode; echo",
        AGENT + " status --verbose | grep -E -A 20 'KubeProxyReplacement|Routing:'",
        "kubectl -n kube-system get configmap cilium-config -o yaml | grep -E 'replacement|bpf-lb-sock|routing-mode|tunnel-protocol'",
        "{node}# iptables-nft-save -t nat | grep -c KUBE-SVC; iptables-legacy-save -t nat | grep -c KUBE-SVC",
        "{node}# iptables-save -t nat | grep KUBE-SVC | grep KUBE-MARK-MASQ",
        "{node}# iptables-save -t nat | grep DNAT; nft list tables",
        "{node}$ ip -d link | grep -E -A 3 \"ipvs|vxlan|flannel\"",
        "kubectl get node {node} -o wide; kubectl get endpointslices -A",
    ),
)
def test_mode_as_expected(
    node, node_mode, expected_mode, pins, any_walk, back_ends, agent_status, objects, interfaces, proxy_tables, tunnel_port, exhibit
):
    """The active set-up is the one expected: proxy mode with current rules, KPR, socket LB, ClusterIP enabled, routing, tunnel;
    nothing left of another.
    """  # noqa: D205 - one sentence
    exhibit.show("The set-up that runs", mode.mode_lines(node_mode), command="curl 127.0.0.1:10249/proxyMode; cilium-dbg status")
    exhibit.show("The set-up that is expected", mode.mode_lines(expected_mode), command="expect: in the inventory, else the suite's own")

    wrong = (
        *mode.judge_mode(node.name, node_mode, expected_mode),
        *unpinned(node, agent_status, any_walk, pins),
        *mode.config_differences(node.name, agent_status, objects.cilium_config),
        *mode.in_both_back_ends(node.name, back_ends),
        *mode.leftovers(node.name, node_mode, interfaces, proxy_tables, tunnel_port),
    )

    assert not wrong, explain(wrong)
