"""From who said what when to a Recording as the suite's own runs make them, so that the same fixtures read it."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from ..inventory import Inventory
from ..inventory import Node as Target
from ..model.addresses import IPAddress
from ..model.nft_rules import NftTable
from ..observation import Observation
from ..parse import cilium_services, conntrack, iproute, iptables, kubernetes, nft
from ..parse.errors import ParseError
from ..recording.model import Head, Recording, RecordingError
from . import derive, documents, whatis
from .derive import Services
from .known import NOTHING, Known
from .reader import SOMEWHERE, Loose, Said

T = TypeVar("T")
Names = dict[str, Observation]

MOST = 32
"""More Services than these are not all judged unless they are named; then it is the DNS Service, as in a run on a cluster."""

_AGENT = "agent-"
_OTHER = {"nft": "legacy", "legacy": "nft"}


def make(loose: Loose) -> Known:
    """Put everything in the place where fixtures look for it, and derive what other files tell of Services and nodes.

    Raises:
        RecordingError: an API object is not built like one; one line.
    """
    api = dict(loose.api)
    whose = _whose(loose.said, api)
    said = tuple(_renamed(loose.said, whose))
    loose = _doubled_renamed(loose, whose)
    readings = _readings(said)
    state: dict[str, Names] = {node: {} for node, _ in loose.doubled} | {node: _state(times) for node, times in readings.items()}
    resources = frozenset(api)
    sliced = documents.sliced(api)
    listed = (api.get("services") or {"items": []})["items"]
    whole = any(_key(item) == "default/kubernetes" for item in listed)
    found = _services(state, loose, api)
    new = [] if whole else [item for item in derive.objects(found) if _key(item) not in {_key(each) for each in listed}]
    items = [*listed, *new] or [_no_service()]
    slices = [*(api.get("endpointslices") or {"items": []})["items"], *derive.slices(found, sliced)]
    completed = documents.complete({**api, "services": {"items": items}, "endpointslices": {"items": slices}}, loose.hints.kubernetes)
    try:
        kubernetes.parse_kubernetes(completed)
    except ParseError as wrong:
        raise RecordingError(f"{loose.source}: {wrong}") from wrong
    names = [*state, *(_key(item) for item in completed["nodes"]["items"] if not state)]
    completed["nodes"] = {"items": [*completed["nodes"]["items"], *_missing_nodes(state, completed["nodes"]["items"])]}
    judged = loose.hints.judge or (tuple(_key(item) for item in items) if len(items) <= MOST else ())
    inventory = Inventory(services=judged, nodes={name: Target(connection="local") for name in names}, expect=loose.hints.expect)
    nodes = {node: {"snapshot-1": {n: o for n, o in names.items() if not n.startswith(_AGENT)}} for node, names in state.items()}
    agents = {node: {"state-1": told} for node, names in state.items() if (told := _agent(names))}
    recording = Recording(nodes=nodes, api={}, agents=agents, head=Head(by="others' machines", inventory=inventory), source=loose.source)
    return Known(recording, completed, resources, sliced, whole, readings, frozenset({SOMEWHERE} & set(state)), loose)


def _key(item: Mapping[str, Any]) -> str:
    metadata = item.get("metadata") or {}
    return "/".join(str(part) for part in (metadata.get("namespace"), metadata.get("name")) if part)


def _no_service() -> dict[str, Any]:
    return {
        "metadata": {"namespace": NOTHING, "name": "service", "annotations": {derive.DERIVED: "nothing"}},
        "spec": {"ports": [{"name": "none", "protocol": "TCP", "port": 1}]},
    }  # fmt: skip


def _missing_nodes(state: Mapping[str, Names], listed: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    there = {_key(item) for item in listed}
    yield from ({"metadata": {"name": name}} for name in state if name not in there)


def _readings(said: Iterable[Said]) -> dict[str, dict[int, Names]]:
    """Node → time → name → Observation."""
    found: dict[str, dict[int, Names]] = {}
    for each in said:
        table = each.what.table if (each.what.kind or "").endswith("-route") else None
        name = f"capture-{each.path}" if each.what.kind == whatis.CAPTURE else f"{each.what.kind}{f'@{table}' if table else ''}"
        observation = dataclasses.replace(each.observation, name=name)
        names = found.setdefault(each.node, {}).setdefault(each.time, {})
        names[name] = _joined(names[name], observation) if name in names else observation
    return {node: dict(sorted(times.items())) for node, times in found.items()}


def _joined(first: Observation, second: Observation) -> Observation:
    """Two tables of one back end as one text, each with its marks; -S, which names no table, is given those of what it lists."""
    text = "\n".join((_marked(first.text), _marked(second.text)))
    return dataclasses.replace(first, argv=(*first.argv, *second.argv[1:]), stdout=text.encode())


def _marked(text: str) -> str:
    rules = None if re.search(r"^\*[a-z]+\s*$", text, re.MULTILINE) else _tried(iptables.parse_rules, text)
    return f"*{rules.tables[0]}\n{text}\nCOMMIT" if rules and rules.complete and len(rules.tables) == 1 else text


def _state(times: Mapping[int, Names]) -> Names:
    """What counts for state: each output as last read, and what follows from it."""
    names: Names = {}
    for told in times.values():
        names |= told
    for family in ("iptables", "ip6tables"):
        place_rules(names, family)
    return names


def place_rules(names: Names, family: str) -> None:
    """Give rules of an unsaid back end their place, and the other back end that of one without rules, where nothing speaks against it."""
    plain = names.pop(f"{family}-save", None)
    if plain is not None:
        found = _tried(iptables.parse_rules, plain.text)
        taken = [backend for backend in _OTHER if f"{family}-{backend}-save" in names]
        told = (found.backend if found else None) or (_OTHER[taken[0]] if len(taken) == 1 else "nft")
        names[f"{family}-{told}-save"] = dataclasses.replace(plain, name=f"{family}-{told}-save")
    for backend, other in _OTHER.items():
        mine, missing = names.get(f"{family}-{backend}-save"), f"{family}-{other}-save"
        if mine is None or missing in names:
            continue
        hidden = f"{family}-legacy tables present" in mine.text
        argv = ("#", f"the {other} back end is not in this recording")
        # iptables' warning says that the kernel has legacy tables: they were not read. Without it nothing tells of a second one.
        names[missing] = dataclasses.replace(mine, name=missing, argv=argv, status=127 if hidden else 0, stdout=b"")
        if hidden:
            names["ip-tables-names"] = dataclasses.replace(mine, name="ip-tables-names", argv=argv, stdout=b"nat\nfilter\n")
        return


def _agent(names: Names) -> Names:
    told = {name: observation for name, observation in names.items() if name.startswith(_AGENT)}
    if "agent-status" in told:
        told["agent-status-verbose"] = told["agent-status"]
    return told


def _tried(parse: Callable[[str], T], text: str) -> T | None:
    """What the text says; None where it cannot be read, which the conclusions that need it say with file and line."""
    try:
        return parse(text)
    except ParseError:
        return None


def _whose(said: Sequence[Said], api: Mapping[str, Any]) -> str | None:
    """The node that the outputs without a node's name are of: the one whose InternalIP is among their addresses."""
    nodes = _tried(lambda _: kubernetes.parse_nodes(api["nodes"]), "") if "nodes" in api else None
    held: set[IPAddress] = set()
    for each in said:
        if each.node == SOMEWHERE and each.what.kind == "ip-addr":
            interfaces = _tried(iproute.parse_ip_addr, each.observation.text)
            held |= {address.ip for interface in interfaces or () for address in interface.addresses}
    fitting = [node.name for node in nodes or () if held & set(node.internal_ips)]
    return fitting[0] if len(fitting) == 1 else None


