"""Ranges of addresses in ``nft -j list table``, as the prefixes that they are made of.

Addresses are mapped so that they keep their common bits: a prefix becomes a prefix, and the ends of a range become anything.
"""

from __future__ import annotations

import ipaddress
import itertools
import json
from typing import Any

from ..model.addresses import IPNetwork


def without_ranges(text: str) -> str:
    """The listings, a JSON document a line, without ranges of addresses; a line that is no JSON as it is."""
    return "\n".join(_line(line) for line in text.split("\n"))


def _line(line: str) -> str:
    try:
        document = json.loads(line)
    except ValueError:
        return line
    return json.dumps(_rewritten(document))


def _rewritten(value: Any) -> Any:
    if isinstance(value, list):
        return [_rewritten(each) for each in value]
    if not isinstance(value, dict):
        return value
    told: dict[str, Any] = {}
    for key, each in value.items():
        if key in ("set", "elem") and isinstance(each, list):
            told[key] = [further for element in each for further in _elements(element)]
        elif key == "right":
            several = _spread(each)
            told[key] = several[0] if len(several) == 1 else {"set": several}
        else:
            told[key] = _rewritten(each)
    return told


def _elements(element: Any) -> list[Any]:
    """What stands for an element of a set, or for one of a map, with what it leads to."""
    if isinstance(element, list) and len(element) == 2:
        return [[key, _rewritten(element[1])] for key in _spread(element[0])]
    return _spread(element)


def _spread(key: Any) -> list[Any]:
    match key:
        case {"range": [str() as low, str() as high]}:
            return _prefixes(low, high) or [key]
        case {"concat": [*parts]}:
            return [{"concat": list(each)} for each in itertools.product(*map(_spread, parts))]
        case {"elem": {"val": value} as element}:
            return [{"elem": {**element, "val": each}} for each in _spread(value)]
    return [_rewritten(key)]


def _prefixes(low: str, high: str) -> list[Any]:
    """Empty for a range of something else than addresses."""
    try:
        first, last = ipaddress.ip_address(low), ipaddress.ip_address(high)
        networks: list[IPNetwork] = list(ipaddress.summarize_address_range(first, last))
    except (TypeError, ValueError):
        return []
    return [
        str(net.network_address) if net.prefixlen == net.max_prefixlen
        else {"prefix": {"addr": str(net.network_address), "len": net.prefixlen}} for net in networks
    ]  # fmt: skip
