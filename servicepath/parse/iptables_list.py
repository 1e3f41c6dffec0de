"""``iptables -n -L`` and ``-n -L -v``, for excerpts that people paste; the suite itself asks for iptables-save.

    Chain KUBE-SVC-XS3ZU56555AQFGIC (1 references)
     pkts bytes target     prot opt in     out     source               destination
       20  1200 KUBE-MARK-MASQ  tcp  --  *      *      !10.244.0.0/16        10.0.45.10           /* netlab/svc-backend cluster IP */ tcp dpt:80
       10   600 KUBE-SEP-JZF7FF4KHPDVC7PP  all  --  *      *       0.0.0.0/0  0.0.0.0/0  /* netlab/svc-backend */ statistic mode random probability 0.50000000000

What stands behind the addresses has no grammar of its own; what is not known of it is kept word by word.
"""  # noqa: E501 - the sample is as wide as the tool prints it

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..model.rules import UNSUPPORTED, Chain, Counter, Net, Rule, Ruleset
from .errors import ParseError
from .iptables_words import RuleReader
from .lines import elided, numbered, whole
from .quoting import Unreadable

_TOOL = "iptables -L"
_CHAIN = re.compile(r"^Chain (\S+) \((?:policy (\w+)(?: \d+\w? packets, \d+\w? bytes)?|\d+ references)\)$")
_COLUMNS = re.compile(r"^\s*(?P<numbered>num\s+)?(?:pkts\s+bytes\s+)?target\s+prot\s+opt\s")
_WARNING = re.compile(r"^# Warning: .*tables present")
_ANYWHERE = "anywhere"  # how -L prints 0.0.0.0/0 and ::/0 without -n
# A pasted command above its output names the chain of lines that have no head of their own (grep).
_COMMAND = re.compile(r"^(?:[#$].*\s|)ip6?tables\b.*\s-[nv]*L[nv]*\s+([A-Z][\w-]*)")
_RULE = re.compile(
    r"^\s*(?:(?P<packets>\d+[KMGT]?)\s+(?P<bytes>\d+[KMGT]?)\s+)?(?:(?P<target>[^\s!]\S*)\s+)?(?P<protocol>!?[\w-]+)\s+"
    r"(?P<opt>--|-f|!f)\s+(?(packets)(?P<in>\S+)\s+(?P<out>\S+)\s+)(?P<source>!?[\w.:/-]+)\s+(?P<destination>!?[\w.:/-]+)"
    r"(?:\s+(?P<rest>\S.*))?\s*$"
)
_COMMENT = re.compile(r"/\* (.*?) \*/")
# Names that -L prints for ports without -n, by /etc/services of Debian and of Fedora; the ports of Services that have one.
_PORTS: Mapping[str, int] = {
    "ssh": 22, "smtp": 25, "domain": 53, "http": 80, "ldap": 389, "https": 443, "ldaps": 636, "hbci": 3000, "mysql": 3306,
    "commplex-main": 5000, "postgresql": 5432, "postgres": 5432, "amqp": 5672, "redis": 6379, "sun-sr-https": 6443, "irdmi": 8000,
    "http-alt": 8080, "webcache": 8080, "pcsync-https": 8443, "cslistener": 9000, "websm": 9090,
}  # fmt: skip


def _port(text: str) -> int:
    """The port that a number or one of these names is; ValueError for another name."""
    number = _PORTS.get(text)
    return number if number is not None else whole(text)


_EXTRAS = (
    ("dport", re.compile(r"\b(?:tcp|udp|sctp) dpt:([\w-]+)(?!\S)"), _port),
    ("probability", re.compile(r"\bstatistic mode random probability (\d\.\d+)"), float),
    ("to_destination", re.compile(r"(?<!\S)to:(\S+)"), str),
)
_LOCAL = re.compile(r"\bADDRTYPE match dst-type LOCAL\b")
_PROTOCOLS = {"6": "tcp", "17": "udp", "132": "sctp", "1": "icmp", "58": "ipv6-icmp"}


_LISTED = re.compile(r"^Chain \S+ \((?:policy |\d+ references)|^\s*(?:\d+[KMGT]?\s+\d+[KMGT]?\s+)?KUBE-\S+\s+!?\w+\s+--\s", re.MULTILINE)


def is_listing(text: str) -> bool:
    """Whether the text is a listing (``-L``), and not rules as iptables-save and ``-S`` print them."""
    return _LISTED.search(text) is not None


