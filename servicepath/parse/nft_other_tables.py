"""nftables tables of other programs: ``nft -j list table FAMILY NAME``, a line of JSON each, or ``nft -j list ruleset``.

    {"nftables": [{"metainfo": {…}}, {"table": {"family": "ip", "name": "lb"}}, {"chain": {"family": "ip", "table": "lb", "name": "out",
    "type": "nat", "hook": "output", "prio": -150, …}}, {"rule": {…, "chain": "out", "expr": [{"match": {"op": "==", "left": {"payload":
    {"protocol": "ip", "field": "daddr"}}, "right": "10.43.0.10"}}, {"dnat": {"addr": "10.42.1.3", "port": 53}}]}}]}

The layout is libnftables-json(5)'s (nft 1.0.6). A match that is not modelled becomes one of which it is not known whether it is met.
"""

from __future__ import annotations

import ipaddress
import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from ..model.other_tables import BaseChain, Condition, OtherRule, OtherTable, Value
from .errors import ParseError
from .fields import Fields, decode

TOOL = "nft -j list table"

_HOOKS = {"prerouting": "PREROUTING", "output": "OUTPUT"}
# iptables-nft-save prints these whole (iptables 1.8: its five tables, and their base chains' names).
_OF_IPTABLES = {(family, table) for family in ("ip", "ip6") for table in ("nat", "mangle", "raw", "filter", "security")}

_ASKED = ("ip", "ip6", "inet")  # the families of tables that see IP packets at these hooks

_PROTOCOLS = {6: "tcp", 17: "udp", 132: "sctp"}
_FAMILIES = {"ip": "ipv4", "ip6": "ipv6"}
_META = {
    "l4proto": "protocol", "nfproto": "family", "protocol": "family", "iifname": "iif", "iif": "iif", "oifname": "oif", "oif": "oif",
}  # fmt: skip
_PAYLOAD = {"daddr": "daddr", "dport": "dport", "protocol": "protocol", "nexthdr": "protocol"}
_VERDICTS = {"jump": "jump", "goto": "goto", "return": "return", "accept": "end", "drop": "end", "reject": "end", "queue": "end"}
_TRANSLATING_TARGETS = ("DNAT", "REDIRECT", "NETMAP")
# A packet may go over it, or not: by how many there were.
_BY_CHANCE = ("limit", "quota", "ct count")
_UNKNOWN = Condition(("",), None)


def parse_other_tables(text: str) -> tuple[OtherTable, ...]:
    """Read the listings of any number of tables, or of a whole ruleset; kube-proxy's own table is left out.

    Args:
        text: a JSON document a line; none at all where there is no such table.

    Raises:
        ParseError: a line is no listing.
    """
    return tuple(table for number, line in enumerate(text.splitlines(), 1) if line.strip() for table in _tables(number, line))


def _tables(number: int, line: str) -> list[OtherTable]:
    listing = Fields(TOOL, decode(TOOL, line), line=number)
    items = [next(iter(item.items())) for item in listing.items("nftables") if isinstance(item, dict) and len(item) == 1]
    try:
        held: dict[tuple[str, str], list[tuple[str, Any]]] = {}
        for kind, value in items:
            if kind != "metainfo":
                held.setdefault((value["family"], value["name" if kind == "table" else "table"]), []).append((kind, value))
        if not held or any(mine[0][0] != "table" for mine in held.values()):
            raise ParseError(TOOL, number, line, "the listing of a whole table")
        named = [_Reader(mine).table(*key) for key, mine in held.items() if key[0] in _ASKED and key[1] != "kube-proxy"]
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        if isinstance(error, ParseError):
            raise
        raise ParseError(TOOL, number, line, f"a table as nft -j prints it, whole ({type(error).__name__}: {error})") from error
    return [table for table in named if table is not None]


