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
"""

from __future__ import annotations

import dataclasses
import ipaddress
import json
import re
from collections.abc import Iterator
from typing import Any

from ..model.addresses import IPAddress, Socket
from ..model.nft_rules import NftService, NftTable
from ..model.rules import socket_of
from .errors import ParseError
from .fields import Fields, decode
from .lines import port

_TOOL = "nft list table kube-proxy"
_BLOCK = re.compile(r"^\s+(map|set|chain) (\S+) \{$")
_HANDLE = re.compile(r"[ \t]*# handle \d+$", re.M)
_TARGET = re.compile(r"\b(?:goto|jump) ([^\s,;}]+)")
_DNAT = re.compile(r"\bdnat (?:ip6? )?to ([^\s;]+)")
_COMMENT = re.compile(r'comment "(?:[^"\\]|\\.)*"')
_VERDICTS = {"reject-chain": "reject", "drop": "drop", "reject": "reject"}

_READ = ("service-ips", "service-nodeports", "no-endpoint-services", "no-endpoint-nodeports", "cluster-ips")

# Map or set name → its elements: (the key's parts, what it goes to, the element's comment).
Elements = dict[str, list[tuple[tuple[str, ...], str, str]]]


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
    return dataclasses.replace(table.build(), family=6 if family == "ip6" else 4)


class _Table:
    def __init__(self) -> None:
        self.elements: Elements = {}
        self.targets: dict[str, list[str]] = {}
        self.dnat: dict[str, list[str]] = {}
        self.lines: dict[str, tuple[str, ...]] = {}
        self.version: str | None = None

    def build(self) -> NftTable:
        services, node_ports, refused = [], {}, {}
        comments: dict[tuple[Socket, str], str] = {}
        chains: dict[tuple[str, int], str] = {}
        for key, target, _ in self.elements.get("service-ips", []):
            frontend, protocol = _frontend(key)
            services.append(NftService(frontend, protocol, target, self._endpoints(target)))
        for key, target, _ in self.elements.get("service-nodeports", []):
            if len(key) != 2:
                raise ParseError(_TOOL, 0, " . ".join(key), "protocol . port")
            node_ports[key[0], _port(key[1])] = self._endpoints(target)
            chains[key[0], _port(key[1])] = target
        for key, target, comment in self.elements.get("no-endpoint-services", []):
            if target not in _VERDICTS:
                raise ParseError(_TOOL, 0, target, "goto reject-chain, or drop")
            refused[_frontend(key)] = _VERDICTS[target]
            comments |= {_frontend(key): comment} if comment else {}
        cluster_ips = frozenset(_ip(key[0]) for key, _, _ in self.elements.get("cluster-ips", []))
        ports = self._refused_ports()
        return NftTable(tuple(services), node_ports, refused, cluster_ips, self.version, comments, chains, ports, self.lines)

    def _refused_ports(self) -> dict[tuple[str, int], str]:
        """The node ports without endpoints; the map is there since v1.31."""
        found = {}
        for key, target, _ in self.elements.get("no-endpoint-nodeports", []):
            if len(key) != 2 or target not in _VERDICTS:
                raise ParseError(_TOOL, 0, f"{' . '.join(key)} : {target}", "protocol . port : goto reject-chain, or drop")
            found[key[0], _port(key[1])] = _VERDICTS[target]
        return found

    def _endpoints(self, chain: str, through: tuple[str, ...] = ()) -> tuple[Socket, ...]:
        """What the chain or those behind it (external-… → service-… → endpoint-…) translate to, in order."""
        if chain not in self.targets:
            raise ParseError(_TOOL, 0, chain, "a chain of this name in the table")
        found = [_socket(text) for text in self.dnat.get(chain, [])]
        for target in self.targets[chain]:
            if target != "mark-for-masquerade" and target not in through:
                found.extend(self._endpoints(target, (*through, chain)))
        return tuple(dict.fromkeys(found))


def _items(text: str) -> list[Any]:
    listing = Fields(_TOOL, decode(_TOOL, text))
    if not listing.has("nftables"):
        raise ParseError(_TOOL, 0, text, "a JSON object with 'nftables'")
    return list(listing.items("nftables"))


def _is_ours(value: dict[str, Any], family: str, key: str = "table") -> bool:
    """Whether an object of the listing belongs to kube-proxy's table; a listing of one table alone may leave both out."""
    return (value.get(key, "kube-proxy"), value.get("family", family)) == ("kube-proxy", family)


def _from_json(text: str, family: str) -> _Table:
    table = _Table()
    found = [_json_item(table, number, item, family) for number, item in enumerate(_items(text), 1)]
    if not any(found):
        raise ParseError(_TOOL, 0, text, "a table called kube-proxy")
    return table


def _json_item(table: _Table, number: int, item: Any, family: str) -> bool:
    """Take one item of the list into the table; whether it is kube-proxy's table itself. The number stands for a line in errors."""
    try:
        kind, value = next(iter(item.items()))
        if kind == "table":
            return _is_ours(value, family, "name")
        if kind == "metainfo":
            table.version = value.get("version")
        elif not _is_ours(value, family):
            return False
        elif kind in ("map", "set") and value["name"] in _READ:
            table.elements[value["name"]] = [_json_element(element) for element in value.get("elem", [])]
        elif kind == "chain":
            table.targets.setdefault(value["name"], [])
            table.dnat.setdefault(value["name"], [])
        elif kind == "rule":
            _json_rule(table, value)
    except ParseError:
        raise
    except (AttributeError, IndexError, KeyError, StopIteration, TypeError, ValueError) as error:
        raise ParseError(_TOOL, number, json.dumps(item), "an item as nft -j prints it, whole") from error
    return False


