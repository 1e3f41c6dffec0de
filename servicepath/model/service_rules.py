"""The way of a packet to a ClusterIP through one node's rules: KUBE-SERVICES → KUBE-SVC → KUBE-SEP → DNAT.

The layout is kube-proxy's (Kubernetes v1.34, pkg/proxy/iptables/proxier.go); that of v1.18 and before, where the masquerade
rule stands in KUBE-SERVICES, is read, too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from . import rule_entry
from .addresses import IPAddress, Socket
from .rule_entry import Entry, Match, Packet
from .rules import SERVICES, Rule, Ruleset, socket_of

MARK_MASQUERADE = "KUBE-MARK-MASQ"
REFUSING = ("REJECT", "DROP")

# kubelet makes this chain in the back end that it uses, so that others on the node can choose the same.
_HINT = ("mangle", "KUBE-IPTABLES-HINT")


@dataclasses.dataclass(frozen=True, slots=True)
class NodeRules:
    """One node's rules in both iptables back ends; None where that back end was not read."""

    nft: Ruleset | None
    legacy: Ruleset | None

    @property
    def read(self) -> tuple[tuple[str, Ruleset], ...]:
        """The back ends that were read, each with its name."""
        return tuple((name, rules) for name, rules in (("nft", self.nft), ("legacy", self.legacy)) if rules is not None)

    @property
    def holding(self) -> tuple[tuple[str, Ruleset], ...]:
        """The back ends whose nat table holds KUBE-SERVICES, each with its name; the kernel obeys all of them.

        The one that kubelet uses comes first. None at all: kube-proxy is in another mode or absent, or these are not the
        host's rules but a Pod's.
        """
        found = [(name, rules) for name, rules in self.read if rules.chain("nat", SERVICES) is not None]
        return tuple(sorted(found, key=lambda pair: _HINT not in pair[1].chains))

    @property
    def holders(self) -> tuple[str, ...]:
        """The names of the back ends that hold KUBE-SERVICES in nat: ``nft``, ``legacy``, both or none."""
        return tuple(name for name, _ in self.holding)

    @property
    def unread(self) -> tuple[str, ...]:
        """The back ends that were not read: what is absent may be there."""
        return tuple(name for name, rules in (("nft", self.nft), ("legacy", self.legacy)) if rules is None)

    @property
    def unprintable(self) -> str | None:
        """What iptables-save says of a nat table that it cannot print (others' rules are in it); None where it says nothing."""
        said = ((rules.warning or "").split("; ") for _, rules in self.read)
        return next((line for lines in said for line in lines if "`nat' is incompatible" in line), None)

    @property
    def active(self) -> Ruleset | None:
        """The rules to read kube-proxy's counters in; None when no back end holds KUBE-SERVICES."""
        return self.holding[0][1] if self.holding else None


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """One jump from the Service's chain to an endpoint's.

    Attributes:
        chain: the endpoint's chain (KUBE-SEP-…).
        jump: the rule in the Service's chain.
        share: the part of new connections that it gets: its own chance times that of all jumps before it not being taken.
        seen: whether the endpoint's chain is in the text at all; an excerpt may leave it out.
        hairpin: the endpoint's own packets are marked for masquerade by this rule.
        dnat: the rules that translate.
        strange: rules of the chain that keep packets from the translation, or may: what ends their way before it, and a
            translation that takes only some of them.
    """

    chain: str
    jump: Rule
    share: float
    seen: bool
    hairpin: Rule | None
    dnat: tuple[Rule, ...]
    strange: tuple[Rule, ...] = ()

    @property
    def told(self) -> bool:
        """False when the translation could not be seen: the chain is not in an excerpt, or the tool could not print it."""
        return self.seen and not any(rule.unreadable and rule.to_destination is None for rule in self.dnat)

    @property
    def socket(self) -> Socket | None:
        """Where the one DNAT rule sends to; None when there is none, more than one, nothing reaches it, or it could not be told."""
        return self.dnat[0].socket if len(self.dnat) == 1 and not self.unreached else None

    @property
    def unreached(self) -> bool:
        """True when a rule before the translation takes every packet."""
        return any(rule.target != "DNAT" and rule_entry.unconditional(rule) for rule in self.strange)

    @property
    def commented(self) -> Socket | None:
        """The endpoint that the jump's comment names (``… -> 10.42.0.7:53``, since v1.24); a comment is no proof."""
        _, arrow, text = (self.jump.comment or "").rpartition(" -> ")
        return socket_of(text) if arrow else None


