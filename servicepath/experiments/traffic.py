"""The traffic experiment of one node: captures on, and between cuts of the counters the probes of each window; one round trip.

The order of the windows is the order of the notes: host (§6), Pod (§7), a host flow as control, then what needs TCP.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..channel import Command
from ..model.addresses import IPAddress
from ..model.flows import Probe, Source
from . import capture, counters, probe

# Windows in the order in which they are sent; each lies between two cuts.
WINDOWS = ("host", "pod", "control", "one-connection", "second-connection")

# Sent after the last cut: no counter is read for it.
SIZE_WINDOW = "size"


@dataclasses.dataclass(frozen=True, slots=True)
class NodePlan:
    """All that one node's experiment needs to know.

    Attributes:
        node: the node's name.
        save_tool: the command that prints the nat table with counters, of the back end in use.
        addresses: the ClusterIPs under test and the client Pod's addresses: conntrack entries that name none are not kept.
        probes: every flow to send, of all windows.
        taps: where to capture.
        client_netns: path of the client Pod's network namespace on the node; None when the node has no client Pod.
        clients: that Pod's addresses, one a family.
        route_mtu: the MTU of the node's remote Pod routes, bytes; None where none is set.
        readings: how often each cut reads the counters.
    """

    node: str
    save_tool: tuple[str, ...]
    addresses: tuple[IPAddress, ...]
    probes: tuple[Probe, ...]
    taps: tuple[capture.Tap, ...]
    client_netns: str | None
    clients: tuple[IPAddress, ...]
    route_mtu: int | None
    readings: int = 1

    @property
    def client(self) -> IPAddress | None:
        """The client Pod's first address; None when there is no client Pod."""
        return self.clients[0] if self.clients else None

    def client_of(self, family: int) -> IPAddress | None:
        """The client Pod's address of the family (4 or 6), None when it has none."""
        return next((ip for ip in self.clients if ip.version == family), None)

    def window(self, name: str) -> tuple[Probe, ...]:
        """The probes of one window."""
        return tuple(p for p in self.probes if p.window == name)


def commands(plan: NodePlan) -> tuple[Command, ...]:
    """The whole batch for a node: ``cut-N-…``, ``send-WINDOW-SOURCE``, and ``capture-ROLE``, which prints a pcap."""
    folder = capture.fresh_folder()
    batch: list[Command] = [capture.start(plan.taps, folder)] if plan.taps else []
    batch += counters.cut(0, plan.save_tool, plan.addresses, plan.readings)
    for number, window in enumerate(WINDOWS, 1):
        batch += _send(plan, window)
        batch += counters.cut(number, plan.save_tool, plan.addresses, plan.readings)
    batch += _send(plan, SIZE_WINDOW)
    if plan.taps:
        batch += capture.stop(plan.taps, folder)
    return tuple(batch)


def _send(plan: NodePlan, window: str) -> Sequence[Command]:
    """The window's probes: those of the host first, then those of the Pod, each one program on the node."""
    sent = []
    for source in Source:
        probes = [p for p in plan.window(window) if p.source is source]
        if probes:
            netns = plan.client_netns if source is Source.POD else None
            sent.append(probe.command(f"send-{window}-{source.value.lower()}", probes, netns=netns))
    return sent

