"""What cluster this is: the nodes' facts as a table, a row a fact and a column a node, with what differs marked."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Mapping, Sequence

UNSEEN = "could not be seen"

# Facts that are a node's own: a difference in them is no news, so it is not marked.
_OWN = re.compile(r"PodCIDR|\b(?:\w*IPs?|address(?:es)?|MAC|hostname)\b", re.IGNORECASE)


@dataclasses.dataclass(frozen=True, slots=True)
class FactCell:
    """One node's value; ``kind`` is "", "odd" (unlike most nodes), "unseen" or "absent" (nobody told it)."""

    value: str
    kind: str


@dataclasses.dataclass(frozen=True, slots=True)
class FactRow:
    """One fact over all nodes."""

    fact: str
    cells: tuple[FactCell, ...]
    differs: bool


def rows(nodes: Mapping[str, Mapping[str, str]]) -> tuple[FactRow, ...]:
    """Return one row a fact, in the order in which the facts first come; cells in the order of the nodes."""
    facts = dict.fromkeys(fact for told in nodes.values() for fact in told)
    return tuple(_row(fact, [told.get(fact) for told in nodes.values()]) for fact in facts)


def _row(fact: str, values: Sequence[str | None]) -> FactRow:
    seen = Counter(value for value in values if value is not None and not value.startswith(UNSEEN))
    differs = len(seen) > 1 and not _OWN.search(fact)
    usual = None
    if differs:
        (first, most), (_, second) = seen.most_common(2)
        usual = first if most > second else None
    return FactRow(fact, tuple(_cell(value, usual) for value in values), differs)


def _cell(value: str | None, usual: str | None) -> FactCell:
    if value is None:
        return FactCell("–", "absent")
    if value.startswith(UNSEEN):
        return FactCell(value, "unseen")
    return FactCell(value, "odd" if usual is not None and value != usual else "")
