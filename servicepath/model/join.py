"""Join one probe flow with every place at which it was seen: host conntrack, Cilium's connection tracking, captures."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from .addresses import IPAddress, Socket
from .cilium import CtEntry
from .flows import Flow, Probe, Source, Trace
from .host import ConntrackEntry
from .packets import Capture, Packet
from .services import ClusterObjects


class FlowTables:
    """Both flow tables by port, so that a flow's entries are found without a look at all others.

    Args:
        conntrack: the host's entries, read after the flows.
        ct: Cilium's entries of the node, read after the flows.
    """

    def __init__(self, conntrack: Iterable[ConntrackEntry], ct: Iterable[CtEntry] = ()) -> None:
        self._host: dict[int, list[ConntrackEntry]] = {}
        self._replied: dict[Socket, list[ConntrackEntry]] = {}
        self._cilium: dict[int, list[CtEntry]] = {}
        for entry in conntrack:
            self._host.setdefault(entry.original[0].port, []).append(entry)
            self._replied.setdefault(entry.reply[1], []).append(entry)
        for seen in ct:
            for number in {seen.source.port, seen.destination.port}:
                self._cilium.setdefault(number, []).append(seen)

    def host(self, sport: int) -> Sequence[ConntrackEntry]:
        """The host's entries that start at this port."""
        return self._host.get(sport, ())

    def replied(self, end: Socket) -> Sequence[ConntrackEntry]:
        """The host's entries whose answers go to this client end, as masqueraded."""
        return self._replied.get(end, ())

    def cilium(self, number: int) -> Sequence[CtEntry]:
        """Cilium's entries with this port at either end."""
        return self._cilium.get(number, ())


class PacketIndex:
    """Captured packets by port and DNS id, so that a flow's are found without a look at all others.

    Args:
        captures: role → capture; the captures of several backends' interfaces count as one, "backend-lxc".
    """

    def __init__(self, captures: Mapping[str, Capture]) -> None:
        self._roles: dict[str, dict[int | None, list[Packet]]] = {}
        for role, capture in captures.items():
            index = self._roles.setdefault("backend-lxc" if role.startswith("backend-lxc") else role, {})
            for packet in capture.packets:
                # Ports and ids are numbers of 16 bits alike: one index serves both, and _belongs tells what really matches.
                for number in {packet.innermost.sport, packet.innermost.dport, packet.dns_id}:
                    index.setdefault(number, []).append(packet)

    def of(self, probe: Probe, ends: set[Socket], others: Collection[frozenset[Socket]] = ()) -> dict[str, tuple[Packet, ...]]:
        """Role → the flow's packets, in the capture's order.

        Args:
            probe: the flow.
            ends: the flow's client ends, as sent and as masqueraded.
            others: both ends of other flows that masquerading gave the same client end.
        """
        numbers = {end.port for end in ends} | {query.dns_id for query in probe.queries}
        found = {}
        for role, index in self._roles.items():
            candidates = {id(p): p for number in numbers for p in index.get(number, ())}
            mine = [p for p in candidates.values() if _belongs(p, probe, ends, others)]
            found[role] = tuple(sorted(mine, key=lambda packet: packet.time))
        return found


def trace(
    flow: Flow,
    client: IPAddress | None,
    tables: FlowTables,
    captures: PacketIndex,
    objects: ClusterObjects,
    elsewhere: Collection[IPAddress] = (),
) -> Trace:
    """Find all that belongs to the flow.

    The flow's own source port (and protocol) joins the tables; on the wire masquerading may have changed the port, so there
    conntrack's reply tuple and the DNS id join.

    Args:
        flow: what was sent and answered.
        client: the client Pod's address; None for the host's flows.
        tables: the host's and Cilium's.
        captures: what was captured.
        objects: names the backend's node.
        elsewhere: the addresses of other nodes: what starts there is no flow of this host.
    """
    probe = flow.probe
    host_entries = tuple(e for e in tables.host(probe.sport) if _holds(e, probe, client, objects.pod_ips, elsewhere))
    cilium_entries = tuple(c for c in tables.cilium(probe.sport) if client is not None and _is_ours(c, probe, client))
    backend = _backend(probe, host_entries, cilium_entries)
    ends = {Socket(client, probe.sport)} if client is not None else set()
    ends |= {entry.reply[1] for entry in host_entries}
    # Two flows to different backends may get the same port: it need only be free towards one (nf_nat, random ports). Towards the same
    # backend the kernel has room for one of a protocol, so another with our own tuple had ended before: an earlier reading still lists it.
    others = {frozenset(e.reply) for end in ends for e in tables.replied(end)} - {frozenset(e.reply) for e in host_entries}
    packets = captures.of(probe, ends, others)
    node = objects.node_of(backend.ip) if backend else None
    return Trace(flow, host_entries, cilium_entries, backend, node, packets)


def _holds(
    entry: ConntrackEntry, probe: Probe, client: IPAddress | None, pods: Collection[IPAddress], elsewhere: Collection[IPAddress]
) -> bool:  # fmt: skip
    """The entry's first tuple starts at the flow's source port and goes to the Service, or (Pod) starts at the Pod.

    The host's flow may go to a Pod at once: socket LB has translated it before there was a packet. Another Pod's flow that starts at
    the same port by chance starts at that Pod's address, and another node's at an address of that node.
    """
    if entry.protocol.upper() != probe.port.protocol or entry.original[0].port != probe.sport:
        return False
    if client is not None:
        return entry.original[0].ip == client
    source, target = entry.original
    return target == probe.target or (target.ip in pods and source.ip not in pods and source.ip not in elsewhere)


def _is_ours(entry: CtEntry, probe: Probe, client: IPAddress) -> bool:
    """Either end is the Pod at the flow's source port: old releases print SVC entries with the ends swapped (cilium#17729)."""
    ours = Socket(client, probe.sport)
    return entry.protocol.upper() == probe.port.protocol and ours in (entry.source, entry.destination)


def _backend(probe: Probe, conntrack: Sequence[ConntrackEntry], ct: Sequence[CtEntry]) -> Socket | None:
    """The backend that the flow really got."""
    if probe.source is Source.POD:
        for entry in ct:
            if entry.direction == "OUT" and entry.destination != probe.target and entry.source.port == probe.sport:
                return entry.destination
    for seen in conntrack:
        if seen.reply[0] != probe.target:
            return seen.reply[0]
    return None


def _belongs(packet: Packet, probe: Probe, ends: set[Socket], others: Collection[frozenset[Socket]]) -> bool:
    """The packet carries one of the flow's DNS messages, or starts or ends at one of its client ends and is no other flow's."""
    header = packet.innermost
    if header.protocol != probe.port.protocol:
        return False
    if any(packet.dns_id == q.dns_id and packet.question == q.question for q in probe.queries):
        return True
    if header.sport is None or header.dport is None:
        return False
    sockets = frozenset((Socket(header.source, header.sport), Socket(header.destination, header.dport)))
    return bool(sockets & ends) and sockets not in others
