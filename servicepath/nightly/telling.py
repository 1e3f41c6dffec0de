"""What a night is told by: one line for people, the same to a chat by webhook, and figures for Prometheus' textfile collector."""

from __future__ import annotations

import errno
import os
import pathlib
from collections import Counter
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from ..model.baseline import Baseline
from ..model.comparison import Comparison, Difference
from ..model.history import BROKEN, HELD, UNSEEN, pace, worst
from ..report import files
from ..report.visible import visible
from .night import Night

WORDS = {HELD: "held", UNSEEN: "could not be seen", BROKEN: "broken"}
_NAMED = 3  # of a kind in the line
_LONGEST = 1000  # characters of the line: chat tools cut what is longer, Discord at 2000


class TellingError(Exception):
    """Somebody could not be told; the text is one line."""


def changes(found: Comparison | None) -> str:
    """In one line, what is unlike the night before; empty when nothing is."""
    if found is None:
        return ""
    flips: dict[str, list[Difference]] = {}
    for each in found.conclusions:
        kind = each.change.rpartition("→")[2]
        if each.change.partition("→")[0] != kind:
            flips.setdefault(kind, []).append(each)
    words = {"broken": "newly broken", "held": "holds now", "unseen": "no more to be seen", "skipped": "no more judged", "absent": "gone"}
    parts = [f"{words[kind]}: {_named(mine)}" for kind, mine in sorted(flips.items(), key=lambda item: item[0]) if kind in words]
    for name in ("Cilium", "Kubernetes"):
        before, after = (" and ".join(run.values(name)) for run in (found.before, found.after))
        parts += [f"{name} {before} → {after}"] if before and after and before != after else []
    unexplained = [each for each in found.facts if each.standing.value == "regression"]
    parts += [f"facts that changed without a rule: {_named(unexplained)}"] if unexplained else []
    return "; ".join(parts)


def _named(differences: Iterable[Difference]) -> str:
    found: dict[str, list[str]] = {}
    for each in differences:
        found.setdefault(each.name, []).append(each.subject)
    named = []
    for name, where in found.items():
        more = f" and {len(where) - 1} more" if len(where) > 1 else ""
        named.append(f"{name} ({where[0]}{more})" if where[0] else name)
    return ", ".join(named[:_NAMED]) + (f" and {len(named) - _NAMED} more" if len(named) > _NAMED else "")


def line(run: Baseline, status: int, since: str) -> str:
    """``2026-11-30 02:00:00 UTC: broken: 1 of 44 conclusions (no-interface); since last night: newly broken: no-interface (worker1)``.

    Args:
        run: the night.
        status: what it came to.
        since: what is unlike the night before, or why that is not known.
    """
    outcomes: dict[str, list[tuple[str, str]]] = {}
    for judged in run.judged:
        outcomes.setdefault(judged.conclusion, []).append((judged.case, judged.outcome))
    worsts = {conclusion: worst(mine).outcome for conclusion, mine in outcomes.items()}
    told = [f"{run.started}: {WORDS[status]}"]
    if status == HELD:
        counts = Counter(worsts.values())
        told.append(f"{counts['passed']} conclusion{'' if counts['passed'] == 1 else 's'}, {counts['skipped']} skipped")
    else:
        wanted = "failed" if status == BROKEN else "error"
        bad = [conclusion for conclusion, outcome in worsts.items() if outcome == wanted]
        more = f" and {len(bad) - _NAMED} more" if len(bad) > _NAMED else ""
        told.append(f"{len(bad)} of {len(worsts)} conclusions ({', '.join(bad[:_NAMED])}{more})" if bad else run.unfinished or "")
    return visible(f"{': '.join(part for part in told if part)}; {since}".replace("\n", " "))[:_LONGEST]


def check_textfile(path: pathlib.Path) -> None:
    """See, before the night, that node_exporter will read the file, and that it can be written.

    Raises:
        TellingError: its name is another, its folder is not there or cannot be written to, or a folder stands in its place.
    """
    folder = path.absolute().parent
    if path.suffix != ".prom":
        raise TellingError(f"--textfile: {path}: expected a name that ends in .prom: node_exporter reads no other")
    if not folder.is_dir():  # it is node_exporter's; one of ours nobody would read
        raise TellingError(f"--textfile: {path}: expected a folder that node_exporter reads, found none at {folder}")
    if path.is_dir():
        raise TellingError(f"--textfile: {path}: expected a file to write to, found a folder")
    try:
        files.check_folder(folder)
    except OSError as wrong:
        raise TellingError(f"--textfile: {path}: the folder cannot be written to: {wrong.strerror}") from wrong


def textfile(path: pathlib.Path, night: Night, status: int, ended: float) -> None:
    """Write the night's figures for node_exporter's textfile collector, whole or not at all, and readable for it, who is another user.

    Raises:
        TellingError: the file cannot be written.
    """
    registry = CollectorRegistry()

    def gauge(name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"servicepath_{name}", text, labels, registry=registry)

    gauge("status", "What the last run came to: 0 held, 3 could not be seen, 4 broken.").set(status)
    gauge("last_run_timestamp_seconds", "When the last run ended.").set(ended)
    gauge("run_duration_seconds", "How long the last run took.").set(round(night.took, 3))
    verdicts = gauge("verdicts", "Verdicts of the last run, by outcome.", "outcome")
    for outcome in ("passed", "failed", "error", "skipped"):
        verdicts.labels(outcome).set(sum(judged.outcome == outcome for judged in night.run.judged))
    held = gauge("conclusion_held", "1 where the conclusion held, 0 where it did not or could not be seen.", "conclusion", "case")
    for judged in night.run.judged:
        if judged.outcome != "skipped":
            held.labels(visible(judged.conclusion), visible(judged.case)).set(judged.outcome == "passed")
    answer = gauge("answer_seconds", "Median time of the answers to the probes.", "path")
    for timing in night.run.timings:
        if timing.seconds:
            answer.labels(visible(timing.subject)).set(pace(timing.seconds).median)
    versions = {name: visible(" and ".join(night.run.values(name))) for name in ("Cilium", "Kubernetes")}
    gauge("cluster_info", "What was running.", "cilium", "kubernetes").labels(versions["Cilium"], versions["Kubernetes"]).set(1)
    try:
        if not path.absolute().parent.is_dir():  # it went during the night
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        files.write_whole(path, generate_latest(registry).decode())
    except OSError as wrong:
        raise TellingError(f"{path}: the figures cannot be written: {wrong.strerror}") from wrong
