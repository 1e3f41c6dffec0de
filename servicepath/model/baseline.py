"""What a run found, kept to be compared with a later run: facts by their meaning, verdicts, and how long answers took.

Addresses that a rebuild changes, order, counters, indices, ports of clients, generated names and times are not in it: see meaning.py.
"""

from __future__ import annotations

import dataclasses
import time


@dataclasses.dataclass(frozen=True, slots=True)
class Identity:
    """Which cluster it was.

    Attributes:
        kube_system: the UID of the Namespace kube-system, which lives as long as the cluster; None where it may not be read.
        kubernetes_ips: the ClusterIPs of the Service default/kubernetes, in order.
        service_cidrs: of the ServiceCIDR objects, in order; empty before Kubernetes 1.33.
    """

    kube_system: str | None
    kubernetes_ips: tuple[str, ...]
    service_cidrs: tuple[str, ...]

    def unlike(self, other: Identity) -> str | None:
        """Why the two are not the same cluster; None when they are, or when nothing tells."""
        if self.kube_system and other.kube_system:
            if self.kube_system == other.kube_system:
                return None
            return f"the UID of the Namespace kube-system is {self.kube_system} there and {other.kube_system} here"
        for what, mine, its in (
            ("the ClusterIP of the Service default/kubernetes", self.kubernetes_ips, other.kubernetes_ips),
            ("the Service CIDR", self.service_cidrs, other.service_cidrs),
        ):
            if mine and its and mine != its:
                return f"{what} is {', '.join(mine)} there and {', '.join(its)} here"
        return None


@dataclasses.dataclass(frozen=True, slots=True)
class Fact:
    """One fact by its meaning.

    Attributes:
        subject: whose: empty for the cluster, a node ("master"), a port on a node ("master, kube-dns:dns/UDP"), a path
            ("Pod on master → kube-dns:dns/UDP").
        name: "Cilium", "routes", "translated by".
        value: its lines, sorted where their order means nothing; empty: there is none of it.
        unseen: why it could not be seen; None when it was.
    """

    subject: str
    name: str
    value: tuple[str, ...]
    unseen: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What the same fact of another run has in common with it."""
        return self.subject, self.name


@dataclasses.dataclass(frozen=True, slots=True)
class Judged:
    """One verdict: conclusion and case name it; ``outcome`` is passed, failed, error or skipped, ``reason`` its message."""

    conclusion: str
    sentence: str
    group: str
    case: str
    outcome: str
    reason: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What the same verdict of another run has in common with it."""
        return self.conclusion, self.case


@dataclasses.dataclass(frozen=True, slots=True)
class Timing:
    """How long the answers to one kind of probe took: ``seconds``, one an answer; ``subject`` as that of a path's fact."""

    subject: str
    seconds: tuple[float, ...]

    @property
    def key(self) -> str:
        """What the same kind of probe of another run has in common with it."""
        return self.subject


@dataclasses.dataclass(frozen=True, slots=True)
class Span:
    """A piece of time: since when and until when, in Unix time, seconds."""

    since: float
    until: float

    def __str__(self) -> str:
        """``2026-11-30 02:00:00 to 2026-11-30 02:01:30 UTC``."""
        since, until = (time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at)) for at in (self.since, self.until))
        return f"{since} to {until} UTC"


@dataclasses.dataclass(frozen=True, slots=True)
class Baseline:
    """One run.

    Attributes:
        started: when, as the report says it.
        identity: which cluster; None when the API could not be read.
        options: the options that decide what is judged ("--passive", "--service default/resolver").
        unfinished: why not every test was judged; None when all were.
        during: when the cluster was asked; None where that is not known. Of a recording that is judged again, when it was made.
    """

    started: str
    identity: Identity | None
    options: tuple[str, ...]
    facts: tuple[Fact, ...]
    judged: tuple[Judged, ...]
    timings: tuple[Timing, ...]
    unfinished: str | None = None
    during: Span | None = None

    def values(self, name: str) -> tuple[str, ...]:
        """What the fact of this name is on the cluster's nodes, each value once ("1.19.1", "1.19.5")."""
        return tuple(dict.fromkeys(line for fact in self.facts if fact.name == name for line in fact.value))
