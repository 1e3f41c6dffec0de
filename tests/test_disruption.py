"""Control path: what needs a change to be seen."""

import pytest

from servicepath.model import following, judge_flows
from servicepath.model.difference import explain

pytestmark = pytest.mark.disruptive


@pytest.mark.conclusion(
    section="§2, §10.1",
    see=(
        "kubectl -n servicepath-test create service clusterip trial --tcp=53535:53",
        "ssh {node} 'sudo iptables-save -t nat | grep trial'",
        "kubectl -n kube-system exec CILIUM-POD -- cilium-dbg service list",
        "kubectl -n servicepath-test delete service trial",
    ),
)
def test_dataplanes_follow(followed, exhibit):
    """A Service created now appears in all three dataplanes, and leaves them when deleted."""
    exhibit.show("Before, with and after the temporary Service", following.lines(followed), command="every 0.3 s until it was so")

    wrong = following.not_followed(followed)

    assert not wrong, explain(wrong)


@pytest.mark.conclusion(section="§5, §10.6", see=("ssh NODE 'ip route show table all'",))
def test_dnat_adds_no_route(all_followed, pod_and_service_cidrs, exhibit):
    """Creating and deleting a Service with an endpoint changes NAT rules and no route of Pod or Service CIDR."""
    shown = [line for one in all_followed for line in following.lines(one)]
    exhibit.show("NAT rules came and went; routes of these CIDRs", shown, command="iptables-save -c; ip route show table all")

    wrong = tuple(d for one in all_followed for d in following.routes_changed(one, pod_and_service_cidrs))

    assert not wrong, explain(wrong)


@pytest.mark.traffic
@pytest.mark.conclusion(section="§2", see=("kubectl get --raw /readyz --request-timeout 2s", "ssh NODE 'dig +short @CLUSTERIP NAME'"))
def test_packets_skip_the_api(outage_flows, outage_seen, expected_answers, evidence):
    """With the API server unreachable the Service is still resolved from host and Pod."""
    evidence.show("The API call of that moment", outage_seen.api_said, command="GET /version")
    evidence.asked("Asked meanwhile, and answered", outage_flows)

    wrong = judge_flows.unanswered(outage_flows, expected_answers)

    assert not wrong, explain(wrong)
