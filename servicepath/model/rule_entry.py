"""How a packet to a ClusterIP comes from the OUTPUT or PREROUTING hook to KUBE-SERVICES, and what could take it before.

Decided by the rules themselves, following jumps: CILIUM_PRE_nat, DOCKER, CNI-HOSTPORT-DNAT and the like are harmless where
they hold no translation or only match local addresses, and not because of their names.
"""

from __future__ import annotations

import dataclasses
import enum
import itertools

from .addresses import IPAddress
from .rules import SERVICES, Rule, Ruleset

HOOKS = ("OUTPUT", "PREROUTING")

_TRANSLATING = frozenset({"DNAT", "REDIRECT", "NETMAP"})
_ENDING = frozenset({"ACCEPT", "DROP", "REJECT", "QUEUE", "NFQUEUE"})

# Targets after which the packet goes on to the next rule of the chain.
PASSING = frozenset({"MARK", "CONNMARK", "LOG", "NFLOG", "TRACE", "ULOG", "AUDIT", "CONNSECMARK", "SECMARK"})


@dataclasses.dataclass(frozen=True, slots=True)
class Packet:
    """The first packet of a connection to a ClusterIP: no interface holds its destination; its source can be any.

    ``hook`` is OUTPUT for the host's own packets, PREROUTING for all that come in through an interface.
    """

    ip: IPAddress
    protocol: str
    port: int
    hook: str


class Match(enum.Enum):
    """Whether a rule takes a packet."""

    NO = "no"
    SOME = "some"  # depends on what is not known of the packet: its source, mark, interface, or a match that is not modelled
    YES = "yes"


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """The way from a hook to KUBE-SERVICES.

    Attributes:
        hook: OUTPUT or PREROUTING.
        rule: the jump that every such packet takes to KUBE-SERVICES; None when there is none.
        conditional: jumps to KUBE-SERVICES that only some packets take.
        before: rules that translate, stand before the jump and can match the packet.
        stopped: the rule that ends every such packet's way before the jump.
        leaving: rules that end the way of some of them before it: those never come to KUBE-SERVICES.
    """

    hook: str
    rule: Rule | None
    conditional: tuple[Rule, ...]
    before: tuple[Rule, ...]
    stopped: Rule | None
    leaving: tuple[Rule, ...] = ()


def match(rule: Rule, packet: Packet, *, by_chance: bool = True) -> Match:
    """Tell whether the rule takes the packet, as far as destination, protocol, port and interface direction tell.

    Args:
        rule: the rule.
        packet: the packet.
        by_chance: whether a rule's probability makes it one that takes some packets; without, it is asked what else it depends on.
    """
    # A ClusterIP is on no interface (no-interface asserts it), so it is no local address.
    if rule.dst_type_local or (rule.protocol is not None and rule.protocol != packet.protocol):
        return Match.NO
    if rule.dport is not None and rule.dport != packet.port:
        return Match.NO
    if rule.destination is not None and (packet.ip in rule.destination.network) is rule.destination.negated:
        return Match.NO
    if "lo" in (rule.in_interface, rule.out_interface):
        return Match.NO  # and so it goes neither out nor in by loopback
    if rule.in_interface is not None and packet.hook == "OUTPUT":
        return Match.NO
    if rule.out_interface is not None and packet.hook == "PREROUTING":
        return Match.NO
    if rule.other and _other_excludes(rule.other, packet):
        return Match.NO
    if rule.source is not None or rule.in_interface is not None or rule.out_interface is not None or rule.affinity is not None:
        return Match.SOME
    if (by_chance and rule.probability is not None) or (rule.other and _conditions(rule)):
        return Match.SOME
    return Match.YES


def narrowed(rule: Rule) -> bool:
    """True for a rule of an endpoint's chain that takes only some of its packets, which are all of one protocol.

    ``recent --set`` remembers and always takes; what the tool could not print is no condition that was seen.
    """
    nets = (rule.source, rule.destination, rule.in_interface, rule.out_interface, rule.dport, rule.probability)
    if any(part is not None for part in nets) or rule.dst_type_local or rule.affinity == "rcheck":
        return True
    return bool(rule.other) and not rule.unreadable and _conditions(rule)


def unconditional(rule: Rule) -> bool:
    """True for a rule that takes every packet of its protocol."""
    return rule.affinity is None and not narrowed(rule)


def _conditions(rule: Rule) -> bool:
    """True when words that are not modelled belong to matches and not to the target alone."""
    words = rule.other
    if rule.target in _TARGET_OPTIONS:
        return any(word.startswith("-") and word not in _TARGET_OPTIONS[rule.target] for word in words)
    return bool(words)


