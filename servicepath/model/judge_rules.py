"""Do a node's rules lead a packet to the ClusterIP into the Service's chain, or refuse it where no endpoint serves?"""

from __future__ import annotations

from collections.abc import Iterator

from . import chain_names, judge_external, judge_nft, rule_entry, service_rules
from .addresses import IPAddress
from .difference import Difference
from .expected_endpoints import Expected
from .nft_rules import NftTable
from .rule_entry import Entry, Match, Packet
from .rules import SERVICES
from .service_rules import NodeRules, ServiceWalk
from .services import ServicePort

# So many rules of a hook are shown where none of them is the one that should be there.
MOST_RULES = 10


def judge_service_rule(
    node: str, port: ServicePort, ip: IPAddress, nat: NodeRules | NftTable, expected: Expected
) -> tuple[Difference, ...]:
    """Judge how packets to the port come to its chain.

    Args:
        node: the node's name, for messages.
        port: the Service port.
        ip: the ClusterIP.
        nat: the node's rules; of a kube-proxy in nftables mode its table.
        expected: where the traffic should go on this node; without endpoints the set-up that refuses it is judged.

    Returns:
        What is wrong with: the number of back ends that hold KUBE-SERVICES, the way from OUTPUT and PREROUTING to it, and its
        rule for the ClusterIP (or, without endpoints, the refusal in filter); and a drop of traffic from outside, where it must not be.
    """
    outside = judge_external.dropped_outside(node, port, nat, expected)
    if isinstance(nat, NftTable):
        return (*judge_nft.service_rule(node, port, ip, nat, expected), *outside)
    if not nat.holders and (alone := (*outside, *refused(node, port, ip, nat, expected))):
        return alone  # a filter table alone shows it; of the way to the ClusterIP it tells nothing
    where = f"{node}: {port.chain_key}/{port.protocol}"
    wrong = list(_holders(node, nat, port, ip))
    for name, ruleset in nat.holding:
        walk = service_rules.walk(ruleset, ip, port.protocol, port.port)
        place = f"{where} ({name})"
        for entry in walk.entries:
            wrong.extend(_entry(place, entry, walk, tuple(rule.raw for rule in ruleset.rules("nat", entry.hook)[:MOST_RULES])))
        wrong.extend(_leading(place, port, walk, expected) if expected.sockets else _refusing(place, walk, expected))
    return (*wrong, *outside)


def refused(node: str, port: ServicePort, ip: IPAddress, nat: NodeRules, expected: Expected) -> tuple[Difference, ...]:
    """What filter refuses to the ClusterIP though endpoints serve, in whichever back end; none of it needs the nat table."""
    found: list[Difference] = []
    for name, ruleset in nat.read:
        if expected.sockets:
            walk = service_rules.walk_from_services(ruleset, ip, port.protocol, port.port)
            found.extend(_refused(f"{node}: {port.chain_key}/{port.protocol} ({name})", walk, port))
    return tuple(found)


def _refused(place: str, walk: ServiceWalk, port: ServicePort) -> Iterator[Difference]:
    frontend = f"{walk.ip}:{walk.port}/{port.protocol}"
    for rule in walk.refusals:
        problem = f"refuses {frontend} though endpoints serve"
        yield Difference(f"{place}: {SERVICES} of filter", problem, "no rule", str(rule.target), (rule.raw,))


def unseen(nat: NodeRules, expected: Expected) -> str | None:
    """Why the service rule cannot be judged from what was read; None when it can.

    No KUBE-SERVICES at all: kube-proxy is in another mode or absent, or these are a Pod's rules. One back end not read: it may
    hold a second KUBE-SERVICES. No filter table: the refusal of a Service without endpoints stands there.
    """
    if nat.unread:
        return f"the {' and '.join(nat.unread)} back end was not read, and may hold KUBE-SERVICES, too"
    if nat.unprintable:
        return f"iptables-save cannot print all of the kernel's rules: {nat.unprintable}"
    if not nat.holders:
        return "no iptables back end holds KUBE-SERVICES in its nat table"
    if expected.refusal and any("filter" not in ruleset.tables for _, ruleset in nat.holding):
        return "the filter table was not read, where the traffic of a Service without endpoints is refused"
    return None


def _holders(node: str, nat: NodeRules, port: ServicePort, ip: IPAddress) -> Iterator[Difference]:
    if len(nat.holders) == 1:
        return
    lines: list[str] = []
    for _, ruleset in nat.holding:
        lines.extend(service_rules.walk(ruleset, ip, port.protocol, port.port).lines)
    problem = "is in both iptables back ends, and the kernel obeys both" if nat.holders else "is in no back end that was read"
    yield Difference(
        f"{node}: {SERVICES} of nat", problem, "one back end", " and ".join(nat.holders) or "none", tuple(dict.fromkeys(lines))
    )


