"""A host of the LAN that is no node: what it knows of Services, and whether it reaches one."""

from __future__ import annotations

import dataclasses

from .addresses import IPAddress, Socket
from .difference import Difference
from .host import Interface, Route
from .routing import HostRouting, ServiceNetwork
from .rules import Rule, Ruleset
from .service_rules import NodeRules

_PROXY_CHAINS = ("KUBE-SERVICES", "KUBE-SVC-", "KUBE-SVL-", "KUBE-SEP-", "KUBE-NODEPORTS", "KUBE-EXT-")


@dataclasses.dataclass(frozen=True, slots=True)
class Connect:
    """One attempt to open a TCP connection.

    Attributes:
        target: where to.
        connected: whether the handshake was completed.
        answer: what came instead ("timed out", "connection refused", "no route to host"); None when connected.
        took: seconds that all attempts took together.
        command: how it was made, as a person would type it.
    """

    target: Socket
    connected: bool
    answer: str | None
    took: float
    command: str

    def __str__(self) -> str:
        """``10.43.0.10:53: timed out``; all attempts were made at once, so that ``took`` is not this one's own."""
        return f"{self.target}: {'connected' if self.connected else self.answer or 'not connected'}"


@dataclasses.dataclass(frozen=True, slots=True)
class LanHostFacts:
    """What was seen of and from the LAN host.

    Attributes:
        name: as the inventory has it ("lan-client").
        interfaces: its own, as far as read.
        routing: its rules and tables.
        rules: its rules in both iptables back ends; None for one that may hold rules, but whose program the host does not have.
        connect_to_vip: the attempt on the ClusterIP.
        connect_to_node: the same program's attempt on a port of a node that answers.
    """

    name: str
    interfaces: tuple[Interface, ...]
    routing: HostRouting
    rules: NodeRules
    connect_to_vip: Connect
    connect_to_node: Connect


def judge_lan_host(facts: LanHostFacts, vip: IPAddress, network: ServiceNetwork) -> tuple[Difference, ...]:
    """A LAN host has no Service rules and no route to the Service CIDR, and gets no TCP connection to the ClusterIP.

    Args:
        facts: of the LAN host.
        vip: the ClusterIP under test.
        network: what is known of the Service CIDR.
    """
    rules = [_rule_difference(facts, rule, ruleset) for ruleset in _rulesets(facts) for rule in _service_rules(ruleset, network)]
    routes = [_route_difference(facts, route, network) for route in facts.routing.reachable_routes(vip) if network.holds(route.destination)]
    held = [interface for interface in facts.interfaces if interface.holds(vip)]
    if held:
        routes.append(Difference(facts.name, f"holds the ClusterIP {vip}", "on no interface", held[0].name, (str(held[0]),)))
    connected = facts.connect_to_vip.connected
    reached = Difference(
        f"{facts.name}: TCP connection to {facts.connect_to_vip.target}",
        "was made",
        "none: the ClusterIP has no meaning outside the cluster",
        "connected",
        (facts.connect_to_vip.command, str(facts.connect_to_vip)),
    )
    return (*rules, *routes, *([reached] if connected else []))


def lan_host_silent(facts: LanHostFacts) -> str | None:
    """Why the LAN host could not have shown the opposite: rules were not read, or its program connects to nothing at all."""
    if facts.rules.unread:
        tools = " and ".join(f"iptables-{name}-save" for name in facts.rules.unread)
        return f"{facts.name}: {tools} is not there (package iptables), and there may be rules that only it shows"
    if not facts.routing.routes:
        return f"{facts.name}: the listing shows no route at all"
    if not facts.connect_to_node.connected:
        return f"{facts.name}: the same program does not connect to the node either: {facts.connect_to_node}"
    return None


def _rulesets(facts: LanHostFacts) -> tuple[Ruleset, ...]:
    return tuple(ruleset for ruleset in (facts.rules.nft, facts.rules.legacy) if ruleset is not None)


def _service_rules(ruleset: Ruleset, network: ServiceNetwork) -> tuple[Rule, ...]:
    """Rules of kube-proxy's chains, and any whose destination lies inside the Service CIDR."""
    return tuple(
        rule
        for chain in ruleset.chains.values()
        for rule in chain.rules
        if chain.name.startswith(_PROXY_CHAINS)
        or (rule.destination is not None and not rule.destination.negated and network.holds(rule.destination.network))
    )


def _rule_difference(facts: LanHostFacts, rule: Rule, ruleset: Ruleset) -> Difference:
    place = f"{facts.name}: {ruleset.backend or 'iptables'} {rule.table} {rule.chain}"
    return Difference(place, "has a Service rule", "none outside the cluster", f"rule {rule.position}", (rule.raw,))


def _route_difference(facts: LanHostFacts, route: Route, network: ServiceNetwork) -> Difference:
    problem = "has a route to the Service CIDR"
    return Difference(f"{facts.name}: table {route.table}", problem, f"none ({network})", str(route.destination), (str(route),))
