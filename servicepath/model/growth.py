"""What a counter window did to one Service port's rules, with foreign flows taken off; or why that cannot be told.

nat rules see only a connection's first packet (iptables(8)), so their counters count new flows. kube-proxy rewrites KUBE-SERVICES
from zero at any sync, a Service's own chains only when that Service changed (Kubernetes v1.34, pkg/proxy/iptables/proxier.go).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from .addresses import IPAddress, Socket
from .counters import CounterGrowth, Disturbed, by_other_ways, counter_deltas
from .difference import Difference
from .flows import Flow, Trace
from .rules import Counter, Rule
from .service_rules import MARK_MASQUERADE, walk_from_services
from .services import ServicePort
from .windows import Window

_WINDOWS = {
    "host": "the host's flows", "pod": "the Pod's flows", "control": "the host flow right after the Pod's",
    "one-connection": "several queries in one connection", "second-connection": "a second connection",
}  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class Growth:
    """How much the rules of one Service port counted in a window.

    Attributes:
        window: its name.
        port: the port.
        foreign: new flows of others to the port in the window.
        services: the rule in KUBE-SERVICES; None where a sync fell in between or nothing tells that none did.
        svc: all jumps of the Service's chain to endpoints, together.
        sep: all DNAT rules of its endpoints, together.
        masquerade: the Service's own rule to KUBE-MARK-MASQ; None where there is none.
        lines: the rules with their counters before and after.
        aside: flows that came by node port or load balancer; already taken off ``svc`` and ``sep``.
        mark: the rules of KUBE-MARK-MASQ itself; None where the listing does not have the chain.
    """

    window: str
    port: ServicePort
    foreign: int
    services: Counter | None
    svc: Counter
    sep: Counter
    masquerade: Counter | None
    lines: tuple[str, ...] = dataclasses.field(compare=False)
    aside: int = 0
    mark: tuple[Rule, ...] | None = dataclasses.field(default=None, compare=False)

    @property
    def summary(self) -> str:
        """How much each part grew, in packets and bytes."""
        parts = [("KUBE-SERVICES", self.services), ("KUBE-MARK-MASQ", self.masquerade), ("KUBE-SVC", self.svc), ("KUBE-SEP", self.sep)]
        grown = ", ".join(f"{name} +{c.packets} packets +{c.bytes} bytes" for name, c in parts if c is not None)
        unjudged = "" if self.services is not None else " (KUBE-SERVICES is not judged: kube-proxy synced, or nothing tells)"
        aside = f"; by node port or load balancer, taken off: {self.aside}" if self.aside else ""
        return f"{grown}; flows of others: {self.foreign}{aside}{unjudged}"

    @property
    def command(self) -> str:
        """How the counters were read."""
        return f"iptables-save -c -t nat | grep {self.port.chain_key}, before and after, in one round trip"

    def unlike(self, flows: int, first_packets: Sequence[int | None]) -> tuple[Difference, ...]:
        """Rules that did not count exactly our flows and those of others.

        Args:
            flows: how many new flows of ours should have been counted.
            first_packets: the IP lengths of their first packets; bytes are judged when all are known and nobody else sent.
        """
        counted = [("the jumps of the Service's chain", self.svc), ("the KUBE-SEP rules", self.sep)]
        if self.services is not None:
            counted.insert(0, ("the rule in KUBE-SERVICES", self.services))
        total = None
        if self.foreign == 0 and (flows == 0 or len(first_packets) == flows):
            lengths = [length for length in first_packets if length is not None]
            total = sum(lengths) if len(lengths) == flows else None
        return tuple(d for name, counter in counted for d in self._judge(name, counter, flows, total))

    def unmarked(self, flows: int) -> tuple[Difference, ...]:
        """The Service's masquerade rule, where it did not count exactly our flows and those of others, or leads to no mark."""
        if self.masquerade is None:
            subject = f"{self.port.chain_key}: masquerade rule"
            return (Difference(subject, "absent", "a rule to KUBE-MARK-MASQ in the Service's chain", "none", self.lines),)
        if self.mark is not None and not any(rule.target == "MARK" for rule in self.mark):
            found = tuple(rule.raw for rule in self.mark)
            return (Difference(MARK_MASQUERADE, "marks no packet", "a rule to MARK", f"{len(found)} rules, none to MARK", found),)
        return tuple(self._judge("the rule to KUBE-MARK-MASQ", self.masquerade, flows, None))

    def _judge(self, name: str, counter: Counter, flows: int, total: int | None) -> Iterable[Difference]:
        others = f" and {self.foreign} of others" if self.foreign else ""
        subject = f"{self.port.chain_key}: {name}, counted around {_WINDOWS.get(self.window, self.window)}"
        if counter.packets != flows + self.foreign:
            expected = f"+{flows + self.foreign} packets ({flows} new flows{others})"
            yield Difference(subject, "counted other than the new flows", expected, f"+{counter.packets} packets", self.lines)
        elif total is not None and counter.bytes != total:
            yield Difference(subject, "counted other bytes", f"+{total} bytes", f"+{counter.bytes} bytes", self.lines)


