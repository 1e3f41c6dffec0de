"""Does a node drop traffic from outside the cluster for want of an endpoint that it has (externalTrafficPolicy Local)?

kube-proxy drops it where no endpoint of the Service serves on the node: since v1.24 in KUBE-EXTERNAL-SERVICES of filter ("has no local
endpoints"), before by KUBE-MARK-DROP in KUBE-XLB, in nftables mode by the map no-endpoint-nodeports. A kube-proxy that missed the
endpoint's coming keeps the drop (kubernetes/kubernetes #125810), and the way to the ClusterIP, which the policy leaves alone, is whole.
"""

from __future__ import annotations

from . import chain_names
from .difference import Difference
from .expected_endpoints import Expected
from .nft_rules import NftTable
from .rules import Rule, Ruleset
from .service_rules import NodeRules
from .services import ServicePort

EXTERNAL_SERVICES = "KUBE-EXTERNAL-SERVICES"
_DROPPING = ("DROP", "REJECT", "KUBE-MARK-DROP")


def dropped_outside(node: str, port: ServicePort, nat: NodeRules | NftTable, expected: Expected) -> tuple[Difference, ...]:
    """What drops external traffic to the port though an endpoint on this node serves it.

    Args:
        node: the node's name, for messages.
        port: the Service port.
        nat: the node's rules, all that were read: the drop may be in a filter table alone.
        expected: where traffic should go on this node.
    """
    if not expected.external_here:
        return ()
    if isinstance(nat, NftTable):
        verdict = nat.refused_node_ports.get((port.protocol.lower(), port.node_port or 0))
        lines: tuple[str, ...] = (f"no-endpoint-nodeports: {port.protocol.lower()} . {port.node_port} : {verdict}",) if verdict else ()
    else:
        lines = tuple(rule.raw for rules in (nat.nft, nat.legacy) if rules for rule in _drops(rules, port))
    if not lines:
        return ()
    subject = f"{node}: {port.chain_key}/{port.protocol} from outside"
    problem = "is dropped for want of a local endpoint (externalTrafficPolicy Local), though one serves on this node"
    wanted = ", ".join(sorted(map(str, expected.external_here)))
    return (Difference(subject, problem, wanted, "dropped", lines),)


def _drops(rules: Ruleset, port: ServicePort) -> tuple[Rule, ...]:
    key, protocol = port.chain_key, port.protocol.lower()
    found = [
        rule for rule in rules.rules("filter", EXTERNAL_SERVICES)
        if rule.target in _DROPPING and rule.protocol == protocol and (
            (rule.dst_type_local and rule.dport is not None and rule.dport == port.node_port)
            or (rule.comment or "").startswith((f"{key} has no ", f"{key}: has no "))
        )
    ]  # fmt: skip
    for name in chain_names.service_chains(port, chain_names.OLD_EXTERNAL):
        found += [rule for rule in rules.rules("nat", name)[-1:] if rule.target == "KUBE-MARK-DROP"]
    return tuple(found)
