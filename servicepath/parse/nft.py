"""kube-proxy's nftables table: ``nft -j list table ip kube-proxy``, or the same as text where an old nft was asked without -j.

    {"nftables": [{"metainfo": {"version": "1.0.6", …}}, {"map": {"name": "service-ips", "elem": [[{"concat": ["10.43.0.10",
    "udp", 53]}, {"goto": {"target": "service-FY5PMXPG-kube-system/kube-dns/udp/dns"}}], …]}}, …]}

    table ip kube-proxy {
            map service-ips {
                    elements = { 10.43.0.10 . udp . 53 : goto service-FY5PMXPG-kube-system/kube-dns/udp/dns }
            }
            chain service-FY5PMXPG-kube-system/kube-dns/udp/dns {
                    numgen random mod 1 vmap { 0 : goto endpoint-S4FSIJI2-kube-system/kube-dns/udp/dns__10.42.0.171/53 }
            }
            chain endpoint-S4FSIJI2-kube-system/kube-dns/udp/dns__10.42.0.171/53 {
                    meta l4proto udp dnat to 10.42.0.171:53
            }
    }

Both become the same table. Chain names hold ``/`` and may end in it; an element's comment stands between its key and ``:``.
Since v1.36 a Service's chain translates by itself, ``dnat ip to numgen random mod 2 map { 0 : 10.42.0.171 . 53, … }``; of a Service
with session affinity there may be chains of endpoints all the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ..model.addresses import Socket
from ..model.nft_rules import NftTable
from ..model.rules import socket_of
from . import nft_table
from .errors import ParseError
from .fields import Fields, decode
from .nft_table import READ, TOOL, VERDICTS, Element, Table

_BLOCK = re.compile(r"^\s+(map|set|chain) (\S+) \{$")
_HANDLE = re.compile(r"[ \t]*# handle \d+$", re.M)
_TARGET = re.compile(r"\b(?:goto|jump) ([^\s,;}]+)")
_DNAT = re.compile(r"\bdnat (?:ip6? )?to (?:numgen random mod \d+ map \{ ?(?P<several>[^{}]*?) ?\}|(?P<one>[^\s;]+))")
_COMMENT = re.compile(r'comment "(?:[^"\\]|\\.)*"')


def has_kube_proxy(text: str, *, family: str = "ip") -> bool:
    """Whether a listing, of that table or of a whole ruleset, holds kube-proxy's table of the family (``ip``, ``ip6``)."""
    if text.lstrip()[:1] != "{":
        return re.search(rf"^table {family} kube-proxy \{{", text, re.M) is not None
    tables = (item["table"] for item in _items(text) if isinstance(item, dict) and isinstance(item.get("table"), dict))
    return any(_is_ours(table, family, "name") for table in tables)


def parse_kube_proxy_nft(text: str, *, family: str | None = None) -> NftTable:
    """Read kube-proxy's table, from JSON or text, with handles or without (``-a``), alone or out of ``nft list ruleset``.

    Args:
        text: the listing.
        family: ``ip`` or ``ip6``; None: that of the listing, and ``ip`` of a listing with both.

    Raises:
        ParseError: this is neither, or the table's end is cut off, or an element is none of kube-proxy's.
    """
    family = family or ("ip6" if not has_kube_proxy(text) and has_kube_proxy(text, family="ip6") else "ip")
    table = _from_json(text, family) if text.lstrip()[:1] == "{" else _from_text(text, family)
    return table.build(6 if family == "ip6" else 4)


def _items(text: str) -> list[Any]:
    listing = Fields(TOOL, decode(TOOL, text))
    if not listing.has("nftables"):
        raise ParseError(TOOL, 0, text, "a JSON object with 'nftables'")
    return list(listing.items("nftables"))


def _is_ours(value: dict[str, Any], family: str, key: str = "table") -> bool:
    """Whether an object of the listing belongs to kube-proxy's table; a listing of one table alone may leave both out."""
    return (value.get(key, "kube-proxy"), value.get("family", family)) == ("kube-proxy", family)


def _from_json(text: str, family: str) -> Table:
    table = Table()
    found = [_json_item(table, number, item, family) for number, item in enumerate(_items(text), 1)]
    if not any(found):
        raise ParseError(TOOL, 0, text, "a table called kube-proxy")
    return table


def _json_item(table: Table, number: int, item: Any, family: str) -> bool:
    """Take one item of the list into the table; whether it is kube-proxy's table itself."""
    try:
        kind, value = next(iter(item.items()))
        if kind == "table":
            return _is_ours(value, family, "name")
        if kind == "metainfo":
            table.version = value.get("version")
        elif not _is_ours(value, family):
            return False
        elif kind in ("map", "set") and value["name"] in READ:
            table.elements[value["name"]] = [_json_element(element) for element in value.get("elem", [])]
        elif kind == "chain":
            table.targets.setdefault(value["name"], [])
            table.translated.setdefault(value["name"], [])
            table.lines.setdefault(value["name"], ())
        elif kind == "rule":
            _json_rule(table, value)
    except ParseError:
        raise
    except (AttributeError, IndexError, KeyError, StopIteration, TypeError, ValueError) as error:
        raise ParseError(TOOL, 0, f"item {number}: {json.dumps(item)}", "an item as nft -j prints it, whole") from error
    return False


