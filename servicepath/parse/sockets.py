"""``ss -Htulnp`` or ``ss -Htuln`` → listeners; UDP sockets that wait for anyone count as listening.

Sample:

    udp UNCONN 0      0      192.168.55.10:8472  0.0.0.0:* users:(("cilium-agent",pid=530,fd=5))
    tcp LISTEN 0      128     0.0.0.0%eth0:99    0.0.0.0:*
    tcp LISTEN 0      128                *:10250       *:* users:(("kubelet",pid=19530,fd=6))
"""

from __future__ import annotations

import ipaddress
import re

from ..model.host import Listener
from .errors import ParseError
from .lines import is_number, numbered

_TOOL = "ss"
_LOCAL = re.compile(r"(?P<host>\[[^\]]*\]|[^\s\[\]%]+?)(?:%(?P<device>[^\s:]+))?:(?P<port>[0-9]+)")
_PROCESS = re.compile(r'users:\(\("(?P<name>(?:[^"\\]|\\.)*)"')


def parse_ss(text: str) -> tuple[Listener, ...]:
    """Read every listening socket; the headings' line (``ss`` without -H) is passed over.

    Raises:
        ParseError: a line that is no listening socket; names line and text. Service names instead of port numbers (``ss``
            without -n) are such a line, and so is a last one that was cut off.
    """
    lines = ((number, line) for number, line in numbered(_TOOL, text) if line.strip())
    return tuple(_listener(number, line) for number, line in lines if not line.startswith("Netid "))


def _listener(number: int, line: str) -> Listener:
    words = line.split()
    if len(words) < 6 or not (is_number(words[2]) and is_number(words[3])):
        raise ParseError(_TOOL, number, line, "protocol, state, two queues, local and peer address")
    if words[1] not in ("LISTEN", "UNCONN"):
        raise ParseError(_TOOL, number, line, "state LISTEN or UNCONN")
    local = _LOCAL.fullmatch(words[4])
    if local is None or not 0 < int(local["port"]) < 65536:
        raise ParseError(_TOOL, number, line, "a local address and a port number")
    process = _PROCESS.search(line)
    host = local["host"].strip("[]").partition("%")[0]
    try:
        address = None if host == "*" else ipaddress.ip_address(host)
    except ValueError:
        raise ParseError(_TOOL, number, line, "a local IP address") from None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        # A dual-stack socket bound to ::ffff:10.43.0.10 listens on the IPv4 address.
        address = address.ipv4_mapped
    if address is not None and address.is_unspecified:
        address = None
    return Listener(words[0].upper(), address, int(local["port"]), process["name"] if process else None, local["device"], raw=line.strip())
