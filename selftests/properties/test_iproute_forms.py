"""One fact, as ip prints it in text and in JSON (iproute2 6.x): both are read as that fact."""

from __future__ import annotations

import dataclasses
import ipaddress
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from properties.spoiling import outcome
from servicepath.model.host import Interface, NextHop, Route, RoutingRule
from servicepath.parse import iproute

VERSIONS = st.sampled_from([4, 6])
NAMES = st.from_regex(r"[a-z][a-z0-9_.-]{0,12}", fullmatch=True).filter(lambda name: name not in ("all", "default"))
MACS = st.binary(min_size=6, max_size=6).map(lambda raw: raw.hex(":"))
TABLES = st.sampled_from(["main", "local", "2004", "77", "vrf-blue"])
ADDRESSES = st.builds(lambda ip, bits: ipaddress.ip_interface((ip, bits)), st.ip_addresses(), st.sampled_from([8, 24, 32]))
STATES = st.sampled_from(["UP", "DOWN", "UNKNOWN", "LOWERLAYERDOWN", "DORMANT", "NOTPRESENT"])
KINDS = st.sampled_from([None, "veth", "bridge", "macvlan", "dummy", "netkit", "wireguard", "vxlan", "vxlan external", "vrf"])


@dataclasses.dataclass(frozen=True)
class Made:
    """A fact with both of its forms."""

    fact: Any
    text: str
    value: dict[str, Any]


def pairs(*found: tuple[str, Any, str]) -> tuple[str, dict[str, Any]]:
    """The words and the JSON members of those that are there: a JSON name, its value, and the words."""
    there = [each for each in found if each[1] is not None]
    return "".join(f"{words} " for _, _, words in there), {name: value for name, value, _ in there}


@st.composite
def interfaces(draw: st.DrawFn) -> Made:
    name, index, mtu, state, mac = draw(NAMES), draw(st.integers(1, 10**6)), draw(st.integers(68, 65536)), draw(STATES), draw(MACS)
    up = draw(st.booleans())
    flags = [*draw(st.lists(st.sampled_from(["BROADCAST", "NOARP", "M-DOWN", "LOWER_UP"]), max_size=2, unique=True)), *["UP"] * up]
    link, peer = draw(st.sampled_from([(None, None), ("eth0", None), (None, 7)]))
    netnsid, master, kind = draw(st.none() | st.integers(0, 9)) if peer else None, draw(st.none() | NAMES), draw(KINDS)
    vni = draw(st.integers(0, 2**24 - 1)) if kind == "vxlan" else None
    port = draw(st.integers(1, 65535)) if kind and kind.startswith("vxlan") else None
    addresses = draw(st.lists(ADDRESSES, max_size=3))
    alias = draw(st.sampled_from(["", "inet 10.9.9.9", "9: eth9: <UP>", "vxlan id 9 dstport 9"]))
    end = f"@{link or f'if{peer}'}" if link or peer else ""
    belongs = f"master {master} " if master else ""
    lines = [f"{index}: {name}{end}: <{','.join(flags)}> mtu {mtu} qdisc noqueue {belongs}state {state} group default qlen 1000"]
    lines.append(f"    link/ether {mac} brd ff:ff:ff:ff:ff:ff" + (f" link-netnsid {netnsid}" if netnsid is not None else ""))
    fixed = f" id {vni} local 10.0.0.1 srcport 0 0 dstport {port} nolearning"
    details = {"vxlan": fixed, "vxlan external": f" id 0 dstport {port} ttl auto"}
    lines += [f"    {kind}{details.get(kind, '')} numtxqueues 1"] if kind else []
    lines += [f"    alias {alias}"] if alias else []
    peers = [draw(st.booleans()) and ip.version == 4 for ip in addresses]
    for ip, far in zip(addresses, peers, strict=True):
        shown = f"{ip.ip} peer 10.9.9.9/{ip.network.prefixlen}" if far else str(ip)
        lines += [f"    inet{'6' if ip.version == 6 else ''} {shown} scope global {name}", "       valid_lft forever preferred_lft forever"]
    value = {"ifindex": index, "ifname": name, "flags": flags, "mtu": mtu, "operstate": state, "address": mac, "ifalias": "x"}
    value |= {k: v for k, v in {"link": link, "link_index": peer, "link_netnsid": netnsid, "master": master}.items() if v is not None}
    info = {"info_kind": kind and kind.split()[0], "info_data": {"id": vni or 0, "port": port, "external": kind == "vxlan external"}}
    value |= {"linkinfo": info if port else {"info_kind": kind}} if kind else {}
    value["addr_info"] = [
        {"family": "inet", "local": str(ip.ip), "prefixlen": ip.network.prefixlen, **({"address": "10.9.9.9"} if far else {})}
        for ip, far in zip(addresses, peers, strict=True)
    ]
    works = up and state not in ("DOWN", "LOWERLAYERDOWN", "NOTPRESENT")
    fact = Interface(
        name, index, mtu, works, mac, tuple(addresses), kind and kind.split()[0], netnsid, peer, vni, port, link, master
    )  # fmt: skip
    return Made(fact, "\n".join(lines), value)


