"""How a Service's rules have counted between two readings, and whether the two can be compared at all.

kube-proxy (Kubernetes v1.34, pkg/proxy/iptables/proxier.go) writes KUBE-SERVICES, KUBE-NODEPORTS, KUBE-POSTROUTING and
KUBE-MARK-MASQ anew, counting from zero and in random order, at every sync; a Service's own chains only when the Service or its
endpoints changed and at a full sync. So the counters of KUBE-SERVICES and of the Service's chains are disturbed apart from each
other, and the latter are the witness to rely on. nat counters count new connections: only the packet that creates a conntrack
entry goes through the nat table (iptables(8)).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from . import service_rules
from .addresses import Socket
from .rules import SERVICES, Counter, Rule, Ruleset
from .service_rules import ServiceWalk

# The chains of one Service port, all with the same hash behind the prefix.
_SIBLINGS = ("KUBE-EXT-", "KUBE-XLB-", "KUBE-FW-", "KUBE-SVL-", "KUBE-SVC-")

# Written anew at every sync, and raised by all kinds of traffic: a fall in any of them tells a sync.
_REWRITTEN = (SERVICES, "KUBE-NODEPORTS", "KUBE-POSTROUTING", "KUBE-MARK-MASQ")


@dataclasses.dataclass(frozen=True, slots=True)
class Disturbed:
    """Why two readings cannot be compared; never to be read as no growth."""

    reason: str
    evidence: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class CounterGrowth:
    """How a Service port's rules grew.

    Attributes:
        service: the rule of KUBE-SERVICES, or why it cannot be told (a sync fell in between).
        masquerade: the rule to KUBE-MARK-MASQ; None where there is none. It sees the packets that ``chain`` sees, a second time:
            the two are never to be added. In old layouts it stands in KUBE-SERVICES and is disturbed with it.
        chain: what the Service's own chain sent on: the sum over its jumps to endpoints, affinity's ``recent`` jumps included. It
            is taken and not the rule of KUBE-SERVICES, since that one is zeroed at every sync; traffic to the Service's node port
            and load balancer comes through KUBE-EXT to the same jumps and counts here, too.
        endpoints: the sum over the endpoints' DNAT rules; what ``chain`` sent on arrives here.
        by_endpoint: the same by endpoint, or by chain name where the socket could not be told.
        before: the rules' lines as first read; after: as read then.
    """

    service: Counter | Disturbed
    masquerade: Counter | Disturbed | None
    chain: Counter
    endpoints: Counter
    by_endpoint: Mapping[Socket | str, Counter]
    before: tuple[str, ...] = dataclasses.field(default=(), compare=False)
    after: tuple[str, ...] = dataclasses.field(default=(), compare=False)


def counter_deltas(before: Ruleset, after: Ruleset, walk: ServiceWalk) -> CounterGrowth | Disturbed:
    """Tell how a Service port's counters grew between two readings of one back end.

    Args:
        before: the first reading, with counters.
        after: the second.
        walk: a walk of the Service port through either; only its address, protocol and port are used.

    Returns:
        The growth; or Disturbed when a rule of the Service's own chains is gone, new, without counter, or counts less than before.
    """
    first = service_rules.walk_from_services(before, walk.ip, walk.protocol, walk.port)
    second = service_rules.walk_from_services(after, walk.ip, walk.protocol, walk.port)
    if first.chain is None or second.chain is None:
        return Disturbed(f"KUBE-SERVICES has no rule for {walk.ip}:{walk.port}/{walk.protocol} in one of the readings")
    if first.chain != second.chain:
        return Disturbed(f"{walk.ip}:{walk.port} led to {first.chain} first and to {second.chain} then")
    for name in dict.fromkeys((first.chain, *(choice.chain for choice in (*first.choices, *second.choices)))):
        reason = _incomparable(name, before.rules("nat", name), after.rules("nat", name))
        if reason:
            return reason
    then = {choice.chain: choice for choice in second.choices}
    synced = synced_between(before, after)
    return CounterGrowth(
        service=synced or _front(second) - _front(first),
        masquerade=_masquerade_growth(first.masquerade_rule, second.masquerade_rule, synced),
        chain=_total(_jumps(second)) - _total(_jumps(first)),
        endpoints=_total(second.sep_rules) - _total(first.sep_rules),
        by_endpoint={c.socket or c.chain: _total(then[c.chain].dnat) - _total(c.dnat) for c in first.choices},
        before=first.lines,
        after=second.lines,
    )


def synced_between(before: Ruleset, after: Ruleset) -> Disturbed | None:
    """What in the rules themselves tells that kube-proxy wrote KUBE-SERVICES anew between two readings.

    A rule that counts less than before, or another order or set of rules. None when nothing tells: a sync that left the same order
    and found all counters at zero is not seen here, so ask kube-proxy's metric, too.
    """
    for name in _REWRITTEN:
        first, second = before.rules("nat", name), after.rules("nat", name)
        if name == SERVICES and [rule.meaning for rule in first] != [rule.meaning for rule in second]:
            return Disturbed(f"the rules of {name}, or their order, are not those of the first reading")
        fallen = _incomparable(name, first, second)
        if fallen:
            return fallen
    return None


def by_other_ways(before: Ruleset, after: Ruleset, walk: ServiceWalk) -> tuple[Counter, Counter] | Disturbed:
    """What came by node port, load balancer or external address in between: to the Service's chain, and past it to its endpoints.

    Such traffic comes through KUBE-EXT (before v1.24: KUBE-NODEPORTS, KUBE-XLB or KUBE-FW) to the same chains, and is none of the
    ClusterIP's.
    """
    own = walk.chain or ""
    others = [prefix + own.rpartition("-")[2] for prefix in _SIBLINGS]
    chains = [name for name in (*others, "KUBE-NODEPORTS", SERVICES) if name != own]
    grown = []
    for targets in ({own}, {choice.chain for choice in walk.choices}):
        first, second = (
            _total(rule for name in chains for rule in rules.rules("nat", name) if rule.target in targets and not _is_front(rule, walk))
            for rules in (before, after)
        )
        if second.packets < first.packets:
            return Disturbed(f"the other ways to {own} were written anew between the readings")
        grown.append(second - first)
    return grown[0], grown[1]


def _front(walk: ServiceWalk) -> Counter:
    return _total((walk.service_rule,) if walk.service_rule else ())


def _is_front(rule: Rule, walk: ServiceWalk) -> bool:
    """The rule of KUBE-SERVICES for the ClusterIP itself."""
    return rule.meaning in {front.meaning for front in walk.service_rules}


def _masquerade_growth(first: Rule | None, second: Rule | None, synced: Disturbed | None) -> Counter | Disturbed | None:
    if first is None or second is None:
        return None
    if synced and SERVICES in (first.chain, second.chain):
        return synced
    return _total((second,)) - _total((first,))


def _incomparable(name: str, first: tuple[Rule, ...], second: tuple[Rule, ...]) -> Disturbed | None:
    """Compare a chain's rules by what they do; a rule that stands twice is told apart by order."""
    old, new = _by_meaning(first), _by_meaning(second)
    if old.keys() != new.keys():
        changed = [rule.raw for key, rule in (*old.items(), *new.items()) if key not in old or key not in new]
        return Disturbed(f"the rules of {name} changed between the readings", tuple(changed))
    for key, rule in old.items():
        then, now = rule.counter, new[key].counter
        if then is None or now is None:
            return Disturbed(f"{name} was read without counters", (rule.raw, new[key].raw))
        if now.packets < then.packets or now.bytes < then.bytes:
            return Disturbed(f"{name} was written anew between the readings: it counts less than before", (rule.raw, new[key].raw))
    return None


def _by_meaning(rules: tuple[Rule, ...]) -> dict[tuple[object, ...], Rule]:
    found: dict[tuple[object, ...], Rule] = {}
    for rule in rules:
        times = 0
        while (times, rule.meaning) in found:
            times += 1
        found[times, rule.meaning] = rule
    return found


def _jumps(walk: ServiceWalk) -> tuple[Rule, ...]:
    return (*walk.affinity, *(choice.jump for choice in walk.choices))


def _total(rules: Iterable[Rule]) -> Counter:
    counted = [rule.counter for rule in rules if rule.counter is not None]
    return Counter(sum(counter.packets for counter in counted), sum(counter.bytes for counter in counted))
