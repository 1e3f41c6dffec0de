"""Two runs of one cluster side by side: what became of each conclusion, which facts changed, and what the rules make of that."""

from __future__ import annotations

import collections
import dataclasses
import enum
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from . import between, latency, mended
from .absence import Absence, Absences, judged
from .baseline import Baseline, Fact, Judged
from .upgrade_rules import BUILT_IN, Change, Rule, decide
from .watched import Summary, fact_lines


class Standing(enum.Enum):
    """What a change means; the worst comes first."""

    REGRESSION = "regression"
    UNSEEN = "could not be seen"
    EXPECTED = "expected"
    TOLERATED = "tolerated"
    SAME = "same"


_WORDS = {"passed": "held", "failed": "broken", "error": "unseen", "skipped": "skipped"}
_ABSENT = "absent"
_AT_TIMES = ("latency", "latency, slower", "latency, faster", "felt while it changed")  # facts that not every comparison has

_Keyed = TypeVar("_Keyed", Fact, Judged)


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is (or is not) as it was.

    Attributes:
        subject: what it is about: a fact's subject, or a conclusion's case; empty for the cluster.
        name: the fact's name or the conclusion's id.
        change: for a conclusion "held→broken", "held→held", "absent→held", "held→unasked" (the later run's options leave it out) …;
            for a fact "changed", "new", "gone", "unasked", "unseen", "same".
        before: the fact's lines, or the verdict's reason.
        after: the same of the later run.
        because: the rule's reason.
        sentence: the conclusion itself; empty for a fact.
    """

    subject: str
    name: str
    change: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    standing: Standing
    because: str
    sentence: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs compared; ``unmet`` are the inventory's expectations that met nothing, ``watch`` what was felt in between."""

    before: Baseline
    after: Baseline
    conclusions: tuple[Difference, ...]
    facts: tuple[Difference, ...]
    unmet: tuple[Rule, ...] = ()
    watch: Summary | None = None

    def standing(self, *wanted: Standing) -> tuple[Difference, ...]:
        """The differences that mean this, conclusions first."""
        return tuple(each for each in (*self.conclusions, *self.facts) if each.standing in wanted)

    @property
    def regressions(self) -> tuple[Difference, ...]:
        """What got worse and no rule excuses."""
        return self.standing(Standing.REGRESSION)

    @property
    def unseen(self) -> tuple[str, ...]:
        """What could not be compared, a line each."""
        unseen = self.standing(Standing.UNSEEN)
        return (*(f"{each.name}{f' on {each.subject}' if each.subject else ''}: {each.because}" for each in unseen), *self.partial)

    @property
    def partial(self) -> tuple[str, ...]:
        """Which of the runs was not whole, or of the watch in between, and why."""
        runs = (("before", self.before), ("after", self.after))
        broken = [f"the run {when} is not whole: {run.unfinished}" for when, run in runs if run.unfinished]
        broken += [f"the run {when} judged nothing: no conclusion held or was broken in it" for when, run in runs if not judged(run)]
        return (*broken, *(f"the watch in between: {line}" for line in self.watch.unseen)) if self.watch else tuple(broken)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of how the runs and the watch lie to each other; nothing of it is a difference."""
        found = []
        if self.before.options != self.after.options:
            before, after = (" ".join(run.options) or "none" for run in (self.before, self.after))
            found.append(f"the runs had other options: before {before}; after {after}")
        if self.before.during and self.after.during and self.after.during.until < self.before.during.since:
            found.append(f"the run after is the earlier one: it is of {self.after.during}, that before of {self.before.during}")
        return (*found, *(between.told(self.watch, self.before, self.after) if self.watch else ()))

    @property
    def exit_status(self) -> int:
        """0: nothing got worse; 3: something could not be seen; 4: something got worse."""
        return 4 if self.regressions else 3 if self.unseen else 0


class AnotherCluster(ValueError):
    """The two runs are not of one cluster."""


def compare(before: Baseline, after: Baseline, rules: Sequence[Rule] = (), watch: Summary | None = None) -> Comparison:
    """Compare two runs.

    Args:
        before: the earlier run.
        after: the later one.
        rules: the inventory's; the first that fits decides, and the built-in ones come after them.
        watch: what was felt in between; None: nobody watched.

    Raises:
        AnotherCluster: the two name different clusters; the text says by what.
        between.WrongWatch: the watch is of another cluster or another time.
    """
    if before.identity and after.identity and (why := before.identity.unlike(after.identity)):
        raise AnotherCluster(f"a baseline of another cluster: {why}")
    if watch:
        between.check(watch, before, after)
    every, absences = (*rules, *BUILT_IN), Absences(before, after)
    judged_then_and_now = tuple(_verdict_changes(before.judged, after.judged, absences))
    told_then_and_now = (
        *_fact_changes(before.facts, after.facts, absences),
        *((change, "") for change in latency.changes(before.timings, after.timings)),
        *((change, "") for change in (_felt_changes(watch) if watch else ())),
    )
    conclusions = [_difference(change, why, every, sentence) for change, why, sentence in judged_then_and_now]
    became = ((change, _worse(each)) for (change, _, _), each in zip(judged_then_and_now, conclusions, strict=True))
    every = (*every, *mended.rules(became, [change for change, _ in told_then_and_now]))
    facts = (_difference(change, why, every) for change, why in told_then_and_now)
    changes = [*(change for change, _, _ in judged_then_and_now), *(change for change, _ in told_then_and_now)]
    return Comparison(before, after, _worst_first(conclusions), _worst_first(facts), tuple(_unmet(rules, changes)), watch)


def _worse(conclusion: Difference) -> bool:
    """Whether a conclusion got worse or could not be seen, also where a rule of the inventory excuses it."""
    bad = conclusion.change.endswith(("→broken", "→unseen")) and conclusion.change != "broken→broken"
    return bad or conclusion.standing in (Standing.REGRESSION, Standing.UNSEEN)


def _unmet(rules: Iterable[Rule], changes: Sequence[Change]) -> Iterator[Rule]:
    """Expectations that met nothing, and rules about what neither run knows, which may be misspelt."""
    names = {(change.about, change.name) for change in changes} | {("fact", name) for name in _AT_TIMES}
    for rule in rules:
        known = any(rule.names(*name) for name in names)
        if not any(map(rule.fits, changes)) if rule.standing == "expected" else not known:
            yield rule


def _worst_first(found: Iterable[Difference]) -> tuple[Difference, ...]:
    order = list(Standing)
    return tuple(sorted(found, key=lambda each: order.index(each.standing)))


def _felt_changes(watch: Summary) -> Iterator[Change]:
    """What was felt at each place while it changed, against nothing, which is what should be felt."""
    for felt in watch.felt:
        lines = fact_lines(felt)
        yield Change("fact", "felt while it changed", felt.subject, "changed" if lines else "same", ("nothing",), lines or ("nothing",))


def _paired(before: Iterable[_Keyed], after: Iterable[_Keyed]) -> Iterator[tuple[tuple[str, str], _Keyed | None, _Keyed | None]]:
    first: dict[tuple[str, str], _Keyed] = {each.key: each for each in before}
    second: dict[tuple[str, str], _Keyed] = {each.key: each for each in after}
    for key in dict.fromkeys((*second, *first)):
        yield key, first.get(key), second.get(key)


def _verdicts_paired(
    before: Sequence[Judged], after: Sequence[Judged]
) -> Iterator[tuple[tuple[str, str], Judged | None, Judged | None]]:  # fmt: skip
    return _paired(_in_cases(before, after), _in_cases(after, before))


def _in_cases(run: Iterable[Judged], other: Iterable[Judged]) -> Iterator[Judged]:
    """A run's verdicts; a conclusion that it skipped as a whole was skipped in each case in which the other run judged it."""
    cases: dict[str, list[str]] = collections.defaultdict(list)
    for each in other:
        cases[each.conclusion] += [each.case] if each.case else []
    for each in run:
        divided = cases[each.conclusion] if each.outcome == "skipped" and not each.case else []
        yield from [dataclasses.replace(each, case=case) for case in divided] or [each]


def _verdict_changes(
    before: Sequence[Judged], after: Sequence[Judged], absences: Absences
) -> Iterator[tuple[Change, str, str]]:  # fmt: skip
    """Each conclusion's change, why the later run says nothing of it, where it does not, and its sentence."""
    for key, was, now in _verdicts_paired(before, after):
        missing = Absence("") if now else absences.of_verdict(key[1])
        then = _WORDS[was.outcome] if was else _ABSENT
        since = _WORDS[now.outcome] if now else {"gone": _ABSENT}.get(missing.kind, missing.kind)
        told = _lines(was.reason if was else ""), _lines(now.reason if now else missing.why)
        sentence = now.sentence if now else was.sentence if was else ""
        yield Change("conclusion", key[0], key[1], f"{then}→{since}", *told), missing.why, sentence


def _fact_changes(before: Iterable[Fact], after: Iterable[Fact], absences: Absences) -> Iterator[tuple[Change, str]]:
    """Each fact's change, and why it could not be seen or is not told."""
    for (subject, name), was, now in _paired(before, after):
        if now is None and was and was.unseen is not None:
            continue  # that it could not be seen was all that was told of it
        if now is None:
            missing = absences.of_fact(subject, name)
            yield Change("fact", name, subject, missing.kind, was.value if was else (), _lines(missing.why)), missing.why
        else:
            yield Change("fact", name, subject, _became(was, now), was.value if was else (), now.value), now.unseen or ""


def _became(was: Fact | None, now: Fact) -> str:
    if now.unseen is not None:
        return "unseen"
    if was is None or was.unseen is not None:
        return "new"
    return "same" if was.value == now.value else "changed"


def _lines(text: str) -> tuple[str, ...]:
    return (text,) if text else ()


def _difference(change: Change, why: str, rules: Sequence[Rule], sentence: str = "") -> Difference:
    standing, because = _decided(change, rules)
    because = (standing is Standing.UNSEEN and why) or (f"{because}: {why}" if because and why else because)
    return Difference(change.subject, change.name, change.kind, change.before, change.after, standing, because, sentence)


def _decided(change: Change, rules: Sequence[Rule]) -> tuple[Standing, str]:
    if change.kind in ("same", "held→held", "skipped→skipped"):
        wrong = next((rule for rule in rules if rule.expects_another(change)), None)
        return (Standing.REGRESSION, f"was to become {wrong.to}") if wrong else (Standing.SAME, "")
    word, because = decide(change, rules)
    return Standing(word), because
