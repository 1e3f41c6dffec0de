"""A comparison in a few lines, for a terminal, a log or a chat."""

from __future__ import annotations

from collections.abc import Iterator

from servicepath.model.comparison import Comparison, Difference, Standing

from .comparison_view import Group, grouped
from .visible import visible

_MOST = 20  # regressions that are named; the page has them all
_LONGEST = 160
_OTHERS = ((Standing.TOLERATED, "tolerated"), (Standing.SAME, "as before"))


def headline(found: Comparison) -> str:
    """One line: ``Cilium 1.19.1 → 1.19.5: 2 regressions, 3 expected changes, 5 tolerated, 380 as before``."""
    counts = [_counted(len(found.regressions), "regression")]
    counts += [f"{len(found.unseen)} could not be seen"] if found.unseen else []
    counts.append(_counted(len(found.standing(Standing.EXPECTED)), "expected change"))
    counts += [f"{len(found.standing(standing))} {word}" for standing, word in _OTHERS]
    return visible(f"Cilium {moved(found, 'Cilium')}: {', '.join(counts)}")


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def moved(found: Comparison, name: str) -> str:
    """``1.19.1 → 1.19.5``, or one value where it is the same."""
    before, after = (" and ".join(run.values(name)) or "not seen" for run in (found.before, found.after))
    return before if before == after else f"{before} → {after}"


def lines(found: Comparison) -> Iterator[str]:
    """The headline, then what got worse, what could not be seen, which expectations met nothing, and what else to know."""
    yield headline(found)
    groups = grouped(found.regressions, loosely=True)
    for group in groups[:_MOST]:
        yield from _lines_of(group)
    if len(groups) > _MOST:
        yield f"✗ and {len(groups) - _MOST} more"
    unseen = grouped(found.standing(Standing.UNSEEN))
    for group in unseen[:_MOST]:
        yield visible(_short(f"! {group.first.name}{f' on {group.where}' if group.where else ''}: {group.first.because}"))
    if len(unseen) > _MOST:
        yield f"! and {len(unseen) - _MOST} more"
    for line in found.partial:
        yield visible(f"! {line}")
    for rule in found.unmet:
        yield visible(f"– upgrade: expect: {rule} met nothing")
    for note in found.notes:
        yield visible(f"– {note}")


def _lines_of(group: Group) -> Iterator[str]:
    each: Difference = group.first
    yield visible(f"✗ {each.name}{f' on {group.where}' if group.where else ''}: {each.change}: {each.because}")
    if each.sentence:
        yield visible(_short("    " + " ".join(each.after or each.before).split("\n", 1)[0])) if each.after or each.before else ""
        return
    if not group.alike:  # those of the others name their own node and port
        yield visible(f"    on {each.subject}:")
    gone, come = (sorted(set(one) - set(other)) for one, other in ((each.before, each.after), (each.after, each.before)))
    for mark, found in (("-", gone), ("+", come)):
        for line in found[:3]:
            yield visible(_short(f"    {mark} {line}"))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
