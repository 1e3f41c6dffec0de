"""The text forms of ip's listings, as people paste them; read when the output is no JSON.

Samples:

    5: cilium_host@cilium_net: <BROADCAST,MULTICAST,NOARP,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default qlen 1000
        link/ether a2:11:00:00:00:05 brd ff:ff:ff:ff:ff:ff
        inet 10.0.1.108/32 scope link cilium_host
    cilium_host@cilium_net  UP             10.100.0.211/32 fe80::a497:b5ff:fe42:67af/64
    10.42.1.0/24 via 10.42.0.9 dev cilium_host proto kernel src 10.42.0.9 mtu 1450
    9:	from all fwmark 0x200/0xf00 lookup 2004
    10.42.1.113 dev cilium_host src 10.42.0.9 uid 1000
        cache mtu 1450
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from ..model.addresses import IPAddress, IPInterface, IPNetwork
from ..model.host import Interface, NextHop, Route, RouteLookup, RoutingRule
from .errors import ParseError
from .lines import is_number, numbered, whole

T = TypeVar("T")

# Interface names hold anything but spaces and slashes: ``flannel.1``, ``vlan.eth.2@eth2``.
_HEAD = re.compile(r"(?P<index>[0-9]+): (?P<name>[^\s@]+?)(@(?P<link>\S+?))?: <(?P<flags>[^>]*)>(?P<rest>.*)")
_BRIEF = re.compile(
    r"(?P<name>[^\s@:]+)(@(?P<link>\S+))?\s+(?P<state>UP|DOWN|UNKNOWN|DORMANT|LOWERLAYERDOWN|NOTPRESENT|TESTING)\b(?P<rest>.*)"
)
_KINDS = frozenset({"vxlan", "geneve", "veth", "bridge", "bond", "dummy", "vlan", "wireguard"})  # begin a line of ``ip -d``
_DOWN = frozenset({"DOWN", "LOWERLAYERDOWN", "NOTPRESENT"})
_ROUTE_TYPES = frozenset(
    {"unicast", "local", "broadcast", "multicast", "anycast", "unreachable", "blackhole", "prohibit", "throw", "nat", "xresolve"}
)
# Words of a route that stand alone; every other one is followed by its value.
_ROUTE_FLAGS = frozenset({"onlink", "pervasive", "linkdown", "dead", "offload", "trap", "notify", "rt_offload", "cache", "offload_failed"})
_RULE_ACTIONS = frozenset({"unreachable", "blackhole", "prohibit", "nop", "masquerade"})
_RULE_SELECTORS = frozenset({"tos", "dsfield", "ipproto", "sport", "dport", "uidrange", "tun_id"})
# strerror of what the kernel answers when a lookup ends at a route or rule of that type (net/ipv4/fib_semantics.c, fib_props).
_REFUSALS = {
    "Network is unreachable": "unreachable",
    "No route to host": "unreachable",
    "Invalid argument": "blackhole",
    "Permission denied": "prohibit",
}


def is_up(state: str, flags: Sequence[str] | None) -> bool:
    """Whether an interface works: the UP flag (where flags are shown) and a state that is not down; UNKNOWN is a tunnel's usual one."""
    return state not in _DOWN and (flags is None or "UP" in flags)


def destination(text: str, family: int) -> IPNetwork:
    """A route's destination; ValueError when it is none."""
    if text == "default":
        return ipaddress.ip_network("0.0.0.0/0" if family == 4 else "::/0")
    return ipaddress.ip_network(text)


def read_interfaces(tool: str, text: str) -> tuple[Interface, ...]:
    """Read ``ip addr``, ``ip -d link`` or ``ip -br addr``; ParseError at the first line that is none of theirs."""
    found: list[Interface] = []
    block: list[tuple[int, str]] = []
    for number, line in numbered(tool, text):
        brief = _BRIEF.fullmatch(line)
        if brief:
            found.append(_brief(tool, number, line, brief))
        elif line[:1].isspace() and block:
            block.append((number, line))
        elif _HEAD.fullmatch(line):
            found += [_block(tool, block)] if block else []
            block = [(number, line)]
        elif line.strip():
            raise ParseError(tool, number, line, "an interface, or a line that belongs to one")
    return (*found, _block(tool, block)) if block else tuple(found)


def read_routes(text: str, table: str, family: int | None) -> tuple[Route, ...]:
    """Read ``ip route``; ``table`` is that of routes that name none, ``family`` None where the addresses must tell."""
    found: list[tuple[int, list[str]]] = []
    for number, line in numbered("ip route", text):
        if line[:1].isspace() and line.split()[:1] == ["nexthop"] and found:
            found[-1][1].append(line)
        elif line.strip():
            found.append((number, [line]))
    return tuple(_route(number, lines, table, family) for number, lines in found)


