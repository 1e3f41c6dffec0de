"""What the steps of a run have found about the cluster and about themselves, collected while the run goes on."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from servicepath.model.paths import PathCell
from servicepath.model.results import RunSummary, Verdict


class RunRecord:
    """Filled by the fixtures as they learn things; turned into a RunSummary at the end of the session.

    Facts keep the order in which they first came; a fact that is told again replaces its value.
    """

    def __init__(self) -> None:
        self._cluster: dict[str, str] = {}
        self._nodes: dict[str, dict[str, str]] = {}
        self._paths: list[PathCell] = []
        self._attempts: list[str] = []
        self._phases: dict[str, dict[str, tuple[int, float]]] = {}
        self._causes: list[tuple[str | None, str | None, str]] = []

    def cluster(self, fact: str, value: str) -> None:
        """Tell a fact that is true of the cluster as a whole ("API server", "v1.34.4+k3s1")."""
        self._cluster[fact] = value

    def node(self, node: str, fact: str, value: str) -> None:
        """Tell a fact of one node; one that could not be seen has the value "could not be seen: …"."""
        self._nodes.setdefault(node, {})[fact] = value

    def path(self, cell: PathCell) -> None:
        """Add a cell of the path matrix, measured or not tested."""
        self._paths.append(cell)

    def attempt(self, text: str) -> None:
        """Tell of a measurement that was repeated, and of what had disturbed it."""
        self._attempts.append(text)

    def phase(self, phase: str, node: str, round_trips: int, seconds: float) -> None:
        """Add ssh round trips and seconds that a phase took on a node; told twice, they add up."""
        nodes = self._phases.setdefault(phase, {})
        trips, took = nodes.get(node, (0, 0.0))
        nodes[node] = (trips + round_trips, took + seconds)

    def cause(self, node: str | None, port_id: str | None, text: str) -> None:
        """Tell a likely cause of reds on this node and Service port; None stands for any."""
        self._causes.append((node, port_id, text))

    def summary(self, verdicts: Iterable[Verdict], *, started: str, took: float, unfinished: str | None = None) -> RunSummary:
        """Return all of it with the verdicts; failed ones and errors get the causes told for their node and port."""
        return RunSummary(
            started=started,
            took=took,
            cluster=dict(self._cluster),
            nodes={node: dict(facts) for node, facts in self._nodes.items()},
            paths=tuple(self._paths),
            verdicts=tuple(map(self._with_causes, verdicts)),
            attempts=tuple(self._attempts),
            phases={phase: dict(nodes) for phase, nodes in self._phases.items()},
            unfinished=unfinished,
        )

    def _with_causes(self, verdict: Verdict) -> Verdict:
        if verdict.outcome not in ("failed", "error"):
            return verdict
        told = (text for node, port, text in self._causes if node in (None, verdict.node) and port in (None, verdict.port))
        return dataclasses.replace(verdict, cause=tuple(dict.fromkeys((*verdict.cause, *told))))
