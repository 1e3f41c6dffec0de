"""The Service's rules where kube-proxy runs in nftables mode: its own table, with verdict maps in the place of chains of jumps.

As kube-proxy v1.34.4, v1.36.3 and v1.37.2 wrote it when run (selftests/data/kubernetes-…; pkg/proxy/nftables): ``nat-output`` and
``nat-prerouting`` jump to ``services``, whose map ``service-ips`` goes to ``service-HASH-NAMESPACE/NAME/PROTOCOL/PORT``; that one
chooses by ``numgen random mod N vmap`` among ``endpoint-HASH-…__IP/PORT``, which translate. The hash is the first 8 characters of
base32(sha256(what follows it)). Services without endpoints stand in the map ``no-endpoint-services``. There are no counters. Since
v1.36 the Service's chain translates by itself, by ``dnat ip to numgen random mod N map``, and since v1.37 to a single endpoint without
a choice (kubernetes/kubernetes#136499, #140723).
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
from collections.abc import Collection, Iterator, Mapping

from . import expected_endpoints
from .addresses import IPAddress, Socket
from .difference import Difference
from .expected_endpoints import Expected
from .nft_rules import NftService, NftTable
from .service_rules import NodeRules
from .services import ClusterObjects, ServicePort

_CHOICE = re.compile(r"numgen random mod (\d+)|\"mode\": \"random\", \"mod\": (\d+)")
# KUBE-FIREWALL, KUBE-KUBELET-CANARY and KUBE-IPTABLES-HINT are the kubelet's.
_LONGEST = 240  # characters of a hash and what it is of, in the names of chains (Kubernetes v1.31 to v1.37)
_OF_IPTABLES_MODE = re.compile(r"KUBE-(SERVICES|NODEPORTS|EXTERNAL-SERVICES|POSTROUTING|MARK-MASQ|FORWARD|(PROXY|SVC|SVL|EXT|FW|SEP)-.*)")
_HOOKS = ("nat-output", "nat-prerouting")
_REFUSALS = {"REJECT": "reject", "DROP": "drop"}


@dataclasses.dataclass(frozen=True, slots=True)
class NftWalk:
    """The way of a new connection to a ClusterIP's port, as evidence."""

    way_in: tuple[str, ...]
    choosing: tuple[str, ...]
    translating: tuple[str, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """The whole way."""
        return (*self.way_in, *self.choosing, *self.translating)


def walk(table: NftTable, ip: IPAddress, protocol: str, port: int) -> NftWalk:
    """What the table does with a connection to ``ip:port``, as lines."""
    found = table.service(ip, protocol, port)
    refused = table.refused.get((Socket(ip, port), protocol.lower()))
    way = [f"{name}: {line}" for name in (*_HOOKS, "services") for line in table.lines.get(name, ())]
    way += [f"service-ips: {found.frontend} {found.protocol} → {found.chain}"] if found else []
    way += [f"no-endpoint-services: {ip} {protocol.lower()} {port} → {refused}"] if refused else []
    chosen = table.lines.get(found.chain, ()) if found else ()
    ends = (name for name in table.lines if found and name.startswith("endpoint-") and any(name in line for line in chosen))
    return NftWalk(tuple(way), chosen, tuple(f"{name}: {line}" for name in ends for line in table.lines[name]))


def service_rule(node: str, port: ServicePort, ip: IPAddress, table: NftTable, expected: Expected) -> tuple[Difference, ...]:
    """The hooks lead to ``services``, and a map there leads the port to its chain, or refuses it where no endpoint serves."""
    where, front = f"{node}: {port.chain_key}/{port.protocol}", Socket(ip, port.port)
    wrong = []
    for hook in _HOOKS:
        lines = table.lines.get(hook, ())
        if not any(re.search(r"\bjump services\b|\"target\": \"services\"", line) for line in lines):
            wrong.append(Difference(f"{where}: {hook}", "does not lead to services", "jump services", "no such jump", lines))
    found, refused = table.service(ip, port.protocol, port.port), table.refused.get((front, port.protocol.lower()))
    evidence = walk(table, ip, port.protocol, port.port).way_in
    if expected.sockets and found is None:
        problem, actual = f"has no element for {front}/{port.protocol}", f"no-endpoint-services: {refused}" if refused else "no element"
        wrong.append(Difference(f"{where}: map service-ips", problem, f"goto {chain_of(port)}", actual, evidence))
    elif expected.sockets and refused:
        problem = f"refuses {front} though endpoints serve"
        wrong.append(Difference(f"{where}: map no-endpoint-services", problem, "no element", refused, evidence))
    elif not expected.sockets:
        wrong += _refusing(where, front, found, refused, expected, evidence)
    return tuple(wrong)


def _refusing(
    where: str, front: Socket, found: NftService | None, refused: str | None, expected: Expected, evidence: tuple[str, ...]
) -> Iterator[Difference]:  # fmt: skip
    if found is not None:
        yield Difference(f"{where}: map service-ips", f"leads {front} on though no endpoint serves", "no element", found.chain, evidence)
    wanted = _REFUSALS.get(expected.refusal or "", "reject")
    if refused != wanted:
        problem = f"does not refuse {front} as it should though no endpoint serves"
        yield Difference(f"{where}: map no-endpoint-services", problem, wanted, refused or "no element", evidence)


def chain_of(port: ServicePort, endpoint: Socket | None = None) -> str:
    """The name of the port's chain, or of its endpoint's.

    nft takes no colons in a name, so IPv6 addresses have dots (``__fd00.10..5/53``); names longer than the kernel's limit end in "...".
    """
    text = f"{port.namespace}/{port.service}/{port.protocol.lower()}/{port.name or ''}"
    if endpoint is None:
        return f"service-{_hashed(text)}"
    ip = str(endpoint.ip).replace(":", ".")
    return f"endpoint-{_hashed(f'{text}__{ip}/{endpoint.port}')}"


def _hashed(text: str) -> str:
    name = f"{base64.b32encode(hashlib.sha256(text.encode()).digest()).decode()[:8]}-{text}"
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."


def backend_choice(node: str, port: ServicePort, ip: IPAddress, table: NftTable, expected: Expected) -> tuple[Difference, ...]:
    """The Service's chain chooses among all serving endpoints, each once, with equal chances."""
    found = table.service(ip, port.protocol, port.port)
    subject = f"{node}: {found.chain if found else 'the chain'} of {port.chain_key}/{port.protocol}"
    reached = frozenset(found.endpoints) if found else frozenset()
    lines = table.lines.get(found.chain, ()) if found else ()
    wrong = [
        Difference(subject, "goes to what is no serving endpoint", _listed(expected.sockets), str(socket), lines)
        for socket in sorted(reached - expected.sockets, key=str)
    ]
    if expected.exact:
        missing = sorted(expected.sockets - reached, key=str)
        wrong += [Difference(subject, "does not go to a serving endpoint", str(socket), _listed(reached), lines) for socket in missing]
    counts = [int(one or other) for line in lines for one, other in _CHOICE.findall(line)]
    if found and counts != [len(reached)] and (counts or len(reached) != 1):  # since v1.37 there is no choice of one
        said = ", ".join(map(str, counts)) or "no choice by chance"
        wrong.append(Difference(subject, "does not choose with equal chances", f"numgen random mod {len(reached)}", said, lines))
    return tuple(wrong)


def chain_names(node: str, table: NftTable, objects: ClusterObjects) -> tuple[Difference, ...]:
    """Names of Service chains are the hashes of the Service ports that the API lists; none is missing or left over.

    A chain without rules is no difference: kube-proxy empties one that it needs no longer, and deletes it only at a sync more than a
    second later (``staleChains``), for which it may wait as long as nothing else changes. What still leads there is seen by the others.
    """
    allowed, wrong = set(), []
    mine = expected_endpoints.by_service(objects)
    for service in objects.services:
        foreign = all(ip.version != table.family for ip in service.cluster_ips)
        for port in service.ports if not foreign and not expected_endpoints.not_proxied(service) else ():
            expected = expected_endpoints.expect(mine.get((service.namespace, service.name), ()), service, port, node, table.family)
            allowed |= {chain_of(port, socket) for socket in expected.reachable}
            allowed |= {chain_of(port)} if expected.cluster_chain else set()
            if expected.cluster_chain and chain_of(port) not in table.lines:
                subject = f"{node}: chain of {port.chain_key}/{port.protocol}"
                wrong.append(Difference(subject, "is missing", chain_of(port), "no such chain in the table"))
    for name, lines in table.lines.items():
        if lines and name.startswith(("service-", "endpoint-")) and "/" in name and name not in allowed:
            problem = "is not the hash of any Service port or serving endpoint"
            wrong.append(Difference(f"{node}: {name}", problem, "a name that is", f"{len(lines)} rules", lines))
    return tuple(wrong)


def describe(table: NftTable, objects: ClusterObjects) -> tuple[str, ...]:
    """One line a Service port: its chain's predicted name, and whether the table has it."""
    ports = [port for service in objects.services for port in service.ports if not expected_endpoints.not_proxied(service)]
    return tuple(f"{port.id} = {chain_of(port)}{'' if chain_of(port) in table.lines else ' (not there)'}" for port in ports)


def equal_rules(tables: Mapping[str, NftTable], aside: Collection[IPAddress] = ()) -> tuple[Difference, ...]:
    """Every node sends each frontend to the same endpoints, and refuses the same ones; of addresses ``aside`` nothing is compared."""
    first, *others = tables
    wrong = []
    for name in others:
        mine, theirs = _meaning(tables[name], aside), _meaning(tables[first], aside)
        for front in sorted(key for key in mine.keys() | theirs.keys() if mine.get(key) != theirs.get(key)):
            subject = f"{name}: {front}"
            wrong.append(Difference(subject, f"differs from {first}", theirs.get(front, "no element"), mine.get(front, "no element")))
    return tuple(wrong)


def chains_left(rules: NodeRules) -> tuple[str, ...]:
    """kube-proxy's own chains in iptables, a line each; "none" where there are none."""
    return tuple(
        f"{ruleset.backend or '?'}: {table} {name}"
        for ruleset in (rules.nft, rules.legacy)
        if ruleset is not None
        for table, name in ruleset.chains
        if _OF_IPTABLES_MODE.fullmatch(name)
    ) or ("none",)


def left_in_iptables(node: str, rules: NodeRules) -> tuple[Difference, ...]:
    """Chains of a kube-proxy in iptables mode."""
    left = chains_left(rules)
    if left == ("none",):
        return ()
    return (Difference(f"{node}: iptables", "holds rules of a kube-proxy in another mode", "none", f"{len(left)} chains", left),)


def _meaning(table: NftTable, aside: Collection[IPAddress]) -> dict[str, str]:
    told = {(s.frontend, s.protocol): _listed(frozenset(s.endpoints)) for s in table.services} | dict(table.refused)
    return {f"{socket}/{protocol.upper()}": does for (socket, protocol), does in told.items() if socket.ip not in aside}


def _listed(sockets: frozenset[Socket]) -> str:
    return ", ".join(map(str, sorted(sockets, key=str))) or "none"