class _Reader:
    """One table's items."""

    def __init__(self, items: list[tuple[str, Any]]) -> None:
        self._items = items
        self._sets = {value["name"]: value.get("elem", []) for kind, value in items if kind in ("set", "map")}

    def table(self, family: str, name: str) -> OtherTable | None:
        """The table; None for one that is dormant: the kernel asks none of its chains."""
        if "dormant" in self._items[0][1].get("flags", ()):
            return None
        chains = [value for kind, value in self._items if kind == "chain"]
        base = tuple(
            BaseChain(each["name"], _HOOKS[each["hook"]], int(each["prio"])) for each in chains
            if each.get("hook") in _HOOKS and not ((family, name) in _OF_IPTABLES and each["name"] in _HOOKS.values())
        )  # fmt: skip
        rules: dict[str, list[OtherRule]] = {each["name"]: [] for each in chains}
        for rule in (value for kind, value in self._items if kind == "rule"):
            rules[rule["chain"]].extend(self._rules(rule["expr"]))
        return OtherTable(f"{family} {name}", base, {chain: tuple(found) for chain, found in rules.items()})

    def _rules(self, expr: list[Mapping[str, Any] | str]) -> Iterator[OtherRule]:
        """What a rule does with a packet: statement by statement, until one ends its way."""
        raw, conditions = json.dumps(expr, separators=(",", ":")), list[Condition]()
        for statement in expr:
            kind, value = _statement(statement)
            if kind == "match":
                conditions += self._match(value)
            elif kind in _BY_CHANCE or (kind == "xt" and value and value["type"] == "match"):
                conditions.append(_UNKNOWN)
            else:
                for further, action, target in self._does(kind, value):
                    yield OtherRule((*conditions, *further), action, target, raw)

    def _does(self, kind: str, value: Any) -> Iterator[tuple[list[Condition], str, str]]:
        """(further conditions, action, target) of a statement; nothing where the packet goes on as it is."""
        if kind in _VERDICTS:
            yield [], _VERDICTS[kind], value["target"] if kind in ("jump", "goto") else kind
        elif kind == "vmap":
            for condition, verdict in self._asked(value):
                for more, action, target in self._does(*_statement(verdict)):
                    yield condition + more, action, target
        elif kind in ("dnat", "redirect"):
            maps = [part["map"] for part in (value or {}).values() if isinstance(part, dict) and "map" in part]
            if not maps:
                yield [], "translate", kind
            for condition, _ in self._asked(maps[0]) if maps else ():
                yield condition, "translate", kind
        elif kind == "mangle" and _field(value["key"])[0] in ("daddr", "dport"):
            yield [], "translate", f"{_field(value['key'])[0]} set"
        elif kind == "xt" and not value:
            yield [], "unreadable", "xt"
        elif kind == "xt" and value["name"] in _TRANSLATING_TARGETS:
            yield [], "translate", value["name"]

    def _asked(self, asked: Mapping[str, Any]) -> Iterator[tuple[list[Condition], Any]]:
        """Each element of a map: what its key asks of the packet, and what it leads to."""
        data = asked["data"]
        for key, found in self._sets[data[1:]] if isinstance(data, str) else data["set"]:
            yield self._compared(asked["key"], {"set": [key]}, negated=False), found

    def _match(self, match: Mapping[str, Any]) -> list[Condition]:
        if match["op"] not in ("==", "!=", "in"):
            return [_UNKNOWN]
        return self._compared(match["left"], match["right"], negated=match["op"] == "!=")

    def _compared(self, left: Any, right: Any, *, negated: bool) -> list[Condition]:
        """The comparison, and what nft itself asks before it: ``tcp dport`` is of TCP alone, ``ip daddr`` of IPv4."""
        parts = [_field(part) for part in (left["concat"] if isinstance(left, dict) and "concat" in left else [left])]
        fields = tuple(field for field, _ in parts)
        implied = [condition for _, conditions in parts for condition in conditions]
        return [*implied, Condition(fields, tuple(self._elements(fields, right)), negated)]

    def _elements(self, fields: tuple[str, ...], right: Any) -> Iterator[tuple[Value, ...]]:
        if isinstance(right, str) and right.startswith("@"):
            right = {"set": self._sets[right[1:]]}
        several = right["set"] if isinstance(right, dict) and "set" in right else right if isinstance(right, list) else [right]
        for each in several:
            element = each["elem"]["val"] if isinstance(each, dict) and "elem" in each else each
            parts = element["concat"] if isinstance(element, dict) and "concat" in element else [element]
            if len(parts) != len(fields):
                parts = ["*"] * len(fields)  # what stands for all that is not in the set
            yield from itertools.product(*map(_values, fields, parts))


def _statement(statement: Any) -> tuple[str, Any]:
    """Its kind and what it says; old versions print some as a word alone."""
    return next(iter(statement.items())) if isinstance(statement, dict) else (str(statement), None)


def _field(expression: Any) -> tuple[str, list[Condition]]:
    """Which part of a packet an expression is ("" where it is not modelled), and what must be so for there to be such a part."""
    if not isinstance(expression, dict) or len(expression) != 1:
        return "", []
    kind, what = next(iter(expression.items()))
    if kind == "meta":
        return _META.get(what["key"], ""), []
    if kind == "ct":
        return ("state" if what["key"] == "state" else ""), []
    if kind == "fib":
        return ("dtype" if what["result"] == "type" and "daddr" in what["flags"] else ""), []
    if kind != "payload" or "protocol" not in what:
        return "", []
    protocol = what["protocol"]
    if protocol in _FAMILIES:
        implied = [Condition(("family",), ((_FAMILIES[protocol],),))]
    else:
        implied = [Condition(("protocol",), ((protocol,),))] if protocol in _PROTOCOLS.values() else []
    return _PAYLOAD.get(what["field"], ""), implied


def _values(field: str, value: Any) -> list[Value]:
    """What a value of a field may be; a word that nothing is compared with for one that is not modelled."""
    if isinstance(value, dict) and "range" in value:
        low, high = value["range"]
        if field == "daddr":
            return list(ipaddress.summarize_address_range(ipaddress.ip_address(low), ipaddress.ip_address(high)))
        return [range(low, high + 1)] if field == "dport" else [""]
    if field == "daddr" and isinstance(value, dict) and "prefix" in value:
        # Redacted recordings have other addresses, whose bits behind the prefix need not be 0.
        return [ipaddress.ip_network((value["prefix"]["addr"], value["prefix"]["len"]), strict=False)]
    if field == "daddr" and isinstance(value, str) and value != "*":
        return [ipaddress.ip_network(value)]
    if field == "dport" and isinstance(value, int):
        return [range(value, value + 1)]
    if field == "protocol" and isinstance(value, int):
        return [_PROTOCOLS.get(value, str(value))]
    if field == "family" and value in _FAMILIES:
        return [_FAMILIES[value]]
    return [value if isinstance(value, str) and field not in ("daddr", "dport") else ""]