def _renamed(said: Iterable[Said], name: str | None) -> Iterator[Said]:
    for each in said:
        yield dataclasses.replace(each, node=name) if name and each.node == SOMEWHERE else each


def _doubled_renamed(loose: Loose, name: str | None) -> Loose:
    doubled = {
        (name, kind) if name and node == SOMEWHERE else (node, kind): dataclasses.replace(trouble, node=name) if name and node == SOMEWHERE
        else trouble for (node, kind), trouble in loose.doubled.items()
    }  # fmt: skip
    return dataclasses.replace(loose, doubled=doubled)


def _services(state: Mapping[str, Names], loose: Loose, api: Mapping[str, Any]) -> Services:
    """All Services that any output tells of; those of recording.yaml first."""
    slices = _slices(api)
    parts = [part for node, names in state.items() for part in _of_node(node, names, slices)]
    found = derive.merged(parts)
    for key, ips in loose.hints.services.items():
        namespace, name = key.split("/")
        said = found.setdefault((namespace, name), derive.Found("recording.yaml"))
        said.ips = dict.fromkeys(ips)
        known = {port: dict(told) for port, told in said.ports.items()}
        said.ports = known or {
            (port, protocol): {"name": port or "", "protocol": protocol, "port": min(socket.port for socket in sockets)}
            for (in_namespace, service, port, protocol), sockets in slices.items()
            if (in_namespace, service) == (namespace, name) and sockets
        }
    return found


