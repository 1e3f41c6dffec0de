"""Reads ``cilium-dbg service list`` and ``cilium-dbg bpf lb list``, as JSON (``-o json``, preferred) and as text.

Service list, the agent's view (Cilium 1.19; before 1.17 without ``/UDP``, 1.0 without the type column)::

    ID   Frontend              Service Type   Backend
    2    10.43.0.10:53/UDP     ClusterIP      1 => 10.42.1.36:53/UDP (active)
    24   192.0.2.75:80/TCP/i   LoadBalancer   1 => 10.42.2.98:80/TCP (active)
                                              2 => 10.42.2.99:80/TCP (terminating)

Load-balancing map, what the datapath uses (1.16 and later; rows come in hash order)::

    SERVICE ADDRESS         BACKEND ADDRESS (REVNAT_ID) (SLOT)
    10.43.0.10:53/UDP (1)   10.42.1.36:53/UDP (2) (1)
    10.43.0.10:53/UDP (0)   0.0.0.0:0 (2) (0) [ClusterIP, non-routable]
    10.43.0.10:0/ANY (0)    0.0.0.0:0 (0) (0) [ClusterIP, non-routable]
    10.43.0.11:80/TCP (1)   backend 235 not found

Up to 1.15 a frontend stands once and the rows of its slots are indented below it, without protocol. The JSON of the map is an
object from the left column to a list of right columns.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import json
import re
from collections.abc import Iterator

from ..model.addresses import Socket
from ..model.cilium import AgentBackend, AgentService, MapService
from .errors import ParseError
from .fields import Fields, decode, json_objects
from .lines import numbered, port

SERVICE_LIST = "cilium-dbg service list"
LB_LIST = "cilium-dbg bpf lb list"

# The cluster id of a remote cluster (``10.0.0.1@2``) is no part of the address.
_ADDRESS = re.compile(r"(?:\[(?P<v6>[0-9a-fA-F:.]+)(?:@\d+)?\]|(?P<v4>[0-9.]+)(?:@\d+)?):(?P<port>\d+)(?:/(?P<words>[\w/]+))?", re.ASCII)
_SERVICE_ROW = re.compile(r"(?P<id>\d+)\s+(?P<frontend>\S+)(?P<rest>.*)")
_SERVICE_BACKEND = re.compile(r"(?P<type>.*?)\s*(?P<slot>\d+) => (?P<address>\S+)(?: \((?P<state>[\w-]+)\))?(?: \(\w+\))*\s*")
_LB_ROW = re.compile(r"(?P<left>\S+(?: \(\d+\))?)\s{2,}(?P<right>\S.*)")
_LB_LEFT = re.compile(r"(?P<address>\S+)(?: \((?P<slot>\d+)\))?")
_LB_MISSING = re.compile(r"backend (?P<id>\d+) not found")
_LB_FRONTEND = re.compile(r"(?:0\.0\.0\.0|\[::\]):0 \(\d+\)(?: \(\d+\))?(?: \[(?P<flags>[^\]]*)\])?(?: .*)?")
_LB_BACKEND = re.compile(r"(?P<address>\S+) \(\d+\)(?: \((?P<slot>\d+)\))?(?: .*)?")


@dataclasses.dataclass(frozen=True, slots=True)
class _Address:
    """``10.43.0.10:53/UDP/i`` taken apart; protocol None for none and for ANY."""

    socket: Socket
    protocol: str | None
    scope: str


def _address(text: str, tool: str, line: int) -> _Address:
    match = _ADDRESS.fullmatch(text)
    if not match:
        raise ParseError(tool, line, text, "an address such as 10.43.0.10:53/UDP")
    try:
        socket = Socket(ipaddress.ip_address(match["v6"] or match["v4"]), port(match["port"]))
    except ValueError as error:
        raise ParseError(tool, line, text, f"an IP address and a port ({error})") from error
    words = (match["words"] or "").split("/")
    scope = "internal" if words[-1] == "i" else "external"
    return _Address(socket, _protocol(words[0] if words[0] != "i" else ""), scope)


def _protocol(word: str | None) -> str | None:
    """Upper case; None for what stands for any protocol."""
    return None if not word or word.upper() in ("ANY", "NONE") else word.upper()


def _body(text: str) -> str:
    """The tool's own output: without the line that kubectl exec may say before it (kept empty, so that line numbers hold)."""
    return text[text.find("\n") :] if text.startswith("Defaulted container") else text


