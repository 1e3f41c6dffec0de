"""Prints load-balancing maps, service lists and agents' statuses as Cilium's releases do, from facts: the other half of their parsers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from servicepath.model.addresses import Socket
from servicepath.model.cilium import AgentService, AgentStatus, MapService

INDENT = " " * 30


def address(socket: Socket, protocol: str | None, scope: str = "external") -> str:
    """``10.43.0.10:53/UDP/i``; an IPv6 address in brackets."""
    ip = f"[{socket.ip}]" if socket.ip.version == 6 else str(socket.ip)
    return f"{ip}:{socket.port}" + (f"/{protocol}" if protocol else "") + ("/i" if scope == "internal" else "")


def map_rows(each: MapService) -> list[tuple[str, str]]:
    """(left, right) of a frontend's slots, as 1.16 and later have them."""
    left = address(each.frontend, each.protocol or "ANY", each.scope)
    nothing = "0.0.0.0:0" if each.frontend.ip.version == 4 else "[::]:0"
    rows = [(f"{left} (0)", f"{nothing} (7) (0) [{', '.join((str(each.type), *each.flags))}]")]
    rows += [(f"{left} ({slot})", f"{address(b, each.protocol)} (7) ({slot})") for slot, b in enumerate(each.backends, 1)]
    slot = len(each.backends)
    return rows + [(f"{left} ({slot + number})", f"backend {gone} not found") for number, gone in enumerate(each.missing, 1)]


def map_text(rows: Iterable[tuple[str, str]]) -> str:
    """The table of 1.16 and later."""
    return "SERVICE ADDRESS   BACKEND ADDRESS (REVNAT_ID) (SLOT)\n" + "".join(f"{left}   {right}   \n" for left, right in rows)


def map_json(rows: Iterable[tuple[str, str]]) -> str:
    """The same as JSON."""
    return json.dumps({left: [right] for left, right in rows})


def map_text_before_1_16(found: Iterable[MapService], *, slots: bool) -> str:
    """A frontend once, its slots below it, and no protocol; the slots' numbers are printed since 1.11."""
    lines = ["SERVICE ADDRESS     BACKEND ADDRESS" + (" (REVNAT_ID) (SLOT)" if slots else "")]
    for each in found:
        nothing = "0.0.0.0:0" if each.frontend.ip.version == 4 else "[::]:0"
        flags = ", ".join((str(each.type), *each.flags))
        lines.append(f"{address(each.frontend, None)}    {nothing} (4){' (0)' if slots else ''} [{flags}]")
        backends = [f"{address(b, None)} (4)" + (f" ({slot})" if slots else "") for slot, b in enumerate(each.backends, 1)]
        lines += [f"{INDENT}{right}   " for right in (*backends, *(f"backend {gone} not found" for gone in each.missing))]
    return "\n".join(lines) + "\n"


def service_text(found: Sequence[AgentService], *, protocols: bool, states: bool) -> str:
    """The table of 1.7 to 1.20: with the protocol since 1.17, with the backends' states since 1.11."""
    lines = ["ID   Frontend                 Service Type   Backend"]
    for number, each in enumerate(found, 1):
        rights = [
            f"{slot} => {address(b.socket, each.protocol if protocols else None)}" + (f" ({b.state})" if states else "")
            for slot, b in enumerate(each.backends, 1)
        ]
        left = address(each.frontend, each.protocol if protocols else None, each.scope)
        lines.append(f"{number}    {left}   {each.type}      {rights[0] if rights else ''}   ")
        lines += [f"{INDENT}{right}   " for right in rights[1:]]
    return "\n".join(lines) + "\n"


def service_json(found: Iterable[AgentService]) -> str:
    """``-o json``; Go leaves out a port of 0, and an empty list is null."""

    def end(socket: Socket, **more: object) -> dict[str, object]:
        return {"ip": str(socket.ip), **({"port": socket.port} if socket.port else {}), **more}

    entries = [
        {
            "spec": {"flags": {"type": "spec may be ahead of what is realized"}},
            "status": {
                "realized": {
                    "id": number,
                    "flags": {"type": each.type, "namespace": each.namespace, "name": each.name},
                    "frontend-address": end(each.frontend, protocol=each.protocol or "NONE", scope=each.scope),
                    "backend-addresses": [end(b.socket, state=b.state, nodeName=b.node) for b in each.backends],
                }
            },
        }
        for number, each in enumerate(found, 1)
    ]
    return json.dumps(entries or None)


def status_json(status: AgentStatus) -> str:
    """``cilium-dbg status -o json`` of 1.19; Go leaves out what is false."""

    def on(enabled: bool | None) -> dict[str, bool]:
        return {"enabled": True} if enabled else {}

    features: dict[str, Any] = {key: on(status.services[word]) for key, word in (("nodePort", "NodePort"), ("hostPort", "HostPort"))}
    features["socketLB"] = on(status.socket_lb)
    if status.socket_lb_hostns_only:
        features["bpfSocketLBHostnsOnly"] = True
    devices = [{"name": name, "ip": ["", *map(str, ips)]} for name, ips in status.devices.items()]
    routing = {"inter-host-routing-mode": str(status.routing).capitalize(), "intra-host-routing-mode": status.host_routing}
    return json.dumps({
        "cilium": {"state": "Ok", "msg": f"{status.version} (v{status.version}-d0d0c879)"},
        "kube-proxy-replacement": {"mode": status.kube_proxy_replacement, "features": features, "deviceList": devices},
        "routing": routing | ({"tunnel-protocol": status.tunnel} if status.tunnel else {}),
        "encryption": {"mode": str(status.encryption).capitalize()},
        "newfangled": [{}],
    })  # fmt: skip


def status_text(status: AgentStatus) -> str:
    """``cilium-dbg status --verbose`` of 1.19."""

    def word(enabled: bool | None) -> str:
        return "Enabled" if enabled else "Disabled"

    devices = ", ".join(f"{name}   {' '.join(map(str, ips))} (Direct Routing)" for name, ips in status.devices.items())
    tunnel = f" [{status.tunnel}]" if status.tunnel else ""
    lines = [
        "KVStore:                 Disabled",
        f"KubeProxyReplacement:    {status.kube_proxy_replacement}   [{devices}]",
        f"Cilium:                  Ok   {status.version} (v{status.version}-d0d0c879)",
        f"Routing:                 Network: {str(status.routing).capitalize()}{tunnel}   Host: {status.host_routing}",
        "KubeProxyReplacement Details:",
        f"  Status:               {status.kube_proxy_replacement}",
        f"  Socket LB:            {word(status.socket_lb)}",
        f"  Socket LB Coverage:   {'Hostns-only' if status.socket_lb_hostns_only else 'Full'}",
        "  Services:",
        *(f"  - {name}:      {word(enabled)}" for name, enabled in status.services.items()),
        "BPF Maps:   dynamic sizing: on (ratio: 0.002500)",
        "  - not a Service:  Enabled",
        f"Encryption:              {str(status.encryption).capitalize()}   [NodeEncryption: Disabled]",
        f"Cluster health:          {status.cluster_health}   (2026-11-30T00:00:00Z)",
    ]
    return "\n".join(lines) + "\n"
