"""How the lab is: what should run and does, and what the cluster says of itself."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from lab import readiness, state, teardown
from lab.api import Api
from lab.errors import LabError
from lab.host import LabHost
from lab.topology import Topology

LAST_WORDS = 200  # characters of a log's last line that a complaint quotes


def complaints(topology: Topology) -> list[str] | None:
    """Return what is wrong with the lab, in words; an empty list for a healthy lab, None where there is none at all."""
    recorded = state.read()
    if recorded is None:
        return teardown.left_over() or None
    found = [] if recorded.phase == "ready" else ["it was not brought up to the end"]
    found += ended(recorded)
    if not found:
        found += _cluster_complaints(topology)
    return found


def ended(recorded: state.State) -> list[str]:
    """Return which hosts and components have ended that were started, each with its log."""
    found = []
    for name, init in recorded.inits.items():
        host = LabHost(name, init)
        if not init.alive():
            found.append(f"the host {name} has ended")
            continue
        processes = recorded.components.get(name, {})
        found += [
            f"{component} on {name} has ended: {_last_words(host.log(component))} (see {host.log(component)})"
            for component in processes
            if not host.runs(processes[component])
        ]
    return found


def _last_words(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    return lines[-1][:LAST_WORDS] if lines else "it said nothing"


def _cluster_complaints(topology: Topology) -> list[str]:
    try:
        api = Api(topology)
        checks: tuple[Callable[[], str | None], ...] = (
            api.ready,
            partial(readiness.nodes_ready, api, topology),
            partial(readiness.pods_ready, api, topology),
            partial(readiness.endpoints_complete, api, topology),
        )
        return [complaint for check in checks if (complaint := check())]
    except (LabError, OSError) as error:
        return [str(error)]


def running_host(topology: Topology, name: str) -> LabHost:
    """Return a host of the running lab by name.

    Raises:
        LabError: there is no such host, or the lab is not up.
    """
    topology.host(name)
    recorded = state.read()
    if recorded is None or name not in recorded.inits or not recorded.inits[name].alive():
        raise LabError("the lab is not up: python -m lab up")
    return LabHost(name, recorded.inits[name])
