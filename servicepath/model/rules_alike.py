"""Does one node hold of a ClusterIP's port to the letter what another one holds? A cheap look that spares the walk of ten thousand.

It never says that rules differ: what is printed otherwise, or may mean something else on another node, is walked and compared as models.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .addresses import IPAddress, IPNetwork
from .rules import Ruleset

Frontend = tuple[IPAddress, str, int]
_NODE_PORTS = "KUBE-NODEPORTS"


class Alike:
    """The nodes' rules, compared with the first node's.

    Args:
        rulesets: node → its rules.
        own: the nodes' PodCIDRs: a rule that names one means something else on its own node than on others.
    """

    def __init__(self, rulesets: Mapping[str, Ruleset], own: Collection[IPNetwork]) -> None:
        self._rulesets = tuple(rulesets.values())
        self._own = frozenset(own)
        # A rule of KUBE-SERVICES that is for no single address may take any packet, and lead anywhere.
        self._telling = all(_usual(ruleset) for ruleset in self._rulesets)

    def at(self, frontend: Frontend) -> bool:
        """Whether all nodes are seen to hold the same of it."""
        if not self._telling:
            return False
        first = self._lines(self._rulesets[0], frontend)
        return first is not None and all(self._lines(ruleset, frontend) == first for ruleset in self._rulesets[1:])

    def _lines(self, ruleset: Ruleset, frontend: Frontend) -> list[str] | None:
        """All rules that the walk would meet, without their counters; None where one of them depends on the node."""
        leading, own = ruleset.exact_rules("nat", *frontend), self._own
        found: list[str] = []
        rules = [*leading, *ruleset.exact_rules("filter", *frontend)]
        for chain in dict.fromkeys(rule.target for rule in leading):
            rules += ruleset.rules("nat", chain or "")
        for rule in rules:
            if rule.source is not None and rule.source.network in own:
                return None
            found.append(_bare(rule.raw))
            if rule.target is not None and rule.target.startswith("KUBE-SEP-"):
                found += [_bare(behind.raw) for behind in ruleset.rules("nat", rule.target)]
        return found


def _usual(ruleset: Ruleset) -> bool:
    return all(rule.target == _NODE_PORTS and rule.dst_type_local for rule in ruleset.unindexed())


def _bare(line: str) -> str:
    """The line without its counter."""
    return line[line.index("] ") :] if line[:1] == "[" else line
