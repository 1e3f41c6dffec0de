"""nftables tables of other programs than kube-proxy and iptables, and what in them can translate a packet before kube-proxy's rules do.

The kernel asks the base chains of a hook in the order of their priorities, over all tables; the first that translates a connection's
first packet is the only one (nf_nat_inet_fn, Linux v6.1: chains of one priority come in the order of their making, which no listing
tells). kube-proxy's stand at ``dstnat``, -100, in iptables mode as in nftables mode. A packet's destination can also be written over
without conntrack (``ip daddr set``) in a chain of any type. Chains at ingress, before all of them, are not asked for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from .addresses import IPNetwork
from .rule_entry import Match, Packet

DSTNAT = -100
_CONNTRACK = -200  # no packet has a state before

# What a part of a packet is compared with: networks, ports from … to …, or a word ("udp", "local", "new", "ipv4", an interface);
# the empty word is anything that is not modelled.
Value = IPNetwork | range | str


@dataclasses.dataclass(frozen=True, slots=True)
class Condition:
    """A match, or the key of a verdict map.

    Attributes:
        fields: the parts of the packet that are looked at together: daddr, dport, protocol, dtype (``fib daddr type``), state, iif,
            oif, family; anything else is not modelled.
        elements: what they may be; each has a value a field. None: not known.
        negated: True where they must be none of it.
    """

    fields: tuple[str, ...]
    elements: tuple[tuple[Value, ...], ...] | None
    negated: bool = False

    def takes(self, packet: Packet, *, tracked: bool = True) -> Match:
        """Whether the packet meets it, as far as is known of the packet; untracked, it has no state."""
        if self.elements is None:
            return Match.SOME
        best = Match.NO
        for each in self.elements:
            found = _all(_one(field, value, packet, tracked) for field, value in zip(self.fields, each, strict=True))
            if found is Match.YES:
                return Match.NO if self.negated else Match.YES
            best = Match.SOME if found is Match.SOME else best
        if best is Match.NO and self.negated:
            return Match.YES
        return best


@dataclasses.dataclass(frozen=True, slots=True)
class OtherRule:
    """A rule, or one element of the verdict map or map of addresses that a rule asks.

    Attributes:
        conditions: all must be met.
        action: ``translate``, ``unreadable`` (nobody knows what it does), ``jump``, ``goto``, ``return``, or ``end`` (accept, drop, …).
        target: the chain of jump and goto; what is done, in a word, of the others ("dnat").
        raw: as the tool printed it.
    """

    conditions: tuple[Condition, ...]
    action: str
    target: str
    raw: str = dataclasses.field(compare=False)

    def takes(self, packet: Packet, *, tracked: bool = True) -> Match:
        """Whether it takes the packet."""
        return _all(condition.takes(packet, tracked=tracked) for condition in self.conditions)


@dataclasses.dataclass(frozen=True, slots=True)
class BaseChain:
    """A chain that the kernel asks: ``hook`` is OUTPUT or PREROUTING, ``priority`` its number."""

    name: str
    hook: str
    priority: int


@dataclasses.dataclass(frozen=True, slots=True)
class OtherTable:
    """A table.

    Attributes:
        name: with its family ("inet firewalld").
        base: its chains that the kernel asks.
        rules: those that do something with the packet, by chain.
        untracks: whether any of its rules leaves packets untracked.
    """

    name: str
    base: tuple[BaseChain, ...]
    rules: Mapping[str, tuple[OtherRule, ...]]
    untracks: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """A rule that can take a packet before kube-proxy's do.

    Attributes:
        table: its table, base: the chain of the hook, chain: the one it stands in.
        rule: the rule itself.
        way: the jumps that lead from the base chain to it, each with its chain.
    """

    table: str
    base: BaseChain
    chain: str
    rule: OtherRule
    way: tuple[tuple[str, OtherRule], ...] = ()

    def __str__(self) -> str:
        """Where it stands, in one line."""
        within = "" if self.chain == self.base.name else f", from its chain {self.base.name}"
        return f"{self.rule.target} in chain {self.chain} of nft table {self.table}{within}, priority {self.base.priority}"


def before_kube_proxy(tables: tuple[OtherTable, ...], packet: Packet) -> tuple[Found, ...]:
    """The rules of these tables that can translate the packet before kube-proxy's can, in the order in which the kernel asks them.

    Those that nobody can read are among them, with the action ``unreadable``.
    """
    mine = ("inet", "ip" if packet.ip.version == 4 else "ip6")
    asked = [table for table in tables if table.name.partition(" ")[0] in mine]
    chains = [(base, table) for table in asked for base in table.base if base.hook == packet.hook and base.priority <= DSTNAT]
    untracked = any(table.untracks for table in asked)
    found: list[Found] = []
    for base, table in sorted(chains, key=lambda pair: pair[0].priority):
        search = _Search(table, packet, tracked=base.priority > _CONNTRACK and not untracked)
        search.walk(base.name, ())
        found.extend(Found(table.name, base, chain, rule, way) for chain, rule, way in search.found)
    return tuple(found)


class _Search:
    def __init__(self, table: OtherTable, packet: Packet, *, tracked: bool) -> None:
        self._table, self._packet, self._tracked = table, packet, tracked
        self._walked: dict[str, bool] = {}
        self.found: list[tuple[str, OtherRule, tuple[tuple[str, OtherRule], ...]]] = []

    def walk(self, chain: str, way: tuple[tuple[str, OtherRule], ...]) -> bool:
        """Go through a chain, once; True when no packet that comes into it goes on behind it in this base chain."""
        if chain not in self._walked:
            self._walked[chain] = False  # nft lets no chain lead to itself
            self._walked[chain] = self._walk(chain, way)
        return self._walked[chain]

    def _walk(self, chain: str, way: tuple[tuple[str, OtherRule], ...]) -> bool:
        for rule in self._table.rules[chain]:
            taken = rule.takes(self._packet, tracked=self._tracked)
            if taken is Match.NO:
                continue
            ended = rule.action in ("end", "translate")
            if rule.action in ("translate", "unreadable"):
                self.found.append((chain, rule, way))
            elif rule.action in ("jump", "goto"):
                ended = self.walk(rule.target, (*way, (chain, rule)))
            if taken is Match.YES and (ended or rule.action in ("goto", "return")):
                return ended
        return False


def _all(parts: Iterable[Match]) -> Match:
    told = set(parts)
    return next((each for each in (Match.NO, Match.SOME) if each in told), Match.YES)


def _one(field: str, value: Value, packet: Packet, tracked: bool) -> Match:
    """Whether one part of the packet, the first of a connection to a ClusterIP that no interface holds, is this."""
    match field, value:
        case _, "":
            return Match.SOME
        case "daddr", _ if not isinstance(value, (range, str)):
            return _sure(packet.ip in value)
        case "dport", range():
            return _sure(packet.port in value)
        case "protocol", str():
            return _sure(packet.protocol.lower() == value)
        case "family", str():
            return _sure(value == f"ipv{packet.ip.version}")
        case "state", "established" | "related":
            return Match.NO
        case "state", "new" if tracked:
            return Match.YES
        case "dtype", "local":
            return Match.NO
        case ("iif", "lo") | ("oif", "lo"):
            return Match.NO
        case "iif", _ if packet.hook == "OUTPUT":
            return Match.NO
        case "oif", _ if packet.hook == "PREROUTING":
            return Match.NO
    return Match.SOME


def _sure(so: bool) -> Match:
    return Match.YES if so else Match.NO
