"""The Services that rules, lists and tables tell of, where no Service list is there; as API objects, marked as derived.

kube-proxy writes ``namespace/name:port`` into its comments and hashes it into its chains' names, and Cilium's list names Services in
JSON. A list without names is joined with the EndpointSlices by its backends. What is derived so stands for the Service object alone:
which endpoints serve still comes from EndpointSlices; where there are none, a port's endpoints are those of the rules whose chains'
names are their hashes, and conclusions on where traffic should go are not drawn from them.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..model import chain_names, judge_nft, service_rules
from ..model.addresses import IPAddress, Socket
from ..model.cilium import AgentService
from ..model.host import ConntrackEntry, Interface
from ..model.judge_external import EXTERNAL_SERVICES
from ..model.nft_rules import NftTable
from ..model.rules import SERVICES, Rule, Ruleset
from ..model.services import ServicePort

DERIVED = "servicepath/derived-from"
"""Annotation of a derived Service or EndpointSlice: from what."""

_COMMENT = re.compile(r"(?P<namespace>[a-z0-9.-]+)/(?P<name>[a-z0-9.-]+)(?::(?P<port>[a-z0-9-]*))?")
_FRONT = re.compile(rf"{_COMMENT.pattern}:? (?:cluster IP|has no (?:local )?endpoints)")
_DROPPED = re.compile(rf"{_COMMENT.pattern}:? has no local endpoints")
_NFT_CHAIN = re.compile(
    r"(?:service|external)-[A-Z0-9]+-(?P<namespace>[a-z0-9.-]+)/(?P<name>[a-z0-9.-]+)/(?P<protocol>\w+)/(?P<port>[a-z0-9-]*)"
)


@dataclasses.dataclass(slots=True)
class Found:
    """What is known of one Service."""

    source: str
    ips: dict[IPAddress, None] = dataclasses.field(default_factory=dict)
    ports: dict[tuple[str | None, str], dict[str, Any]] = dataclasses.field(default_factory=dict)
    local: bool = False
    external_local: bool = False
    affinity: bool = False
    endpoints: dict[tuple[str | None, str], set[Socket]] = dataclasses.field(default_factory=dict)


Services = dict[tuple[str, str], Found]


def of_rules(ruleset: Ruleset, source: str) -> Services:
    """The Services that KUBE-SERVICES of nat and filter has commented rules for."""
    found: Services = {}
    for rule in (*ruleset.rules("nat", SERVICES), *ruleset.rules("filter", SERVICES)):
        match = _FRONT.fullmatch(rule.comment or "")
        if match and rule.destination and rule.protocol and rule.dport and rule.destination.network.num_addresses == 1:
            one = found.setdefault((match["namespace"], match["name"]), Found(source))
            ip = rule.destination.network.network_address
            one.ips[ip] = None
            key = (match["port"] or None, rule.protocol.upper())
            one.ports[key] = {"name": match["port"] or "", "protocol": rule.protocol.upper(), "port": rule.dport}
            one.local |= (rule.target or "").startswith(chain_names.LOCAL) or (rule.comment or "").endswith("no local endpoints")
            _add_endpoints(one, key, ruleset, ip, rule, match)
    for rule in ruleset.rules("nat", "KUBE-NODEPORTS"):
        _add_node_port(found, rule)
    for rule in ruleset.rules("filter", EXTERNAL_SERVICES):
        _add_dropped(found, rule, source)
    for service in found.values():
        service.external_local |= any(name.startswith(chain_names.OLD_EXTERNAL) for _, name in ruleset.chains) and any(
            "nodePort" in port for port in service.ports.values()
        )
    return found


def _add_endpoints(
    one: Found, key: tuple[str | None, str], ruleset: Ruleset, ip: IPAddress, rule: Rule, match: re.Match[str]
) -> None:  # fmt: skip
    """The endpoints of the port's chain whose names are their hashes."""
    if rule.dport is None or rule.protocol is None:
        return
    walk = service_rules.walk_from_services(ruleset, ip, rule.protocol, rule.dport)
    one.affinity |= bool(walk.affinity)
    port = ServicePort(match["namespace"], match["name"], key[0], key[1], rule.dport, None, None, None)
    for choice in walk.choices:
        socket = choice.socket or choice.commented
        if socket and choice.chain in chain_names.endpoint_chains(port, socket):
            one.endpoints.setdefault(key, set()).add(socket)


