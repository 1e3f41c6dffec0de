"""Probe flows: what was asked through a Service, from where, what came back, and every place at which it was seen."""

from __future__ import annotations

import dataclasses
import enum

from .addresses import IPAddress, Socket
from .cilium import CtEntry
from .host import ConntrackEntry
from .packets import Capture, Packet
from .services import ServicePort


class Source(enum.Enum):
    """Where a flow starts: in the node's own network, or in a Pod's."""

    HOST = "host"
    POD = "Pod"


@dataclasses.dataclass(frozen=True, slots=True)
class Query:
    """One DNS question: its id, its text (``kubernetes.default.svc.cluster.local. A``), and the message's bytes."""

    dns_id: int
    question: str
    payload: bytes


@dataclasses.dataclass(frozen=True, slots=True)
class Probe:
    """One flow to be sent: one socket, bound to a source port of its own.

    Attributes:
        id: unique in a run ("host-kube-dns:dns/UDP-3").
        window: the counter window in which it is sent ("host", "pod", "control", "one-connection", "second-connection", "size").
        queries: asked one after the other; empty for a bare TCP connect.
        dont_fragment: set DF and ignore the path MTU known to the kernel (IP_PMTUDISC_PROBE).
    """

    id: str
    window: str
    source: Source
    port: ServicePort
    target: Socket
    sport: int
    queries: tuple[Query, ...]
    timeout: float
    dont_fragment: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """One answer: where the application saw it come from, what it said, and after how many seconds.

    ``rcode`` and ``values`` are None and empty for bytes that are no DNS message.
    """

    source: Socket
    dns_id: int | None
    rcode: str | None
    values: tuple[str, ...]
    took: float


@dataclasses.dataclass(frozen=True, slots=True)
class Flow:
    """A probe and what became of it.

    ``answers`` has one entry a query, None where none came; ``error`` is the kernel's word. ``unsent``: the source port could not be
    had on the node, so that nothing was sent and nothing is known.
    """

    probe: Probe
    answers: tuple[Answer | None, ...]
    connected: bool | None
    error: str | None
    unsent: bool = False

    @property
    def answered(self) -> bool:
        """Every query was answered; a bare TCP connect was accepted."""
        return bool(self.connected) if not self.probe.queries else all(answer is not None for answer in self.answers)


@dataclasses.dataclass(frozen=True, slots=True)
class Trace:
    """A flow with every place at which it was seen.

    Attributes:
        conntrack: entries of the host's conntrack that hold the flow's source port, in either tuple.
        ct: entries of Cilium's connection tracking for it.
        backend: the backend that it really got, from conntrack's reply tuple (host) or Cilium's OUT entry (Pod); None unknown.
        backend_node: the backend's node; None when unknown.
        packets: captured packets of the flow, by the capture's role ("underlay", "tunnel", "client-lxc", "backend-lxc").
    """

    flow: Flow
    conntrack: tuple[ConntrackEntry, ...]
    ct: tuple[CtEntry, ...]
    backend: Socket | None
    backend_node: str | None
    packets: dict[str, tuple[Packet, ...]]

    @property
    def probe(self) -> Probe:
        """The probe."""
        return self.flow.probe


@dataclasses.dataclass(frozen=True, slots=True)
class NodeTraffic:
    """All that one node's traffic experiment showed.

    Attributes:
        node: the client's node.
        clients: the client Pod's addresses, one a family; none when the node has no client Pod.
        traces: every flow that was sent.
        captures: role → capture.
    """

    node: str
    clients: tuple[IPAddress, ...]
    traces: tuple[Trace, ...]
    captures: dict[str, Capture]

    @property
    def client(self) -> IPAddress | None:
        """The client Pod's first address; None when there is no client Pod."""
        return self.clients[0] if self.clients else None

    def client_of(self, family: int) -> IPAddress | None:
        """The client Pod's address of the family (4 or 6), None when it has none."""
        return next((ip for ip in self.clients if ip.version == family), None)

    def of(self, port: ServicePort, source: Source, window: str | None = None) -> tuple[Trace, ...]:
        """The port's flows from that source, optionally of one counter window."""
        return tuple(
            t for t in self.traces
            if t.probe.port == port and t.probe.source is source and (window is None or t.probe.window == window)
        )  # fmt: skip
