"""``conntrack -L`` (plain, ``-o extended``, ``-o id``) and /proc/net/nf_conntrack → ConntrackTable.

Sample:

    ipv4     2 udp      17 27 src=192.168.55.10 dst=10.43.0.10 sport=40123 dport=53 [UNREPLIED] src=10.42.1.113 dst=10.42.0.9 sport=53 dport=40123 mark=0 use=1
    tcp      6 86389 ESTABLISHED src=10.12.4.31 dst=10.15.240.1 sport=54022 dport=443 packets=9 bytes=900 src=192.0.2.5 dst=10.12.4.31 sport=443 dport=54022 packets=8 bytes=800 [ASSURED] mark=0 use=1
    icmp     1 29 src=127.0.0.1 dst=127.0.0.2 type=8 code=0 id=26355 src=127.0.0.2 dst=127.0.0.1 type=0 code=0 id=26355 mark=0 use=1
    conntrack v1.4.7 (conntrack-tools): 3 flow entries have been shown.
"""  # noqa: E501 (the lines are as long as the tool prints them)

from __future__ import annotations

import functools
import re
from collections import Counter as Tally
from collections.abc import Mapping

from ..model.addresses import Socket
from ..model.host import ConntrackEntry, ConntrackTable
from ..model.rules import Counter
from .errors import ParseError
from .lines import address, port, whole

_TOOL = "conntrack"
_SUMMARY = re.compile(r"conntrack v\S+ \(conntrack-tools\): .*")
_HEAD = re.compile(
    r"(?:(?:ipv4|ipv6)\s+\d+\s+)?(?P<protocol>\w[\w-]*)\s+(?P<number>\d+)(?:\s+(?P<timeout>\d+))?(?:\s+(?P<state>[A-Z][A-Z_0-9]*))?"
)
_FLAG = re.compile(r"\[[A-Z_]+\]")
_WITH_PORTS = frozenset({"tcp", "udp", "udplite", "sctp", "dccp"})


def parse_conntrack(text: str) -> ConntrackTable:
    """Read every entry. Entries of protocols without ports (ICMP, GRE, …) are counted and not kept.

    Raises:
        ParseError: a line that is neither an entry nor conntrack's own summary; names line and text. So is a last line that was
            cut off before its reply tuple was complete.
    """
    entries: list[ConntrackEntry] = []
    without_ports: Tally[str] = Tally()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or _SUMMARY.fullmatch(line.strip()):
            continue
        found = _entry(number, line)
        if isinstance(found, str):
            without_ports[found] += 1
        else:
            entries.append(found)
    return ConntrackTable(tuple(entries), dict(without_ports))


def _entry(number: int, line: str) -> ConntrackEntry | str:
    """The entry; for a protocol without ports its name."""
    head = line.partition(" src=")[0].strip()
    words = line.strip()[len(head) :].split()
    match = _HEAD.fullmatch(head)
    if match is None:
        raise ParseError(_TOOL, number, line, "protocol, its number, timeout, and two tuples")
    flags = [word for word in words if _FLAG.fullmatch(word)]
    pairs = [(key, value) for key, equals, value in (word.partition("=") for word in words) if equals]
    starts = [place for place, (key, _) in enumerate(pairs) if key == "src"]
    if len(starts) != 2 or any(not value for key, value in pairs if key != "secctx"):
        raise ParseError(_TOOL, number, line, "two tuples")
    first, second = (_tuple(pairs[start:end]) for start, end in ((starts[0], starts[1]), (starts[1], len(pairs))))
    if "dst" not in first or "use" not in second:  # use= ends every entry; without it the line was cut off
        raise ParseError(_TOOL, number, line, "two whole tuples, and use= behind them")
    if "sport" not in first and match["protocol"] not in _WITH_PORTS:
        return match["protocol"].upper()
    try:
        return ConntrackEntry(
            protocol=match["protocol"].upper(),
            original=_sockets(first["src"], first["sport"], first["dst"], first["dport"]),
            reply=_sockets(second["src"], second["sport"], second["dst"], second["dport"]),
            state=match["state"],
            unreplied="[UNREPLIED]" in flags,
            assured="[ASSURED]" in flags,
            timeout=whole(match["timeout"]) if match["timeout"] else None,
            mark=whole(second["mark"]) if "mark" in second else None,
            zone=whole(second["zone"]) if "zone" in second else None,
            counts=(_counter(first), _counter(second)) if "packets" in first and "packets" in second else None,
            raw=line.strip(),
        )
    except (ValueError, KeyError) as error:
        raise ParseError(_TOOL, number, line, f"addresses, ports and numbers ({error})") from None


def _tuple(pairs: list[tuple[str, str]]) -> Mapping[str, str]:
    """Keys and values of one tuple; the first counts (after the reply tuple come fields of the whole entry)."""
    found: dict[str, str] = {}
    for key, value in pairs:
        found.setdefault(key, value)
    return found


@functools.lru_cache(maxsize=16384)
def _sockets(source: str, sport: str, destination: str, dport: str) -> tuple[Socket, Socket]:
    """Remembered, since one experiment lists the same flows a dozen times."""
    return Socket(address(source), port(sport)), Socket(address(destination), port(dport))


def _counter(fields: Mapping[str, str]) -> Counter:
    return Counter(whole(fields["packets"]), whole(fields["bytes"]))
