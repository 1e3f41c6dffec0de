"""Control path: the dataplanes, and the mode that they run in."""

import pytest

from servicepath.model import judge_dataplanes, mode
from servicepath.model.difference import explain

AGENT = "kubectl -n kube-system exec CILIUM-POD -- cilium-dbg"


@pytest.mark.needs("iptables")
@pytest.mark.conclusion(
    section="§2, §10.1",
    see=(
        "kubectl -n {namespace} get endpointslices -l kubernetes.io/service-name={service} -o yaml",
        "ssh {node} 'sudo iptables-save -t nat | grep {vip}'",
        AGENT + " service list | grep {vip}",
        AGENT + " bpf lb list | grep {vip}",
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


@pytest.mark.conclusion(
    section="§1, §10.8",
    see=("ssh {node} 'curl -s 127.0.0.1:10249/proxyMode'", AGENT + " status --verbose | grep -A 20 KubeProxyReplacement"),
)
def test_mode_as_expected(node, node_mode, expected_mode, agent_status, objects, links, proxy_tables, tunnel_port, exhibit):
    """The active set-up is the one expected: proxy mode with current rules, KPR, socket LB, ClusterIP enabled, routing, tunnel;
    nothing left of another.
    """  # noqa: D205 - one sentence
    exhibit.show("The set-up that runs", mode.mode_lines(node_mode), command="curl 127.0.0.1:10249/proxyMode; cilium-dbg status")
    exhibit.show("The set-up that is expected", mode.mode_lines(expected_mode), command="expect: in the inventory, else the suite's own")

    wrong = (
        *mode.judge_mode(node.name, node_mode, expected_mode),
        *mode.config_differences(node.name, agent_status, objects.cilium_config),
        *mode.leftovers(node.name, node_mode, links, proxy_tables, tunnel_port),
    )

    assert not wrong, explain(wrong)
