"""Counter windows: what changed in iptables and conntrack between two cuts, and whether anything disturbed the measurement."""

from __future__ import annotations

import dataclasses

from .addresses import Socket
from .host import ConntrackEntry
from .rules import Ruleset


@dataclasses.dataclass(frozen=True, slots=True)
class SyncMark:
    """What tells one kube-proxy sync from the next.

    ``value`` changes with every sync: the metric's time and count of syncs, or the handles of KUBE-SERVICES' rules.
    """

    by: str
    value: str


@dataclasses.dataclass(frozen=True, slots=True)
class Cut:
    """One moment: sync mark, conntrack, nat counters, conntrack, sync mark, in this order; a mark is None where none was seen."""

    nat: Ruleset
    sync: tuple[SyncMark | None, SyncMark | None]
    conntrack: tuple[tuple[ConntrackEntry, ...], tuple[ConntrackEntry, ...]]


@dataclasses.dataclass(frozen=True, slots=True)
class Window:
    """The time between two cuts.

    Attributes:
        name: of the window.
        before, after: the cuts.
        own_ports: the source ports of the whole run; flows from others are foreign.
        sent_ports: those of them that were sent from in this window.
    """

    name: str
    before: Cut
    after: Cut
    own_ports: frozenset[int]
    sent_ports: frozenset[int]

    @property
    def counts(self) -> bool:
        """Whether kube-proxy has chains among the rules that were read: only these count flows."""
        return ("nat", "KUBE-SERVICES") in self.after.nat.chains

    @property
    def synced(self) -> bool | None:
        """Whether kube-proxy synced between the two readings of the counters; None when nothing tells."""
        marks = (*self.before.sync, *self.after.sync)
        if any(mark is None for mark in marks):
            return None
        return len({mark.value for mark in marks if mark}) > 1

    def reused(self, target: Socket) -> tuple[ConntrackEntry, ...]:
        """Entries to the target that held a source port of this window before it began: such a flow would be no new one."""
        return tuple(e for e in self.before.conntrack[0] if e.original[1] == target and e.original[0].port in self.sent_ports)

    def foreign(self, target: Socket, protocol: str) -> tuple[int, int]:
        """How many new flows of others went to the target: at least and at most.

        The two differ when one began while the counters were being read, so that it cannot be told on which side it counted.
        """
        certain = self._new(self.before.conntrack[1], self.after.conntrack[0], target, protocol)
        possible = self._new(self.before.conntrack[0], self.after.conntrack[1], target, protocol)
        return certain, possible

    def _new(
        self, before: tuple[ConntrackEntry, ...], after: tuple[ConntrackEntry, ...], target: Socket, protocol: str
    ) -> int:  # fmt: skip
        earlier, later = (
            [e.original[0] for e in table if e.original[1] == target and e.protocol.upper() == protocol] for table in (before, after)
        )
        known = set(earlier)
        return sum(source.port not in self.own_ports and source not in known for source in later)