@st.composite
def routes(draw: st.DrawFn) -> Made:
    version = draw(VERSIONS)
    ips = st.ip_addresses(v=version)
    bits = draw(st.sampled_from([0, 8, 32, 32 if version == 4 else 128]))
    network = ipaddress.ip_network((draw(ips), bits), strict=False)
    shown = "default" if not bits else str(network.network_address) if bits == network.max_prefixlen else str(network)
    kind, table, device, source = draw(st.sampled_from(["unicast", "local", "blackhole"])), draw(TABLES), draw(NAMES), draw(st.none() | ips)
    hops = [NextHop(draw(ips), draw(NAMES)) for _ in range(draw(st.sampled_from([0, 0, 2])))]
    via = None if hops else draw(st.none() | ips | (st.ip_addresses(v=6) if version == 4 else st.nothing()))
    mtu, metric, protocol = draw(st.none() | st.integers(68, 65535)), draw(st.none() | st.integers(0, 2**32 - 1)), draw(st.none() | NAMES)
    flags = draw(st.lists(st.sampled_from(["linkdown", "onlink", "offload", "dead"]), max_size=2, unique=True))
    locked = draw(st.sampled_from(["", "lock "]))
    other = via is not None and via.version != version
    words, members = pairs(
        ("type", None if kind == "unicast" else kind, kind),
        ("dst", shown, shown),
        ("nhid", draw(st.sampled_from([None, 7])), "nhid 7"),
        ("via", {"family": "inet6", "host": str(via)} if other else None, f"via inet6 {via}"),
        ("gateway", None if via is None or other else str(via), f"via {via}"),
        ("dev", None if hops else device, f"dev {device}"),
        ("table", None if table == "main" else table, f"table {table}"),
        ("protocol", protocol, f"proto {protocol}"),
        ("scope", draw(st.sampled_from([None, "link"])), "scope link"),
        ("prefsrc", source and str(source), f"src {source}"),
        ("metric", metric, f"metric {metric}"),
        ("flags", flags, " ".join(flags)),
        ("metrics", [{"mtu": mtu, "advmss": 1400, "rto_min": 5}] if mtu else None, f"mtu {locked}{mtu} advmss 1400 rto_min lock 5ms"),
        ("pref", "medium" if version == 6 else None, "pref medium"),
        ("nexthops", [{"gateway": str(hop.via), "dev": hop.device, "weight": 1, "flags": []} for hop in hops] or None, ""),
    )
    text = words + "".join(f"\n\tnexthop via {hop.via} dev {hop.device} weight 1 " for hop in hops)
    fact = Route(network, kind, table, via, None if hops else device, source, mtu, metric, protocol, tuple(hops))
    return Made(fact, text, members)


