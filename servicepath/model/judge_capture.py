"""Judge a capture of the tunnel that somebody else made: whose packets these are is not known, only what every one of them must be.

Outside they go from node to node, to the tunnel's UDP port; inside from an address of the one node's PodCIDRs to one of the other's
(the host's own traffic leaves from the CiliumInternalIP, which lies in a PodCIDR, too), never from or to a ClusterIP; and what is
asked is answered the same way back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator

from .addresses import IPAddress, IPNetwork
from .difference import Difference
from .packets import Header, Packet

_SHOWN = 40


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """One node as far as outer and inner addresses tell it.

    Attributes:
        certain: the networks are those that Cilium uses (CiliumNode), and not merely the Node's own.
    """

    name: str
    addresses: frozenset[IPAddress]
    networks: tuple[IPNetwork, ...]
    certain: bool


@dataclasses.dataclass(frozen=True, slots=True)
class OthersCapture:
    """The tunnel's packets of one node's captures, and what else tells of the tunnel there.

    Attributes:
        node: where it was captured.
        packets: the encapsulated packets, in time order.
        places: the nodes.
        tunnel_port: UDP port of the tunnel.
        down: what keeps the tunnel device from working; a tunnel that is down carries nothing.
        dropped: the kernel's own lines that it dropped packets of the tunnel for their checksum.
        cluster_ips: of all Services that are known.
    """

    node: str
    packets: tuple[Packet, ...]
    places: tuple[Place, ...]
    tunnel_port: int
    down: tuple[Difference, ...] = ()
    dropped: tuple[str, ...] = ()
    cluster_ips: frozenset[IPAddress] = frozenset()

    @property
    def lines(self) -> tuple[str, ...]:
        """The packets as a report shows them."""
        more = len(self.packets) - _SHOWN
        return (*map(str, self.packets[:_SHOWN]), *((f"… and {more} more",) if more > 0 else ()), *self.dropped)

    def place_of(self, ip: IPAddress) -> Place | None:
        """The node that has this address outside."""
        return next((place for place in self.places if ip in place.addresses), None)

    @property
    def flows(self) -> dict[frozenset[object], list[Packet]]:
        """The packets by the two ends of what is inside, whichever way they go."""
        found: dict[frozenset[object], list[Packet]] = {}
        for packet in self.packets:
            if packet.inner:
                found.setdefault(frozenset((*_ends(packet.inner), packet.inner.protocol)), []).append(packet)
        return found

    @property
    def arriving_damaged(self) -> tuple[Packet, ...]:
        """Packets that came to this node with a wrong outer checksum; on packets that leave, the network card is yet to put it in."""
        own = next((place.addresses for place in self.places if place.name == self.node), frozenset[IPAddress]())
        receivers = own or {p.outer.destination for p in self.packets if any(f"to {p.outer.destination}:" in line for line in self.dropped)}
        return tuple(p for p in self.packets if p.outer_checksum_ok is False and p.outer.destination in receivers)


def _ends(header: Header) -> tuple[object, object]:
    return (header.source, header.sport), (header.destination, header.dport)


def unanswerable(capture: OthersCapture) -> str | None:
    """Why the capture cannot tell whether answers come back; None when it can."""
    if capture.dropped or capture.arriving_damaged:
        return None
    ways = {(p.outer.source, p.outer.destination) for p in capture.packets}
    return None if any((b, a) in ways for a, b in ways) else "it holds one direction only"


def between_nodes(capture: OthersCapture) -> tuple[Difference, ...]:
    """Packets of the tunnel whose outer addresses are not those of two nodes, or that go to another port."""
    return (*capture.down, *(d for p in capture.packets for d in _outer(capture, p)))


def _outer(capture: OthersCapture, packet: Packet) -> Iterator[Difference]:
    strange = [ip for ip in (packet.outer.source, packet.outer.destination) if capture.place_of(ip) is None]
    expected = f"UDP to port {capture.tunnel_port} between two nodes' addresses"
    if strange:
        problem = f"outer address {strange[0]} is no node's"
        yield Difference(f"{capture.node}: packet of the tunnel", problem, expected, str(packet.outer), (str(packet),))
    elif packet.outer.dport != capture.tunnel_port:
        yield Difference(f"{capture.node}: packet of the tunnel", "goes to another port", expected, str(packet.outer), (str(packet),))


def inner_ends(capture: OthersCapture) -> tuple[Difference, ...]:
    """Packets whose inner addresses are not of the PodCIDRs of the nodes between which they travel."""
    return tuple(d for p in capture.packets if p.inner for d in _inner(capture, p, p.inner))


def uncertain(capture: OthersCapture) -> bool:
    """Whether all that inner_ends finds may only mean that Cilium uses other PodCIDRs than the Nodes name."""
    known = {ip for place in capture.places for ip in place.addresses} | capture.cluster_ips
    inner = {ip for p in capture.packets if p.inner for ip in (p.inner.source, p.inner.destination)}
    return not all(place.certain for place in capture.places) and not inner & known


def _inner(capture: OthersCapture, packet: Packet, inner: Header) -> Iterator[Difference]:
    for word, ip, outer in (("source", inner.source, packet.outer.source), ("destination", inner.destination, packet.outer.destination)):
        place = capture.place_of(outer)
        networks = place.networks if place else ()
        if any(ip in network for network in networks):
            continue
        what = "a ClusterIP" if ip in capture.cluster_ips else "a node's own address" if capture.place_of(ip) else "of no PodCIDR there"
        listed = ", ".join(map(str, networks))
        expected = f"an address of {place.name}'s PodCIDRs ({listed})" if place else "an address of a node's PodCIDRs"
        yield Difference(f"{capture.node}: inner {word}", f"is {what}", expected, str(ip), (str(packet),))


def carrying(capture: OthersCapture, vip: IPAddress) -> tuple[Difference, ...]:
    """Packets that carry the ClusterIP inside the tunnel."""
    subject, expected = f"{capture.node}: packet of the tunnel", f"no {vip} after translation"
    return tuple(
        Difference(subject, "carries the ClusterIP inside", expected, str(p.inner), (str(p),))
        for p in capture.packets
        if p.inner and vip in (p.inner.source, p.inner.destination)
    )


def answered(capture: OthersCapture) -> tuple[Difference, ...]:
    """Flows that are asked again and again and never answered, or whose answers come between other nodes."""
    damaged = frozenset(capture.arriving_damaged)
    end = max((p.time for p in capture.packets), default=0.0)
    wrong = [d for packets in capture.flows.values() for d in _one_flow(capture, packets, damaged, end)]
    if capture.dropped and not wrong:
        problem = "packets of the tunnel arrive with a wrong outer UDP checksum, and the kernel drops them"
        told = f"{len(capture.dropped)} lines"
        wrong.append(Difference(f"{capture.node}: the kernel's log", problem, "no such line", told, capture.dropped))
    return tuple(wrong)


def _one_flow(capture: OthersCapture, packets: list[Packet], damaged: Collection[Packet], end: float) -> Iterator[Difference]:
    asked = [p for p in packets if p.inner and packets[0].inner and _ends(p.inner) == _ends(packets[0].inner)]
    answers = [p for p in packets if p not in asked]
    subject = f"{capture.node}: {packets[0].inner}"
    evidence = (*map(str, packets[:4]), *capture.dropped[:4])
    if answers:
        there, back = _ways(asked), {(b, a) for a, b in _ways(answers)}
        if there != back:
            yield Difference(subject, "the answer takes another way", _said(there), _said(_ways(answers)), evidence)
    elif all(p in damaged for p in asked):
        problem = "arrives with a wrong outer UDP checksum, so that the kernel drops it, and is never answered"
        yield Difference(subject, problem, "a right checksum, or none", f"{len(asked)} packets with a wrong one", evidence)
    elif len(asked) > 1 and end - asked[-1].time >= 1:
        yield Difference(subject, "is never answered", "an answer the same way back", f"{len(asked)} packets one way", evidence)


def _ways(packets: Iterable[Packet]) -> set[tuple[IPAddress, IPAddress]]:
    return {(p.outer.source, p.outer.destination) for p in packets}


def _said(ways: Iterable[tuple[IPAddress, IPAddress]]) -> str:
    return "; ".join(sorted(f"{a} → {b}" for a, b in ways)) or "none"