def _add_node_port(found: Services, rule: Rule) -> None:
    match = _COMMENT.fullmatch((rule.comment or "").removesuffix(":"))
    if not match or not rule.dport or not rule.protocol:
        return
    one = found.get((match["namespace"], match["name"]))
    port = one.ports.get((match["port"] or None, rule.protocol.upper())) if one else None
    if one and port:
        port["nodePort"] = rule.dport


def _add_dropped(found: Services, rule: Rule, source: str) -> None:
    """A node port whose traffic is dropped for want of a local endpoint: so it is one, and its policy is Local."""
    match = _DROPPED.fullmatch(rule.comment or "")
    if not match or not rule.dst_type_local or not rule.dport or not rule.protocol:
        return
    one = found.setdefault((match["namespace"], match["name"]), Found(source))
    port = {"name": match["port"] or "", "protocol": rule.protocol.upper(), "port": rule.dport}
    one.ports.setdefault((match["port"] or None, rule.protocol.upper()), port)["nodePort"] = rule.dport
    one.external_local = True


def of_nft(table: NftTable, source: str) -> Services:
    """The Services that kube-proxy's nftables table names in its chains and comments."""
    found: Services = {}
    for service in table.services:
        match = _NFT_CHAIN.fullmatch(service.chain)
        if match and service.frontend.ip in table.cluster_ips:
            key = _add(found, match, source, service.frontend, service.protocol)
            own = ServicePort(match["namespace"], match["name"], key[0], key[1], service.frontend.port, None, None, None)
            named = {socket for socket in service.endpoints if judge_nft.chain_of(own, socket) in table.lines}
            found[match["namespace"], match["name"]].endpoints.setdefault(key, set()).update(named)
    for (socket, protocol), comment in table.comments.items():
        match = _COMMENT.fullmatch(comment)
        if match and socket.ip in table.cluster_ips:
            _add(found, match, source, socket, protocol)
    for (protocol, number), chain in table.node_port_chains.items():
        match = _NFT_CHAIN.fullmatch(chain)
        one = found.get((match["namespace"], match["name"])) if match else None
        port = one.ports.get((match["port"] or None, protocol.upper())) if one and match else None
        if port:
            port["nodePort"] = number
    return found


def _add(found: Services, match: re.Match[str], source: str, socket: Socket, protocol: str) -> tuple[str | None, str]:
    one = found.setdefault((match["namespace"], match["name"]), Found(source))
    one.ips[socket.ip] = None
    name = match["port"] or None
    one.ports[name, protocol.upper()] = {"name": name or "", "protocol": protocol.upper(), "port": socket.port}
    return name, protocol.upper()


Slices = Mapping[tuple[str, str, str | None, str], frozenset[Socket]]
"""(namespace, Service, port's name, protocol) → every endpoint, ready or not."""


def of_agent(services: Iterable[AgentService], slices: Slices, source: str) -> Services:
    """The ClusterIP frontends of Cilium's list, named by the list, or joined with the one slice port that has a backend of theirs."""
    fronts = ((each.frontend, each.protocol, {b.socket for b in each.backends}) for each in services if each.type in ("ClusterIP", None))
    return _joined(fronts, slices, source)


def of_map(entries: Iterable[Any], slices: Slices, source: str) -> Services:
    """The same of the load-balancing map."""
    fronts = (
        (each.frontend, each.protocol, set(each.backends)) for each in entries if each.type in ("ClusterIP", None) and not each.wildcard
    )
    return _joined(fronts, slices, source)


def of_conntrack(entries: Iterable[ConntrackEntry], slices: Slices, source: str) -> Services:
    """The frontends that entries were translated from to an endpoint of a slice."""
    fronts = (
        (each.original[1], each.protocol, {each.reply[0]}) for each in entries if each.original[1] != each.reply[0]
    )
    return _joined(fronts, slices, source)