def read_rules(text: str, family: int) -> tuple[RoutingRule, ...]:
    """Read ``ip rule``."""
    return tuple(_rule(number, line, family) for number, line in numbered("ip rule", text) if line.strip())


def read_route_get(text: str) -> RouteLookup:
    """Read ``ip route get``: the route, and below it what the kernel's cache holds."""
    head, *below = (line for _, line in numbered("ip route get", text) if line.strip())
    words = head.split()
    kind = words.pop(0) if words[0] in _ROUTE_TYPES and len(words) > 1 else "unicast"
    target = _convert("ip route get", 1, head, ipaddress.ip_address, words[0])
    parts = _pairs("ip route get", 1, head, iter(words[1:]))
    cached = _pairs("ip route get", 2, " ".join(below), iter([w for line in below for w in line.split() if not w.startswith("<")]))
    mtu = parts.get("mtu") or cached.get("mtu")
    return RouteLookup(
        destination=target,
        device=parts.get("dev"),
        via=_optional_address("ip route get", 1, head, parts.get("via")),
        source=_optional_address("ip route get", 1, head, parts.get("src")),
        mtu=_whole("ip route get", 1, head, mtu),
        type=kind,
        table=parts.get("table"),
        raw=text.strip(),
    )


def read_refusal(error_text: str, target: IPAddress) -> RouteLookup:
    """What the kernel's refusal says: a lookup that ends in no route, or in one that forbids."""
    for words, kind in _REFUSALS.items():
        if words in error_text:
            return RouteLookup(target, None, None, None, None, kind, None, raw=error_text.strip())
    raise ParseError("ip route get", 0, error_text, "a route, or the kernel's refusal")


def _block(tool: str, block: list[tuple[int, str]]) -> Interface:
    number, head = block[0]
    match = _HEAD.fullmatch(head)
    if match is None:
        raise ParseError(tool, number, head, "an interface")
    words = match["rest"].split()
    pairs = dict(zip(words[::2], words[1::2], strict=False))
    if not is_number(pairs.get("mtu", "")):
        raise ParseError(tool, number, head, "mtu and a number")
    link = match["link"]
    peer = re.fullmatch(r"if([0-9]+)", link or "")
    body = " ".join(line for _, line in block[1:])
    vxlan = re.search(r"\bvxlan (?P<external>external )?id (?P<id>[0-9]+).*? dstport (?P<port>[0-9]+)", body)
    details = [line.split()[0] for _, line in block[1:] if line.split()]
    mac = re.search(r"\blink/\S+ ([0-9a-f:.]+)", body)
    netnsid = re.search(r"\blink-netnsid ([0-9]+)", body)
    return Interface(
        name=match["name"],
        index=int(match["index"]),
        mtu=int(pairs["mtu"]),
        up=is_up(pairs.get("state", "UNKNOWN"), match["flags"].split(",")),
        mac=mac[1] if mac else None,
        addresses=tuple(a for n, line in block[1:] for a in _addresses(tool, n, line)),
        kind=next((word for word in details if word in _KINDS), None),
        link_netnsid=int(netnsid[1]) if netnsid else None,
        link_index=int(peer[1]) if peer else None,
        vxlan_id=int(vxlan["id"]) if vxlan and not vxlan["external"] else None,
        vxlan_port=int(vxlan["port"]) if vxlan else None,
        link=None if peer else link,
        master=pairs.get("master"),
        raw="\n".join(line for _, line in block),
    )


def _brief(tool: str, number: int, line: str, match: re.Match[str]) -> Interface:
    peer = re.fullmatch(r"if([0-9]+)", match["link"] or "")
    words = [word for word in match["rest"].split() if "/" in word]
    return Interface(
        name=match["name"],
        index=None,
        mtu=None,
        up=is_up(match["state"], None),
        mac=None,
        addresses=tuple(_convert(tool, number, line, ipaddress.ip_interface, word) for word in words),
        link_index=int(peer[1]) if peer else None,
        link=None if peer else match["link"],
        raw=line,
    )


def _addresses(tool: str, number: int, line: str) -> Iterator[IPInterface]:
    """The address of an ``inet`` or ``inet6`` line; with a peer the length belongs to the peer's prefix."""
    words = line.split()
    if words[:1] not in (["inet"], ["inet6"]):
        return
    text = words[1] if len(words) > 1 else ""
    if words[2:3] == ["peer"] and len(words) > 3:
        text = f"{text}/{words[3].partition('/')[2]}"
    if "/" not in text:
        raise ParseError(tool, number, line, "an address with its length")
    yield _convert(tool, number, line, ipaddress.ip_interface, text)


