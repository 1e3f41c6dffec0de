"""Do all nodes hold the same rules for each Service? Compared as models: order, counters, comments and spelling do not count."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Collection, Iterator, Mapping

from . import expected_endpoints, judge_nft, service_rules
from .addresses import IPAddress
from .difference import Difference
from .nft_rules import NftTable
from .rules import Net, Rule, Ruleset
from .rules_alike import Alike
from .service_rules import Choice, NodeRules, ServiceWalk
from .services import ClusterObjects

Frontend = tuple[IPAddress, str, int]


@dataclasses.dataclass(frozen=True, slots=True)
class _Form:
    """What a node's rules do with a frontend, in a form that is equal on healthy nodes.

    Attributes:
        leads: (what the rule of KUBE-SERVICES matches, its target).
        masquerade: whose packets are marked; the node's own PodCIDR (kube-proxy's detect-local mode NodeCIDR) reads so.
        affinity: (chain, seconds) of the ``recent`` rules.
        choices: (endpoint chain, share in thousandths of a percent).
        refused: targets in filter.
        strange: rules that kube-proxy does not write.
    """

    leads: frozenset[tuple[object, ...]]
    masquerade: tuple[object, ...]
    affinity: frozenset[tuple[str | None, int | None]]
    choices: frozenset[tuple[str, int]]
    refused: tuple[str | None, ...]
    strange: frozenset[tuple[object, ...]]

    def __str__(self) -> str:
        """The form as a message shows it."""
        if not self.leads:
            return f"refused by {', '.join(map(str, self.refused))}" if self.refused else "no rule"
        targets = ", ".join(sorted(str(lead[-1]) for lead in self.leads))
        choices = ", ".join(f"{chain} {share / 1e5:.5f}" for chain, share in sorted(self.choices))
        extras = [f"masquerade {' '.join(map(str, self.masquerade))}" if self.masquerade else "no masquerade rule"]
        extras += [f"{len(self.affinity)} affinity rules"] if self.affinity else []
        extras += [f"{len(self.strange)} rules of others"] if self.strange else []
        return f"{targets} → {choices or 'no endpoint'} ({'; '.join(extras)})"


def judge_equal_rules(
    all_rules: Mapping[str, NodeRules | NftTable], objects: ClusterObjects, moving: Collection[str] = ()
) -> tuple[Difference, ...]:  # fmt: skip
    """Judge that every node holds the same rules for each ClusterIP's port.

    Args:
        all_rules: node name → its rules; nodes whose rules could not be read, or hold no KUBE-SERVICES, are the caller's to leave
            out or to raise for.
        objects: tells which Services policy makes differ (topology hints, trafficDistribution, internalTrafficPolicy Local); the
            addresses of load balancers and externalIPs are not compared, since externalTrafficPolicy makes them differ.
        moving: Services (``namespace/name``) that changed while the nodes were asked one after the other: these are left out.

    Returns:
        For each frontend and each node that is unlike the most nodes, what it holds and what they hold.
    """
    tables = {node: table for node, table in all_rules.items() if isinstance(table, NftTable)}
    if tables:
        return judge_nft.equal_rules(tables, _by_policy(objects, moving))
    active = _active(all_rules)
    wrong: list[Difference] = []
    alike = Alike(active, {cidr for node in objects.nodes if node.name in active for cidr in node.pod_cidrs})
    unlike = {frontend: name for frontend, name in _frontends(active, objects, moving).items() if not alike.at(frontend)}
    for frontend, name in sorted(unlike.items(), key=str):
        walks = {node: service_rules.walk_from_services(ruleset, *frontend) for node, ruleset in active.items()}
        forms = {node: _form(walk, node, objects) for node, walk in walks.items()}
        if len(set(forms.values())) > 1:
            wrong.extend(_unlike(frontend, name, forms, walks))
        wrong.extend(_translations(frontend, name, walks))
    return tuple(wrong)


def _by_policy(objects: ClusterObjects, moving: Collection[str]) -> frozenset[IPAddress]:
    """The addresses whose rules may rightly differ from node to node, or that were changing."""
    endpoints = expected_endpoints.by_service(objects)
    found: set[IPAddress] = set()
    for service in objects.services:
        found.update((*service.external_ips, *service.load_balancer_ips))
        mine = endpoints.get((service.namespace, service.name), ())
        if service.key in moving or expected_endpoints.differs_by_policy(service, mine):
            found.update(service.cluster_ips)
    return frozenset(found)


def _active(all_rules: Mapping[str, NodeRules | NftTable]) -> dict[str, Ruleset]:
    found = {node: nat.active for node, nat in all_rules.items() if isinstance(nat, NodeRules)}
    return {node: ruleset for node, ruleset in found.items() if ruleset is not None}


def describe(
    all_rules: Mapping[str, NodeRules | NftTable], objects: ClusterObjects, moving: Collection[str] = ()
) -> tuple[str, ...]:  # fmt: skip
    """What was compared, as evidence: the nodes, the frontends, and the Services that policy leaves out."""
    active = _active(all_rules)
    endpoints = expected_endpoints.by_service(objects)
    lines = [f"{node}: KUBE-SERVICES has rules for {len(set(ruleset.frontends()))} frontends" for node, ruleset in active.items()]
    tables = ((node, nat) for node, nat in all_rules.items() if isinstance(nat, NftTable))
    lines += [f"{node}: kube-proxy's nftables table has {len(table.services)} frontends" for node, table in tables]
    lines.append(f"compared on all of them: {len(_frontends(active, objects, moving))} ClusterIP ports")
    lines += [f"not compared: {key}: it changed while the nodes were asked" for key in sorted(moving)]
    for service in objects.services:
        reason = expected_endpoints.differs_by_policy(service, endpoints.get((service.namespace, service.name), ()))
        if reason and not expected_endpoints.not_proxied(service):
            lines.append(f"not compared: {service.key}: {reason}")
    return tuple(lines)


def _frontends(active: Mapping[str, Ruleset], objects: ClusterObjects, moving: Collection[str]) -> dict[Frontend, str]:
    """The frontends to compare: ClusterIPs without such a policy, and what KUBE-SERVICES holds for no address that the API knows."""
    endpoints = expected_endpoints.by_service(objects)
    found: dict[Frontend, str] = {}
    known: set[IPAddress] = set()
    families = {ruleset.family for ruleset in active.values()}
    for service in objects.services:
        known.update((*service.cluster_ips, *service.external_ips, *service.load_balancer_ips))
        mine = endpoints.get((service.namespace, service.name), ())
        if service.key in moving or expected_endpoints.not_proxied(service) or expected_endpoints.differs_by_policy(service, mine):
            continue
        for port in service.ports:
            for ip in (ip for ip in service.cluster_ips if ip.version in families):
                found[ip, port.protocol.lower(), port.port] = f"{port.chain_key}/{port.protocol}"
    for ruleset in active.values():
        for _, ip, protocol, number in ruleset.frontends():
            if ip not in known and not _of_any(ruleset, (ip, protocol, number), moving):
                found.setdefault((ip, protocol, number), "no Service that the API lists")
    return found


def _of_any(ruleset: Ruleset, frontend: Frontend, services: Collection[str]) -> bool:
    """Whether the rules say that the frontend is one of these Services', which the API listed before or after."""
    rules = (rule for table in ("nat", "filter") for rule in ruleset.exact_rules(table, *frontend))
    return any((rule.comment or "").startswith(tuple(f"{key}:" for key in services)) for rule in rules) if services else False


