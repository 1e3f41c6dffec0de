"""What a traffic experiment sent, as JSON: a replay judges these probes, whatever would be planned today."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from ..experiments.capture import Tap
from ..experiments.traffic import NodePlan
from ..model.addresses import IPAddress, Socket
from ..model.flows import Probe, Query, Source
from ..model.services import ClusterObjects, ServicePort
from .model import RecordingError


def to_json(plan: NodePlan) -> dict[str, Any]:
    """The plan as JSON."""
    return {
        "save_tool": list(plan.save_tool),
        "addresses": [str(ip) for ip in plan.addresses],
        "client_netns": plan.client_netns,
        "client": str(plan.client) if plan.client else None,
        "client_also": [str(ip) for ip in plan.clients[1:]],
        "route_mtu": plan.route_mtu,
        "taps": [{"role": tap.role, "interface": tap.interface, "filter": tap.filter} for tap in plan.taps],
        "probes": [_probe(probe) for probe in plan.probes],
    }


def _probe(probe: Probe) -> dict[str, Any]:
    port = probe.port
    return {
        "id": probe.id, "window": probe.window, "source": probe.source.value,
        "service": f"{port.namespace}/{port.service}", "port": port.port, "protocol": port.protocol,
        "ip": str(probe.target.ip), "dport": probe.target.port, "sport": probe.sport,
        "timeout": probe.timeout, "dont_fragment": probe.dont_fragment,
        "queries": [{"dns_id": q.dns_id, "question": q.question, "payload": q.payload.hex()} for q in probe.queries],
    }  # fmt: skip


def from_json(node: str, told: Mapping[str, Any], objects: ClusterObjects) -> NodePlan:
    """The plan of a recording, its Service ports found among the API's.

    Raises:
        RecordingError: a key is absent or has not its type, or a Service port is not in the recorded API.
    """
    ports = {(f"{s.key}", port.port, port.protocol): port for s in objects.services for port in s.ports}
    ip = ipaddress.ip_address
    try:
        return NodePlan(
            node, tuple(told["save_tool"]), tuple(ip(text) for text in told["addresses"]),
            tuple(_read_probe(probe, ports) for probe in told["probes"]),
            tuple(Tap(tap["role"], tap["interface"], tap["filter"]) for tap in told["taps"]),
            told["client_netns"], _clients(told), told["route_mtu"],
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as wrong:
        raise RecordingError(f"_plan.json of {node}: expected what plans.to_json writes: {type(wrong).__name__}: {wrong}") from wrong


def _clients(told: Mapping[str, Any]) -> tuple[IPAddress, ...]:
    """The client Pod's addresses; recordings of before know of one alone."""
    return tuple(map(ipaddress.ip_address, (*filter(None, [told["client"]]), *told.get("client_also", ()))))


def _read_probe(told: Mapping[str, Any], ports: Mapping[tuple[str, int, str], ServicePort]) -> Probe:
    queries = tuple(Query(q["dns_id"], q["question"], bytes.fromhex(q["payload"])) for q in told["queries"])
    return Probe(
        told["id"], told["window"], Source(told["source"]), ports[told["service"], told["port"], told["protocol"]],
        Socket(ipaddress.ip_address(told["ip"]), told["dport"]), told["sport"], queries, told["timeout"], told["dont_fragment"],
    )  # fmt: skip
