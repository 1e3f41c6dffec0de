"""Judge whether Cilium says of itself that it replaces kube-proxy."""

from __future__ import annotations

from .cilium import AgentStatus
from .difference import Difference


def status_lines(status: AgentStatus) -> tuple[str, ...]:
    """What the agent says of Services, as ``cilium-dbg status --verbose`` puts it."""
    socket_lb = {True: "Enabled", False: "Disabled", None: "not said"}[status.socket_lb]
    features = [f"  - {name}: {'Enabled' if on else 'Disabled'}" for name, on in status.services.items()]
    return (f"KubeProxyReplacement: {status.kube_proxy_replacement or 'not said'}", f"Socket LB: {socket_lb}", *features)


def replacing(status: AgentStatus, node: str) -> tuple[Difference, ...]:
    """Where KubeProxyReplacement is not False, or socket LB is on: the central conclusion is then about another set-up."""
    wrong = []
    evidence = status_lines(status)
    if status.kube_proxy_replacement not in ("False", "Disabled"):
        got = status.kube_proxy_replacement or "not said"
        wrong.append(Difference(f"{node}: Cilium's agent", "KubeProxyReplacement", "False", got, evidence))
    if status.socket_lb is not False:
        got = "Enabled" if status.socket_lb else "not said"
        wrong.append(Difference(f"{node}: Cilium's agent", "socket LB", "Disabled", got, evidence))
    return tuple(wrong)