def _lines(text: str, tool: str, header: re.Pattern[str], expected: str) -> Iterator[tuple[int, str]]:
    """Numbered lines below the header."""
    lines = [(number, line) for number, line in numbered(tool, text) if line.strip()]
    if not lines or not header.fullmatch(lines[0][1].rstrip()):
        number, found = lines[0] if lines else (0, text)
        raise ParseError(tool, number, found, expected)
    return ((number, line.rstrip()) for number, line in lines[1:])


def parse_service_list(text: str) -> tuple[AgentService, ...]:
    """Read ``cilium-dbg service list``, JSON or text.

    Returns:
        The frontends in the tool's order. namespace and name are None in text, which does not have them.

    Raises:
        ParseError: for another table, a row or an address that cannot be read.
    """
    text = _body(text)
    if text.lstrip()[:1] in ("[", "n"):
        return _service_list_of_json(text)
    header = re.compile(r"ID\s+Frontend\s+(?:Service Type\s+)?Backend")
    found: list[AgentService] = []
    for number, line in _lines(text, SERVICE_LIST, header, "the header 'ID Frontend Service Type Backend'"):
        row = _SERVICE_ROW.fullmatch(line)
        backend = _SERVICE_BACKEND.fullmatch((row["rest"] if row else line).strip())
        backends = (_text_backend(backend, number),) if backend else ()
        if row:
            address = _address(row["frontend"], SERVICE_LIST, number)
            kind = (backend["type"] if backend else row["rest"]).strip() or None
            found.append(
                AgentService(address.socket, address.protocol, kind, address.scope, None, None, backends, line.strip())
            )
        elif found and backends and line[0].isspace():
            last = found.pop()
            more = dataclasses.replace(last, backends=last.backends + backends, raw=f"{last.raw}\n{line}")
            found.append(more)
        else:
            raise ParseError(SERVICE_LIST, number, line, "a frontend, or '1 => ADDRESS (state)' below one")
    return tuple(found)


def _text_backend(match: re.Match[str], number: int) -> AgentBackend:
    return AgentBackend(_address(match["address"], SERVICE_LIST, number).socket, match["state"])


def _service_list_of_json(text: str) -> tuple[AgentService, ...]:
    if text.strip() == "null":  # how Go prints an empty list
        return ()
    found = []
    for entry in json_objects(SERVICE_LIST, text):
        # What is realized, not what is wanted: spec may be ahead of it.
        realized = entry.child("status").child("realized")
        flags = realized.child("flags")
        address = realized.child("frontend-address")
        found.append(
            AgentService(
                frontend=_json_socket(address),
                protocol=_protocol(address.optional_text("protocol")),
                type=flags.optional_text("type"),
                scope=address.optional_text("scope") or "external",
                namespace=flags.optional_text("namespace"),
                name=flags.optional_text("name"),
                backends=tuple(_json_backend(each) for each in realized.children("backend-addresses")),
                raw=json.dumps(realized.value, sort_keys=True),
            )
        )
    return tuple(found)


def _json_backend(entry: Fields) -> AgentBackend:
    return AgentBackend(_json_socket(entry), entry.optional_text("state"), entry.optional_text("nodeName"))


def _json_socket(entry: Fields) -> Socket:
    """Go leaves a port of 0 out."""
    ip = entry.convert("ip", entry.text("ip").partition("@")[0], ipaddress.ip_address, "an IP address")
    return Socket(ip, (entry.port("port") if entry.value.get("port") else None) or 0)


