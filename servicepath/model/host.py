"""A node's (or LAN host's) own network state: interfaces, routes, rules, listening sockets, connection tracking.

Fields follow ``ip -j`` of iproute2 5.10 to 6.x, ``ss -Htulnp`` and ``conntrack -L``. Printed, a fact looks as the tool's own text
does, so that evidence from JSON reads like what a person sees at the prompt. How packets are routed is in routing.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping

from .addresses import IPAddress, IPInterface, IPNetwork, Socket
from .rules import Counter


@dataclasses.dataclass(frozen=True, slots=True)
class Interface:
    """A network interface.

    Attributes:
        up: administratively up and not down in operation; a tunnel's usual state UNKNOWN is up.
        kind: the link kind (veth, vxlan, …), None for physical ones or where not shown (``ip -d`` shows it).
        link_index: index of a veth's other end, in that end's own namespace.
        link: name of a veth's other end or of the device below, where it is in the same namespace.
        master: the bridge or bond that the interface belongs to.
        vxlan_id: the fixed VNI; None for ``external`` devices (Cilium's), whose VNI is set packet by packet.
    """

    name: str
    index: int | None
    mtu: int | None
    up: bool
    mac: str | None
    addresses: tuple[IPInterface, ...]
    kind: str | None = None
    link_netnsid: int | None = None
    link_index: int | None = None
    vxlan_id: int | None = None
    vxlan_port: int | None = None
    link: str | None = None
    master: str | None = None
    raw: str = dataclasses.field(default="", compare=False)

    def holds(self, address: IPAddress) -> bool:
        """Whether the address is one of the interface's own, in whatever state the interface is."""
        return any(mine.ip == address for mine in self.addresses)

    def __str__(self) -> str:
        """``31: kube-ipvs0: DOWN mtu 1500 10.43.0.1/32``."""
        words = [f"{self.index or '?'}: {self.name}:", "UP" if self.up else "DOWN"]
        words += [] if self.mtu is None else [f"mtu {self.mtu}"]
        words += [f"{self.kind} dstport {self.vxlan_port}"] if self.vxlan_port else []
        return " ".join([*words, *(str(address) for address in self.addresses)])


@dataclasses.dataclass(frozen=True, slots=True)
class NextHop:
    """One of several ways of a route."""

    via: IPAddress | None
    device: str | None


@dataclasses.dataclass(frozen=True)  # without slots: many tests show a route, and it is put into words once
class Route:
    """One route. ``type`` is unicast, local, broadcast, unreachable, …; ``table`` main, local, 2004, …; default is 0.0.0.0/0.

    ``nexthops`` is filled for a route with several ways, whose own ``via`` and ``device`` are then None.
    """

    destination: IPNetwork
    type: str
    table: str
    via: IPAddress | None
    device: str | None
    source: IPAddress | None
    mtu: int | None
    metric: int | None
    protocol: str | None
    nexthops: tuple[NextHop, ...] = ()
    raw: str = dataclasses.field(default="", compare=False)

    @property
    def devices(self) -> frozenset[str]:
        """Every device that a packet may leave by."""
        named = (self.device, *(hop.device for hop in self.nexthops))
        return frozenset(device for device in named if device is not None)

    def __str__(self) -> str:
        """As ``ip route show table all`` prints it; the table is named unless it is main."""
        return self._in_words

    @functools.cached_property
    def _in_words(self) -> str:
        words = [] if self.type == "unicast" else [self.type]
        words.append(_destination(self.destination))
        words += _words(via=self.via, dev=self.device, table=None if self.table == "main" else self.table, proto=self.protocol)
        words += _words(src=self.source, metric=self.metric, mtu=self.mtu)
        for hop in self.nexthops:
            words += ["nexthop", *_words(via=hop.via, dev=hop.device)]
        return " ".join(words)


@dataclasses.dataclass(frozen=True, slots=True)
class RoutingRule:
    """One line of ``ip rule``. ``fwmark`` is ``0x200`` or ``0x200/0xf00`` as printed; None: the rule takes any mark.

    Attributes:
        table: the table looked up; None for a rule with another action.
        action: unreachable, blackhole, prohibit, nop, masquerade, goto; None for a lookup.
        family: 4 or 6; ``ip rule`` alone lists 4, ``ip -6 rule`` 6.
        negated: ``not``: the rule takes what its selectors do not match.
        goto: the priority to go on at.
        suppress_prefixlength: routes of this prefix length or shorter are passed over.
        other: further selectors as words (``uidrange 100-200``, ``ipproto tcp``, ``dport 80``, ``tos 0x10``).
    """

    priority: int
    source: IPNetwork | None
    destination: IPNetwork | None
    fwmark: str | None
    table: str | None
    action: str | None
    family: int = 4
    negated: bool = False
    iif: str | None = None
    oif: str | None = None
    goto: int | None = None
    suppress_prefixlength: int | None = None
    other: tuple[str, ...] = ()
    raw: str = dataclasses.field(default="", compare=False)

    def __str__(self) -> str:
        """As ``ip rule`` prints it."""
        words = [f"{self.priority}:", *(["not"] if self.negated else []), "from", str(self.source or "all")]
        words += _words(to=self.destination, fwmark=self.fwmark, iif=self.iif, oif=self.oif)
        words += [*self.other, *_words(lookup=self.table, goto=self.goto)]
        words += [self.action] if self.action and self.action != "goto" else []
        return " ".join([*words, *_words(suppress_prefixlength=self.suppress_prefixlength)])


@dataclasses.dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket; ``address`` is None for a wildcard, ``protocol`` UDP, TCP, … in upper case.

    ``process`` is the first process's name; None where ``ss`` may not show it (without root) or was not asked.
    """

    protocol: str
    address: IPAddress | None
    port: int
    process: str | None
    device: str | None = None
    raw: str = dataclasses.field(default="", compare=False)

    def __str__(self) -> str:
        """``TCP 127.0.0.1:10249 kube-proxy``."""
        where = f"*:{self.port}" if self.address is None else str(Socket(self.address, self.port))
        return " ".join([self.protocol, where, *([self.process] if self.process else [])])


@dataclasses.dataclass(frozen=True, slots=True)
class RouteLookup:
    """The kernel's answer to ``ip route get``.

    ``type`` is unicast, local, …; unreachable, blackhole or prohibit where the kernel refused. ``via`` is None also where the
    gateway is the host's own address, as with Cilium's routes.
    """

    destination: IPAddress
    device: str | None
    via: IPAddress | None
    source: IPAddress | None
    mtu: int | None
    type: str
    table: str | None
    raw: str = dataclasses.field(default="", compare=False)

    def __str__(self) -> str:
        """As ``ip route get`` prints it, in one line."""
        words = [*([] if self.type == "unicast" else [self.type]), str(self.destination)]
        words += _words(via=self.via, dev=self.device, table=self.table, src=self.source, mtu=self.mtu)
        return " ".join(words)


@dataclasses.dataclass(frozen=True, slots=True)
class ConntrackEntry:
    """One netfilter conntrack entry, both tuples.

    ``original`` is (source, destination) as first sent; ``reply`` is (source, destination) as the answer is expected.
    ``protocol`` is in upper case (UDP, TCP, SCTP). ``timeout`` is in seconds; None for offloaded flows. ``counts`` are the
    counters of both directions where the kernel keeps them (net.netfilter.nf_conntrack_acct), else None.
    """

    protocol: str
    original: tuple[Socket, Socket]
    reply: tuple[Socket, Socket]
    state: str | None
    unreplied: bool
    assured: bool
    timeout: int | None
    mark: int | None
    zone: int | None = None
    counts: tuple[Counter, Counter] | None = dataclasses.field(default=None, compare=False)
    raw: str = dataclasses.field(default="", compare=False)

    def __str__(self) -> str:
        """The entry as the tool printed it."""
        return self.raw


@dataclasses.dataclass(frozen=True, slots=True)
class ConntrackTable:
    """One listing of conntrack.

    Attributes:
        entries: those of protocols with ports.
        without_ports: how many of each other protocol (ICMP, GRE, …) the listing held besides.
    """

    entries: tuple[ConntrackEntry, ...]
    without_ports: Mapping[str, int]


def with_links(interfaces: Iterable[Interface], links: Iterable[Interface]) -> tuple[Interface, ...]:
    """The interfaces of an address listing with what only ``ip -d link`` tells of them: kind, tunnel, master."""
    known = {link.name: link for link in links}
    return tuple(
        dataclasses.replace(mine, kind=link.kind, vxlan_id=link.vxlan_id, vxlan_port=link.vxlan_port, master=link.master or mine.master)
        if (link := known.get(mine.name))
        else mine
        for mine in interfaces
    )


def _destination(network: IPNetwork) -> str:
    """A destination as ip prints it: default, an address, or a prefix."""
    if network.prefixlen == 0:
        return "default"
    return str(network.network_address) if network.prefixlen == network.max_prefixlen else str(network)


def _words(**parts: object) -> list[str]:
    """Keyword and value, for the parts that are there."""
    return [word for key, value in parts.items() if value is not None for word in (key, str(value))]
