"""Compare what the inventory pins beyond the mode (versions, the cluster CIDR) with what a node runs."""

from __future__ import annotations

import dataclasses

from .addresses import IPNetwork
from .cilium import AgentStatus
from .difference import Difference
from .service_rules import ServiceWalk
from .services import Node


@dataclasses.dataclass(frozen=True, slots=True)
class Pins:
    """What the cluster must be; None: not pinned. ``cluster_cidr`` is the one that kube-proxy was given."""

    kubernetes: str | None
    cilium: str | None
    cluster_cidr: IPNetwork | None


def unpinned(node: Node, status: AgentStatus, walk: ServiceWalk | None, pins: Pins) -> tuple[Difference, ...]:
    """Where the node is another than the one pinned.

    Args:
        node: its kubelet's version counts as Kubernetes'.
        status: its Cilium agent's.
        walk: the rules of a Service port under test, whose masquerade rule names the cluster CIDR; None where there are none.
        pins: what is pinned.
    """
    wrong = []
    for name, pinned, found in (("kubelet", pins.kubernetes, node.kubelet_version), ("Cilium", pins.cilium, status.version)):
        if pinned is not None and pinned != found:
            wrong.append(Difference(f"{node.name}: {name}'s version", "is not the one pinned by expect:", pinned, found or "not said"))
    rule = walk.masquerade_rule if walk else None
    if pins.cluster_cidr is not None:
        source = rule.source if rule else None
        if source is None or not source.negated or source.network != pins.cluster_cidr:
            subject = f"{node.name}: kube-proxy's cluster CIDR, by the Service's rule to KUBE-MARK-MASQ"
            evidence = (rule.raw,) if rule else walk.choosing if walk else ()
            wrong.append(Difference(subject, "is not the one pinned by expect:", f"! -s {pins.cluster_cidr}", _said(walk), evidence))
    return tuple(wrong)


def _said(walk: ServiceWalk | None) -> str:
    rule = walk.masquerade_rule if walk else None
    if rule is None:
        return "no such rule"
    return f"{'! ' if rule.source.negated else ''}-s {rule.source.network}" if rule.source else "a rule for every source"
