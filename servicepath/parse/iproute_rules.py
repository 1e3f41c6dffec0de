"""``ip rule``, as text and as JSON: the rules by which a packet's routing table is chosen.

    9:	from all fwmark 0x200/0xf00 lookup 2004
    {"priority":9,"src":"all","fwmark":"0x200","fwmask":"0xf00","table":"2004"}

A selector that is not known here narrows its rule all the same, so it is kept in words: without it the rule would seem to take
every packet.
"""

from __future__ import annotations

import ipaddress
import re

from ..model.addresses import IPNetwork
from ..model.host import RoutingRule
from .errors import ParseError
from .fields import Fields
from .iproute_text import convert, optional_whole
from .lines import is_number, numbered

_TOOL = "ip rule"
_ACTIONS = ("unreachable", "blackhole", "prohibit", "nop", "masquerade")
_MARK = re.compile(r"(0x[0-9a-f]{1,8}|0)(/(0x[0-9a-f]{1,8}|0))?")
_L3MDEV = "[l3mdev-table]"  # the table of the packet's own VRF

# What has a field in the model, and what narrows a rule in no way; all the rest are selectors.
_WORDS = frozenset({"from", "to", "fwmark", "iif", "oif", "lookup", "goto", "suppress_prefixlength"})
_REMARKS = frozenset({"proto", "protocol", "realms", "suppress_ifgroup"})
_NAMES = frozenset(
    {"priority", "src", "srclen", "dst", "dstlen", "fwmark", "fwmask", "table", "action", "goto", "not", "iif", "oif", "suppress_prefixlen"}
    | {"uid_end", "sport_end", "dport_end", "protocol", "flow_to", "flow_from", "suppress_ifgroup"}
    | {"iif_detached", "oif_detached", "unresolved"}
)
_RANGES = {"uid_start": ("uidrange", "uid_end"), "sport_start": ("sport", "sport_end"), "dport_start": ("dport", "dport_end")}


def read_text(text: str, family: int) -> tuple[RoutingRule, ...]:
    """Read ``ip rule``; ParseError at the first line that is no rule."""
    return tuple(_line(number, line, family) for number, line in numbered(_TOOL, text) if line.strip())


def read_object(item: Fields, family: int) -> RoutingRule:
    """Read one object of ``ip -j rule``; ParseError where it is none."""
    priority, goto, table = item.number("priority"), item.number("goto"), item.name("table")
    if priority is None:
        raise item.error("priority", None, "a number")
    action = next((name for name in _ACTIONS if name in item.value or item.value.get("action") == name), None)
    if action is None and item.has("action") and item.value["action"] != "to_tbl":
        raise item.error("action", item.value["action"], f"one of {', '.join(_ACTIONS)}")
    if goto is None and table is None and action is None and "l3mdev" not in item.value:
        raise item.error("", dict(item.value), "a table, goto or an action")
    mark, mask = item.optional_text("fwmark"), item.optional_text("fwmask")
    return RoutingRule(
        priority=priority,
        source=_selector(item, "src", "srclen"),
        destination=_selector(item, "dst", "dstlen"),
        fwmark=item.convert("fwmark", f"{mark}/{mask}" if mask else mark, _mark, "a mark") if mark else None,
        table=table,
        action="goto" if goto is not None else action,
        family=family,
        negated="not" in item.value,
        iif=item.optional_text("iif"),
        oif=item.optional_text("oif"),
        goto=goto,
        suppress_prefixlength=item.number("suppress_prefixlen"),
        other=_selectors(item),
        raw=item.raw,
    )


def _selectors(item: Fields) -> tuple[str, ...]:
    """What narrows the rule besides its fields, as the words that the text form has for it."""
    found = []
    for name, value in item.value.items():
        if name in _RANGES:
            word, last = _RANGES[name]
            start, end = item.number(name), item.number(last)
            if end is None:
                raise item.error(last, None, "a number")
            found.append(f"{word} {start}-{end}")
        elif name not in _NAMES and name not in _ACTIONS:
            found.append(name if value is None else f"{name} {value}")
    return tuple(found)


def _selector(item: Fields, name: str, length: str) -> IPNetwork | None:
    """An address with its length; None for ``all`` and where nothing is said."""
    text, bits = item.optional_text(name), item.number(length)
    if text is None or text == "all":
        return None
    return item.convert(name, text if bits is None else f"{text}/{bits}", ipaddress.ip_network, "all, address or prefix")


def _line(number: int, line: str, family: int) -> RoutingRule:
    head, colon, rest = line.partition(":")
    words = rest.split()
    negated = words[:1] == ["not"]
    pairs, action, other = _pairs(number, line, words[1:] if negated else words)
    if not colon or not is_number(head.strip()) or "from" not in pairs or not ({"lookup", "goto"} & pairs.keys() or action):
        raise ParseError(_TOOL, number, line, "priority, from, and lookup or an action")
    table = pairs.get("lookup")
    goto = optional_whole(_TOOL, number, line, pairs.get("goto"))
    return RoutingRule(
        priority=int(head),
        source=_network(number, line, pairs["from"]),
        destination=_network(number, line, pairs.get("to", "all")),
        fwmark=convert(_TOOL, number, line, _mark, pairs["fwmark"]) if "fwmark" in pairs else None,
        table=None if table == _L3MDEV else table,
        action="goto" if goto is not None else action,
        family=family,
        negated=negated,
        iif=pairs.get("iif"),
        oif=pairs.get("oif"),
        goto=goto,
        suppress_prefixlength=optional_whole(_TOOL, number, line, pairs.get("suppress_prefixlength")),
        other=(*other, "l3mdev") if table == _L3MDEV else tuple(other),
        raw=line.strip(),
    )


def _pairs(number: int, line: str, words: list[str]) -> tuple[dict[str, str], str | None, list[str]]:
    """The words that have a field with their values, the action, and the other selectors."""
    pairs: dict[str, str] = {}
    other: list[str] = []
    action: str | None = None
    remaining = iter(words)
    for word in remaining:
        if word in _ACTIONS:
            action = word
        elif word.startswith("["):  # [detached], [unresolved]
            continue
        elif (value := next(remaining, None)) is None:
            raise ParseError(_TOOL, number, line, f"a value after {word}")
        elif word in _WORDS:
            pairs[word] = value
        elif word not in _REMARKS:
            other.append(f"{word} {value}")
    return pairs, action, other


def _network(number: int, line: str, text: str) -> IPNetwork | None:
    return None if text == "all" else convert(_TOOL, number, line, ipaddress.ip_network, text)


def _mark(text: str) -> str:
    """A mark, and its mask, as ip prints them; ValueError for anything else."""
    if not _MARK.fullmatch(text):
        raise ValueError(f"{text!r} is no mark")
    return text