@dataclasses.dataclass(frozen=True, slots=True)
class ServiceWalk:
    """What one node's rules do with a new connection to a ClusterIP's port.

    Attributes:
        protocol: lower case, as iptables prints it.
        entries: from OUTPUT and from PREROUTING to KUBE-SERVICES.
        service_rules: the rules of KUBE-SERVICES (nat) that take the packet to a chain; one in a healthy node.
        chain: the Service port's chain, None where no rule leads to one.
        masquerade_rule: marks for masquerade: in the Service's chain, in old layouts in KUBE-SERVICES; None without cluster CIDR.
        affinity: the ``recent --rcheck`` jumps.
        choices: the jumps to endpoints, in order.
        strange: rules of the Service's chain that kube-proxy does not write.
        refusals: the rules of KUBE-SERVICES (filter) that refuse the packet.
        filter_entries: jumps from filter's OUTPUT and FORWARD to KUBE-SERVICES.
        filter_seen: whether the filter table was read at all.
        complete: False when the rules are an excerpt.
    """

    ip: IPAddress
    protocol: str
    port: int
    entries: tuple[Entry, ...]
    service_rules: tuple[Rule, ...]
    chain: str | None
    masquerade_rule: Rule | None
    affinity: tuple[Rule, ...]
    choices: tuple[Choice, ...]
    strange: tuple[Rule, ...]
    refusals: tuple[Rule, ...]
    filter_entries: tuple[Rule, ...]
    filter_seen: bool
    complete: bool

    @property
    def service_rule(self) -> Rule | None:
        """The rule of KUBE-SERVICES that leads to the Service's chain."""
        return next((rule for rule in self.service_rules if rule.target == self.chain), None)

    @property
    def sep_rules(self) -> tuple[Rule, ...]:
        """The DNAT rules of the endpoints; their counters count new connections."""
        return tuple(rule for choice in self.choices for rule in choice.dnat)

    @property
    def sockets(self) -> frozenset[Socket]:
        """Where the packet can be sent to, as far as the rules tell."""
        return frozenset(choice.socket for choice in self.choices if choice.socket is not None)

    @property
    def untold(self) -> tuple[Choice, ...]:
        """The endpoints whose translation could not be seen."""
        return tuple(choice for choice in self.choices if not choice.told)

    @property
    def way_in(self) -> tuple[str, ...]:
        """The lines from the hooks to the Service's chain, or to the refusal in filter."""
        parts = ((*entry.before, *entry.leaving, entry.stopped, *entry.conditional, entry.rule) for entry in self.entries)
        rules = [rule for part in parts for rule in part if rule]
        old = (self.masquerade_rule,) if self.masquerade_rule and self.masquerade_rule.chain == SERVICES else ()
        return _raw((*rules, *old, *self.service_rules, *(self.filter_entries if self.refusals else ()), *self.refusals))

    @property
    def choosing(self) -> tuple[str, ...]:
        """The lines of the Service's own chain."""
        own = (self.masquerade_rule,) if self.masquerade_rule else ()
        return _raw((*own, *self.strange, *self.affinity, *(choice.jump for choice in self.choices)))

    @property
    def translating(self) -> tuple[str, ...]:
        """The lines of the endpoints' chains."""
        return _raw(rule for choice in self.choices for rule in (choice.hairpin, *choice.strange, *choice.dnat) if rule)

    @property
    def lines(self) -> tuple[str, ...]:
        """All rules of the way as the tool printed them, each once."""
        return tuple(dict.fromkeys((*self.way_in, *self.choosing, *self.translating)))


def _raw(rules: Iterable[Rule]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(rule.raw for rule in rules))


def walk(ruleset: Ruleset, ip: IPAddress, protocol: str, port: int) -> ServiceWalk:
    """Follow a new connection to ``ip:port`` through one back end's rules.

    Args:
        ruleset: the back end's rules.
        ip: the ClusterIP, of the ruleset's address family.
        protocol: in any case.
        port: the Service's port.
    """
    packets = (Packet(ip, protocol.lower(), port, hook) for hook in rule_entry.HOOKS)
    entries = tuple(rule_entry.find_entry(ruleset, packet) for packet in packets)
    return dataclasses.replace(walk_from_services(ruleset, ip, protocol, port), entries=entries)


