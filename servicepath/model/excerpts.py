"""What rules that somebody kept tell of themselves: whether a chain is all there, and whether kube-proxy is in another mode."""

from __future__ import annotations

from .rules import SERVICES, Ruleset
from .service_rules import ServiceWalk

# Chances are printed with eleven digits.
_NEARLY = 1e-4

# The set of all ClusterIPs with their ports (Kubernetes v1.34, pkg/proxy/ipvs/ipset.go).
_CLUSTER_IPS = "KUBE-CLUSTER-IP"


def is_whole(ruleset: Ruleset, walk: ServiceWalk) -> bool:
    """Whether all of the Service's chain is there: of an excerpt where its chances add up to one and no line in it is left out."""
    if ruleset.complete:
        return True
    lines = [rule.line for rule in ruleset.rules("nat", walk.chain or "")]
    cut = any(min(lines) - 1 <= number <= max(lines) for number in ruleset.elided if lines)
    return not cut and abs(sum(choice.share for choice in walk.choices) - 1) < _NEARLY


def by_sets(ruleset: Ruleset) -> bool:
    """Whether kube-proxy is in ipvs mode by these rules: KUBE-SERVICES asks a set for the ClusterIPs, and no rule is for one."""
    return any(_CLUSTER_IPS in rule.other for rule in ruleset.rules("nat", SERVICES))