def _entry(place: str, entry: Entry, walk: ServiceWalk, hook: tuple[str, ...]) -> Iterator[Difference]:
    subject = f"{place}: {entry.hook}"
    if entry.before:
        yield Difference(
            subject,
            f"can translate the packet before {SERVICES} sees it",
            "no translation before",
            ", ".join(f"{rule.target} in {rule.chain}" for rule in entry.before),
            tuple(rule.raw for rule in (*entry.before, *((entry.rule,) if entry.rule else ()))),
        )
    if entry.leaving:
        yield Difference(
            subject,
            f"lets some packets go on before {SERVICES} sees them",
            f"a jump to {SERVICES} that every packet to {walk.ip} takes",
            ", ".join(f"{rule.target} in {rule.chain} takes some of them" for rule in entry.leaving),
            tuple(rule.raw for rule in (*entry.leaving, *((entry.rule,) if entry.rule else ()))),
        )
    if entry.rule or not walk.complete:
        return
    expected = f"a jump to {SERVICES} that every packet to {walk.ip} takes"
    if entry.stopped:
        actual = f"{entry.stopped.target} in {entry.stopped.chain} ends the packet's way"
        yield Difference(subject, f"does not lead to {SERVICES}", expected, actual, (entry.stopped.raw,))
    elif entry.conditional:
        lines = tuple(rule.raw for rule in entry.conditional)
        yield Difference(subject, f"leads only some packets to {SERVICES}", expected, "a conditional jump", lines)
    else:
        yield Difference(subject, f"does not lead to {SERVICES}", expected, "no such jump", hook or (f":{entry.hook} has no rule",))


def _leading(place: str, port: ServicePort, walk: ServiceWalk, expected: Expected) -> Iterator[Difference]:
    """With endpoints: one rule, for this address, protocol and port, to the port's chain, and no refusal."""
    names = chain_names.service_chains(port, chain_names.LOCAL if expected.local else chain_names.CLUSTER)
    frontend = f"{walk.ip}:{walk.port}/{port.protocol}"
    lines = tuple(rule.raw for rule in walk.service_rules)
    if not walk.service_rules and walk.complete:
        actual = f"{walk.refusals[0].target} in filter" if walk.refusals else "no rule"
        evidence = tuple(rule.raw for rule in walk.refusals)
        yield Difference(f"{place}: {SERVICES}", f"has no rule for {frontend}", f"-j {names[0]}", actual, evidence)
        return
    if len(walk.service_rules) > 1:
        actual = ", ".join(str(rule.target) for rule in walk.service_rules)
        yield Difference(f"{place}: {SERVICES}", f"has several rules for {frontend}", f"one, to {names[0]}", actual, lines)
    for rule in (walk.service_rule,) if walk.service_rule else ():
        if rule.target not in names:
            yield Difference(
                f"{place}: {SERVICES}", f"leads {frontend} to another chain", names[0], str(rule.target), (rule.raw,)
            )
        if rule_entry.match(rule, Packet(walk.ip, walk.protocol, walk.port, "OUTPUT")) is Match.SOME:
            yield Difference(
                f"{place}: {SERVICES}", f"takes only some packets to {frontend}", "no further condition", rule.raw, (rule.raw,)
            )
    yield from _refused(place, walk, port)


def _refusing(place: str, walk: ServiceWalk, expected: Expected) -> Iterator[Difference]:
    """Without endpoints: nothing in nat, and a refusal in filter that host and forwarded packets meet."""
    why = "no endpoint serves on this node (internalTrafficPolicy Local)" if expected.elsewhere else "no endpoint serves"
    frontend = f"{walk.ip}:{walk.port}/{walk.protocol.upper()}"
    if walk.service_rules:
        lines = tuple(rule.raw for rule in walk.service_rules)
        targets = ", ".join(str(rule.target) for rule in walk.service_rules)
        yield Difference(f"{place}: {SERVICES}", f"leads {frontend} on though {why}", "no rule in nat", targets, lines)
    if not walk.filter_seen:
        return
    targets = ", ".join(str(rule.target) for rule in walk.refusals)
    if targets != expected.refusal:
        lines = tuple(rule.raw for rule in walk.refusals)
        yield Difference(
            f"{place}: {SERVICES} of filter",
            f"does not refuse {frontend} as it should though {why}",
            f"one rule with {expected.refusal}",
            targets or "no rule",
            lines,
        )
    missing = [chain for chain in ("OUTPUT", "FORWARD") if all(rule.chain != chain for rule in walk.filter_entries)]
    if missing and walk.complete:
        lines = tuple(rule.raw for rule in walk.filter_entries)
        hooks = " and ".join(missing)
        yield Difference(f"{place}: filter", f"does not lead to {SERVICES}", "OUTPUT and FORWARD do", f"not {hooks}", lines)
