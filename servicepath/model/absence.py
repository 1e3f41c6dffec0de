"""Why one run tells nothing of what the run before told: it is gone, the options leave it out, or it could not be seen."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from .baseline import Baseline

# What limits the whole run to some conclusions: which of them, only pytest knows.
_SELECTS = ("-k ", "-m ", "--deselect ", "--ignore ", "--ignore-glob ", "only ")
# What kube-proxy has in iptables mode alone.
_OF_IPTABLES = frozenset({"chains", "kube-proxy's backends", "kube-proxy's iptables back end"})
_MODE = "kube-proxy's mode"
_PLACE = re.compile(r"(?:(?:host|Pod) on )?(?P<node>[a-z0-9][a-z0-9.-]*)(?:(?:, | → ).*)?", re.DOTALL)


@dataclasses.dataclass(frozen=True, slots=True)
class Absence:
    """``kind``: "unseen", "unasked" (the options leave it out) or "gone"; ``why`` in a few words, empty where there is nothing to say."""

    kind: str
    why: str = ""


class Absences:
    """What the later run does not tell, judged by what it says of itself.

    Args:
        before: the earlier run.
        after: the later one.
    """

    def __init__(self, before: Baseline, after: Baseline) -> None:
        self._whole = _why_nothing(after)
        self._selected = _selected(before.options, after.options)
        self._passive = "--passive" in after.options and "--passive" not in before.options
        self._limits = {option: (_named(before, option), _named(after, option)) for option in ("--node", "--service", "--pod")}
        self._modes = {fact.subject: " and ".join(fact.value) for fact in after.facts if fact.name == _MODE and fact.unseen is None}
        self._blind: dict[str, str] = {}
        for fact in after.facts:
            if fact.unseen is not None:
                self._blind.setdefault(node_of(fact.subject) or "", f"{fact.name}: {fact.unseen}")

    def of_verdict(self, case: str) -> Absence:
        """Why a conclusion was not judged in a case."""
        return self._known(case) or Absence("gone")

    def of_fact(self, subject: str, name: str) -> Absence:
        """Why a fact was not told."""
        if known := self._known(subject):
            return known
        if self._passive:
            return Absence("unasked", "--passive")
        node = node_of(subject)
        mode = self._modes.get(node or "", "iptables")
        if name in _OF_IPTABLES and mode != "iptables":
            return Absence("gone", f"{_MODE} is {mode}")
        blind = self._blind.get(node or "") or self._blind.get("")
        return Absence("unseen", blind) if blind else Absence("gone")

    def _known(self, subject: str) -> Absence | None:
        """What holds of conclusions and facts alike; None where nothing of the kind does."""
        if self._whole:
            return Absence("unseen", self._whole)
        if self._selected:
            return Absence("unasked", self._selected)
        node, service = node_of(subject), _service(subject)
        for option, what in (("--node", node), ("--service", service)):
            if what and self._leaves_out(option, what):
                return Absence("unasked", " ".join(f"{option} {name}" for name in self._limits[option][1]))
        earlier, later = self._limits["--pod"]
        if subject.startswith("Pod on ") and later and later != earlier:
            return Absence("unasked", " ".join(f"--pod {name}" for name in later))
        return None

    def _leaves_out(self, option: str, what: str) -> bool:
        earlier, later = ((not names or any(_is(what, name) for name in names)) for names in self._limits[option])
        return earlier and not later


def judged(run: Baseline) -> bool:
    """Whether a run judged anything: some conclusion held, or was broken."""
    return any(each.outcome in ("passed", "failed") for each in run.judged)


def _why_nothing(run: Baseline) -> str | None:
    """Why what the run does not tell may well be there all the same; None when the run is whole."""
    if run.unfinished:
        return f"the run is not whole: {run.unfinished}"
    if not judged(run):
        return "the run judged nothing"
    return "the API could not be read" if run.identity is None else None


def _selected(before: Sequence[str], after: Sequence[str]) -> str | None:
    """By which options of its own the later run chose among the conclusions."""
    earlier, later = ([word for word in words if word.startswith(_SELECTS)] for words in (before, after))
    return " ".join(later) if later and later != earlier else None


def _named(run: Baseline, option: str) -> frozenset[str]:
    return frozenset(word.removeprefix(f"{option} ") for word in run.options if word.startswith(f"{option} "))


def node_of(subject: str) -> str | None:
    """The node of "master", "master, kube-dns:dns/UDP" or "Pod on master → …"; None where none is in it."""
    found = _PLACE.fullmatch(subject)
    return found["node"] if found else None


def port_of(subject: str) -> str | None:
    """The port "kube-dns:dns/UDP" of "master, kube-dns:dns/UDP" or "Pod on master → kube-dns:dns/UDP"; None where none is in it."""
    last = re.split(r", | → ", subject)[-1]
    return last if ":" in last else None


def _service(subject: str) -> str | None:
    """The Service of "master, kube-dns:dns/UDP", "LAN host → blue/web:80/TCP" or "default/resolver"; None where none is in it."""
    last = re.split(r", | → ", subject)[-1]
    name, colon, _ = last.partition(":")
    return name if colon or "/" in last else None


def _is(what: str, name: str) -> bool:
    """Whether a node's or Service's name is meant by an option's; a Service may stand there without its namespace."""
    return what in (name, name.partition("/")[2])
