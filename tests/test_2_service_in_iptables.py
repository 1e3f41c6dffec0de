"""The Service in iptables."""

import pytest

from servicepath.model import judge_backends, judge_chain_names, judge_equal_rules, judge_other_tables, judge_rules
from servicepath.model.difference import explain

pytestmark = pytest.mark.needs("iptables", "not-replaced")

SAVE = "iptables-nft-save -c; iptables-legacy-save -c"
VIP_RULES = "{node}# iptables-save -c | grep {vip}/"
HOOKS = "{node}# iptables -t nat -S OUTPUT; iptables -t nat -S PREROUTING"
CHAIN = "{node}# iptables-save -t nat | grep {namespace}/{service}"
NAMES = 'iptables-save -t nat | grep -E "KUBE-(SVC|SVL|SEP|EXT|FW)-"'
BACKENDS = "{node}# iptables-nft-save -t nat | grep -c KUBE-; iptables-legacy-save -t nat | grep -c KUBE-"
OTHERS = "{node}# nft list chains | grep -B 1 -E '^table|hook (prerouting|output)'"
OUTSIDE = "{node}# iptables-save -t filter | grep {namespace}/{service}"


@pytest.mark.conclusion(section="§3, §10.3", see=(VIP_RULES, HOOKS, BACKENDS, OTHERS, OUTSIDE))
def test_service_rule(node, port, vip, both_nat, endpoints_then, service_walk, other_tables, exhibit):
    """OUTPUT and PREROUTING lead to KUBE-SERVICES before any other translation, in exactly one iptables back end, and
    KUBE-SERVICES matches ClusterIP, protocol and port and jumps to the port's KUBE-SVC (KUBE-SVL with internalTrafficPolicy Local);
    nothing drops traffic from outside for want of a local endpoint that there is.
    """  # noqa: D205 - one sentence, over two lines
    exhibit.show("From the hooks to the Service's chain", service_walk.way_in, command=SAVE)
    exhibit.show("nftables chains beside kube-proxy's own", judge_other_tables.describe(other_tables), command="nft list chains")

    wrong = (
        *judge_rules.judge_service_rule(node.name, port, vip, both_nat, endpoints_then),
        *judge_other_tables.judge_other_tables(node.name, port, other_tables),
    )

    assert not wrong, explain(wrong)


@pytest.mark.conclusion(section="§3", see=("{node}# " + NAMES,))
def test_chain_names(node, nat, standing_objects, moving, hash_predicts_kubernetes, exhibit):
    """KUBE-SVC and KUBE-SEP names are the hash of Service port and endpoint; none is missing, orphaned or doubled."""
    exhibit.show("Each Service port's chains", judge_chain_names.describe(node.name, nat, standing_objects), command=SAVE)

    wrong = judge_chain_names.judge_chain_names(node.name, nat, standing_objects, moving)

    assert not wrong, explain(wrong)


@pytest.mark.conclusion(section="§3, §10.3", see=(CHAIN,))
def test_backend_choice(node, service, port, vip, nat, endpoints_here, several_endpoints, service_walk, exhibit):
    """KUBE-SVC jumps to one KUBE-SEP a serving endpoint, with equal chances (affinity's ``recent`` rules come first)."""
    exhibit.show("The Service's chain", service_walk.choosing, command=SAVE)

    wrong = judge_backends.judge_backend_choice(node.name, service, port, vip, nat, endpoints_here)

    assert not wrong, explain(wrong)


@pytest.mark.conclusion(section="§3, §10.3", see=(CHAIN,))
def test_endpoint_dnat(node, port, endpoints_here, translations, service_walk, exhibit):
    """Each KUBE-SEP translates to exactly its serving endpoint, ip and port, by DNAT."""
    exhibit.show("The endpoints' chains", service_walk.translating, command=SAVE)
    exhibit.show("How each translation is known", map(str, translations), command=SAVE)

    wrong = judge_backends.judge_endpoint_dnat(node.name, port, translations, endpoints_here)

    assert not wrong, explain(wrong)


@pytest.mark.conclusion(section="§3", see=("{nodes}# " + NAMES,))
def test_rules_equal_on_nodes(all_nat, standing_objects, moving, exhibit):
    """Where no policy makes them differ, every node holds the same Service rules, as models."""
    exhibit.show("The nodes compared", judge_equal_rules.describe(all_nat, standing_objects, moving), command=SAVE)

    wrong = judge_equal_rules.judge_equal_rules(all_nat, standing_objects, moving)

    assert not wrong, explain(wrong)
