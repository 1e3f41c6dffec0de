"""One iptables rule: its text cut into words, and the words read into a Rule.

    -A KUBE-SVC-TCOU7JCQXEZGVUNU ! -s 10.42.0.0/16 -d 10.43.0.10/32 -p udp -m comment --comment "kube-system/kube-dns:dns
    cluster IP" -m udp --dport 53 -j KUBE-MARK-MASQ

The same rule is printed differently by iptables-save, by ``-S -v`` (``-c 0 0``) and in what kube-proxy feeds to
iptables-restore (no mask, ``-m udp -p udp``, ``-d ! x`` in old ones): all become the same Rule. What is not modelled is kept
word by word.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any

from ..model.addresses import IPNetwork
from ..model.rules import UNSUPPORTED, Counter, Net
from .quoting import Unreadable

_PROTOCOLS = {"6": "tcp", "17": "udp", "132": "sctp", "1": "icmp", "58": "ipv6-icmp"}

# Matches that say nothing beyond the options that follow them.
_PLAIN_MATCHES = frozenset({"comment", "tcp", "udp", "sctp", "statistic", "addrtype", "recent"})

# Printed by iptables-save, left out by whoever wrote the rule: the defaults of ``-m recent``.
_DEFAULT_MASKS = frozenset({"255.255.255.255", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"})


# The fields of a Rule as its words are read; "other" is always there.
Draft = dict[str, Any]


class RuleReader:
    """Reads rules; addresses and names that come back are shared, since large clusters repeat them by the ten thousand."""

    def __init__(self) -> None:
        self._nets: dict[tuple[str, bool], Net | None] = {}
        self._names: dict[str, str] = {}
        self._counters: dict[tuple[str, str], Counter] = {}

    def counter(self, packets: str, octets: str) -> Counter:
        """The counter; most are zero."""
        found = self._counters.get((packets, octets))
        if found is None:
            found = self._counters[packets, octets] = Counter(int(packets), int(octets))
        return found

    @property
    def saw_ipv6(self) -> bool:
        """Whether an address was an IPv6 one."""
        return any(net is not None and net.network.version == 6 for net in self._nets.values())

    def shared(self, text: str) -> str:
        """The same text, kept once."""
        return self._names.setdefault(text, text)

    def read(self, words: list[str], start: int) -> Draft:
        """Read the words behind ``-A CHAIN`` into the fields of a Rule.

        Raises:
            Unreadable: a word is none that iptables would print there.
        """
        other: list[str] = []
        draft: Draft = {"other": other}
        at, end, free = start, len(words), False
        while at < end:
            word = words[at]
            if word == "-m" and words[at + 1 : at + 2] and words[at + 1] in _PLAIN_MATCHES:  # the commonest words of all
                at, free = at + 2, False
                continue
            negated = word == "!"
            if negated:
                at += 1
                word = words[at] if at < end else ""
                if word[:1] != "-":
                    raise Unreadable("an option behind '!'")
            handler = _HANDLERS.get(word)
            if handler is not None:
                at = handler(self, draft, words, at, negated)
                free = False
                continue
            if word == "[unsupported" and words[at + 1 : at + 2] == ["revision]"]:
                other.append(UNSUPPORTED)
                at += 2
                continue
            if word[:1] == "-":
                free = True  # an option that is not modelled: how many values it takes is its own business
            elif not free:
                raise Unreadable("an option")
            other.extend(("!", word) if negated else (word,))
            at += 1
        draft["other"] = tuple(other)
        return draft

    def net(self, text: str, negated: bool) -> Net | None:
        """The network; a bare address is a host, the whole address space no condition."""
        key = (text, negated)
        if key not in self._nets:
            network = _network_of(text)
            self._nets[key] = Net(network, negated) if network.prefixlen or negated else None
        return self._nets[key]


_OCTETS = {str(number): number for number in range(256)}


def _network_of(text: str) -> IPNetwork:
    if text.endswith("/32"):  # by far the most, and several times faster this way
        octets = text[:-3].split(".")
        if len(octets) == 4 and all(octet in _OCTETS for octet in octets):
            first, second, third, fourth = (_OCTETS[octet] for octet in octets)
            return ipaddress.IPv4Network((first << 24 | second << 16 | third << 8 | fourth, 32))
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError as error:
        raise Unreadable("an address or network") from error


def _once(draft: Draft, field: str, value: object) -> None:
    if field in draft:
        raise Unreadable(f"{field} only once")
    draft[field] = value


Handler = Callable[[RuleReader, Draft, list[str], int, bool], int]


def _value(words: list[str], at: int) -> str:
    if at + 1 >= len(words):
        raise Unreadable(f"a value behind {words[at]}")
    return words[at + 1]


def _name(words: list[str], at: int) -> str:
    value = _value(words, at)
    if value[:1] in ("-", "!") or value == "[unsupported":
        raise Unreadable(f"a name behind {words[at]}")
    return value


def _keep(draft: Draft, words: list[str], at: int, negated: bool) -> int:
    draft["other"].extend((*(("!",) if negated else ()), words[at], _name(words, at)))
    return at + 2


def _network(field: str) -> Handler:
    def handle(reader: RuleReader, draft: Draft, words: list[str], at: int, negated: bool) -> int:
        if _value(words, at) == "!":  # before iptables 1.4.3 and in rules written for it
            at, negated = at + 1, True
        _once(draft, field, reader.net(_value(words, at), negated))
        return at + 2

    return handle


def _text(field: str) -> Handler:
    def handle(reader: RuleReader, draft: Draft, words: list[str], at: int, negated: bool) -> int:
        if negated:
            return _keep(draft, words, at, True)
        _once(draft, field, reader.shared(_name(words, at)))
        return at + 2

    return handle


def _protocol(reader: RuleReader, draft: Draft, words: list[str], at: int, negated: bool) -> int:
    value = _name(words, at)
    if negated:
        return _keep(draft, words, at, True)
    if value not in ("all", "0"):
        _once(draft, "protocol", reader.shared(_PROTOCOLS.get(value, value)))
    return at + 2


def _dport(_: RuleReader, draft: Draft, words: list[str], at: int, negated: bool) -> int:
    value = _name(words, at)
    if negated or not (value.isascii() and value.isdigit()):
        return _keep(draft, words, at, negated)
    if int(value) > 65535:
        raise Unreadable("a port")
    _once(draft, "dport", int(value))
    return at + 2


def _match(_: RuleReader, draft: Draft, words: list[str], at: int, negated: bool) -> int:
    value = _name(words, at)
    if negated:
        raise Unreadable("an option behind '!'")
    return at + 2 if value in _PLAIN_MATCHES else _keep(draft, words, at, False)


def _comment(reader: RuleReader, draft: Draft, words: list[str], at: int, _negated: bool) -> int:
    _once(draft, "comment", reader.shared(_value(words, at)))
    return at + 2


def _mode(_: RuleReader, draft: Draft, words: list[str], at: int, negated: bool) -> int:
    return at + 2 if _name(words, at) == "random" else _keep(draft, words, at, negated)


def _probability(_: RuleReader, draft: Draft, words: list[str], at: int, negated: bool) -> int:
    if negated:
        return _keep(draft, words, at, True)
    try:
        chance = float(_name(words, at))
    except ValueError as error:
        raise Unreadable("a probability") from error
    if not 0 <= chance <= 1:
        raise Unreadable("a probability between 0 and 1")
    _once(draft, "probability", chance)
    return at + 2


def _dst_type(_: RuleReader, draft: Draft, words: list[str], at: int, negated: bool) -> int:
    if negated or _name(words, at) != "LOCAL":
        return _keep(draft, words, at, negated)
    draft["dst_type_local"] = True
    return at + 2


def _recent(_: RuleReader, draft: Draft, words: list[str], at: int, negated: bool) -> int:
    if negated:
        draft["other"].extend(("!", words[at]))
    else:
        _once(draft, "affinity", words[at].removeprefix("--"))
    return at + 1


def _seconds(_: RuleReader, draft: Draft, words: list[str], at: int, negated: bool) -> int:
    value = _name(words, at)
    if negated or not (value.isascii() and value.isdigit()):
        raise Unreadable("a number of seconds")
    _once(draft, "affinity_seconds", int(value))
    return at + 2


def _mask(_: RuleReader, draft: Draft, words: list[str], at: int, negated: bool) -> int:
    return at + 2 if _name(words, at) in _DEFAULT_MASKS else _keep(draft, words, at, negated)


def _rsource(_: RuleReader, _draft: Draft, _words: list[str], at: int, _negated: bool) -> int:
    return at + 1


def _target(goto: bool) -> Handler:
    def handle(reader: RuleReader, draft: Draft, words: list[str], at: int, negated: bool) -> int:
        if negated:
            raise Unreadable("a condition behind '!'")
        _once(draft, "target", reader.shared(_name(words, at)))
        draft["goto"] = goto
        return at + 2

    return handle


def _to_destination(reader: RuleReader, draft: Draft, words: list[str], at: int, negated: bool) -> int:
    if draft.get("target") != "DNAT":
        return _keep(draft, words, at, negated)
    _once(draft, "to_destination", reader.shared(_name(words, at)))
    return at + 2


def _counts(_: RuleReader, draft: Draft, words: list[str], at: int, _negated: bool) -> int:
    numbers = words[at + 1 : at + 3]
    if len(numbers) != 2 or not all(number.isascii() and number.isdigit() for number in numbers):
        raise Unreadable("packets and bytes behind -c")
    _once(draft, "counter", Counter(int(numbers[0]), int(numbers[1])))
    return at + 3


_HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("-s", "--source", "--src"), _network("source")),
    **dict.fromkeys(("-d", "--destination", "--dst"), _network("destination")),
    **dict.fromkeys(("-p", "--protocol", "--proto"), _protocol),
    **dict.fromkeys(("-i", "--in-interface"), _text("in_interface")),
    **dict.fromkeys(("-o", "--out-interface"), _text("out_interface")),
    **dict.fromkeys(("--dport", "--destination-port"), _dport),
    **dict.fromkeys(("-m", "--match"), _match),
    **dict.fromkeys(("-j", "--jump"), _target(False)),
    **dict.fromkeys(("-g", "--goto"), _target(True)),
    **dict.fromkeys(("--to-destination", "--to"), _to_destination),
    **dict.fromkeys(("--rcheck", "--set"), _recent),
    "--comment": _comment,
    "--mode": _mode,
    "--probability": _probability,
    "--dst-type": _dst_type,
    "--name": _text("affinity_name"),
    "--seconds": _seconds,
    "--mask": _mask,
    "--rsource": _rsource,
    "-c": _counts,
}
