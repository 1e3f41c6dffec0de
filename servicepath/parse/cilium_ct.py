"""Reads ``cilium-dbg bpf ct list global`` (text; Cilium 1.16 to 1.20, and the older form of Service entries).

A Pod's DNS query through a ClusterIP leaves two entries, the Service's and the one to the backend::

    UDP SVC 10.42.0.161:43210 -> 10.43.0.10:53 expires=4565 Packets=0 Bytes=0 … RevNAT=2 … BackendID=1 NatPort=0
    UDP OUT 10.42.0.161:43210 -> 10.42.1.113:53 expires=4565 Packets=0 Bytes=0 … RevNAT=2 …
    ICMP IN 10.42.2.236:0 -> 10.42.1.36:0 related expires=3730 …

Before 1.16 the Service's entry read ``UDP OUT 10.43.0.10:53 -> 10.42.0.161:43210 service expires=…``, the tuple as the map holds
it. IPv6 addresses stand without brackets (``fd00::a:53`` is port 53 of fd00::a). ``--time-diff`` puts a remark behind expires.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from ..model.addresses import Socket
from ..model.cilium import CtEntry
from .errors import ParseError
from .lines import address, numbered, port, whole

TOOL = "cilium-dbg bpf ct list global"

_LINE = re.compile(
    r"(?P<protocol>\w+) (?P<direction>SVC|OUT|IN) "
    r"\[?(?P<source>[0-9a-fA-F.:]+?)\]?:(?P<sport>\d+) -> \[?(?P<destination>[0-9a-fA-F.:]+?)\]?:(?P<dport>\d+) "
    r"(?P<related>related )?(?P<service>service )?(?P<rest>expires=.*)",
    re.ASCII,
)
_PACKETS = re.compile(r"\b(?:Rx|Tx)?Packets=(\d+)", re.ASCII)


def parse_ct_list(text: str, *, ports: Collection[int] | None = None) -> tuple[CtEntry, ...]:
    """Read the entries of Cilium's global connection tracking tables.

    Args:
        text: the tool's output; blank lines part the tables.
        ports: keep only entries that have one of these ports at either end; None keeps all. A busy node has half a million.

    Returns:
        The entries in the tool's order. A related entry has direction RELATED.

    Raises:
        ParseError: for a line that is no entry, such as the tool's own complaint that a map cannot be opened, or one that was cut off.
    """
    names = None if ports is None else frozenset(map(str, ports))
    found = []
    for number, line in numbered(TOOL, text):
        stripped = line.strip()
        if not stripped or stripped.startswith("Defaulted container"):
            continue
        match = _LINE.fullmatch(stripped)
        if not match:
            raise ParseError(TOOL, number, stripped, "'UDP OUT ADDRESS:PORT -> ADDRESS:PORT expires=…'")
        if names is None or match["sport"] in names or match["dport"] in names:
            found.append(_entry(match, stripped, number))
    return tuple(found)


def _entry(match: re.Match[str], line: str, number: int) -> CtEntry:
    try:
        source = Socket(address(match["source"]), port(match["sport"]))
        destination = Socket(address(match["destination"]), port(match["dport"]))
        counts = [whole(count) for count in _PACKETS.findall(match["rest"])]
    except ValueError as error:
        raise ParseError(TOOL, number, line, f"two addresses with ports, and numbers ({error})") from error
    direction = match["direction"]
    if match["service"]:
        # The old form shows the map's own tuple, which is stored for the way back.
        source, destination, direction = destination, source, "SVC"
    if match["related"]:
        direction = "RELATED"
    return CtEntry(match["protocol"], direction, source, destination, sum(counts) if counts else None, line)
