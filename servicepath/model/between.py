"""Does a watch belong between two runs? By the cluster that it names, and by its time.

The times are those of the machines that ran the suite and the watch, which need not be one: clocks may differ by ``CLOCKS``.
"""

from __future__ import annotations

from collections.abc import Iterator

from .baseline import Baseline
from .watched import Summary

CLOCKS = 300.0  # seconds; as much as Kerberos forgives, so that most clocks differ by less


class WrongWatch(ValueError):
    """The watch is of another cluster or of another time; the text says by what."""


def check(watch: Summary, before: Baseline, after: Baseline) -> None:
    """See that a watch was made of this cluster, and not before or after both runs; what is not known is no reason.

    Raises:
        WrongWatch: it was not.
    """
    for run in (before, after):
        if watch.identity and run.identity and (why := watch.identity.unlike(run.identity)):
            raise WrongWatch(f"a watch of another cluster than the run of {run.started}: {why.replace(' here', ' in the run')}")
    mine, theirs = {felt.node for felt in watch.felt}, {*before.values("nodes"), *after.values("nodes")}
    if watch.identity is None and mine and theirs and not mine & theirs:
        raise WrongWatch(f"a watch of another cluster: it asked from {_some(mine)}, and the runs' nodes are {_some(theirs)}")
    if not before.during or not after.during:
        return
    since, until = sorted((before.during.until, after.during.since))
    if watch.ended < since - CLOCKS or watch.started > until + CLOCKS:
        runs = f"the runs are of {before.during} and of {after.during}"
        raise WrongWatch(f"a watch of another time: it is of {watch.during}, and {runs}; expected one that was made between them")


def told(watch: Summary, before: Baseline, after: Baseline) -> Iterator[str]:
    """What a reader must know of how a watch lies to the runs, a line each."""
    if watch.identity is None:
        yield "the watch in between does not say which cluster it is of: an earlier version kept it"
    if not before.during or not after.during:
        when = " and ".join(name for name, run in (("before", before), ("after", after)) if not run.during)
        yield f"whether the watch was made in between is not known: the run {when} does not say when it was"
    elif watch.started < before.during.until - CLOCKS or watch.ended > after.during.since + CLOCKS:
        runs = f"they are of {before.during} and of {after.during}"
        yield f"the watch reaches beyond the time between the runs: it is of {watch.during}, {runs}"


def _some(names: set[str]) -> str:
    ordered = sorted(names)
    return ", ".join(ordered[:3]) + (f" and {len(ordered) - 3} more" if len(ordered) > 3 else "")
