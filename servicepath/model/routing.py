"""Where a host sends a packet: its rules and tables as the kernel walks them, and what may not stand in them.

The walk is that of the Linux FIB rules (net/core/fib_rules.c): by priority, a rule either looks up a table, ends the walk, or lets
it go on; inside a table the longest prefix wins. Packets are unmarked here, as a host process sends them.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import ipaddress
from collections.abc import Iterable, Iterator, Mapping

from .addresses import IPAddress, IPNetwork
from .host import Route, RouteLookup, RoutingRule
from .services import ClusterObjects

_INITIAL_TABLES = ("local", "main", "default")  # the kernel's own rules, where none of a family was listed
_FINAL_ACTIONS = frozenset({"unreachable", "blackhole", "prohibit"})
_ROUTE_ENDS_LOOKUP = frozenset({"unicast", "local", "broadcast", "multicast", "anycast", "unreachable", "blackhole", "prohibit"})

# kube-apiserver takes no Service CIDR wider than these (cmd/kube-apiserver/app/options/validation.go, v1.34).
_WIDEST_SERVICE_CIDR = {4: 12, 6: 64}


@dataclasses.dataclass(frozen=True)  # without slots: what is looked up again and again is indexed once
class HostRouting:
    """A host's routing: what is configured and what the kernel answers.

    Attributes:
        rules: ``ip -j rule`` and ``ip -j -6 rule``.
        routes: ``ip -j route show table all``.
        lookups: destination → the answer to ``ip route get``; which destinations are wanted is lookup_targets' to say.
    """

    rules: tuple[RoutingRule, ...]
    routes: tuple[Route, ...]
    lookups: Mapping[IPAddress, RouteLookup]

    def reachable_tables(self, destination: IPAddress) -> tuple[str, ...]:
        """Every table in which some unmarked packet to the destination is looked up, in that order.

        A packet may have any source, interface, user and port, so a rule with such selectors counts; a rule for a mark that an
        unmarked packet has not (Cilium's ``fwmark 0x200/0xf00 lookup 2004``) does not, nor what stands behind a final rule.
        """
        # Only a rule that names a destination tells two of one family apart; few hosts have one.
        if destination.version in self._choosy:
            return self._tables_to(destination)
        if destination.version not in self._tables:
            self._tables[destination.version] = self._tables_to(destination)
        return self._tables[destination.version]

    def _tables_to(self, destination: IPAddress) -> tuple[str, ...]:
        tables: list[str] = []
        for rule, always in self._walk(destination):
            if rule.table is not None and rule.table not in tables:
                tables.append(rule.table)
            if always and rule.action in _FINAL_ACTIONS:
                break
        return tuple(tables) if self._rules(destination.version) else _INITIAL_TABLES

    def refusing(self, destination: IPAddress) -> tuple[RoutingRule, ...]:
        """The rules that end the lookup of some unmarked packet to the destination without a way."""
        return tuple(rule for rule, _ in self._walk(destination) if rule.action in _FINAL_ACTIONS)

    def reachable_routes(self, destination: IPAddress) -> tuple[Route, ...]:
        """All routes of the destination's family in the tables that an unmarked packet to it reaches."""
        tables = set(self.reachable_tables(destination))
        return tuple(r for r in self.routes if r.table in tables and r.destination.version == destination.version)

    def routes_for(self, prefix: IPNetwork) -> tuple[Route, ...]:
        """The routes for exactly this prefix in the tables that an unmarked packet to its first address reaches."""
        tables = self.reachable_tables(prefix.network_address)
        return tuple(route for route in self._by_prefix.get(prefix, ()) if route.table in tables)

    def lookups_in(self, prefix: IPNetwork) -> tuple[tuple[IPAddress, RouteLookup], ...]:
        """The destinations in the prefix that the kernel was asked for, and its answers."""
        numbers = self._asked.get(prefix.version, ())
        first = bisect.bisect_left(numbers, (int(prefix.network_address),))
        last = bisect.bisect_left(numbers, (int(prefix.broadcast_address) + 1,))
        return tuple((ip, self.lookups[ip]) for _, _, ip in sorted(numbers[first:last], key=lambda asked: asked[1]))

    @functools.cached_property
    def _choosy(self) -> frozenset[int]:
        """The families of which some rule names a destination."""
        return frozenset(rule.family for rule in self.rules if rule.destination is not None)

    @functools.cached_property
    def _tables(self) -> dict[int, tuple[str, ...]]:
        """Family → reachable_tables of all its destinations, as far as asked for."""
        return {}

    @functools.cached_property
    def _by_prefix(self) -> Mapping[IPNetwork, list[Route]]:
        found: dict[IPNetwork, list[Route]] = {}
        for route in self.routes:
            found.setdefault(route.destination, []).append(route)
        return found

    @functools.cached_property
    def _asked(self) -> Mapping[int, list[tuple[int, int, IPAddress]]]:
        """Family → the destinations that the kernel was asked for, in the order of their numbers, each with its place in the asking."""
        found: dict[int, list[tuple[int, int, IPAddress]]] = {}
        for place, ip in enumerate(self.lookups):
            found.setdefault(ip.version, []).append((int(ip), place, ip))
        return {family: sorted(numbers) for family, numbers in found.items()}

    def through(self, device: str) -> tuple[Route, ...]:
        """All routes that leave by the device, in whatever table."""
        return tuple(route for route in self.routes if device in route.devices)

    def best(self, destination: IPAddress) -> Route | None:
        """The route that a host process's packet takes: unmarked, no source chosen yet; None when there is none.

        A rule with an action of its own that ends the walk is no route: None as well.
        """
        if not self._rules(destination.version):
            return self._in_tables(((table, None) for table in _INITIAL_TABLES), destination)
        tables: list[tuple[str, int | None]] = []
        for rule, _ in self._walk(destination):
            if not _takes_host_packet(rule, destination):
                continue
            if rule.table is not None:
                tables.append((rule.table, rule.suppress_prefixlength))
            elif rule.action in _FINAL_ACTIONS:
                break
        return self._in_tables(tables, destination)

    def _rules(self, family: int) -> list[RoutingRule]:
        return sorted((r for r in self.rules if r.family == family), key=lambda rule: rule.priority)

    def _walk(self, destination: IPAddress) -> Iterator[tuple[RoutingRule, bool]]:
        """The rules that may take an unmarked packet, in order, and whether they take every one."""
        start = 0
        for rule in self._rules(destination.version):
            may, always = _takes_unmarked(rule, destination)
            if rule.priority < start or not may:
                continue
            if always and rule.goto is not None:
                start = rule.goto
            yield rule, always

    def _in_tables(self, tables: Iterable[tuple[str, int | None]], destination: IPAddress) -> Route | None:
        for table, suppressed in tables:
            found = _longest_prefix(self.routes, table, destination)
            if found is None or found.type not in _ROUTE_ENDS_LOOKUP:
                continue
            if suppressed is None or found.destination.prefixlen > suppressed:
                return found
        return None


@dataclasses.dataclass(frozen=True, slots=True)
class ServiceNetwork:
    """What is known of the range of ClusterIPs.

    Attributes:
        cidrs: the Service CIDRs themselves, where the API or the inventory says; else empty.
        cluster_ips: the ClusterIPs of all Services.
        foreign: node addresses and PodCIDRs, which no Service CIDR may hold.
    """

    cidrs: tuple[IPNetwork, ...]
    cluster_ips: frozenset[IPAddress]
    foreign: tuple[IPNetwork, ...]

    def holds(self, network: IPNetwork) -> bool:
        """Whether the prefix lies inside the Service CIDR or equals it.

        Where the Service CIDR is not known: a prefix lies inside when it holds a ClusterIP, is no wider than kube-apiserver
        lets a Service CIDR be, and holds no node or Pod address. A default route and an aggregate such as 10.0.0.0/8 are wider;
        10.43.0.0/16 with ClusterIPs and nothing else is not.
        """
        known = [cidr for cidr in self.cidrs if cidr.version == network.version]
        if known:
            return any(_inside(network, cidr) for cidr in known)
        if network.prefixlen < _WIDEST_SERVICE_CIDR[network.version]:
            return False
        if any(_inside(other, network) for other in self.foreign):
            return False
        return any(ip in network for ip in self.cluster_ips)

    def __str__(self) -> str:
        """The CIDRs, or that they are not known."""
        return ", ".join(map(str, self.cidrs)) or f"not published; {len(self.cluster_ips)} ClusterIPs"


def service_network(objects: ClusterObjects, pinned: Iterable[IPNetwork] = ()) -> ServiceNetwork:
    """What the API tells of the Service CIDR; ``pinned`` (the inventory's word) goes before ServiceCIDR objects."""
    nodes = [ip for node in objects.nodes for ip in node.internal_ips]
    pods = [cidr for node in objects.nodes for cidr in node.pod_cidrs]
    pods += [cidr for node in objects.cilium_nodes for cidr in node.pod_cidrs]
    return ServiceNetwork(
        cidrs=tuple(pinned) or objects.service_cidrs,
        cluster_ips=frozenset(ip for service in objects.services for ip in service.cluster_ips),
        foreign=(*map(host_network, nodes), *pods),
    )


def lookup_targets(objects: ClusterObjects, node: str, vips: Iterable[IPAddress]) -> tuple[IPAddress, ...]:
    """The destinations for which a node is to be asked ``ip route get``: the ClusterIPs and one address of each remote PodCIDR.

    Of a PodCIDR the node's CiliumInternalIP where it lies inside, which no more specific route can hide; else its second address.
    """
    wanted = list(vips)
    for other in objects.cilium_nodes:
        if other.name == node:
            continue
        for cidr in other.pod_cidrs:
            inside = (ip for ip in other.cilium_internal_ips if ip in cidr)
            wanted.append(next(inside, cidr[min(1, cidr.num_addresses - 1)]))
    return tuple(dict.fromkeys(wanted))


def host_network(address: IPAddress) -> IPNetwork:
    """The prefix that holds this one address."""
    return ipaddress.IPv4Network(address) if address.version == 4 else ipaddress.IPv6Network(address)


def _inside(inner: IPNetwork, outer: IPNetwork) -> bool:
    if inner.version != outer.version or inner.prefixlen < outer.prefixlen:
        return False
    return inner.network_address in outer


def _takes_unmarked(rule: RoutingRule, destination: IPAddress) -> tuple[bool, bool]:
    """Whether the rule may take an unmarked packet to the destination, and whether it takes every such packet."""
    fits = _mark_fits(rule) and (rule.destination is None or destination in rule.destination)
    narrow = bool(rule.other or rule.iif or rule.oif or (rule.source is not None and rule.source.prefixlen))
    if rule.negated:
        return (not fits or narrow), not fits
    return fits, fits and not narrow


def _takes_host_packet(rule: RoutingRule, destination: IPAddress) -> bool:
    """Whether the rule takes an unmarked packet of a host process of root whose source is not chosen yet.

    Such a packet's incoming interface is lo, its source 0.0.0.0; ports and protocol are taken as unknown and so as not matching.
    """
    fits = _mark_fits(rule) and (rule.destination is None or destination in rule.destination)
    fits = fits and (rule.source is None or rule.source.prefixlen == 0) and rule.iif in (None, "lo") and rule.oif is None
    fits = fits and all(word.startswith("uidrange 0-") for word in rule.other)
    return fits != rule.negated


def _mark_fits(rule: RoutingRule) -> bool:
    """Mark 0 meets the rule's value under its mask."""
    if rule.fwmark is None:
        return True
    value, _, mask = rule.fwmark.partition("/")
    return int(value, 0) & (int(mask, 0) if mask else 0xFFFFFFFF) == 0


def _longest_prefix(routes: Iterable[Route], table: str, destination: IPAddress) -> Route | None:
    fitting = [r for r in routes if r.table == table and destination in r.destination]
    return max(fitting, key=lambda r: (r.destination.prefixlen, -(r.metric or 0)), default=None)