def _form(walk: ServiceWalk, node: str, objects: ClusterObjects) -> _Form:
    return _Form(
        leads=frozenset((rule.source, rule.probability, rule.other, rule.target) for rule in walk.service_rules),
        masquerade=_masquerade(walk.masquerade_rule, node, objects),
        affinity=frozenset((rule.target, rule.affinity_seconds) for rule in walk.affinity),
        choices=frozenset((choice.chain, round(choice.share * 1e5)) for choice in walk.choices),
        refused=tuple(rule.target for rule in walk.refusals),
        strange=frozenset(rule.meaning for rule in walk.strange),
    )


def _masquerade(rule: Rule | None, node: str, objects: ClusterObjects) -> tuple[object, ...]:
    if rule is None:
        return ()
    return (_source(rule.source, node, objects), *((rule.in_interface,) if rule.in_interface else ()), *rule.other)


def _source(net: Net | None, node: str, objects: ClusterObjects) -> str:
    if net is None:
        return "from anywhere"
    found = objects.node(node)
    own = found is not None and net.network in found.pod_cidrs
    return f"from {'outside ' if net.negated else ''}{'the own PodCIDR' if own else net.network}"


def _unlike(
    frontend: Frontend, name: str, forms: Mapping[str, _Form], walks: Mapping[str, ServiceWalk]
) -> Iterator[Difference]:
    usual, _ = collections.Counter(forms.values()).most_common(1)[0]
    like = [node for node, form in forms.items() if form == usual]
    for node, form in forms.items():
        if form != usual:
            mine, theirs = walks[node].lines, walks[like[0]].lines
            lines = (
                *(f"{node}: {line}" for line in mine if _bare(line) not in map(_bare, theirs)),
                *(f"{like[0]}: {line}" for line in theirs if _bare(line) not in map(_bare, mine)),
            )
            subject = f"{node}: rules of {frontend[0]}:{frontend[2]}/{frontend[1].upper()} ({name})"
            yield Difference(subject, f"differ from those of {', '.join(like)}", str(usual), str(form), lines)


