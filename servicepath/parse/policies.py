"""Network policies of the API → Policy: whom each selects, and whether it limits egress.

Sample (one item of ``GET /apis/cilium.io/v2/ciliumnetworkpolicies``):

    {"kind": "CiliumNetworkPolicy", "metadata": {"namespace": "default", "name": "web"},
     "spec": {"endpointSelector": {"matchLabels": {"k8s:app": "web"}}, "egress": [{"toPorts": [{"ports": [{"port": "80"}]}]}]}}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..model.services import Policy
from .errors import ParseError
from .fields import Fields

_KINDS = {
    "NetworkPolicyList": "NetworkPolicy",
    "CiliumNetworkPolicyList": "CiliumNetworkPolicy",
    "CiliumClusterwideNetworkPolicyList": "CiliumClusterwideNetworkPolicy",
}


def parse_policies(answer: Mapping[str, Any]) -> tuple[Policy, ...]:
    """Read a NetworkPolicyList, CiliumNetworkPolicyList or CiliumClusterwideNetworkPolicyList.

    A Cilium policy with several ``specs`` becomes several of the same name; one that selects nodes selects no Pod and is left out.
    """
    found = Fields("Kubernetes API: policies", answer)
    listed = _KINDS.get(found.optional_text("kind") or "")
    policies: list[Policy] = []
    for item in found.children("items"):
        kind = item.optional_text("kind") or listed
        if kind is None or kind not in _KINDS.values():
            raise ParseError("Kubernetes API: policies", 0, str(kind), f"one of {', '.join(_KINDS.values())}")
        specs = ([item.child("spec")] if item.has("spec") else []) + list(item.children("specs"))
        policies += [_policy(kind, item.child("metadata"), spec) for spec in specs if not spec.has("nodeSelector")]
    return tuple(policies)


def _policy(kind: str, meta: Fields, spec: Fields) -> Policy:
    selector = spec.child("podSelector" if kind == "NetworkPolicy" else "endpointSelector")
    types = spec.texts("policyTypes")
    limits = "Egress" in types if types else spec.has("egress") or spec.has("egressDeny")
    return Policy(kind, meta.optional_text("namespace"), meta.text("name"), _match_labels(selector), limits)


def _match_labels(selector: Fields) -> Mapping[str, str] | None:
    """The labels as a Pod has them; None where labels of the Pod alone do not decide."""
    if selector.items("matchExpressions"):
        return None
    labels: dict[str, str] = {}
    for key, value in selector.labels("matchLabels").items():
        source, colon, name = key.partition(":")
        bare = name if colon and source in ("k8s", "any") else key
        # Cilium selects by labels of its own too: the namespace's, the cluster's, reserved ones.
        if bare.startswith("io.kubernetes.pod.") or bare.startswith("io.cilium.k8s.") or (colon and bare is key):
            return None
        labels[bare] = value
    return labels