def _json_element(element: Any) -> tuple[tuple[str, ...], str, str]:
    key, verdict = element if isinstance(element, list) else (element, None)
    comment = ""
    if isinstance(key, dict) and "elem" in key:
        key, comment = key["elem"]["val"], str(key["elem"].get("comment") or "")
    parts = key["concat"] if isinstance(key, dict) and "concat" in key else [key]
    if not all(isinstance(part, (str, int)) for part in parts):
        raise ParseError(_TOOL, 0, json.dumps(element), "an element of addresses, protocols and ports")
    return tuple(map(str, parts)), _json_verdict(verdict) if verdict is not None else "", comment


def _json_verdict(verdict: Any) -> str:
    if isinstance(verdict, dict) and len(verdict) == 1:
        name, value = next(iter(verdict.items()))
        if name in ("goto", "jump"):
            return str(value["target"])
        if name in _VERDICTS:
            return str(name)
    raise ParseError(_TOOL, 0, json.dumps(verdict), "a verdict: goto, jump or drop")


def _json_rule(table: _Table, rule: dict[str, Any]) -> None:
    table.lines[rule["chain"]] = (*table.lines.get(rule["chain"], ()), json.dumps(rule.get("expr", [])))
    for statement in rule.get("expr", []):
        for name, value in statement.items():
            if name in ("goto", "jump"):
                table.targets[rule["chain"]].append(str(value["target"]))
            elif name == "vmap" and isinstance(value.get("data"), dict) and "set" in value["data"]:
                verdicts = (_json_verdict(verdict) for _, verdict in value["data"]["set"])
                table.targets[rule["chain"]].extend(verdict for verdict in verdicts if verdict not in _VERDICTS)
            elif name == "dnat":
                address, number = value["addr"], value["port"]
                table.dnat[rule["chain"]].append(f"[{address}]:{number}" if ":" in address else f"{address}:{number}")


def _from_text(text: str, family: str) -> _Table:
    plain = _HANDLE.sub("", text)
    opened = re.search(rf"^table {family} kube-proxy \{{", plain, re.M)
    if not opened:
        raise ParseError(_TOOL, 1, text.split("\n", 1)[0], f"'table {family} kube-proxy {{'")
    closing = re.compile(r"^\}", re.M).search(plain, opened.end())
    before, inside = plain[: opened.start()], plain[opened.start() : closing.end() if closing else len(plain)]
    table, closed = _Table(), False
    for kind, name, lines in _blocks("\n" * before.count("\n") + inside):
        if kind == "end":
            closed = True
        elif kind == "chain":
            rules = [_COMMENT.sub("", line) for line in lines]
            targets = [target for rule in rules for target in _TARGET.findall(rule)]
            table.targets[name] = [target for target in targets if target not in _VERDICTS]
            table.dnat[name] = [target for rule in rules for target in _DNAT.findall(rule)]
            table.lines[name] = tuple(lines)
        elif name in _READ:
            table.elements[name] = list(_text_elements(lines))
    if not closed:
        raise ParseError(_TOOL, 0, text[-80:], "'}' at the table's end: the text is cut off")
    return table


def _blocks(text: str) -> Iterator[tuple[str, str, list[str]]]:
    kind, name = "", ""
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        opened = _BLOCK.match(line)
        if opened and kind:
            raise ParseError(_TOOL, number, line, f"'}}' at the end of {kind} {name}")
        if opened:
            kind, name, lines = opened[1], opened[2], []
        elif kind and line.strip() == "}":
            yield kind, name, lines
            kind = ""
        elif kind:
            lines.append(line.strip())
        elif line.rstrip() == "}":
            yield "end", "", []


def _text_elements(lines: list[str]) -> Iterator[tuple[tuple[str, ...], str, str]]:
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
        raise ParseError(_TOOL, 0, whole, "'}' at the end of the elements")
    for element in body.split(","):
        said = re.search(r" comment#(\d+)", element)
        key, _, verdict = (element.replace(said[0], " ", 1) if said else element).partition(" : ")
        target = _TARGET.search(verdict)
        name = target[1] if target else verdict.strip()
        yield tuple(part.strip() for part in key.split(" . ")), name, comments[int(said[1])] if said else ""


def _frontend(key: tuple[str, ...]) -> tuple[Socket, str]:
    if len(key) != 3:
        raise ParseError(_TOOL, 0, " . ".join(key), "address . protocol . port")
    return Socket(_ip(key[0]), _port(key[2])), key[1]


def _ip(text: str) -> IPAddress:
    try:
        return ipaddress.ip_address(text)
    except ValueError as error:
        raise ParseError(_TOOL, 0, text, "an address") from error


def _port(text: str) -> int:
    try:
        return port(text)
    except ValueError as error:
        raise ParseError(_TOOL, 0, text, "a port number") from error


def _socket(text: str) -> Socket:
    found = socket_of(text)
    if found is None:
        raise ParseError(_TOOL, 0, text, "address:port behind 'dnat to'")
    return found