def _translations(frontend: Frontend, name: str, walks: Mapping[str, ServiceWalk]) -> Iterator[Difference]:
    """The same endpoint's chain must do alike; a node whose tool could not print the target says nothing about it."""
    seen: dict[str, dict[tuple[object, ...], Choice]] = {}
    for node, walk in walks.items():
        for choice in walk.choices:
            if not (choice.told and choice.seen):
                continue
            first = seen.setdefault(choice.chain, {}).setdefault(_doing(choice), choice)
            if len(seen[choice.chain]) > 1 and first is choice:
                other = next(iter(seen[choice.chain].values()))
                yield Difference(
                    f"{node}: {choice.chain} of {frontend[0]}:{frontend[2]}/{frontend[1].upper()} ({name})",
                    "does otherwise than on other nodes",
                    _said(other),
                    _said(choice),
                    tuple(rule.raw for each in (other, choice) for rule in _rules(each)),
                )


def _rules(choice: Choice) -> tuple[Rule, ...]:
    return tuple(dict.fromkeys((*((choice.hairpin,) if choice.hairpin else ()), *choice.strange, *choice.dnat)))


def _doing(choice: Choice) -> tuple[object, ...]:
    """What the chain does: whom it marks for masquerade, where it sends to, and what else stands there."""
    hairpin = (choice.hairpin.source, choice.hairpin.other) if choice.hairpin else None
    return (hairpin, tuple(rule.to_destination for rule in choice.dnat), tuple(rule.meaning for rule in choice.strange))


def _said(choice: Choice) -> str:
    """What the chain does, in words."""
    targets = ", ".join(f"DNAT to {rule.to_destination}" for rule in choice.dnat) or "no DNAT"
    source = choice.hairpin.source if choice.hairpin else None
    marks = f"marks packets from {source.network if source else 'anywhere'}" if choice.hairpin else "marks no packets for masquerade"
    others = f"; {len(choice.strange)} rules of others" if choice.strange else ""
    return f"{targets}; {marks}{others}"


def _bare(line: str) -> str:
    """The line without its counter."""
    return line.partition("] ")[2] if line.startswith("[") else line
