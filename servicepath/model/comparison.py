"""Two runs of one cluster side by side: what became of each conclusion, which facts changed, and what the rules make of that."""

from __future__ import annotations

import collections
import dataclasses
import enum
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from .baseline import Baseline, Fact, Judged, Timing
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

_Keyed = TypeVar("_Keyed", Fact, Judged)


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is (or is not) as it was.

    Attributes:
        subject: what it is about: a fact's subject, or a conclusion's case; empty for the cluster.
        name: the fact's name or the conclusion's id.
        change: for a conclusion "held→broken", "held→held", "absent→held" …; for a fact "changed", "new", "gone", "unseen", "same".
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
        broken = (f"the run {when} is not whole: {run.unfinished}" for when, run in runs if run.unfinished)
        return (*broken, *(f"the watch in between: {line}" for line in self.watch.unseen)) if self.watch else tuple(broken)

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
    """
    if before.identity and after.identity and (why := before.identity.unlike(after.identity)):
        raise AnotherCluster(f"a baseline of another cluster: {why}")
    every = (*rules, *BUILT_IN)
    conclusions = tuple(_conclusions(before.judged, after.judged, every))
    meant = tuple(_felt_changes(watch)) if watch else ()
    facts = (*_facts(before.facts, after.facts, every), *_timings(before.timings, after.timings, every), *_felt(meant, every))
    met = {id(rule) for rule in rules for change in (*_changes(before, after), *meant) if rule.fits(change)}
    unmet = tuple(rule for rule in rules if rule.standing == "expected" and id(rule) not in met)
    return Comparison(before, after, _worst_first(conclusions), _worst_first(facts), unmet, watch)


def _worst_first(found: Iterable[Difference]) -> tuple[Difference, ...]:
    order = list(Standing)
    return tuple(sorted(found, key=lambda each: order.index(each.standing)))


def _changes(before: Baseline, after: Baseline) -> Iterator[Change]:
    """Every change, as the rules see it."""
    for key, was, now in _verdicts_paired(before.judged, after.judged):
        yield _verdict_change(key, was, now)
    for key, old, new in _paired(before.facts, after.facts):
        yield _fact_change(key, old, new)
    yield from (change for change, _, _ in _timing_changes(before.timings, after.timings))


def _felt_changes(watch: Summary) -> Iterator[Change]:
    """What was felt at each place while it changed, against nothing, which is what should be felt."""
    for felt in watch.felt:
        lines = fact_lines(felt)
        yield Change("fact", "felt while it changed", felt.subject, "changed" if lines else "same", ("nothing",), lines or ("nothing",))


def _felt(changes: Iterable[Change], rules: Sequence[Rule]) -> Iterator[Difference]:
    for change in changes:
        yield Difference(change.subject, change.name, change.kind, change.before, change.after, *_decided(change, rules))


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


def _verdict_change(key: tuple[str, str], was: Judged | None, now: Judged | None) -> Change:
    then, since = (_WORDS[one.outcome] if one else _ABSENT for one in (was, now))
    return Change("conclusion", key[0], key[1], f"{then}→{since}", (was.reason,) if was else (), (now.reason,) if now else ())


def _conclusions(before: Sequence[Judged], after: Sequence[Judged], rules: Sequence[Rule]) -> Iterator[Difference]:
    for key, was, now in _verdicts_paired(before, after):
        change = _verdict_change(key, was, now)
        sentence = now.sentence if now else was.sentence if was else ""
        told = (_first(was.reason) if was else (), _first(now.reason) if now else ())
        standing, because = _decided(change, rules)
        yield Difference(key[1], key[0], change.kind, *told, standing, because, sentence)


def _first(reason: str) -> tuple[str, ...]:
    return (reason,) if reason else ()


def _fact_change(key: tuple[str, str], was: Fact | None, now: Fact | None) -> Change:
    kind = "same"
    if now is None:
        kind = "gone"
    elif now.unseen is not None:
        kind = "unseen"
    elif was is None or was.unseen is not None:
        kind = "new"
    elif was.value != now.value:
        kind = "changed"
    return Change("fact", key[1], key[0], kind, was.value if was else (), now.value if now else ())


def _facts(before: Iterable[Fact], after: Iterable[Fact], rules: Sequence[Rule]) -> Iterator[Difference]:
    for key, was, now in _paired(before, after):
        change = _fact_change(key, was, now)
        standing, because = _decided(change, rules)
        if now is not None and now.unseen is not None and standing is Standing.UNSEEN:
            because = now.unseen
        yield Difference(key[0], key[1], change.kind, change.before, change.after, standing, because)


def _decided(change: Change, rules: Sequence[Rule]) -> tuple[Standing, str]:
    if change.kind in ("same", "held→held", "skipped→skipped"):
        wrong = next((rule for rule in rules if rule.expects_another(change)), None)
        return (Standing.REGRESSION, f"was to become {wrong.to}") if wrong else (Standing.SAME, "")
    word, because = decide(change, rules)
    return Standing(word), because


def _timings(before: Iterable[Timing], after: Iterable[Timing], rules: Sequence[Rule]) -> Iterator[Difference]:
    for change, old, new in _timing_changes(before, after):
        standing, because = _decided(change, rules)
        yield Difference(change.subject, change.name, change.kind, (spread(old),), (spread(new),), standing, because)


def _timing_changes(before: Iterable[Timing], after: Iterable[Timing]) -> Iterator[tuple[Change, Timing, Timing]]:
    first = {each.subject: each for each in before if each.seconds}
    for new in after:
        old = first.get(new.subject)
        if old is None or not new.seconds:
            continue
        moved = _moved(old.seconds, new.seconds)
        name = {0: "latency", 1: "latency, slower", -1: "latency, faster"}[moved]
        yield Change("fact", name, new.subject, "changed" if moved else "same", (spread(old),), (spread(new),)), old, new


def _quartiles(seconds: Sequence[float]) -> tuple[float, float, float]:
    if len(seconds) == 1:
        return seconds[0], seconds[0], seconds[0]
    low, middle, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return low, middle, high


def _moved(before: Sequence[float], after: Sequence[float]) -> int:
    """1: slower, -1: faster, 0: within the spread. Moved are medians that differ by half and whose middle halves lie apart."""
    (low, was, high), (low2, now, high2) = _quartiles(before), _quartiles(after)
    if low2 > high and now > was * 1.5:
        return 1
    return -1 if high2 < low and now * 1.5 < was else 0


def spread(timing: Timing) -> str:
    """``0.41 ms (half of them 0.35 to 0.62 ms, 15 answers)``."""
    low, middle, high = (f"{value * 1000:.2f}" for value in _quartiles(timing.seconds))
    return f"{middle} ms (half of them {low} to {high} ms, {len(timing.seconds)} answers)"