def _json_element(element: Any) -> Element:
    key, verdict = element if isinstance(element, list) else (element, None)
    comment = ""
    if isinstance(key, dict) and "elem" in key:
        key, comment = key["elem"]["val"], str(key["elem"].get("comment") or "")
    parts = key["concat"] if isinstance(key, dict) and "concat" in key else [key]
    if not all(isinstance(part, (str, int)) for part in parts):
        raise ParseError(TOOL, 0, json.dumps(element), "an element of addresses, protocols and ports")
    return Element(tuple(map(str, parts)), _json_verdict(verdict) if verdict is not None else "", comment)


def _json_verdict(verdict: Any) -> str:
    if isinstance(verdict, dict) and len(verdict) == 1:
        name, value = next(iter(verdict.items()))
        if name in ("goto", "jump"):
            return str(value["target"])
        if name in VERDICTS:
            return str(name)
    raise ParseError(TOOL, 0, json.dumps(verdict), "a verdict: goto, jump or drop")


def _json_rule(table: Table, rule: dict[str, Any]) -> None:
    table.lines[rule["chain"]] = (*table.lines.get(rule["chain"], ()), json.dumps(rule.get("expr", [])))
    for statement in rule.get("expr", []):
        for name, value in statement.items():
            if name in ("goto", "jump"):
                table.targets[rule["chain"]].append(str(value["target"]))
            elif name == "vmap" and isinstance(value.get("data"), dict) and "set" in value["data"]:
                verdicts = (_json_verdict(verdict) for _, verdict in value["data"]["set"])
                table.targets[rule["chain"]].extend(verdict for verdict in verdicts if verdict not in VERDICTS)
            elif name == "dnat":
                table.translated[rule["chain"]].extend(_json_translated(value))


def _json_translated(dnat: dict[str, Any]) -> Iterator[Socket]:
    """What the statement translates to: an address and a port, or one of several by chance (since v1.36)."""
    if isinstance(dnat["addr"], str):
        yield Socket(nft_table.ip(dnat["addr"]), nft_table.number(str(dnat["port"])))
        return
    for _, chosen in dnat["addr"]["map"]["data"]["set"]:
        address, port = chosen["concat"]
        yield Socket(nft_table.ip(address), nft_table.number(str(port)))


def _from_text(text: str, family: str) -> Table:
    plain = _HANDLE.sub("", text)
    opened = re.search(rf"^table {family} kube-proxy \{{", plain, re.M)
    if not opened:
        raise ParseError(TOOL, 1, text.split("\n", 1)[0], f"'table {family} kube-proxy {{'")
    closing = re.compile(r"^\}", re.M).search(plain, opened.end())
    before, inside = plain[: opened.start()], plain[opened.start() : closing.end() if closing else len(plain)]
    table, closed = Table(), False
    for kind, name, lines in _blocks("\n" * before.count("\n") + inside):
        if kind == "end":
            closed = True
        elif kind == "chain":
            rules = [_COMMENT.sub("", line) for line in lines]
            targets = [target for rule in rules for target in _TARGET.findall(rule)]
            table.targets[name] = [target for target in targets if target not in VERDICTS]
            table.translated[name] = [socket for rule in rules for found in _DNAT.finditer(rule) for socket in _text_translated(found)]
            table.lines[name] = tuple(lines)
        elif name in READ:
            table.elements[name] = list(_text_elements(lines))
    if not closed:
        raise ParseError(TOOL, 0, text[-80:], "'}' at the table's end: the text is cut off")
    return table


def _blocks(text: str) -> Iterator[tuple[str, str, list[str]]]:
    kind, name = "", ""
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        opened = _BLOCK.match(line)
        if opened and kind:
            raise ParseError(TOOL, number, line, f"'}}' at the end of {kind} {name}")
        if opened:
            kind, name, lines = opened[1], opened[2], []
        elif kind and line.strip() == "}":
            yield kind, name, lines
            kind = ""
        elif kind:
            lines.append(line.strip())
        elif line.rstrip() == "}":
            yield "end", "", []


def _text_translated(dnat: re.Match[str]) -> Iterator[Socket]:
    """The same of a rule's text: ``10.42.0.171:53``, or ``0 : 10.42.0.171 . 53, 1 : …``."""
    if dnat["one"]:
        found = socket_of(dnat["one"])
        if found is None:
            raise ParseError(TOOL, 0, dnat["one"], "address:port behind 'dnat to'")
        yield found
        return
    for each in dnat["several"].split(","):
        _, _, chosen = each.partition(" : ")
        address, dot, port = chosen.strip().partition(" . ")
        if not dot:
            raise ParseError(TOOL, 0, dnat[0], "number : address . port")
        yield Socket(nft_table.ip(address), nft_table.number(port))


def _text_elements(lines: list[str]) -> Iterator[Element]:
    # A comment may hold what separates elements: it is put aside, and its number stands in.
    comments: list[str] = []

    def aside(match: re.Match[str]) -> str:
        comments.append(match[0][len('comment "') : -1])
        return f"comment#{len(comments) - 1}"

    whole = _COMMENT.sub(aside, " ".join(lines))
    start = whole.find("elements = {")
    if start < 0:
        return
    body, closing, _ = whole[start + len("elements = {") :].partition("}")
    if not closing:
        raise ParseError(TOOL, 0, whole, "'}' at the end of the elements")
    for element in body.split(","):
        said = re.search(r" comment#(\d+)", element)
        key, _, verdict = (element.replace(said[0], " ", 1) if said else element).partition(" : ")
        target = _TARGET.search(verdict)
        name = target[1] if target else verdict.strip()
        yield Element(tuple(part.strip() for part in key.split(" . ")), name, comments[int(said[1])] if said else "")
