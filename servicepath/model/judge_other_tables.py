"""Does another program translate a Service's packets before kube-proxy can, in an nftables table, or in iptables beside nftables mode?"""

from __future__ import annotations

import dataclasses
import itertools

from .addresses import IPAddress
from .difference import Difference
from .other_tables import Found, OtherTable, before_kube_proxy
from .rule_entry import HOOKS, Packet, find_entry
from .service_rules import NodeRules
from .services import ServicePort

_PROBLEM = "can translate the packet before kube-proxy's rules see it"
_LONGEST = 500  # characters of a rule that are shown; a map in it may have thousands of elements


@dataclasses.dataclass(frozen=True, slots=True)
class Before:
    """What stands before kube-proxy's rules in other tables, for packets to one port of a ClusterIP.

    Attributes:
        tables: all of the node's that have a chain at a hook, but kube-proxy's and iptables' nat and filter; None where nobody kept them.
        translating: hook → the rules that can translate them.
        unreadable: the rules of which nobody knows what they do.
    """

    tables: tuple[OtherTable, ...] | None
    translating: dict[str, tuple[Found, ...]]
    unreadable: tuple[Found, ...]


def look(port: ServicePort, ip: IPAddress, tables: tuple[OtherTable, ...] | None) -> Before:
    """Look through the tables; None where nobody kept them."""
    found = {hook: before_kube_proxy(tables or (), Packet(ip, port.protocol.lower(), port.port, hook)) for hook in HOOKS}
    translating = {hook: tuple(each for each in rules if each.rule.action == "translate") for hook, rules in found.items()}
    return Before(tables, translating, tuple(each for rules in found.values() for each in rules if each.rule.action == "unreadable"))


def judge_other_tables(node: str, port: ServicePort, before: Before) -> tuple[Difference, ...]:
    """One Difference a hook in which a rule of other tables can translate packets to the port first."""
    wrong = []
    for hook, found in before.translating.items():
        if found:
            shown = ((each.table, *at) for each in found for at in (*each.way, (each.chain, each.rule)))
            lines = tuple(dict.fromkeys(f"{table} {chain}: {_short(rule.raw)}" for table, chain, rule in shown))
            actual = ", ".join(dict.fromkeys(map(str, found)))
            wrong.append(Difference(f"{node}: {port.chain_key}/{port.protocol}: {hook}", _PROBLEM, "no translation before", actual, lines))
    return tuple(wrong)


def judge_iptables(node: str, port: ServicePort, ip: IPAddress, rules: NodeRules) -> tuple[Difference, ...]:
    """The same of the rules in iptables, for a kube-proxy in nftables mode: both stand at one priority, and either may come first."""
    wrong = []
    for (name, ruleset), hook in itertools.product(rules.read, HOOKS):
        before = find_entry(ruleset, Packet(ip, port.protocol.lower(), port.port, hook)).before
        if before:
            actual = ", ".join(f"{rule.target} in {rule.chain}" for rule in before)
            where = f"{node}: {port.chain_key}/{port.protocol} ({name}): {hook}"
            wrong.append(Difference(where, _PROBLEM, "no translation before", actual, tuple(rule.raw for rule in before)))
    return tuple(wrong)


def unseen(before: Before) -> str | None:
    """Why nobody knows whether something translates first; None where something does, or all could be read."""
    if any(before.translating.values()) or not before.unreadable:
        return None
    one = before.unreadable[0]
    return f"a rule of chain {one.chain} of nft table {one.table} cannot be read, and may translate: {_short(one.rule.raw)}"


def describe(before: Before) -> tuple[str, ...]:
    """One line a base chain of these tables that the kernel asks at OUTPUT or PREROUTING."""
    if before.tables is None:
        return ("not in this recording: what they hold is not judged",)
    return tuple(
        f"table {table.name}: chain {base.name} at {base.hook}, priority {base.priority}" for table in before.tables for base in table.base
    ) or ("there is none",)


def _short(raw: str) -> str:
    return raw if len(raw) <= _LONGEST else f"{raw[:_LONGEST]}…"
