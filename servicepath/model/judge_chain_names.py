"""Are kube-proxy's chain names the hashes of the Service ports and endpoints that the API lists, none missing or left over?"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from . import chain_names, expected_endpoints, judge_nft
from .difference import Difference
from .expected_endpoints import Expected
from .nft_rules import NftTable
from .rules import SERVICES, Rule, Ruleset
from .service_rules import NodeRules
from .services import ClusterObjects, Endpoint, Service, ServicePort

_SHOWN = 200  # lines of evidence; a cluster may have ten thousand Services

# The chains of traffic to a ClusterIP.
_INTERNAL = (chain_names.CLUSTER, chain_names.LOCAL)

_MINOR = re.compile(r"v?1\.(\d+)")

# Before this minor version external traffic went to KUBE-XLB (policy Local) or straight to KUBE-SVC.
_EXTERNAL_SINCE = 24


@dataclasses.dataclass(slots=True)
class _Predicted:
    """The chains that a node should have: by their names, what each stands for; and groups of names of which one must be there."""

    has_external: bool
    allowed: dict[str, tuple[ServicePort, str | None]] = dataclasses.field(default_factory=dict)
    required: list[tuple[tuple[str, ...], ServicePort, str | None]] = dataclasses.field(default_factory=list)


def judge_chain_names(
    node: str, nat: NodeRules | NftTable, objects: ClusterObjects, moving: Collection[str] = ()
) -> tuple[Difference, ...]:  # fmt: skip
    """Judge all chains of all Services on a node.

    Args:
        node: the node's name; endpoints with policy Local are judged as on this node.
        nat: the node's rules.
        objects: what the API says.
        moving: Services (``namespace/name``) that changed while the node was asked, whose chains tell nothing.

    Returns:
        Chains that are missing, in both back ends, left over, named by no Service port or endpoint, or used for another Service
        port or endpoint than the one they are named after. Chains that nothing leads to are healthy in large clusters, where
        kube-proxy cleans up once a sync period.
    """
    if isinstance(nat, NftTable):
        return judge_nft.chain_names(node, nat, objects)
    wrong = list(_doubled(node, nat))
    endpoints = expected_endpoints.by_service(objects)
    large = expected_endpoints.is_large(objects, endpoints)
    for backend, ruleset in nat.holding:
        predicted = _predict(node, objects, endpoints, ruleset, moving)
        aside = _chains_of(ruleset, objects, moving)
        place = f"{node} ({backend})"
        wrong.extend(_missing(place, ruleset, predicted))
        wrong.extend(_left_over(place, ruleset, predicted, large, aside))
        wrong.extend(_misused_services(place, ruleset, objects))
        wrong.extend(_misused_endpoints(place, ruleset, predicted))
    return tuple(wrong)


def predicts_kubernetes(ruleset: Ruleset, objects: ClusterObjects) -> bool:
    """Whether the hash predicts the chains of default/kubernetes and its endpoints: the control of chain-names."""
    service = objects.service("default/kubernetes")
    return service is not None and predicts(ruleset, objects, service)


def predicts(ruleset: Ruleset, objects: ClusterObjects, service: Service) -> bool:
    """Whether the hash predicts the chains of this Service and its endpoints."""
    return bool(service.ports) and all(_is_predicted(ruleset, objects, service, port) for port in service.ports)


def describe(node: str, nat: NodeRules | NftTable, objects: ClusterObjects) -> tuple[str, ...]:
    """One line a Service port, as evidence: its chain's predicted names, and whether the node has them."""
    if isinstance(nat, NftTable):
        return judge_nft.describe(nat, objects)[:_SHOWN]
    lines = []
    endpoints = expected_endpoints.by_service(objects)
    for _, ruleset in nat.holding:
        for service in objects.services:
            mine = endpoints.get((service.namespace, service.name), ())
            reason = expected_endpoints.not_proxied(service)
            if reason:
                lines.append(f"no chain: {reason}")
                continue
            for port in service.ports:
                expected = expected_endpoints.expect(mine, service, port, node, ruleset.family)
                lines.append(_described(ruleset, port, expected))
    return (*lines[:_SHOWN], *((f"… and {len(lines) - _SHOWN} more",) if len(lines) > _SHOWN else ()))


