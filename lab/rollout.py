"""Rolling Cilium's agents and operator out, and seeing when that is done (as ``kubectl rollout restart`` and ``status`` do)."""

from datetime import UTC, datetime
from typing import Any

from lab.api import Api

AGENTS = "/apis/apps/v1/namespaces/kube-system/daemonsets/cilium"
OPERATOR = "/apis/apps/v1/namespaces/kube-system/deployments/cilium-operator"
RESTARTED = "kubectl.kubernetes.io/restartedAt"


def restart(api: Api) -> None:
    """Have the agents restarted, in the DaemonSet's own way of rolling."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    api.patch(AGENTS, {"spec": {"template": {"metadata": {"annotations": {RESTARTED: now}}}}})


def complaint(api: Api) -> str | None:
    """Return None once every agent and the operator run as their specification says now, else what is still missing."""
    agents = api.get(AGENTS)
    return _agents(agents) or _operator(api.get(OPERATOR))


def _agents(item: dict[str, Any]) -> str | None:
    status = item["status"]
    wanted = status["desiredNumberScheduled"]
    if status.get("observedGeneration", 0) < item["metadata"]["generation"]:
        return "the DaemonSet's change was not seen by its controller yet"
    updated, available = status.get("updatedNumberScheduled", 0), status.get("numberAvailable", 0)
    if updated == available == wanted:
        return None
    return f"agents: {updated} of {wanted} updated, {available} available"


def _operator(item: dict[str, Any]) -> str | None:
    status, wanted = item["status"], item["spec"]["replicas"]
    if status.get("observedGeneration", 0) < item["metadata"]["generation"]:
        return "the Deployment's change was not seen by its controller yet"
    there = status.get("replicas", 0), status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
    return None if set(there) == {wanted} else f"operator: {there[1]} of {wanted} updated, {there[2]} available, {there[0]} in all"
