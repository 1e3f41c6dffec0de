"""The text forms of ip's listings, as people paste them; read when the output is no JSON.

Samples:

    5: cilium_host@cilium_net: <BROADCAST,MULTICAST,NOARP,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default qlen 1000
        link/ether a2:11:00:00:00:05 brd ff:ff:ff:ff:ff:ff
        inet 10.0.1.108/32 scope link cilium_host
    cilium_host@cilium_net  UP             10.100.0.211/32 fe80::a497:b5ff:fe42:67af/64
    10.42.1.0/24 via 10.42.0.9 dev cilium_host proto kernel src 10.42.0.9 mtu 1450
    10.42.1.113 dev cilium_host src 10.42.0.9 uid 1000
        cache mtu 1450
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from ..model.addresses import IPAddress, IPInterface, IPNetwork
from ..model.host import Interface, NextHop, Route, RouteLookup
from .errors import ParseError
from .lines import is_number, numbered, whole

T = TypeVar("T")

# Interface names hold anything but spaces and slashes: ``flannel.1``, ``vlan.eth.2@eth2``.
_HEAD = re.compile(r"(?P<index>[0-9]+): (?P<name>[^\s@]+?)(@(?P<link>\S+?))?: <(?P<flags>[^>]*)>(?P<rest>.*)")
_BRIEF = re.compile(
    r"(?P<name>[^\s@:]+)(@(?P<link>\S+))?\s+(?P<state>UP|DOWN|UNKNOWN|DORMANT|LOWERLAYERDOWN|NOTPRESENT|TESTING)\b(?P<rest>.*)"
)
# The kinds of link that iproute2 6.x knows (ip link help); each begins a line of ``ip -d``.
_KINDS = re.compile(
    "amt|bareudp|batadv|bond|bridge|can|dsa|dummy|erspan|geneve|gre|gretap|gtp|hsr|ifb|ip6erspan|ip6gre|ip6gretap|ip6tnl|ipip|ipoib|ipvlan"
    "|ipvtap|lowpan|macsec|macvlan|macvtap|netdevsim|netkit|nlmon|openvswitch|rmnet|sit|team|tun|vcan|veth|virt_wifi|vlan|vrf|vti|vti6"
    "|vxcan|vxlan|wireguard|wwan|xfrm"
)
_DOWN = frozenset({"DOWN", "LOWERLAYERDOWN", "NOTPRESENT"})
_ROUTE_TYPES = frozenset(
    {"unicast", "local", "broadcast", "multicast", "anycast", "unreachable", "blackhole", "prohibit", "throw", "nat", "xresolve"}
)
# Words of a route that stand alone; every other one is followed by its value.
_ROUTE_FLAGS = frozenset({"onlink", "pervasive", "linkdown", "dead", "offload", "trap", "notify", "rt_offload", "cache", "offload_failed"})
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
        elif line.strip() and not (found and line.startswith("\tnh_info ")):  # the next hop object, which ip -d shows below
            found.append((number, [line]))
    return tuple(_route(number, lines, table, family) for number, lines in found)


def read_route_get(text: str) -> RouteLookup:
    """Read ``ip route get``: the route, and below it what the kernel's cache holds."""
    head, *below = (line for _, line in numbered("ip route get", text) if line.strip())
    words = head.split()
    kind = words.pop(0) if words[0] in _ROUTE_TYPES and len(words) > 1 else "unicast"
    target = convert("ip route get", 1, head, ipaddress.ip_address, words[0])
    parts = _pairs("ip route get", 1, head, iter(words[1:]))
    cached = _pairs("ip route get", 2, " ".join(below), iter([w for line in below for w in line.split() if not w.startswith("<")]))
    mtu = parts.get("mtu") or cached.get("mtu")
    return RouteLookup(
        destination=target,
        device=parts.get("dev"),
        via=_optional_address("ip route get", 1, head, parts.get("via")),
        source=_optional_address("ip route get", 1, head, parts.get("src")),
        mtu=optional_whole("ip route get", 1, head, mtu),
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
    # An alias holds any words, so that each fact is looked for in the line that is its own.
    below = [line.strip() for _, line in block[1:] if line.strip()]
    hardware = next((line for line in below if line.startswith("link/")), "")
    details = next((line for line in below if _KINDS.fullmatch(line.split()[0])), None)
    vxlan = re.match(r"vxlan (?P<external>external )?id (?P<id>[0-9]+).*? dstport (?P<port>[0-9]+)", details or "")
    mac = re.match(r"link/\S+ ([0-9a-f:.]+)", hardware)
    netnsid = re.search(r"\blink-netnsid ([0-9]+)", hardware)
    return Interface(
        name=match["name"],
        index=int(match["index"]),
        mtu=int(pairs["mtu"]),
        up=is_up(pairs.get("state", "UNKNOWN"), match["flags"].split(",")),
        mac=mac[1] if mac else None,
        addresses=tuple(a for n, line in block[1:] for a in _addresses(tool, n, line)),
        kind=details.split()[0] if details else None,
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
    # Of "10.9.0.1 peer 10.9.0.2/30" the length is the peer's, and the address stands before it.
    words = re.sub(r"(\S+) peer [^/\s]+/", r"\1/", match["rest"]).split()
    words = [word for word in words if "/" in word]
    return Interface(
        name=match["name"],
        index=None,
        mtu=None,
        up=is_up(match["state"], None),
        mac=None,
        addresses=tuple(convert(tool, number, line, ipaddress.ip_interface, word) for word in words),
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
    yield convert(tool, number, line, ipaddress.ip_interface, text)


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
        destination=convert("ip route", number, lines[0], lambda dst: destination(dst, assumed), text),
        type=kind,
        table=parts.get("table") or table,
        via=via,
        device=parts.get("dev"),
        source=source,
        mtu=optional_whole("ip route", number, lines[0], parts.get("mtu")),
        metric=optional_whole("ip route", number, lines[0], parts.get("metric")),
        protocol=parts.get("proto"),
        nexthops=tuple(NextHop(_optional_address("ip route", number, lines[0], h.get("via")), h.get("dev")) for h in hops),
        raw="\n".join(lines),
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
        if (word == "via" and value in ("inet", "inet6")) or value == "lock":
            value = next(words, None)
        if value is None:
            raise ParseError(tool, number, line, f"a value after {word}")
        found.setdefault(word, value)
    return found


def _optional_address(tool: str, number: int, line: str, text: str | None) -> IPAddress | None:
    return None if text is None else convert(tool, number, line, ipaddress.ip_address, text)


def optional_whole(tool: str, number: int, line: str, text: str | None) -> int | None:
    """The whole number that the word is, where there is one."""
    return None if text is None else convert(tool, number, line, whole, text)


def convert(tool: str, number: int, line: str, into: Callable[[str], T], text: str) -> T:
    """The word made into something; ValueError becomes the line's ParseError."""
    try:
        return into(text)
    except ValueError:
        raise ParseError(tool, number, line, f"something else than {text}") from None