def walk_from_services(ruleset: Ruleset, ip: IPAddress, protocol: str, port: int) -> ServiceWalk:
    """Follow it from KUBE-SERVICES on, without asking how it comes there: for questions about all Services at once."""
    packet = Packet(ip, protocol.lower(), port, "OUTPUT")
    leading, masquerade = _in_services(ruleset, packet)
    # What stands before and takes only some packets leaves the others to the first rule that takes them all.
    deciding = next((rule for rule in leading if rule_entry.match(rule, packet) is Match.YES), leading[0] if leading else None)
    chain = deciding.target if deciding else None
    in_chain, affinity, choices, strange = _in_chain(ruleset, chain, packet)
    refusing = ruleset.services_rules("filter", ip, protocol, port)
    refusals = (rule for rule in refusing if rule.target in REFUSING and rule_entry.match(rule, packet) is not Match.NO)
    entering = (*ruleset.rules("filter", "OUTPUT"), *ruleset.rules("filter", "FORWARD"))
    return ServiceWalk(
        ip=ip,
        protocol=packet.protocol,
        port=port,
        entries=(),
        service_rules=leading,
        chain=chain,
        masquerade_rule=masquerade or in_chain,
        affinity=affinity,
        choices=choices,
        strange=strange,
        refusals=tuple(refusals),
        filter_entries=tuple(rule for rule in entering if rule.target == SERVICES),
        filter_seen="filter" in ruleset.tables,
        complete=ruleset.complete,
    )


def _in_services(ruleset: Ruleset, packet: Packet) -> tuple[tuple[Rule, ...], Rule | None]:
    """The rules of KUBE-SERVICES that lead the packet on, and the one that marks it for masquerade (old layout)."""
    leading, masquerade = [], None
    for rule in ruleset.services_rules("nat", packet.ip, packet.protocol, packet.port):
        if rule_entry.match(rule, packet) is Match.NO:
            continue
        if rule.target == MARK_MASQUERADE:
            masquerade = masquerade or rule
        elif rule.target is not None:
            leading.append(rule)
    return tuple(leading), masquerade


def _in_chain(
    ruleset: Ruleset, chain: str | None, packet: Packet
) -> tuple[Rule | None, tuple[Rule, ...], tuple[Choice, ...], tuple[Rule, ...]]:
    """Read the Service's chain: masquerade rule, affinity rules, choices, and what is none of these."""
    masquerade: Rule | None = None
    affinity, choices, strange = [], [], []
    left = 1.0
    for rule in ruleset.rules("nat", chain) if chain else ():
        if rule.target == MARK_MASQUERADE and masquerade is None:
            masquerade = rule
        elif rule.affinity == "rcheck":
            affinity.append(rule)
        elif _is_choice(rule, packet):
            chance = left if rule.probability is None else left * rule.probability
            left -= chance
            choices.append(_choice(ruleset, rule, chance))
        else:
            strange.append(rule)
    return masquerade, tuple(affinity), tuple(choices), tuple(strange)


def _is_choice(rule: Rule, packet: Packet) -> bool:
    """True for a jump that depends on chance alone."""
    return rule.target is not None and rule_entry.match(rule, packet, by_chance=False) is Match.YES


def _choice(ruleset: Ruleset, jump: Rule, share: float) -> Choice:
    name = jump.target or ""
    chain = ruleset.chain("nat", name)
    rules = chain.rules if chain else ()
    return Choice(
        chain=name,
        jump=jump,
        share=share,
        # An excerpt may declare a chain and leave out its rules (grep -A with a hole).
        seen=bool(rules) or ruleset.complete,
        hairpin=next((rule for rule in rules if rule.target == MARK_MASQUERADE), None),
        dnat=tuple(rule for rule in rules if rule.target == "DNAT"),
        strange=tuple(_keeping_from_dnat(rules)),
    )


def _keeping_from_dnat(rules: tuple[Rule, ...]) -> Iterator[Rule]:
    """Rules of an endpoint's chain before its translation after which a packet may not come to it; and a conditional translation."""
    for rule in rules:
        if rule.target == "DNAT":
            if rule_entry.narrowed(rule):
                yield rule
                continue
            return
        if rule.target is not None and rule.target != MARK_MASQUERADE and rule.target not in rule_entry.PASSING:
            yield rule