# Options of targets, so that they are not taken for conditions.
_TARGET_OPTIONS: dict[str, frozenset[str]] = {
    "MARK": frozenset({"--set-xmark", "--set-mark", "--and-mark", "--or-mark", "--xor-mark"}),
    "CONNMARK": frozenset({"--set-xmark", "--set-mark", "--restore-mark", "--save-mark", "--nfmask", "--ctmask"}),
    "DNAT": frozenset({"--random", "--persistent"}),
    "REDIRECT": frozenset({"--to-ports", "--random"}),
    "NETMAP": frozenset({"--to"}),
    "LOG": frozenset({"--log-prefix", "--log-level"}),
    "REJECT": frozenset({"--reject-with"}),
}


def _other_excludes(words: tuple[str, ...], packet: Packet) -> bool:
    """True when a list of ports or a range, which the model keeps as words, leaves the packet's port out, or a state a first packet."""
    for option, value in itertools.pairwise(words):
        if option in ("--ctstate", "--state") and "!" not in words and not _FIRST.intersection(value.split(",")):
            return True
        if option in ("--dport", "--dports", "--destination-ports"):
            listed = any(_holds(part, packet.port) for part in value.split(","))
            at = words.index(option)
            negated = at > 0 and words[at - 1] == "!"
            if listed is negated:
                return True
    return False


def _wants_a_mark(words: tuple[str, ...]) -> bool:
    """True for a match of marked packets alone."""
    for option, value in itertools.pairwise(words):
        if option == "--mark" and "!" not in words:
            wanted, _, mask = value.partition("/")
            return int(wanted, 0) & (int(mask, 0) if mask else 0xFFFFFFFF) != 0
    return False


# The state of a connection's first packet, and nat tables see no other; RELATED is one that another connection announced.
_FIRST = frozenset({"NEW"})


def _holds(part: str, port: int) -> bool:
    low, colon, high = part.partition(":")
    if not ((low.isdigit() or (colon and not low)) and (high.isdigit() or not high)):
        return True  # a service's name: it may be this port
    return int(low or 0) <= port <= int((high or 65535) if colon else low)


def find_entry(ruleset: Ruleset, packet: Packet) -> Entry:
    """Follow the packet from its hook in the nat table until it is sure to be in KUBE-SERVICES."""
    search = _Search(ruleset, packet)
    search.walk(packet.hook, True, ())
    return Entry(packet.hook, search.found, tuple(search.conditional), tuple(search.before), search.stopped, tuple(search.leaving))


class _Search:
    def __init__(self, ruleset: Ruleset, packet: Packet) -> None:
        self._ruleset, self._packet = ruleset, packet
        self.found: Rule | None = None
        self.stopped: Rule | None = None
        self.conditional: list[Rule] = []
        self.before: list[Rule] = []
        self.leaving: list[Rule] = []

    def walk(self, chain: str, sure: bool, through: tuple[str, ...]) -> bool:
        """Go through a chain; True when every packet's way has ended in it."""
        for rule in self._ruleset.rules("nat", chain):
            taken = match(rule, self._packet)
            if taken is Match.NO or rule.target is None:
                continue
            certain = sure and taken is Match.YES
            if rule.target == "RETURN":
                if taken is Match.YES:
                    return False
                if not through:  # back from another chain a packet goes on in the hook; back from the hook it is past it
                    self._leave(rule)
            elif self._ends(rule, certain) or self._jumps(rule, certain, (*through, chain)):
                return True
            elif rule.goto and taken is Match.YES:
                return False
            elif rule.goto and not through and rule.target != SERVICES:
                self._leave(rule)
        return False

    def _leave(self, rule: Rule) -> None:
        """Note a rule that ends the way of some packets; those with a mark are somebody's own already (a proxy's, Cilium's)."""
        if not _wants_a_mark(rule.other):
            self.leaving.append(rule)

    def _ends(self, rule: Rule, certain: bool) -> bool:
        if rule.target == SERVICES:
            if certain:
                self.found = rule
            else:
                self.conditional.append(rule)
            return certain
        if rule.target in _TRANSLATING:
            self.before.append(rule)
        elif rule.target not in _ENDING:
            return False
        elif not certain:
            self._leave(rule)
        if certain:
            self.stopped = rule
        return certain

    def _jumps(self, rule: Rule, certain: bool, through: tuple[str, ...]) -> bool:
        target = rule.target or ""
        if target == SERVICES or target in through or self._ruleset.chain("nat", target) is None:
            return False
        return self.walk(target, certain, through)
