"""iptables rules as data: what one node's nat and filter tables say, in one back end.

A parser fills these; the questions (which endpoint does a Service's packet reach?) are in service_rules.
"""

from __future__ import annotations

import dataclasses

from .addresses import IPNetwork


@dataclasses.dataclass(frozen=True, slots=True)
class Counter:
    """Packets and bytes, printed as iptables-save -c does."""

    packets: int
    bytes: int

    def __str__(self) -> str:
        """The counter as iptables-save prints it."""
        return f"[{self.packets}:{self.bytes}]"

    def __sub__(self, other: Counter) -> Counter:
        """The growth since ``other``; negative numbers mean that the counter was reset in between."""
        return Counter(self.packets - other.packets, self.bytes - other.bytes)


@dataclasses.dataclass(frozen=True, slots=True)
class Net:
    """A ``-s`` or ``-d`` match, negated by ``!``."""

    network: IPNetwork
    negated: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """One rule. Absent parts are None; what is not modelled stays in ``other`` as the tool printed it.

    Attributes:
        table: nat, filter, mangle, raw.
        chain: the chain that holds the rule.
        position: place in the chain, from 1.
        line: line number in the source text.
        counter: None where the text has no counters.
        dport: destination port (``--dport``), None for ranges (they stay in ``other``).
        probability: of ``-m statistic``; None when the rule always matches.
        target: chain or target of ``-j`` (or ``-g``); None for a rule without one.
        to_destination: of DNAT, ``ip:port`` as printed; None when the tool could not print it.
        dst_type_local: True for ``-m addrtype --dst-type LOCAL``.
        affinity: ``rcheck`` or ``set`` of ``-m recent``, else None.
        other: the remaining words in order.
    """

    table: str
    chain: str
    position: int
    line: int
    raw: str = dataclasses.field(compare=False)
    counter: Counter | None = dataclasses.field(default=None, compare=False)
    source: Net | None = None
    destination: Net | None = None
    protocol: str | None = None
    dport: int | None = None
    in_interface: str | None = None
    out_interface: str | None = None
    comment: str | None = None
    probability: float | None = None
    affinity: str | None = None
    dst_type_local: bool = False
    target: str | None = None
    to_destination: str | None = None
    other: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Chain:
    """A chain and its rules in order. ``policy`` is None for user-defined chains."""

    table: str
    name: str
    policy: str | None
    rules: tuple[Rule, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Ruleset:
    """All tables of one back end (``nft`` or ``legacy``; None when the text does not tell).

    Attributes:
        chains: (table, chain name) → Chain.
        tool: the version line that the text or the tool gave ("iptables-save v1.8.9").
        warning: the tool's own remark that other tables exist (nft front end with legacy tables present), else None.
    """

    backend: str | None
    chains: dict[tuple[str, str], Chain]
    tool: str | None = None
    warning: str | None = None

    def chain(self, table: str, name: str) -> Chain | None:
        """The chain, or None when this back end has no such chain."""
        return self.chains.get((table, name))

    def rules(self, table: str, name: str) -> tuple[Rule, ...]:
        """The chain's rules; empty when there is no such chain."""
        found = self.chain(table, name)
        return found.rules if found else ()
