"""nftables tables of other programs than kube-proxy and iptables, and what in them can translate a packet before kube-proxy's rules do.

The kernel asks the base chains of a hook in the order of their priorities, over all tables; the first that translates a connection's
first packet is the only one (nf_nat_inet_fn, Linux v6.1: chains of one priority come in the order of their making, which no listing
tells). kube-proxy's stand at ``dstnat``, -100, in iptables mode as in nftables mode. A packet's destination can also be written over
without conntrack (``ip daddr set``) in a chain of any type.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from .addresses import IPNetwork
from .rule_entry import Match, Packet

DSTNAT = -100

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

    def takes(self, packet: Packet) -> Match:
        """Whether the packet meets it, as far as is known of the packet."""
        if self.elements is None:
            return Match.SOME
        found = {_all(_one(field, value, packet) for field, value in zip(self.fields, each, strict=True)) for each in self.elements}
        best = next((each for each in (Match.YES, Match.SOME) if each in found), Match.NO)
        if self.negated and best is not Match.SOME:
            return Match.NO if best is Match.YES else Match.YES
        return best


@dataclasses.dataclass(frozen=True, slots=True)
class OtherRule:
    """A rule, or one element of the verdict map or map of addresses that a rule asks.

    Attributes:
        conditions: all must be met.
        action: ``translate``, ``unreadable`` (the tool could not print it), ``jump``, ``goto``, ``return``, or ``end`` (accept, drop, …).
        target: the chain of jump and goto; what is done, in a word, of the others ("dnat").
        raw: as the tool printed it.
    """

    conditions: tuple[Condition, ...]
    action: str
    target: str
    raw: str = dataclasses.field(compare=False)

    def takes(self, packet: Packet) -> Match:
        """Whether it takes the packet."""
        return _all(condition.takes(packet) for condition in self.conditions)


@dataclasses.dataclass(frozen=True, slots=True)
class BaseChain:
    """A chain that the kernel asks: ``hook`` is OUTPUT or PREROUTING, ``priority`` its number."""

    name: str
    hook: str
    priority: int


@dataclasses.dataclass(frozen=True, slots=True)
class OtherTable:
    """A table; ``name`` with its family ("inet firewalld"), ``rules`` those that do something with the packet, by chain."""

    name: str
    base: tuple[BaseChain, ...]
    rules: Mapping[str, tuple[OtherRule, ...]]


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """A rule that can take a packet before kube-proxy's do: its table, the base chain of the hook, the chain it stands in."""

    table: str
    base: BaseChain
    chain: str
    rule: OtherRule

    def __str__(self) -> str:
        """Where it stands, in one line."""
        within = "" if self.chain == self.base.name else f", from its chain {self.base.name}"
        return f"{self.rule.target} in chain {self.chain} of nft table {self.table}{within}, priority {self.base.priority}"


def before_kube_proxy(tables: tuple[OtherTable, ...], packet: Packet) -> tuple[Found, ...]:
    """The rules of these tables that can translate the packet before kube-proxy's can, in the order in which the kernel asks them.

    Those that the tool could not print are among them, with the action ``unreadable``.
    """
    mine = ("inet", "ip" if packet.ip.version == 4 else "ip6")
    asked = [table for table in tables if table.name.partition(" ")[0] in mine]
    chains = [(base, table) for table in asked for base in table.base if base.hook == packet.hook and base.priority <= DSTNAT]
    found: list[Found] = []
    for base, table in sorted(chains, key=lambda pair: pair[0].priority):
        search = _Search(table, packet)
        search.walk(base.name, True, ())
        found.extend(Found(table.name, base, chain, rule) for chain, rule in search.found)
    return tuple(found)


class _Search:
    def __init__(self, table: OtherTable, packet: Packet) -> None:
        self._table, self._packet = table, packet
        self.found: list[tuple[str, OtherRule]] = []

    def walk(self, chain: str, sure: bool, through: tuple[str, ...]) -> bool:
        """Go through a chain; True when every packet's way in this base chain has ended in it."""
        for rule in self._table.rules.get(chain, ()):
            taken = rule.takes(self._packet)
            if taken is Match.NO:
                continue
            certain = sure and taken is Match.YES
            if rule.action == "return":
                if taken is Match.YES:
                    return False
            elif rule.action in ("jump", "goto"):
                if rule.target not in through and self.walk(rule.target, certain, (*through, chain)):
                    return True
                if rule.action == "goto" and taken is Match.YES:
                    return False
            else:
                if rule.action != "end":
                    self.found.append((chain, rule))
                if certain:
                    return True
        return False


def _all(parts: Iterator[Match]) -> Match:
    told = set(parts)
    return next((each for each in (Match.NO, Match.SOME) if each in told), Match.YES)


def _one(field: str, value: Value, packet: Packet) -> Match:
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
        case "state", str():
            return _sure(value == "new")
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
