"""How a conclusion says what is wrong: one form for every message, so that a red line alone tells an operator where to look."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as the conclusion says.

    Attributes:
        subject: what is judged, with its place ("master: KUBE-SVC-TCOU7JCQXEZGVUNU of kube-system/kube-dns:dns").
        problem: what is wrong with it, in a few words.
        expected: what should be seen there.
        actual: what was seen.
        evidence: raw lines that show it: rule, route, entry or packet.
    """

    subject: str
    problem: str
    expected: str
    actual: str
    evidence: tuple[str, ...] = ()

    def __str__(self) -> str:
        """``subject - problem - expected: …, actual: …`` and the evidence indented below."""
        head = f"{self.subject} - {self.problem} - expected: {self.expected}, actual: {self.actual}"
        return "\n".join([head, *(f"    {line}" for line in self.evidence)])


def explain(differences: Iterable[Difference]) -> str:
    """All differences as the message of one failed assertion."""
    return "\n".join(str(difference) for difference in differences)
