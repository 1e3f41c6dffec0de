"""What a run has found, in the form from which the report is made."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from .paths import PathCell


@dataclasses.dataclass(frozen=True, slots=True)
class Exhibit:
    """A piece of evidence. ``command`` is how it was obtained; ``raw`` names the file under reports/raw/ that holds all of it."""

    title: str
    command: str
    lines: tuple[str, ...]
    raw: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """One test's outcome.

    Attributes:
        conclusion: its id in the table ("no-interface").
        section: where the notes draw it ("§2, §4").
        group: the part of the table it stands in ("The ClusterIP on a host").
        sentence: the conclusion itself, the test's docstring.
        case: what it was judged on ("master", "master, kube-dns:dns/UDP"); empty for a conclusion judged once.
        outcome: passed, failed, error or skipped.
        message: why, for all but passed; for passed empty.
        exhibits: the evidence.
        see: commands to see it by hand.
        cause: the likely cause beside a red, where the cluster knows it.
        duration: seconds.
    """

    conclusion: str
    section: str
    group: str
    sentence: str
    case: str
    outcome: str
    message: str
    exhibits: tuple[Exhibit, ...]
    see: tuple[str, ...]
    cause: tuple[str, ...] = ()
    duration: float = 0.0
    node: str | None = None
    port: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class RunSummary:
    """What cluster this is and how the run went.

    Attributes:
        cluster: fact → value, for what is true of the cluster as a whole (API server's version, Services under test, …).
        nodes: node → fact → value (kernel, kubelet, Cilium, iptables back end and version, proxy mode, KPR, socket LB, tunnel,
            MTU, PodCIDRs, tool versions); a fact that could not be seen has the value "could not be seen: …".
        attempts: measurements that were repeated, and what disturbed them.
        phases: phase → node → (ssh round trips, seconds).
        unfinished: why the run ended before every collected test was judged; None when all were.
    """

    started: str
    took: float
    cluster: Mapping[str, str]
    nodes: Mapping[str, Mapping[str, str]]
    paths: tuple[PathCell, ...]
    verdicts: tuple[Verdict, ...]
    attempts: tuple[str, ...] = ()
    phases: Mapping[str, Mapping[str, tuple[int, float]]] = dataclasses.field(default_factory=dict)
    unfinished: str | None = None
