"""Control path: the Service's endpoints."""

import pytest

from servicepath.model import judge_endpoints
from servicepath.model.difference import explain


@pytest.mark.conclusion(
    section="§2",
    see=(
        "kubectl -n {namespace} get endpointslices -l kubernetes.io/service-name={service} -o yaml",
        "kubectl -n {namespace} get pods -o wide",
    ),
)
def test_endpoints_ready(objects, judged_service, port, exhibit):
    """The Service's endpoints with ready=true are exactly the ready Pods that its selector matches."""
    lines = judge_endpoints.describe(objects, judged_service)
    exhibit.show("Endpoints, and the Pods that the selector matches", lines, command="kubectl get endpointslices,pods --output wide")

    wrong = judge_endpoints.judge_endpoints(objects, judged_service, port)

    assert not wrong, explain(wrong)