def _route(number: int, lines: list[str], table: str, family: int | None) -> Route:
    words = lines[0].split()
    kind = words.pop(0) if words[0] in _ROUTE_TYPES else "unicast"
    if not words:
        raise ParseError("ip route", number, lines[0], "a destination")
    text, parts = words[0], _pairs("ip route", number, lines[0], iter(words[1:]))
    hops = [_pairs("ip route", number, line, iter(line.split()[1:])) for line in lines[1:]]
    source, via = (_optional_address("ip route", number, lines[0], parts.get(key)) for key in ("src", "via"))
    told = [4] if " via inet6 " in lines[0] else [ip.version for ip in (source, via) if ip]
    assumed = family or (told[0] if told else 6 if "pref" in parts else 4)
    return Route(
        destination=_convert("ip route", number, lines[0], lambda dst: destination(dst, assumed), text),
        type=kind,
        table=parts.get("table") or table,
        via=via,
        device=parts.get("dev"),
        source=source,
        mtu=_whole("ip route", number, lines[0], parts.get("mtu")),
        metric=_whole("ip route", number, lines[0], parts.get("metric")),
        protocol=parts.get("proto"),
        nexthops=tuple(NextHop(_optional_address("ip route", number, lines[0], h.get("via")), h.get("dev")) for h in hops),
        raw="\n".join(lines),
    )


def _rule(number: int, line: str, family: int) -> RoutingRule:
    head, colon, rest = line.partition(":")
    words = rest.split()
    negated = words[:1] == ["not"]
    pairs: dict[str, str] = {}
    other: list[str] = []
    action: str | None = None
    remaining = iter(words[1:] if negated else words)
    for word in remaining:
        if word in _RULE_ACTIONS:
            action = word
        elif word.startswith("["):  # [detached], [unresolved]
            continue
        elif (value := next(remaining, None)) is None:
            raise ParseError("ip rule", number, line, f"a value after {word}")
        elif word in _RULE_SELECTORS:
            other.append(f"{word} {value}")
        else:
            pairs[word] = value
    if not colon or not is_number(head.strip()) or "from" not in pairs or not ({"lookup", "goto"} & pairs.keys() or action):
        raise ParseError("ip rule", number, line, "priority, from, and lookup or an action")
    goto = _whole("ip rule", number, line, pairs.get("goto"))
    return RoutingRule(
        priority=int(head),
        source=_network(number, line, pairs["from"]),
        destination=_network(number, line, pairs.get("to", "all")),
        fwmark=pairs.get("fwmark"),
        table=pairs.get("lookup"),
        action="goto" if goto is not None else action,
        family=family,
        negated=negated,
        iif=pairs.get("iif"),
        oif=pairs.get("oif"),
        goto=goto,
        suppress_prefixlength=_whole("ip rule", number, line, pairs.get("suppress_prefixlength")),
        other=tuple(other),
        raw=line.strip(),
    )


def _pairs(tool: str, number: int, line: str, words: Iterator[str]) -> dict[str, str]:
    """Keywords and their values; of a keyword that stands twice the first one."""
    found: dict[str, str] = {}
    for word in words:
        if word == "encap":  # an encapsulation has a src of its own; dev or via ends it
            word = next((later for later in words if later in ("via", "dev")), "dead")
        if word in _ROUTE_FLAGS:
            continue
        value = next(words, None)
        if (word == "via" and value in ("inet", "inet6")) or (word == "mtu" and value == "lock"):
            value = next(words, None)
        if value is None:
            raise ParseError(tool, number, line, f"a value after {word}")
        found.setdefault(word, value)
    return found


def _network(number: int, line: str, text: str) -> IPNetwork | None:
    return None if text == "all" else _convert("ip rule", number, line, ipaddress.ip_network, text)


def _optional_address(tool: str, number: int, line: str, text: str | None) -> IPAddress | None:
    return None if text is None else _convert(tool, number, line, ipaddress.ip_address, text)


def _whole(tool: str, number: int, line: str, text: str | None) -> int | None:
    return None if text is None else _convert(tool, number, line, whole, text)


def _convert(tool: str, number: int, line: str, into: Callable[[str], T], text: str) -> T:
    """The word made into something; ValueError becomes the line's ParseError."""
    try:
        return into(text)
    except ValueError:
        raise ParseError(tool, number, line, f"something else than {text}") from None