def measure(window: Window, vip: IPAddress, port: ServicePort) -> Growth | str:
    """Compare the counters before and after; a text instead says why they cannot be compared.

    Args:
        window: the two cuts.
        vip: the Service's ClusterIP.
        port: the Service's port.
    """
    target = Socket(vip, port.port)
    if window.reused(target):
        return "one of our source ports was in use already"
    certain, possible = window.foreign(target, port.protocol)
    if certain != possible:
        return f"{possible - certain} flows of others began while the counters were being read"
    walk = walk_from_services(window.after.nat, vip, port.protocol, port.port)
    found = counter_deltas(window.before.nat, window.after.nat, walk)
    if isinstance(found, Disturbed):
        return "; ".join((found.reason, *found.evidence))
    aside = by_other_ways(window.before.nat, window.after.nat, walk)
    if isinstance(aside, Disturbed):
        return aside.reason
    to_chain, past_it = aside
    # The rules do not show every sync, and where nothing else tells either, KUBE-SERVICES is not judged.
    services = found.service if isinstance(found.service, Counter) and window.synced is False else None
    masquerade = None if isinstance(found.masquerade, Disturbed) else found.masquerade
    lines = _lines(found)
    svc, sep = found.chain - to_chain, found.endpoints - to_chain - past_it
    chain = window.after.nat.chain("nat", MARK_MASQUERADE)
    mark = chain.rules if chain and window.after.nat.complete else None  # an excerpt may name it alone
    return Growth(window.name, port, certain, services, svc, sep, masquerade, lines, to_chain.packets + past_it.packets, mark)


def unexplained(found: Growth, window: Window, vip: IPAddress, ours: Sequence[Flow]) -> str | None:
    """Why more was counted than is known of, where none of our own flows can be the rest; None where nothing is over.

    What is translated and then dropped (by a firewall's rule, or as the lost half of a race for one conntrack entry) leaves its mark in
    the counters alone, since only a packet that got through is confirmed into conntrack (netfilter, nf_conntrack_confirm). Of ours each
    that was answered got through at once: it was counted once, and then the host's conntrack holds it, or it was not counted at all.

    Args:
        found: the growth of the window.
        window: the two cuts.
        vip: the Service's ClusterIP.
        ours: the flows that we sent to the port in the window.
    """
    counts = {counter.packets for counter in (found.services, found.svc, found.sep) if counter is not None}
    if len(counts) > 1 or not all(flow.answered for flow in ours):
        return None
    held = {e.original[0].port for e in window.after.conntrack[0] if e.original[1] == Socket(vip, found.port.port)}
    known = found.foreign + sum(flow.probe.sport in held for flow in ours)
    over = counts.pop() - known
    if over <= 0:
        return None
    return (
        f"{over} more were counted than the {known} flows in conntrack, and all of ours were answered: others' packets were dropped, "
        "or an entry had expired"
    )


def first_packet_length(trace: Trace) -> int | None:
    """The IP length, in bytes, of a flow's first packet.

    Of UDP it is known from what was sent (8 bytes of UDP header, 20 of IPv4 or 40 of IPv6); of TCP from the capture of its SYN.
    """
    probe = trace.probe
    if probe.port.protocol == "UDP":
        return len(probe.queries[0].payload) + (28 if probe.target.ip.version == 4 else 48)
    packets = sorted((p for role in ("underlay", "backend-lxc") for p in trace.packets.get(role, ())), key=lambda p: p.time)
    syn = next((p for p in packets if p.innermost.tcp_flags == "S"), None)
    return syn.innermost.length if syn else None


def _lines(found: CounterGrowth) -> tuple[str, ...]:
    """Each counting rule once, its counter before and after in front."""
    before = {_split(line)[1]: _split(line)[0] for line in found.before}
    pairs = ((before.get(rule, "?"), counter, rule) for counter, rule in map(_split, found.after))
    return tuple(f"{first} → {second} {rule}" for first, second, rule in pairs)


def _split(line: str) -> tuple[str, str]:
    """A rule's line of iptables-save -c: its counter, and the rule."""
    counter, _, rule = line.partition(" ")
    return counter, rule
