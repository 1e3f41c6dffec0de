"""The rules that make up nearly all of a large cluster's listing, read by one regular expression each.

    [0:0] -A KUBE-SERVICES -d 10.43.0.10/32 -p udp -m comment --comment "kube-system/kube-dns:dns cluster IP" -m udp --dport 53 -j KUBE-SVC-…
    [0:0] -A KUBE-SVC-… ! -s 10.42.0.0/16 -d 10.43.0.10/32 -p udp -m comment --comment "…" -m udp --dport 53 -j KUBE-MARK-MASQ
    [0:0] -A KUBE-SVC-… -m comment --comment "…" -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-…
    [0:0] -A KUBE-SEP-… -p udp -m comment --comment "…" -m udp -j DNAT --to-destination 10.42.1.113:53

Word by word (module iptables_words) a hundred thousand of them take three times as long. A rule with anything else in it is left to
that module, which reads these, too, and reads them the same: a property test holds it.
"""  # noqa: E501 - the samples are as wide as the tool prints them

from __future__ import annotations

import re

from ..model.rules import Rule
from .iptables_words import RuleReader

_NET = r"(?: (! )?-{} ([\da-fA-F.:]+/\d+))?"
_USUAL = re.compile(
    r"(?:\[(\d{1,20}):(\d{1,20})\] )?-A ([^\s\"-][^\s\"]*)" + _NET.format("s") + _NET.format("d") + r"(?: -p (tcp|udp|sctp))?"
    r"(?: -m comment --comment (?:\"([^\"\\]*)\"|([\w-]+)))?"
    r"(?: -m (?:tcp|udp|sctp)(?: --dport (6[0-4]\d{3}|65[0-4]\d{2}|655[0-2]\d|6553[0-5]|[1-5]?\d{1,4}))?)?"
    r"(?: -m statistic --mode random --probability (0\.\d+))?"
    r"(?: -j (?:(DNAT) --to-destination ([\d\[][\da-f.:\]-]*)|([A-Za-z][\w-]*)))?",
    re.ASCII,
)
match = _USUAL.fullmatch
"""Match a whole line; ``rule`` takes the match."""

CHAIN = 3  # the group that is the rule's chain


def rule(found: re.Match[str], reader: RuleReader, table: str, position: int, line: int) -> Rule:
    """The rule that was matched.

    Raises:
        Unreadable: an address is none.
    """
    (packets, octets, chain, not_source, source, not_destination, destination, protocol, quoted, bare, dport, chance, dnat, to, jump) = (
        found.groups()
    )
    shared = reader.shared
    comment = bare if quoted is None else quoted
    return Rule(
        table,
        shared(chain),
        position,
        line,
        found.string,
        None if packets is None else reader.counter(packets, octets),
        None if source is None else reader.net(source, not_source is not None),
        None if destination is None else reader.net(destination, not_destination is not None),
        protocol and shared(protocol),
        None if dport is None else int(dport),
        None,
        None,
        None if comment is None else shared(comment),
        None if chance is None else float(chance),
        None,
        False,
        dnat or (jump and shared(jump)),
        to,
    )