@dataclasses.dataclass(slots=True)
class _Slots:
    """What is gathered of one frontend while its rows come in hash order."""

    type: str | None = None
    flags: tuple[str, ...] = ()
    backends: list[tuple[int, Socket]] = dataclasses.field(default_factory=list)
    missing: list[int] = dataclasses.field(default_factory=list)
    raw: list[str] = dataclasses.field(default_factory=list)


def parse_lb_list(text: str) -> tuple[MapService, ...]:
    """Read ``cilium-dbg bpf lb list``, JSON or text.

    Returns:
        One entry a frontend, protocol and scope, in the order in which the first row of each stands.

    Raises:
        ParseError: for another table (``--revnat``, ``--backends``), a row or an address that cannot be read.
    """
    gathered: dict[tuple[Socket, str | None, str], _Slots] = {}
    for number, left, right in _lb_rows(_body(text)):
        match = _LB_LEFT.fullmatch(left)
        address = _address(match["address"] if match else left, LB_LIST, number)
        slots = gathered.setdefault((address.socket, address.protocol, address.scope), _Slots())
        _add_slot(slots, right, number, int(match["slot"]) if match and match["slot"] else 0)
        slots.raw.append(f"{left}   {right}")
    return tuple(
        MapService(
            frontend=socket,
            protocol=protocol,
            scope=scope,
            type=slots.type,
            flags=slots.flags,
            backends=tuple(backend for _, backend in sorted(slots.backends, key=lambda item: item[0])),
            missing=tuple(sorted(slots.missing)),
            wildcard=socket.port == 0,
            raw="\n".join(slots.raw),
        )
        for (socket, protocol, scope), slots in gathered.items()
    )


def _lb_rows(text: str) -> Iterator[tuple[int, str, str]]:
    """(line, left column, right column); an indented row takes the left column of the one above."""
    if text.lstrip()[:1] in ("{", "n"):
        found = decode(LB_LIST, text)
        if not isinstance(found, dict | None):
            raise ParseError(LB_LIST, 0, text, "an object of left and right columns")
        for key, rights in (found or {}).items():
            if not isinstance(rights, list) or not all(isinstance(right, str) for right in rights):
                raise ParseError(LB_LIST, 0, json.dumps(rights), "a list of right columns")
            yield from ((0, key.strip(), right.strip()) for right in rights)
        return
    header = re.compile(r"SERVICE ADDRESS\s+BACKEND ADDRESS(?: \(REVNAT_ID\) \(SLOT\))?")
    left: str | None = None
    for number, line in _lines(text, LB_LIST, header, "the header 'SERVICE ADDRESS BACKEND ADDRESS'"):
        if not line[0].isspace():
            match = _LB_ROW.fullmatch(line)
            if not match:
                raise ParseError(LB_LIST, number, line, "a service address and a backend address")
            left, right = match["left"], match["right"]
        else:
            right = line.strip()
        if left is None:
            raise ParseError(LB_LIST, number, line, "a service address above an indented row")
        yield number, left, right


def _add_slot(slots: _Slots, right: str, number: int, slot: int) -> None:
    """Put one right column where it belongs: a missing backend, slot 0, or a backend."""
    if missing := _LB_MISSING.fullmatch(right):
        slots.missing.append(int(missing["id"]))
    elif own := _LB_FRONTEND.fullmatch(right):
        words = [word.strip() for word in (own["flags"] or "").split(",") if word.strip()]
        slots.type, slots.flags = (words[0] if words else None), tuple(words[1:])
    elif backend := _LB_BACKEND.fullmatch(right):
        place = int(backend["slot"]) if backend["slot"] else slot
        slots.backends.append((place, _address(backend["address"], LB_LIST, number).socket))
    else:
        raise ParseError(LB_LIST, number, right, "a backend address, or 'backend N not found'")