@st.composite
def rules(draw: st.DrawFn, version: int) -> Made:
    def network() -> Any:
        bits = draw(st.sampled_from([8, 16, 32 if version == 4 else 128]))
        return draw(st.none() | st.builds(lambda ip: ipaddress.ip_network((ip, bits), strict=False), st.ip_addresses(v=version)))

    source, destination, priority = network(), network(), draw(st.integers(0, 2**32 - 1))
    whole = {end: net is not None and net.prefixlen == net.max_prefixlen for end, net in (("src", source), ("dst", destination))}
    marks = st.sampled_from(["0", "0x1", "0x200", "0xffffffff"])
    mark, mask, negated = draw(st.none() | marks), draw(st.none() | marks), draw(st.booleans())
    mask = mask if mark else None
    iif, oif = draw(st.none() | NAMES), draw(st.none() | NAMES)
    selectors = draw(st.lists(st.sampled_from(list(SELECTORS)), max_size=3, unique=True))
    end = draw(st.sampled_from(["table", "goto", "l3mdev", "unreachable", "blackhole", "nop"]))
    table, goto, suppressed = draw(TABLES), draw(st.integers(0, 2**31)), draw(st.none() | st.integers(0, 128)) if end == "table" else None
    words, members = pairs(
        ("priority", priority, f"{priority}:\t{'not ' if negated else ''}from {_shown(source)}"),
        ("src", str(source.network_address) if source else "all", ""),
        ("srclen", None if source is None or whole["src"] else source.prefixlen, ""),
        ("dst", destination and str(destination.network_address), f"to {_shown(destination)}"),
        ("dstlen", None if destination is None or whole["dst"] else destination.prefixlen, ""),
        ("fwmark", mark, f"fwmark {mark}" + (f"/{mask}" if mask else "")),
        ("fwmask", mask, ""),
        ("iif", iif, f"iif {iif} [detached]"),
        ("oif", oif, f"oif {oif}"),
    )
    members |= ({"not": None} if negated else {}) | ({"iif_detached": None} if iif else {})
    for selector in selectors:
        words, members = f"{words}{selector} ", members | SELECTORS[selector]
    ways = {"table": f"lookup {table} ", "goto": f"goto {goto} ", "l3mdev": "lookup [l3mdev-table] "}
    words += ways.get(end, f"{end} ") + (f"suppress_prefixlength {suppressed} " if suppressed is not None else "")
    told = {"table": table, "goto": goto, "l3mdev": None, "nop": None}
    members |= {end: told[end]} if end in told else {"action": end}
    members |= {} if suppressed is None else {"suppress_prefixlen": suppressed}
    fact = RoutingRule(
        priority=priority, source=source, destination=destination, fwmark=f"{mark}/{mask}" if mask else mark,
        table=table if end == "table" else None, action=None if end in ("table", "l3mdev") else end, family=version, negated=negated,
        iif=iif, oif=oif, goto=goto if end == "goto" else None, suppress_prefixlength=suppressed,
        other=(*selectors, *(["l3mdev"] if end == "l3mdev" else [])),
    )  # fmt: skip
    return Made(fact, words, members)


def _shown(network: Any) -> str:
    return "all" if network is None else str(network.network_address) if network.prefixlen == network.max_prefixlen else str(network)


# The last is one that no release has: it must not be lost.
SELECTORS: dict[str, dict[str, Any]] = {
    "tos 0x10": {"tos": "0x10"}, "ipproto tcp": {"ipproto": "tcp"}, "dport 80": {"dport": 80},
    "sport 1000-2000": {"sport_start": 1000, "sport_end": 2000},
    "uidrange 100-200": {"uid_start": 100, "uid_end": 200}, "tun_id 5": {"tun_id": 5}, "newfangled 7": {"newfangled": 7},
}  # fmt: skip


def both(parse, made):
    """What is read of the listing in text, and of the same in JSON."""
    return parse("".join(f"{each.text}\n" for each in made)), parse(json.dumps([each.value for each in made]))


@given(st.lists(interfaces(), max_size=3))
def test_interfaces_are_read_the_same_from_text_and_json(made):
    text, as_json = both(iproute.parse_ip_addr, made)

    assert text == as_json == tuple(each.fact for each in made)


@given(st.lists(routes(), max_size=4))
def test_routes_are_read_the_same_from_text_and_json(made):
    text, as_json = both(iproute.parse_ip_route, made)

    assert text == as_json == tuple(each.fact for each in made)


@given(VERSIONS.flatmap(lambda version: st.tuples(st.just(version), st.lists(rules(version), max_size=4))))
def test_rules_are_read_the_same_from_text_and_json(made):
    version, made = made
    text, as_json = both(lambda text: iproute.parse_ip_rule(text, family=version), made)

    assert text == as_json == tuple(each.fact for each in made)


@given(st.sampled_from([("route", routes()), ("rule", rules(4)), ("addr", interfaces())]), st.data())
def test_a_text_that_is_cut_off_is_an_error_or_its_beginning(kind, data):
    name, strategy = kind
    made = data.draw(st.lists(strategy, min_size=1, max_size=3))
    text = "".join(f"{each.text}\n" for each in made)
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    found = outcome(getattr(iproute, f"parse_ip_{name}"), cut)

    assert (found is None) == bool(cut.rpartition("\n")[2].strip())
    assert found is None or [each.raw.strip() for each in found[:-1]] == [each.text.strip() for each in made[: max(len(found) - 1, 0)]]
