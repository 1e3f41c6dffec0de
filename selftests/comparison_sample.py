"""Two runs of one cluster, made by hand: an upgrade from 1.19.1 to 1.19.5 with some of everything in it."""

from __future__ import annotations

import dataclasses

from servicepath.model.baseline import Baseline, Fact, Identity, Judged, Timing

IDENTITY = Identity("3f1c8a52-0000-4000-8000-000000000001", ("10.43.0.1",), ("10.43.0.0/16",))
NODES = ("master", "worker1", "worker2")
PATH = "Pod on master → kube-dns:dns/UDP"


def baseline(version: str = "1.19.1", started: str = "2026-11-30 02:00:00 UTC") -> Baseline:
    """A healthy run."""
    facts = [
        fact
        for node in NODES
        for fact in (
            Fact(node, "Cilium", (version,)),
            Fact(node, "KubeProxyReplacement", ("False",)),
            Fact(node, "kernel", ("6.1.0",)),
            Fact(node, "routes", ("10.42.1.0/24 via CiliumInternalIP of master dev cilium_host mtu 1450", "default via 192.168.55.1")),
        )
    ]
    facts += [
        Fact("", "Kubernetes", ("v1.34.4",)),
        Fact("", "cilium-config bpf-lb-sock", ("false",)),
        Fact(PATH, "translated by", ("Cilium (eBPF)",)),
    ]
    judged = [
        Judged(conclusion, sentence, "A group", node, "passed")
        for conclusion, sentence in (("no-interface", "No interface holds the ClusterIP."), ("pod-answers", "Every query is answered."))
        for node in NODES
    ]
    timings = (Timing(PATH, (0.0004, 0.0005, 0.0004, 0.0006)),)
    return Baseline(started, IDENTITY, (), tuple(facts), tuple(judged), timings)


def with_fact(run: Baseline, subject: str, name: str, *value: str, unseen: str | None = None) -> Baseline:
    """The run with one fact put in or replaced."""
    rest = tuple(fact for fact in run.facts if fact.key != (subject, name))
    return dataclasses.replace(run, facts=(*rest, Fact(subject, name, value, unseen)))


def with_outcome(run: Baseline, conclusion: str, case: str, outcome: str, reason: str = "") -> Baseline:
    """The run with one verdict changed."""
    changed = (dataclasses.replace(j, outcome=outcome, reason=reason) if j.key == (conclusion, case) else j for j in run.judged)
    return dataclasses.replace(run, judged=tuple(changed))


def with_case(run: Baseline, case: str) -> Baseline:
    """The run with one more verdict, of this case."""
    return dataclasses.replace(run, judged=(*run.judged, dataclasses.replace(run.judged[0], case=case)))


def without(run: Baseline, conclusion: str, case: str) -> Baseline:
    """The run without one verdict."""
    return dataclasses.replace(run, judged=tuple(j for j in run.judged if j.key != (conclusion, case)))
