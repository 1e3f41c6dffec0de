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
    if isinstance(key, dict) and "range" in key:
        return _prefixes(*key["range"]) or [key]
    if isinstance(key, dict) and "concat" in key:
        return [{"concat": list(parts)} for parts in itertools.product(*map(_spread, key["concat"]))]
    if isinstance(key, dict) and isinstance(key.get("elem"), dict):
        return [{"elem": {**key["elem"], "val": value}} for value in _spread(key["elem"]["val"])]
    return [_rewritten(key)]


def _prefixes(low: Any, high: Any) -> list[Any]:
    """Empty for a range of something else than addresses."""
    if not isinstance(low, str) or not isinstance(high, str):
        return []
    try:
        first, last = ipaddress.ip_address(low), ipaddress.ip_address(high)
        networks: list[IPNetwork] = list(ipaddress.summarize_address_range(first, last))
    except (TypeError, ValueError):
        return []
    return [
        str(net.network_address) if net.prefixlen == net.max_prefixlen
        else {"prefix": {"addr": str(net.network_address), "len": net.prefixlen}} for net in networks
    ]  # fmt: skip
