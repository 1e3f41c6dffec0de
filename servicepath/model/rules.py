"""iptables rules as data: what one node's nat and filter tables say, in one back end.

A parser fills these; the questions (which endpoint does a Service's packet reach?) are in service_rules.
"""

from __future__ import annotations

import dataclasses
import functools
import ipaddress
from collections.abc import Iterator

from .addresses import IPAddress, IPNetwork, Socket

SERVICES = "KUBE-SERVICES"

# Printed where the tool knows a match or target by name but not the layout that a newer iptables gave it.
UNSUPPORTED = "[unsupported revision]"

# (table, destination, protocol, port) of a rule of KUBE-SERVICES.
Frontend = tuple[str, IPAddress, str, int]


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
        affinity_name: the list's name (``--name``) of ``-m recent``.
        affinity_seconds: how long ``rcheck`` remembers a client.
        goto: True for ``-g``: the packet does not come back to this chain.
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
    affinity_name: str | None = None
    affinity_seconds: int | None = None
    goto: bool = False

    @property
    def socket(self) -> Socket | None:
        """Where DNAT sends to; None when it is no single ``ip:port`` (a range, ``:0``) or could not be printed."""
        return socket_of(self.to_destination) if self.to_destination else None

    @property
    def unreadable(self) -> bool:
        """True when the tool could not print all of the rule (``[unsupported revision]``: a newer iptables wrote it)."""
        return UNSUPPORTED in self.other

    @property
    def meaning(self) -> tuple[object, ...]:
        """What the rule does, without where it stands, how it was printed and what it counted."""
        return (
            *(self.table, self.chain, self.source, self.destination, self.protocol, self.dport, self.in_interface),
            *(self.out_interface, self.probability, self.affinity, self.affinity_name, self.affinity_seconds),
            *(self.dst_type_local, self.target, self.to_destination, self.goto, self.other),
        )


@functools.lru_cache(maxsize=1 << 16)  # each conclusion asks again where each endpoint's chain sends to
def socket_of(text: str) -> Socket | None:
    """The socket that ``ip:port`` or ``[ip]:port`` names, None when the text is something else."""
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not (colon and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        return None
    try:
        return Socket(ipaddress.ip_address(host), int(port))
    except ValueError:
        return None


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
        tables: the tables that the text shows, even when they hold no rule.
        complete: False for an excerpt (``| grep``, ``-S`` of single chains): what is not in it is unseen and not absent.
        family: 4 or 6.
        elided: the numbers of lines (``...``) that stand for others that were left out; a text with any is an excerpt.
    """

    backend: str | None
    chains: dict[tuple[str, str], Chain]
    tool: str | None = None
    warning: str | None = None
    tables: tuple[str, ...] = ()
    complete: bool = True
    family: int = 4
    elided: tuple[int, ...] = ()
    _frontends: dict[Frontend, list[Rule]] = dataclasses.field(init=False, repr=False, compare=False)
    _unindexed: dict[str, list[Rule]] = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index KUBE-SERVICES once: a cluster may have ten thousand Services."""
        frontends: dict[Frontend, list[Rule]] = {}
        unindexed: dict[str, list[Rule]] = {}
        for table in ("nat", "filter"):
            for rule in self.rules(table, SERVICES):
                key = _frontend(rule)
                if key:
                    frontends.setdefault(key, []).append(rule)
                else:
                    unindexed.setdefault(table, []).append(rule)
        object.__setattr__(self, "_frontends", frontends)
        object.__setattr__(self, "_unindexed", unindexed)

    def chain(self, table: str, name: str) -> Chain | None:
        """The chain, or None when this back end has no such chain."""
        return self.chains.get((table, name))

    def rules(self, table: str, name: str) -> tuple[Rule, ...]:
        """The chain's rules; empty when there is no such chain."""
        found = self.chain(table, name)
        return found.rules if found else ()

    def services_rules(self, table: str, ip: IPAddress, protocol: str, port: int) -> tuple[Rule, ...]:
        """KUBE-SERVICES' rules that may take a packet to this address, protocol and port, in their order.

        Rules for exactly it, and those that are not for one address and port alone (node ports, ranges), which the caller
        must match by itself.
        """
        both = (*self.exact_rules(table, ip, protocol, port), *self._unindexed.get(table, []))
        return tuple(sorted(both, key=lambda rule: rule.position))

    def exact_rules(self, table: str, ip: IPAddress, protocol: str, port: int) -> tuple[Rule, ...]:
        """KUBE-SERVICES' rules for exactly this address, protocol and port."""
        return tuple(self._frontends.get((table, ip, protocol.lower(), port), ()))

    def unindexed(self) -> tuple[Rule, ...]:
        """KUBE-SERVICES' rules that are not for one address and port alone."""
        return tuple(rule for rules in self._unindexed.values() for rule in rules)

    def frontends(self) -> Iterator[Frontend]:
        """Every (table, address, protocol, port) that KUBE-SERVICES of nat or filter has a rule for."""
        return iter(self._frontends)


def _frontend(rule: Rule) -> Frontend | None:
    net = rule.destination
    if net is None or net.negated or rule.protocol is None or rule.dport is None:
        return None
    if net.network.prefixlen != net.network.max_prefixlen:
        return None
    return (rule.table, net.network.network_address, rule.protocol, rule.dport)
