"""The comparison."""

import pytest

from servicepath.model import matrix
from servicepath.model.difference import explain


@pytest.mark.traffic
@pytest.mark.needs("tunnel", "readable")
@pytest.mark.conclusion(
    section="§4, §9, §10.9",
    see=(
        "{nodes}$ dig +tries=1 +time=1 @{vip} kubernetes.default.svc.cluster.local A",
        "{nodes}# conntrack -L -d {vip}",
        "{node}# timeout 15 tcpdump -ni any -nn host {vip} or udp port 8472",
        "kubectl -n {podns} exec {pod} -- nslookup kubernetes.default.svc.cluster.local {vip}  # while tcpdump runs",
        "kubectl -n kube-system exec {agent} -- cilium-dbg bpf ct list global | grep {vip}:",
        "{lan}$ timeout 2 bash -c \": </dev/tcp/{vip}/{port}\"; echo $?  # 0: connected; 124: no answer",
    ),
)
def test_path_matrix(path_cells, exhibit):
    """Source (host, Pod, LAN host) × frontend: who translated, what transported, each cell from its own measurement."""
    exhibit.show("The matrix", map(str, path_cells), command="conntrack -L; cilium-dbg bpf ct list global; tcpdump; connect()")

    wrong = matrix.unexpected(path_cells)

    assert not wrong, explain(wrong)
