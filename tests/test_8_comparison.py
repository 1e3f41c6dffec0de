"""The comparison."""

import pytest

from servicepath.model import matrix
from servicepath.model.difference import explain


@pytest.mark.traffic
@pytest.mark.needs("tunnel", "readable")
@pytest.mark.conclusion(section="§4, §9, §10.9", see=("# the commands of host traffic, Pod traffic, VXLAN and the LAN host",))
def test_path_matrix(path_cells, exhibit):
    """Source (host, Pod, LAN host) × frontend: who translated, what transported, each cell from its own measurement."""
    exhibit.show("The matrix", map(str, path_cells), command="conntrack -L; cilium-dbg bpf ct list global; tcpdump; connect()")

    wrong = matrix.unexpected(path_cells)

    assert not wrong, explain(wrong)