def _described(ruleset: Ruleset, port: ServicePort, expected: Expected) -> str:
    names = [chain_names.service_chains(port, chain_names.LOCAL if expected.local else chain_names.CLUSTER)]
    names += [chain_names.endpoint_chains(port, socket) for socket in sorted(expected.sockets)]
    there = [next((name for name in group if ruleset.chain("nat", name)), f"{group[0]} (not there)") for group in names]
    if not expected.sockets:
        return f"{port.chain_key}/{port.protocol}: no serving endpoint on this node, and so no chain"
    return f"{port.chain_key}/{port.protocol} = {' '.join(there)}"


def _is_predicted(ruleset: Ruleset, objects: ClusterObjects, service: Service, port: ServicePort) -> bool:
    endpoints = objects.serving(service, port)
    groups = [chain_names.service_chains(port), *(chain_names.endpoint_chains(port, endpoint) for endpoint in endpoints)]
    there = {name for table, name in ruleset.chains if table == "nat"}
    if not ruleset.complete:  # an excerpt may leave out the chains that its rules lead to
        there |= {rule.target for (table, _), chain in ruleset.chains.items() if table == "nat" for rule in chain.rules if rule.target}
    return bool(endpoints) and all(not there.isdisjoint(names) for names in groups)


def _chains_of(ruleset: Ruleset, objects: ClusterObjects, services: Collection[str]) -> frozenset[str]:
    """The chains of these Services: those named after their ports, what these lead to, and what by its comments is theirs."""
    ports = [port for service in objects.services if service.key in services for port in service.ports]
    hashes = {found for port in ports for found in chain_names.service_hashes(port)}
    starts = tuple(f"{key}{end}" for key in services for end in (":", " "))
    found: set[str] = set()
    for (table, name), chain in ruleset.chains.items():
        if table == "nat" and name.rpartition("-")[2] in hashes:
            found.update((name, *(rule.target for rule in chain.rules if rule.target)))
        elif table == "nat" and any(f"{rule.comment or ''} ".startswith(starts) for rule in chain.rules):
            found.add(name)
    return frozenset(found)


def _predict(
    node: str, objects: ClusterObjects, endpoints: Mapping[tuple[str, str], Sequence[Endpoint]], ruleset: Ruleset, moving: Collection[str]
) -> _Predicted:
    minor, family = _MINOR.match(objects.server_version), ruleset.family
    # Where the version is not known (others' outputs), the rules tell which layout they have.
    told = int(minor[1]) >= _EXTERNAL_SINCE if minor else any(name.startswith(chain_names.EXTERNAL) for _, name in ruleset.chains)
    predicted = _Predicted(has_external=told)
    for service in objects.services:
        if service.key in moving or expected_endpoints.not_proxied(service) or all(ip.version != family for ip in service.cluster_ips):
            continue
        mine = endpoints.get((service.namespace, service.name), ())
        for port in service.ports:
            _predict_port(predicted, port, expected_endpoints.expect(mine, service, port, node, family))
    return predicted


def _predict_port(predicted: _Predicted, port: ServicePort, expected: Expected) -> None:
    used = (
        (chain_names.CLUSTER, expected.cluster_chain, True),
        (chain_names.LOCAL, expected.local_chain, True),
        (chain_names.EXTERNAL, expected.external_chain, predicted.has_external),
    )
    hashes = chain_names.service_hashes(port)
    allowed, mine = predicted.allowed, (port, None)
    for prefix, there, required in used:
        if there:
            names = tuple([prefix + found for found in hashes])
            for name in names:
                allowed[name] = mine
            if required:
                predicted.required.append((names, port, None))
    if expected.reachable:
        # Whether these exist depends on what the model does not hold: source ranges, ipMode, kube-proxy's age.
        for prefix in (chain_names.EXTERNAL, chain_names.FIREWALL, chain_names.OLD_EXTERNAL):
            for found in hashes:
                allowed[prefix + found] = mine
    keys, protocol = chain_names.keys(port), port.protocol
    for each in expected.reachable:
        socket = str(each)
        names = tuple([chain_names.endpoint_chain(key, protocol, socket) for key in keys])
        for name in names:
            allowed[name] = (port, socket)
        if each in expected.required:
            predicted.required.append((names, port, socket))