def _joined(fronts: Iterable[tuple[Socket, str | None, set[Socket]]], slices: Slices, source: str) -> Services:
    found: Services = {}
    left: list[tuple[Socket, str | None]] = []
    for front, protocol, backends in fronts:
        if not backends:
            left.append((front, protocol))
        mine = [key for key, sockets in slices.items() if protocol in (None, key[3]) and sockets & backends]
        if len({key[:2] for key in mine}) != 1 or front.ip.is_unspecified or front in backends:
            continue
        for namespace, name, port, protocol_of in mine:
            one = found.setdefault((namespace, name), Found(source))
            one.ips[front.ip] = None
            one.ports[port, protocol_of] = {"name": port or "", "protocol": protocol_of, "port": front.port}
    _add_emptied(found, left, slices)
    return found


def _add_emptied(found: Services, left: Iterable[tuple[Socket, str | None]], slices: Slices) -> None:
    """Frontends without a backend: a ClusterIP is one Service's, and of its slices' ports only one of that protocol may be left."""
    for front, protocol in left:
        for (namespace, name), one in found.items():
            ports = [key[2:] for key in slices if key[:2] == (namespace, name) and key[3] == protocol and key[2:] not in one.ports]
            if front.ip in one.ips and len(ports) == 1:
                port, protocol_of = ports[0]
                one.ports[port, protocol_of] = {"name": port or "", "protocol": protocol_of, "port": front.port}


def of_ipvs(interfaces: Iterable[Interface], source: str) -> Services:
    """The addresses that kube-proxy in IPVS mode put on its dummy interface; it names no Service, so the address does."""
    found: Services = {}
    for interface in interfaces:
        for address in interface.addresses if interface.name == "kube-ipvs0" else ():
            one = Found(source)
            one.ips[address.ip] = None
            found["unnamed", str(address.ip).replace(":", "-")] = one
    return found


def merged(parts: Iterable[Services]) -> Services:
    """All of them; of a Service that several tell of, the first counts, and what the others know besides is added."""
    found: Services = {}
    for part in parts:
        for key, service in part.items():
            first = found.setdefault(key, service)
            first.ips.update(service.ips)
            for port, told in service.ports.items():
                first.ports[port] = {**told, **first.ports.get(port, {})}
            for port, sockets in service.endpoints.items():
                first.endpoints.setdefault(port, set()).update(sockets)
    return found


def objects(found: Services) -> Iterator[dict[str, Any]]:
    """The Services as API objects."""
    for (namespace, name), one in sorted(found.items()):
        ips = sorted(map(str, one.ips), key=lambda ip: ":" in ip)
        node_port = any("nodePort" in port for port in one.ports.values())
        yield {
            "kind": "Service",
            "metadata": {"namespace": namespace, "name": name, "annotations": {DERIVED: one.source}},
            "spec": {
                "type": "NodePort" if node_port else "ClusterIP", "clusterIP": ips[0] if ips else None, "clusterIPs": ips,
                "ports": list(one.ports.values()), "internalTrafficPolicy": "Local" if one.local else "Cluster",
                "sessionAffinity": "ClientIP" if one.affinity else "None",
                **({"externalTrafficPolicy": "Local"} if one.external_local else {}),
            },
        }  # fmt: skip


def slices(found: Services, known: frozenset[str]) -> Iterator[dict[str, Any]]:
    """EndpointSlices of the rules' own endpoints, for Services of which no EndpointSlice is there."""
    for (namespace, name), one in sorted(found.items()):
        if f"{namespace}/{name}" in known:
            continue
        for number, ((port, protocol), sockets) in enumerate(sorted(one.endpoints.items(), key=str), 1):
            for socket in sorted(sockets):
                yield {
                    "kind": "EndpointSlice",
                    "metadata": {
                        "namespace": namespace, "name": f"{name}-{number}-{socket.port}", "annotations": {DERIVED: one.source},
                        "labels": {"kubernetes.io/service-name": name},
                    },
                    "addressType": f"IPv{socket.ip.version}",
                    "endpoints": [{"addresses": [str(socket.ip)], "conditions": {"ready": True}}],
                    "ports": [{"name": port or "", "protocol": protocol, "port": socket.port}],
                }  # fmt: skip
