"""nftables tables of other programs: ``nft -j list table FAMILY NAME``, a line of JSON each, or ``nft -j list ruleset``.

    {"nftables": [{"metainfo": {…}}, {"table": {"family": "ip", "name": "lb"}}, {"chain": {"family": "ip", "table": "lb", "name": "out",
    "type": "nat", "hook": "output", "prio": -150, …}}, {"rule": {…, "chain": "out", "expr": [{"match": {"op": "==", "left": {"payload":
    {"protocol": "ip", "field": "daddr"}}, "right": "10.43.0.10"}}, {"dnat": {"addr": "10.42.1.3", "port": 53}}]}}]}

The layout is libnftables-json(5)'s (nft 1.0.6). A match that is not modelled becomes one of which it is not known whether it is met.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..model.other_tables import BaseChain, Condition, OtherRule, OtherTable, Value
from .errors import ParseError
from .fields import Fields, decode

TOOL = "nft -j list table"

_HOOKS = {"prerouting": "PREROUTING", "output": "OUTPUT"}
# The base chains whose rules iptables-nft-save prints, of tables that it knows (iptables 1.8): table, chain, type, priority.
_OF_IPTABLES = frozenset({
    ("filter", "OUTPUT", "filter", 0), ("security", "OUTPUT", "filter", 50),
})  # fmt: skip
# iptables' extensions, which an old nft leaves out, translate nothing there.
_WITHOUT_NAT = ("raw", "mangle", "filter", "security")

_ASKED = ("ip", "ip6", "inet")  # the families of tables that see IP packets at these hooks
_KUBE_PROXY = (("ip", "kube-proxy"), ("ip6", "kube-proxy"))

_PROTOCOLS = {6: "tcp", 17: "udp", 132: "sctp"}
_FAMILIES = {"ip": "ipv4", "ip6": "ipv6"}
_META = {
    "l4proto": "protocol", "nfproto": "family", "protocol": "family", "iifname": "iif", "iif": "iif", "oifname": "oif", "oif": "oif",
}  # fmt: skip
_PAYLOAD = {"daddr": "daddr", "dport": "dport", "protocol": "protocol", "nexthdr": "protocol"}
_VERDICTS = {"jump": "jump", "goto": "goto", "return": "return", "accept": "end", "drop": "end", "reject": "end", "queue": "end"}
_TRANSLATING_TARGETS = ("DNAT", "REDIRECT", "NETMAP")
# Behind these a packet always goes on.
_PASSING = frozenset({"continue", "counter", "log", "notrack", "comment", "masquerade", "snat"})
# Behind these it may not: for want of chance, of room in a set, of a connection that is tracked.
_PERHAPS = frozenset({
    "limit", "quota", "ct count", "set", "map", "meter", "mangle", "ct helper", "ct timeout", "ct expectation", "flow", "tproxy",
    "synproxy", "fwd", "dup", "xt", "secmark", "last", "reset",
})  # fmt: skip
_FILLED = re.compile(r"\b(?:add|update|delete) @([\w./-]+)")  # nft 1.0.6 prints such a statement as its text where a map is filled
_UNKNOWN = Condition(("",), None)


def parse_other_tables(text: str) -> tuple[OtherTable, ...]:
    """Read the listings of any number of tables, or of a whole ruleset; kube-proxy's own table is left out.

    Args:
        text: a JSON document a line; none at all where there is no such table.

    Raises:
        ParseError: a line is no listing.
    """
    return tuple(table for number, line in enumerate(text.split("\n"), 1) if line.strip() for table in _tables(number, line))


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
        named = [_Reader(mine).table(*key) for key, mine in held.items() if key[0] in _ASKED and key not in _KUBE_PROXY]
    except ParseError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise ParseError(TOOL, number, line, f"a table as nft -j prints it, whole ({type(error).__name__}: {error})") from error
    return [table for table in named if table is not None]


class _Reader:
    """One table's items."""

    def __init__(self, items: list[tuple[str, Any]]) -> None:
        self._items = items
        self._sets = {value["name"]: value.get("elem", []) for kind, value in items if kind in ("set", "map")}
        rules = [statement for kind, value in items if kind == "rule" for statement in value["expr"]]
        # What packets fill may hold other elements by now.
        self._filled = {name for statement in rules for name in _FILLED.findall(str(statement))}
        self._filled |= {str(each["set" if "set" in each else "map"])[1:] for kind in ("set", "map") for each in _those(rules, kind)}
        self._untracks = any(_statement(statement)[0] == "notrack" for statement in rules)

    def table(self, family: str, name: str) -> OtherTable | None:
        """The table; None for one that is dormant: the kernel asks none of its chains."""
        flags = self._items[0][1].get("flags", ())
        if "dormant" in flags or flags == "d":  # nft 1.0.6 prints what is left of the word
            return None
        by_iptables = family in ("ip", "ip6")
        chains = [value for kind, value in self._items if kind == "chain"]
        base = tuple(
            BaseChain(each["name"], _HOOKS[each["hook"]], int(each["prio"])) for each in chains if each.get("hook") in _HOOKS
            and not (by_iptables and (name, each["name"], each["type"], each["prio"]) in _OF_IPTABLES)
        )  # fmt: skip
        rules: dict[str, list[OtherRule]] = {each["name"]: [] for each in chains}
        own = {each["name"] for each in chains if by_iptables and (name, each.get("type"), each.get("prio")) == ("nat", "nat", -100)}
        for rule in (value for kind, value in self._items if kind == "rule"):
            found = self._rules(rule["expr"])
            if rule["chain"] in own:
                found = _misprinted(found)
            rules[rule["chain"]].extend(each for each in found if each.target != "xt" or not (by_iptables and name in _WITHOUT_NAT))
        targets = {rule.target for found in rules.values() for rule in found if rule.action in ("jump", "goto")}
        if lost := targets - rules.keys():
            raise ValueError(f"no chain {min(lost)}")
        return OtherTable(f"{family} {name}", base, {chain: tuple(found) for chain, found in rules.items()}, self._untracks)

    def _rules(self, expr: list[Any]) -> tuple[OtherRule, ...]:
        """What a rule does with a packet: statement by statement, until one ends its way."""
        raw, conditions = json.dumps(expr, separators=(",", ":")), list[Condition]()
        found: list[OtherRule] = []
        for statement in expr:
            kind, value = _statement(statement)
            if kind == "match":
                conditions += self._match(value)
                continue
            found += (OtherRule((*conditions, *further), action, target, raw) for further, action, target in self._does(kind, value))
            if _may_stop(kind, value):
                conditions.append(_UNKNOWN)
        return tuple(dict.fromkeys(found))

    def _does(self, kind: str, value: Any) -> Iterator[tuple[list[Condition], str, str]]:
        """(further conditions, action, target) of a statement; nothing where the packet goes on as it is."""
        if kind in _VERDICTS:
            yield [], _VERDICTS[kind], value["target"] if kind in ("jump", "goto") else kind
        elif kind == "vmap":
            for condition, verdict in self._asked(value):
                for more, action, target in self._does(*_statement(verdict)):
                    yield condition + more, action, target
        elif kind in ("dnat", "redirect"):
            told = value or {}
            family = [Condition(("family",), ((_FAMILIES[told["family"]],),))] if told.get("family") in _FAMILIES else []
            yield from (([*family, *condition], "translate", kind) for condition in self._given(told.get("addr"), told.get("port")))
        elif kind == "mangle":
            field, implied = _field(value["key"])
            if field in ("daddr", "dport") or "base" in value["key"].get("payload", {}):
                name = f"{field} set" if field else "raw payload set"
                yield from (([*implied, *condition], "translate", name) for condition in self._given(value["value"]))
        elif kind == "xt" and value:
            if value["name"] in _TRANSLATING_TARGETS:
                yield [], "translate", value["name"]
        elif kind == "xt" or not (kind in _PASSING | _PERHAPS or _FILLED.match(kind)):
            yield [], "unreadable", kind

    def _given(self, *parts: Any) -> Iterator[list[Condition]]:
        """What must be so for there to be an address and a port to translate to: an element of the map that gives them."""
        maps = [part["map"] for part in parts if isinstance(part, dict) and "map" in part]
        if not maps:
            yield []
        elif isinstance(maps[0]["data"], str) and maps[0]["data"][1:] in self._filled:
            yield [_UNKNOWN]
        else:
            yield from (condition for condition, _ in self._asked(maps[0]))

    def _asked(self, asked: Mapping[str, Any]) -> Iterator[tuple[list[Condition], Any]]:
        """Each element of a map: what its key asks of the packet, and what it leads to; ``*`` stands for all that no other one takes."""
        data = asked["data"]
        elements = self._sets[data[1:]] if isinstance(data, str) else data["set"]
        others = [key for key, _ in elements if key != "*"]
        for key, found in elements:
            wanted = {"set": others if key == "*" else [key]}
            yield self._compared(asked["key"], wanted, negated=key == "*"), found

    def _match(self, match: Mapping[str, Any]) -> list[Condition]:
        if match["op"] not in ("==", "!=", "in"):
            return [*_field(match["left"])[1], _UNKNOWN]
        return self._compared(match["left"], match["right"], negated=match["op"] == "!=")

    def _compared(self, left: Any, right: Any, *, negated: bool) -> list[Condition]:
        """The comparison, and what nft itself asks before it: ``tcp dport`` is of TCP alone, ``ip daddr`` of IPv4."""
        parts = [_field(part) for part in (left["concat"] if isinstance(left, dict) and "concat" in left else [left])]
        fields = tuple(field for field, _ in parts)
        implied = [condition for _, conditions in parts for condition in conditions]
        if isinstance(right, str) and right[1:] in self._filled and right.startswith("@"):
            return [*implied, _UNKNOWN]
        elements = self._elements(fields, right)
        # Of a long list of what is not modelled one element says as much.
        return [*implied, Condition(fields, tuple(elements if any(fields) else itertools.islice(elements, 1)), negated)]

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


