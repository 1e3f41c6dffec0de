"""Does another program translate a Service's packets before kube-proxy can, in an nftables table, or in iptables beside nftables mode?"""

from __future__ import annotations

import itertools

from .addresses import IPAddress
from .difference import Difference
from .other_tables import Found, OtherTable, before_kube_proxy
from .rule_entry import HOOKS, Packet, find_entry
from .service_rules import NodeRules
from .services import ServicePort

_PROBLEM = "can translate the packet before kube-proxy's rules see it"


def judge_other_tables(
    node: str, port: ServicePort, ip: IPAddress, tables: tuple[OtherTable, ...] | None
) -> tuple[Difference, ...]:  # fmt: skip
    """One Difference a hook in which a rule of these tables can translate packets to the port first.

    Args:
        node: the node's name, for messages.
        port: the Service port.
        ip: the ClusterIP.
        tables: all of the node's but kube-proxy's and those that iptables manages; None where nobody kept them.
    """
    wrong = []
    for hook in HOOKS:
        found = [each for each in _found(port, ip, tables, hook) if each.rule.action == "translate"]
        if found:
            lines = tuple(f"{each.table} {each.chain}: {each.rule.raw}" for each in found)
            actual = ", ".join(dict.fromkeys(map(str, found)))
            wrong.append(Difference(f"{node}: {port.chain_key}/{port.protocol}: {hook}", _PROBLEM, "no translation before", actual, lines))
    return tuple(wrong)


def judge_iptables(node: str, port: ServicePort, ip: IPAddress, rules: NodeRules) -> tuple[Difference, ...]:
    """The same of the rules in iptables, for a kube-proxy in nftables mode: both stand at one priority, and either may come first."""
    wrong = []
    for (name, ruleset), hook in itertools.product((("nft", rules.nft), ("legacy", rules.legacy)), HOOKS):
        before = find_entry(ruleset, Packet(ip, port.protocol.lower(), port.port, hook)).before if ruleset else ()
        if before:
            actual = ", ".join(f"{rule.target} in {rule.chain}" for rule in before)
            where = f"{node}: {port.chain_key}/{port.protocol} ({name}): {hook}"
            wrong.append(Difference(where, _PROBLEM, "no translation before", actual, tuple(rule.raw for rule in before)))
    return tuple(wrong)


def unreadable(port: ServicePort, ip: IPAddress, tables: tuple[OtherTable, ...]) -> str | None:
    """Where a rule stands that the tool could not print and that may translate packets to the port first; None where there is none."""
    for hook in HOOKS:
        for each in _found(port, ip, tables, hook):
            if each.rule.action == "unreadable":
                return f"nft cannot print a rule of chain {each.chain} of table {each.table}, which may translate: {each.rule.raw}"
    return None


def describe(tables: tuple[OtherTable, ...] | None) -> tuple[str, ...]:
    """One line a base chain of these tables that the kernel asks at OUTPUT or PREROUTING."""
    if tables is None:
        return ("not in this recording: what they hold is not judged",)
    return tuple(
        f"table {table.name}: chain {base.name} at {base.hook}, priority {base.priority}" for table in tables for base in table.base
    ) or ("there is none",)


def _found(port: ServicePort, ip: IPAddress, tables: tuple[OtherTable, ...] | None, hook: str) -> tuple[Found, ...]:
    return before_kube_proxy(tables or (), Packet(ip, port.protocol.lower(), port.port, hook))