def _of_node(node: str, names: Names, slices: derive.Slices) -> Iterator[Services]:
    for name, observation in names.items():
        source = f"{observation.command.removeprefix('cat ')} of {node}"
        if name.startswith(("iptables-", "ip6tables-")) and name.endswith("-save") and observation.stdout:
            rules = _tried(iptables.parse_rules, observation.text)
            yield derive.of_rules(rules, source) if rules else {}
        elif name == "nft-kube-proxy":
            yield from (derive.of_nft(table, source) for table in _nft_tables(observation.text))
        elif name == "agent-services":
            yield derive.of_agent(_tried(cilium_services.parse_service_list, observation.text) or (), slices, source)
        elif name == "agent-lb-list":
            yield derive.of_map(_tried(cilium_services.parse_lb_list, observation.text) or (), slices, source)
        elif name == "conntrack":
            listed = _tried(conntrack.parse_conntrack, observation.text)
            yield derive.of_conntrack(listed.entries if listed else (), slices, source)
        elif name == "ip-addr":
            yield derive.of_ipvs(_tried(iproute.parse_ip_addr, observation.text) or (), source)


def _nft_tables(text: str) -> Iterator[NftTable]:
    """kube-proxy's table of each family that the listing holds."""
    for family in ("ip", "ip6"):
        if _tried(functools.partial(nft.has_kube_proxy, family=family), text):
            table = _tried(functools.partial(nft.parse_kube_proxy_nft, family=family), text)
            yield from (table,) if table else ()


def _slices(api: Mapping[str, Any]) -> derive.Slices:
    from ..model.addresses import Socket

    endpoints = _tried(lambda _: kubernetes.parse_endpoint_slices(api.get("endpointslices") or {"items": []}), "") or ()
    found: dict[tuple[str, str, str | None, str], set[Socket]] = {}
    for each in endpoints:
        for (port, protocol), number in each.ports.items():
            if number is not None:
                found.setdefault((each.namespace, each.service, port, protocol), set()).add(Socket(each.ip, number))
    return {key: frozenset(sockets) for key, sockets in found.items()}


def names_of(kind: str) -> tuple[str, ...]:
    """The names under which fixtures ask for what a file of this kind says; of routes without their table."""
    if kind == "agent-status":
        return kind, "agent-status-verbose"
    tool, _, rest = kind.partition("-")
    return (kind, *(f"{tool}-{backend}-save" for backend in _OTHER)) if rest == "save" else (kind,)