def _misprinted(rules: tuple[OtherRule, ...]) -> tuple[OtherRule, ...]:
    """Of rules that iptables-nft-save prints, what it prints otherwise than it is: a written field, and where a verdict map leads."""
    written = [rule for rule in rules if rule.target.endswith(" set")]
    mapped = [dataclasses.replace(rule, action="unreadable", target="vmap") for rule in rules if '"vmap"' in rule.raw]
    return (*written, *dict.fromkeys(mapped))


def _statement(statement: Any) -> tuple[str, Any]:
    """Its kind and what it says; some are printed as a word alone, or as text where there is no JSON for them."""
    if not isinstance(statement, dict):
        return str(statement), None
    ((kind, value),) = statement.items()
    return kind, value


def _those(statements: list[Any], kind: str) -> Iterator[Any]:
    return (statement[kind] for statement in statements if isinstance(statement, dict) and isinstance(statement.get(kind), dict))


def _may_stop(kind: str, value: Any) -> bool:
    """Whether a packet may go no further in the rule: a counter or a value out of a map is not there for those that the map lacks."""
    if kind == "mangle" and "meta" in value["key"] and isinstance(value["value"], int):
        return False
    return kind in _PERHAPS or bool(_FILLED.match(kind)) or (kind == "counter" and isinstance(value, dict) and "map" in value)


