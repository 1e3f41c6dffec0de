"""What a change between two runs means: rules that a person can read, the inventory's (``upgrade: expect:``) before the built-in ones.

The first rule that fits decides. What no rule excuses is a regression.
"""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Iterable, Sequence
from typing import Literal

_BECAME = ("held", "broken", "unseen", "skipped", "absent", "unasked")
CHANGES = {
    "conclusion": tuple(f"{then}→{since}" for then in _BECAME[:-1] for since in _BECAME),
    "fact": ("changed", "new", "gone", "unasked", "unseen", "same"),
}
"""The kinds of change that there are."""


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """One change, as the rules see it.

    Attributes:
        about: "conclusion" or "fact".
        name: the conclusion's id or the fact's name.
        subject: where: a node, a case, a path; empty for the cluster.
        kind: as in comparison.Difference.change.
        before: lines of the fact, or the verdict's reason.
        after: the same of the later run.
    """

    about: str
    name: str
    subject: str
    kind: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """One rule; None fits anything, text is a shell pattern (``*``, ``?``, ``[…]``).

    Attributes:
        about: "conclusion" or "fact".
        name: of the conclusion or the fact.
        standing: "expected", "tolerated", "regression"; the built-in rules also say "could not be seen".
        where: the subject ("master*", "Pod on *").
        change: the kind of change ("held→skipped", "changed").
        before: the fact's value, or the verdict's reason (its lines joined by blanks).
        to: the same of the later run. In an ``expected`` rule about a fact it is what must come: another value is a regression.
        because: shown beside the change.
    """

    about: Literal["conclusion", "fact"]
    name: str
    standing: str
    where: str | None = None
    change: str | None = None
    before: str | None = None
    to: str | None = None
    because: str = ""

    def fits(self, change: Change) -> bool:
        """Whether the rule speaks of this change."""
        return self._place_fits(change) and _like(self.to, " ".join(change.after))

    def expects_another(self, change: Change) -> bool:
        """Whether the rule expects this fact to become something that it did not become."""
        fact = self.about == "fact" and self.standing == "expected" and self.to is not None
        return fact and change.kind in ("same", "changed", "new") and self._place_fits(change) and not self.fits(change)

    @property
    def can_fit(self) -> bool:
        """Whether there is a kind of change that the rule speaks of."""
        return any(_like(self.change, kind) for kind in CHANGES[self.about])

    def contradicts(self, earlier: Rule) -> bool:
        """Whether an earlier rule speaks of the very same changes, and says otherwise of them."""
        same = dataclasses.replace(earlier, standing=self.standing, because=self.because)
        if self.about == "fact" and self.standing == earlier.standing == "expected" and self.to is not None and earlier.to is not None:
            return dataclasses.replace(same, to=self.to) == self and earlier.to != self.to
        return same == self and earlier.standing != self.standing

    def names(self, about: str, name: str) -> bool:
        """Whether the rule speaks of the conclusion or fact of this name."""
        return self.about == about and _like(self.name, name)

    def _place_fits(self, change: Change) -> bool:
        return (
            self.names(change.about, change.name)
            and _like(self.where, change.subject)
            and _like(self.change, change.kind)
            and _like(self.before, " ".join(change.before))
        )

    def __str__(self) -> str:
        """As in the inventory: ``{fact: Cilium, to: 1.19.5, is: expected}``."""
        parts = {self.about: self.name, "where": self.where, "change": self.change, "from": self.before, "to": self.to, "is": self.standing}
        return "{" + ", ".join(f"{key}: {value}" for key, value in parts.items() if value is not None) + "}"


def _like(pattern: str | None, text: str) -> bool:
    return pattern is None or fnmatch.fnmatchcase(text, pattern)


def decide(change: Change, rules: Sequence[Rule]) -> tuple[str, str]:
    """What the change means, and why; the first rule that fits or expects something else decides."""
    for rule in rules:
        if rule.expects_another(change):
            return "regression", f"was to become {rule.to}" + (f": {rule.because}" if rule.because else "")
        if rule.fits(change):
            return rule.standing, rule.because
    return "regression", "no rule expects or tolerates it"


def _verdicts(change: str, standing: str, because: str, reason: str | None = None) -> Rule:
    return Rule("conclusion", "*", standing, change=change, to=reason, because=because)


def _facts(standing: str, because: str, *names: str, change: str | None = None, to: str | None = None) -> Iterable[Rule]:
    return (Rule("fact", name, standing, change=change, to=to, because=because) for name in names)


BUILT_IN: tuple[Rule, ...] = (
    # Conclusions.
    _verdicts("*→unseen", "could not be seen", "it could not be seen this time"),
    _verdicts("broken→broken", "tolerated", "it was broken before"),
    _verdicts("*→broken", "regression", "it is broken, and was not before"),
    _verdicts("broken→held", "expected", "mended"),
    _verdicts("*→held", "expected", "it holds, and was not judged before"),
    _verdicts("*→unasked", "tolerated", "the options leave it out"),
    _verdicts("held→absent", "regression", "it held before, and nobody judged it this time, though the options do not leave it out"),
    _verdicts("*→absent", "tolerated", "nobody judged it this time, and it did not hold before"),
    _verdicts("held→skipped", "tolerated", "the options leave it out", "*which only --disruptive allows*"),
    _verdicts("held→skipped", "tolerated", "the options leave it out", "*which --passive leaves out*"),
    _verdicts("held→skipped", "tolerated", "which backend a flow gets, and where it runs, is chance", "*none of * flows reached*"),
    _verdicts("held→skipped", "tolerated", "the set-up is another; the facts say which", "*; this conclusion is about another set-up *"),
    _verdicts("held→skipped", "could not be seen", "the recording does not hold it", "*not in this recording*"),
    _verdicts("held→skipped", "regression", "its precondition is gone"),
    _verdicts("*→skipped", "tolerated", "it does not apply, and did not hold before"),
    # Facts.
    *_facts("could not be seen", "", "*", change="unseen"),
    *_facts("tolerated", "it was not known before", "*", change="new"),
    *_facts("tolerated", "the options leave it out", "*", change="unasked"),
    *_facts("tolerated", "an upgrade changes versions", "Cilium", "Kubernetes", "kubelet", "kernel", "operating system",
            "container runtime", change="changed", to="?*"),
    *_facts("tolerated", "an upgrade changes tools; one that is missed makes what needs it an error", "version of *"),
    *_facts("tolerated", "how it shows is judged by the facts themselves", "cilium-config *", "Helm value *"),
    *_facts("tolerated", "an agent without its state takes another", "CiliumInternalIP", change="changed", to="?*"),
    *_facts("tolerated", "the set-up is another; the facts say which", "chains", "kube-proxy's backends", "kube-proxy's iptables back end",
            change="gone", to="kube-proxy's mode is *"),
    *_facts("tolerated", "it is told where socket LB is on", "socket LB in the host's namespace only", change="gone"),
    *_facts("tolerated", "which backend a flow gets, and where it runs, is chance", "*, to another node", "*, on its own node",
            change="gone"),
    *_facts("tolerated", "Pods move", "endpoints run on"),
    *_facts("expected", "the node is there again", "Ready", change="changed", to="yes"),
    *_facts("tolerated", "a host under load answers later", "latency*"),
    *_facts("regression", "it was told before, and is not there this time, though the options do not leave it out", "*", change="gone"),
)  # fmt: skip
"""The rules that stand behind the inventory's own."""
