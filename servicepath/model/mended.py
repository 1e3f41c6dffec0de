"""Facts that changed with what was mended: what was wrong beside a broken conclusion changes when it is put right.

A fact belongs to a conclusion when both are about one port on one node ("Pod on master → kube-dns:dns/UDP" and "master,
kube-dns:dns/UDP"). What is told of a whole node belongs only to the conclusions that judge it, since no other one would see it go
wrong. What is told of a Service or of the cluster belongs to none.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Mapping, Set

from .absence import node_of, port_of
from .upgrade_rules import Change, Rule

JUDGED_BY: Mapping[str, frozenset[str]] = {
    "routes": frozenset({"no-route", "remote-podcidr-route"}),
    "routing rules": frozenset({"no-route"}),
    "MTU": frozenset({"tunnel-mtu"}),
    **dict.fromkeys(("KubeProxyReplacement", "kube-proxy's mode", "socket LB", "routing", "tunnel"), frozenset({"mode-as-expected"})),
}
"""What is told of a whole node → the conclusions that judge it."""

_NAMED = 3  # conclusions in a reason
_Place = tuple[str | None, str | None]


def rules(conclusions: Iterable[tuple[Change, bool]], facts: Iterable[Change]) -> Iterator[Rule]:
    """Return a rule for each changed fact that was mended with a conclusion; they come after all others.

    Args:
        conclusions: what became of each, and whether it got worse or could not be seen.
        facts: the facts' changes.
    """
    mended: dict[_Place, list[str]] = {}
    bad: set[_Place] = set()
    for change, worse in conclusions:
        at = _place(change.subject)
        if change.kind == "broken→held":
            mended.setdefault(at, []).append(change.name)
        # One that stays broken says of its own place alone that not all is mended there.
        if worse or (change.kind == "broken→broken" and at != (None, None)):
            bad.add(at)
    nodes = {node for node, _ in bad}
    for fact in facts:
        at = _place(fact.subject)
        with_it = _with(fact, at, mended) if fact.kind == "changed" else ()
        if with_it and not _touched(at, bad, nodes):
            more = f" and {len(with_it) - _NAMED} more" if len(with_it) > _NAMED else ""
            because = f"mended with {', '.join(with_it[:_NAMED])}{more}"
            yield Rule("fact", glob.escape(fact.name), "expected", glob.escape(fact.subject), "changed", because=because)


def _with(fact: Change, at: _Place, mended: Mapping[_Place, list[str]]) -> tuple[str, ...]:
    """The conclusions that the fact was mended with."""
    node, port = at
    if node is None:
        return ()
    if port is not None:
        return tuple(dict.fromkeys(mended.get(at, ())))
    here = (name for (there, _), names in mended.items() if there == node for name in names)
    return tuple(dict.fromkeys(name for name in here if name in JUDGED_BY.get(fact.name, ())))


def _place(subject: str) -> _Place:
    return node_of(subject), port_of(subject)


def _touched(at: _Place, bad: Set[_Place], nodes: Set[str | None]) -> bool:
    """Whether what is bad has the place in common; in a place None is all nodes, or all ports."""
    node, port = at
    if port is None:
        return node in nodes or None in nodes
    return not bad.isdisjoint({at, (node, None), (None, port), (None, None)})