def parse_list(text: str, *, table: str, chain: str | None = None) -> Ruleset:
    """Read listed chains; the ruleset is an excerpt, for ``-L`` can show one chain only.

    Args:
        text: what was printed, with ``-n``, with or without ``-v``.
        table: the table that was listed.
        chain: the chain that lines without ``Chain …`` above them (grep) belong to.

    Raises:
        ParseError: a line is neither a chain's head, nor the columns' names, nor a rule.
    """
    reader = RuleReader()
    chains: dict[str, tuple[str | None, list[Rule]]] = {}
    current, warning, left_out, counted = chain, None, [], False
    for number, line in numbered(_TOOL, text):
        head, command, columns = _CHAIN.match(line), _COMMAND.match(line), _COLUMNS.match(line)
        if head:
            current = head[1]
            if chains.get(current, (None, []))[1]:
                raise ParseError(_TOOL, number, line, "each chain once: give outputs of different times or tables in files of their own")
            chains[current] = (head[2], [])
        elif command:
            current = command[1]
            if current in chains:
                raise ParseError(_TOOL, number, line, "each chain once: give outputs of different times or tables in files of their own")
        elif columns:
            counted = columns["numbered"] is not None
        elif elided(line):
            left_out.append(number)
        elif line.startswith("#"):
            warning = line.removeprefix("# ") if _WARNING.match(line) else warning
        elif line.strip():
            if current is None:
                raise ParseError(_TOOL, number, line, "'Chain NAME (…)' before the first rule")
            rules = chains.setdefault(current, (None, []))[1]
            rules.append(_rule(reader, table, current, len(rules) + 1, number, line, counted))
    made = {(table, name): Chain(table, name, policy, tuple(rules)) for name, (policy, rules) in chains.items()}
    backend = "nft" if warning and "legacy" in warning else None
    return Ruleset(backend, made, None, warning, (table,), complete=False, elided=tuple(left_out))


def _rule(reader: RuleReader, table: str, chain: str, position: int, number: int, line: str, counted: bool) -> Rule:
    found = _RULE.match(re.sub(r"^\s*\d+\s", "", line) if counted else line)
    if not found:
        raise ParseError(_TOOL, number, line, "a rule as iptables -n -L prints it")
    try:
        source, named_source = _net(reader, "-s", found["source"])
        destination, named_destination = _net(reader, "-d", found["destination"])
        fields, other = _rest(found["rest"] or "", found["target"], must=chain.startswith("KUBE-"))
    except Unreadable as error:
        raise ParseError(_TOOL, number, line, str(error)) from error
    protocol, negation = _protocol(found["protocol"])
    return Rule(
        table, chain, position, number, line, _counter(found["packets"], found["bytes"]), source, destination, protocol,
        in_interface=_interface(found["in"]), out_interface=_interface(found["out"]), target=found["target"],
        other=(*negation, *named_source, *named_destination, *other), **fields,
    )  # fmt: skip


def _net(reader: RuleReader, option: str, text: str) -> tuple[Net | None, tuple[str, ...]]:
    """The network, or the words that stand for a host whose name was printed for its address (without -n)."""
    negated, bare = text.startswith("!"), text.lstrip("!")
    if bare == _ANYWHERE:
        return reader.net("0.0.0.0/0", negated), ()
    if re.fullmatch(r"[\da-fA-F.]*[.\d][\da-fA-F.]*(?:/[\d.]+)?|[\da-fA-F.]*:[\da-fA-F:./]*", bare):
        return reader.net(bare, negated), ()
    if not re.fullmatch(r"[A-Za-z\d_][\w.-]*(?:/\d+)?", bare):
        raise Unreadable("an address, or a host's name")
    return None, (*(("!",) if negated else ()), option, bare)


def _counter(packets: str | None, octets: str | None) -> Counter | None:
    """The counter; None where it was rounded (``12K``, without -x): a rounded number is no fact."""
    if packets is None or octets is None or not (packets.isdigit() and octets.isdigit()):
        return None
    return Counter(int(packets), int(octets))


def _protocol(text: str) -> tuple[str | None, tuple[str, ...]]:
    if text.startswith("!"):
        return None, ("!", "-p", text[1:])
    return (None if text in ("all", "0") else _PROTOCOLS.get(text, text)), ()


def _interface(text: str | None) -> str | None:
    return None if text in (None, "*", "any") else text


def _rest(text: str, target: str | None, *, must: bool) -> tuple[dict[str, Any], tuple[str, ...]]:
    fields: dict[str, Any] = {}
    comment = _COMMENT.search(text)
    if comment:
        fields["comment"] = comment[1]
        text = _COMMENT.sub("", text, count=1)
    for name, pattern, convert in _EXTRAS:
        found = pattern.search(text)
        if found and (name != "to_destination" or target == "DNAT"):  # SNAT prints its source in the same way
            try:
                fields[name] = convert(found[1])
            except ValueError as error:
                if must:
                    raise Unreadable("a port's number (iptables -n -L) or a name that is known here") from error
                continue
            text = pattern.sub("", text, count=1)
    if _LOCAL.search(text):
        fields["dst_type_local"] = True
        text = _LOCAL.sub("", text, count=1)
    unsupported = UNSUPPORTED in text
    words = text.replace(UNSUPPORTED, "").split()
    return fields, (*words, *((UNSUPPORTED,) if unsupported else ()))
