"""``ip -j addr``, ``ip -j -d link``, ``ip -j route``, ``ip -j rule`` and ``ip -j route get`` (iproute2 5.10 to 6.x) → host facts.

Samples:

    [{"ifindex":5,"link":"cilium_net","ifname":"cilium_host","flags":["BROADCAST","UP"],"mtu":1500,"operstate":"UP",
      "addr_info":[{"family":"inet","local":"10.42.0.9","prefixlen":32,"scope":"global"}]}]
    [{"dst":"10.42.1.0/24","gateway":"10.42.0.9","dev":"cilium_host","prefsrc":"10.42.0.9","metrics":[{"mtu":1450}]}]
    [{"priority":9,"src":"all","fwmark":"0x200","fwmask":"0xf00","table":"2004"},{"priority":100,"src":"all","table":"local"}]

Each function reads the text form of the same command as well (module iproute_text); which it is, the first character tells. An
empty output is an empty result: ip prints nothing then, or ``[]``.
"""

from __future__ import annotations

import ipaddress

from ..model.addresses import IPAddress, IPInterface
from ..model.host import Interface, NextHop, Route, RouteLookup, RoutingRule
from . import iproute_rules, iproute_text
from .errors import ParseError
from .fields import Fields, json_objects


def parse_ip_addr(text: str) -> tuple[Interface, ...]:
    """Read ``ip -j addr`` or ``ip -j -d addr`` (which tells the link kinds too); in text also ``ip -br addr``.

    Raises:
        ParseError: names line, or item of the list, and what was expected.
    """
    if _is_json(text):
        return tuple(_interface(each) for each in json_objects("ip addr", text))
    return iproute_text.read_interfaces("ip addr", text)


def parse_ip_link(text: str) -> tuple[Interface, ...]:
    """Read ``ip -j -d link``. A link listing shows no addresses: ``addresses`` is empty whatever the interface holds.

    Raises:
        ParseError: as parse_ip_addr.
    """
    if _is_json(text):
        return tuple(_interface(each) for each in json_objects("ip link", text))
    return iproute_text.read_interfaces("ip link", text)


def parse_ip_route(text: str, *, table: str = "main", family: int | None = None) -> tuple[Route, ...]:
    """Read ``ip -j route show table all`` (or one table).

    Args:
        text: the output.
        table: the table of routes that name none: main for ``table all``, else the table that was asked for.
        family: 4 or 6, where the command asked for one; without it a default route's family is told by its addresses, and
            by ``pref``, which ip prints for IPv6 alone.

    Raises:
        ParseError: as parse_ip_addr.
    """
    if _is_json(text):
        return tuple(_route(each, table, family) for each in json_objects("ip route", text))
    return iproute_text.read_routes(text, table, family)


def parse_ip_rule(text: str, *, family: int = 4) -> tuple[RoutingRule, ...]:
    """Read ``ip -j rule`` (family 4) or ``ip -j -6 rule`` (family 6).

    Raises:
        ParseError: as parse_ip_addr.
    """
    if _is_json(text):
        return tuple(iproute_rules.read_object(each, family) for each in json_objects("ip rule", text))
    return iproute_rules.read_text(text, family)


def parse_ip_route_get(text: str, destination: IPAddress, *, error_text: str = "") -> RouteLookup:
    """Read ``ip -j route get DESTINATION``.

    Args:
        text: standard output; empty when the kernel refused.
        destination: what was asked for; the answer must be about it.
        error_text: standard error, which says why the kernel refused (``RTNETLINK answers: Network is unreachable``).

    Raises:
        ParseError: no answer and no refusal that is known, or the answer to another question.
    """
    if not text.strip():
        return iproute_text.read_refusal(error_text, destination)
    if not _is_json(text):
        found = iproute_text.read_route_get(text)
    else:
        objects = json_objects("ip route get", text)
        if len(objects) != 1:
            raise ParseError("ip route get", 0, text, "one route")
        found = _lookup(objects[0])
    if found.destination != destination:
        raise ParseError("ip route get", 1, text, f"the answer for {destination}")
    return found


def _is_json(text: str) -> bool:
    return text.lstrip().startswith(("[", "{"))


def _interface(item: Fields) -> Interface:
    brief = not item.has("flags")  # ip -br -j prints name, state and addresses alone
    flags, state = item.texts("flags"), item.optional_text("operstate") or "UNKNOWN"
    info = item.child("linkinfo")
    data = info.child("info_data")
    kind = info.optional_text("info_kind")
    is_vxlan = kind == "vxlan"
    return Interface(
        name=item.text("ifname"),
        index=item.number("ifindex"),
        mtu=item.number("mtu"),
        up=iproute_text.is_up(state, None if brief else flags),
        mac=item.optional_text("address"),
        addresses=tuple(_address(each) for each in item.children("addr_info") if each.value),
        kind=kind,
        link_netnsid=item.number("link_netnsid"),
        link_index=item.number("link_index"),
        vxlan_id=data.number("id") if is_vxlan and not data.flag("external") else None,
        vxlan_port=data.port("port") if is_vxlan else None,
        link=item.optional_text("link"),
        master=item.optional_text("master"),
        raw=item.raw,
    )


def _address(item: Fields) -> IPInterface:
    return item.convert("local", f"{item.text('local')}/{item.number('prefixlen')}", ipaddress.ip_interface, "an address with its length")


def _route(item: Fields, table: str, family: int | None) -> Route:
    source, via, several = item.address("prefsrc"), _via(item), item.children("nexthops")
    hops = tuple(NextHop(_via(hop), hop.optional_text("dev")) for hop in several)
    told = [ip.version for ip in (source, item.address("gateway"), *(hop.address("gateway") for hop in several)) if ip]
    assumed = family or (told[0] if told else 6 if item.has("pref") else 4)
    metrics = item.children("metrics")
    return Route(
        destination=item.convert("dst", item.text("dst"), lambda dst: iproute_text.destination(dst, assumed), "default, address or prefix"),
        type=item.optional_text("type") or "unicast",
        table=item.name("table") or table,
        via=via,
        device=item.optional_text("dev"),
        source=source,
        mtu=next((metric.number("mtu") for metric in metrics if metric.has("mtu")), None),
        metric=item.number("metric"),
        protocol=item.name("protocol"),
        nexthops=hops,
        raw=item.raw,
    )


def _via(item: Fields) -> IPAddress | None:
    """The gateway; one of the other family stands in ``via``."""
    return item.address("gateway") or item.child("via").address("host")


def _lookup(item: Fields) -> RouteLookup:
    return RouteLookup(
        destination=item.convert("dst", item.text("dst"), ipaddress.ip_address, "an IP address"),
        device=item.optional_text("dev"),
        via=_via(item),
        source=item.address("prefsrc"),
        mtu=next((metric.number("mtu") for metric in item.children("metrics") if metric.has("mtu")), None),
        type=item.optional_text("type") or "unicast",
        table=item.name("table"),
        raw=item.raw,
    )