def _field(expression: Any) -> tuple[str, list[Condition]]:
    """Which part of a packet an expression is ("" where it is not modelled), and what must be so for there to be such a part."""
    if not isinstance(expression, dict) or len(expression) != 1:
        return "", []
    kind, what = next(iter(expression.items()))
    if kind in ("&", "|", "^", "<<", ">>") and isinstance(what, list):
        return "", [condition for operand in what for condition in _field(operand)[1]]
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
    known = protocol in ((*_PROTOCOLS.values(), "th") if what["field"] == "dport" else _FAMILIES)
    return (_PAYLOAD.get(what["field"], "") if known else ""), implied


def _values(field: str, value: Any) -> list[Value]:
    """What a value of a field may be; a word that nothing is compared with for one that is not modelled."""
    if value == "*":
        return [""]
    if isinstance(value, dict) and "range" in value:
        low, high = value["range"]
        if field == "daddr":
            return list(ipaddress.summarize_address_range(ipaddress.ip_address(low), ipaddress.ip_address(high)))
        return [range(low, high + 1)] if field == "dport" else [""]
    if field == "daddr" and isinstance(value, dict) and "prefix" in value:
        # Redacted recordings have other addresses, whose bits behind the prefix need not be 0.
        return [ipaddress.ip_network((value["prefix"]["addr"], value["prefix"]["len"]), strict=False)]
    if field == "daddr" and isinstance(value, str):
        return [ipaddress.ip_network(value)]
    if field == "dport" and isinstance(value, int):
        return [range(value, value + 1)]
    if field == "protocol" and isinstance(value, int):
        return [_PROTOCOLS.get(value, str(value))]
    if field == "family" and value in _FAMILIES:
        return [_FAMILIES[value]]
    return [value if isinstance(value, str) and field not in ("daddr", "dport") else ""]
