"""Does a conntrack entry to a ClusterIP lead to a backend that serves?"""

from __future__ import annotations

from collections.abc import Collection

from .addresses import IPAddress, Socket
from .difference import Difference
from .host import ConntrackEntry
from .services import ServicePort


def judge_entry(
    entry: ConntrackEntry,
    vip: IPAddress,
    port: ServicePort,
    serving: frozenset[Socket],
    cilium_internal_ips: Collection[IPAddress],
    *,
    remote_pod: bool = False,
) -> tuple[Difference, ...]:
    """Judge one entry; one that does not go to the ClusterIP and port in that protocol is nobody's business here.

    The answer is expected from ``entry.reply``'s source: a serving endpoint. If that is the ClusterIP itself, the flow began before
    there were rules and was never translated. An entry without an answer yet ([UNREPLIED]) is no fault of its own.

    Args:
        entry: the entry.
        vip: the Service's ClusterIP.
        port: its port.
        serving: the endpoints that may stand behind it.
        cilium_internal_ips: the node's own; to these a remote Pod can answer.
        remote_pod: the backend is a Pod on another node and the flow the host's own: the answer must go to a CiliumInternalIP.
    """
    front = Socket(vip, port.port)
    if entry.original[1] != front or entry.protocol != port.protocol:
        return ()
    subject = f"conntrack entry {entry.original[0]} → {front}/{entry.protocol}"
    backend, back_to = entry.reply
    expected = ", ".join(map(str, sorted(serving, key=str))) or "no endpoint serves"
    if backend == front:
        return (
            Difference(subject, "was never translated", f"answers from {expected}", f"from the ClusterIP itself, {front}", (entry.raw,)),
        )
    if backend not in serving:
        return (Difference(subject, "leads to no serving endpoint", f"answers from {expected}", f"from {backend}", (entry.raw,)),)
    if remote_pod and back_to.ip not in cilium_internal_ips:
        own = ", ".join(map(str, cilium_internal_ips))
        problem = "lets a remote Pod answer to an address that is not the node's in the Pod network"
        return (Difference(subject, problem, f"an answer to a CiliumInternalIP ({own})", f"to {back_to}", (entry.raw,)),)
    return ()
