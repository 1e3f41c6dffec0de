"""The set-up in which a fault is made: the lab's own, one that the fault names, or one that it turns the lab to behind its user's back."""

from __future__ import annotations

import dataclasses
import io

from lab import builds, changes, cluster, images, inventory, state
from lab.errors import LabError
from lab.progress import Progress
from lab.settings import Settings, changed
from lab.topology import Topology


def now() -> Settings:
    """Return the running lab's set-up.

    Raises:
        LabError: there is no lab, or none that was brought up to the end.
    """
    recorded = state.read()
    if recorded is None or recorded.settings is None:
        raise LabError("the lab is not up: python -m lab up")
    return recorded.settings


def bring(words: str, topology: Topology) -> bool:
    """Bring the running lab to its own set-up with these changes; the inventory then pins that. False: it had it already.

    Args:
        words: as ``python -m lab set`` takes them ("kpr=true"); "" for its own set-up as it comes up.
        topology: the lab.
    """
    lab = _running(topology)
    own = dataclasses.replace(cluster.own_settings(lab.modules), cilium=now().cilium)
    wanted = changed(own, words.split())
    if wanted == now():
        inventory.write(topology, wanted, lab.modules["kubernetes"].version)
        return False
    return changes.apply(lab, wanted, builds.cilium_of(wanted.cilium))


def turn(words: str, topology: Topology) -> None:
    """Change the running lab's set-up while the inventory goes on to pin the one of before."""
    lab, before = _running(topology), now()
    changes.apply(lab, changed(before, words.split()), builds.cilium_of(before.cilium))
    inventory.write(topology, before, lab.modules["kubernetes"].version)


def _running(topology: Topology) -> cluster.Cluster:
    modules = builds.modules()
    quiet = Progress(out=io.StringIO())  # a fault is one step, whose own line says how long it took
    return cluster.running(topology, modules, images.prepare(modules, quiet), quiet)