def _doubled(node: str, nat: NodeRules) -> Iterator[Difference]:
    if len(nat.holding) < 2:
        return
    (first, one), (second, other) = nat.holding
    twice = sorted(name for table, name in one.chains.keys() & other.chains.keys() if table == "nat" and _is_ours(name))
    if twice:
        lines = tuple(f"{backend}: :{name}" for name in twice[:10] for backend in (first, second))
        yield Difference(f"{node}: Service chains", "are in both iptables back ends", f"in {first} alone", f"{len(twice)} doubled", lines)


def _is_ours(name: str) -> bool:
    return chain_names.is_service_chain(name)


def _missing(place: str, ruleset: Ruleset, predicted: _Predicted) -> Iterator[Difference]:
    if not ruleset.complete:
        return
    for names, port, socket in predicted.required:
        if not any(("nat", name) in ruleset.chains for name in names):
            what = f"{port.chain_key}/{port.protocol}{f' to {socket}' if socket else ''}"
            yield Difference(f"{place}: chain of {what}", "is missing", names[0], "no such chain in nat")


def _left_over(
    place: str, ruleset: Ruleset, predicted: _Predicted, large: bool, aside: frozenset[str]
) -> Iterator[Difference]:  # fmt: skip
    leading: dict[str, Rule] = {}
    for (table, _), chain in ruleset.chains.items():
        for rule in chain.rules if table == "nat" else ():
            if rule.target is not None:
                leading[rule.target] = rule
    for (table, name), chain in ruleset.chains.items():
        if table != "nat" or (name in leading and name in predicted.allowed) or not _is_ours(name) or name in aside:
            continue
        lines = (f":{name}", *(rule.raw for rule in chain.rules[:3]))
        if name not in leading:
            if ruleset.complete and not large:
                yield Difference(f"{place}: {name}", "is orphaned: no rule leads to it", "no such chain", _said(chain.rules), lines)
        else:
            yield Difference(
                f"{place}: {name}",
                "is not the hash of any Service port or serving endpoint of this node",
                "a name that is",
                _said(chain.rules),
                (leading[name].raw, *lines),
            )


def _said(rules: tuple[Rule, ...]) -> str:
    """What the chain's own comments say that it is for."""
    silent = f"a chain of {len(rules)} rules, none of which says in a comment what it is for"
    return next((f"commented {rule.comment!r}" for rule in rules if rule.comment), silent if rules else "an empty chain")


def _misused_services(place: str, ruleset: Ruleset, objects: ClusterObjects) -> Iterator[Difference]:
    """Rules of KUBE-SERVICES for a ClusterIP that lead to the chain of another Service port."""
    for service in objects.services:
        for port in service.ports:
            hashes = chain_names.service_hashes(port)
            for rule in (r for ip in service.cluster_ips for r in ruleset.exact_rules("nat", ip, port.protocol, port.port)):
                target = rule.target or ""
                if _is_ours(target) and not (target.startswith(_INTERNAL) and target.endswith(hashes)):
                    subject = f"{place}: {SERVICES} for {port.chain_key}/{port.protocol}"
                    wanted = chain_names.CLUSTER + hashes[0]
                    yield Difference(subject, "leads to another chain than its own", wanted, target, (rule.raw,))


def _misused_endpoints(place: str, ruleset: Ruleset, predicted: _Predicted) -> Iterator[Difference]:
    """Endpoint chains that translate to another endpoint than the one in their name."""
    for name, (port, socket) in predicted.allowed.items():
        if socket is None:
            continue
        for rule in ruleset.rules("nat", name):
            if rule.target == "DNAT" and rule.to_destination is not None and rule.to_destination != socket:
                subject = f"{place}: {name} of {port.chain_key}/{port.protocol}"
                yield Difference(
                    subject, "translates to another endpoint than its name says", socket, rule.to_destination, (rule.raw,)
                )
