"""All files of a folder of loose outputs or of a sysdump → who said what when, and what the API said."""

from __future__ import annotations

import dataclasses
import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..observation import Observation, Trouble
from ..recording import places, storage
from ..recording.model import RecordingError
from . import documents, hints, pasted, source, sysdump, whatis
from .hints import Hints
from .source import Files

HEAD = "recording.yaml"
SOMEWHERE = "node"
"""The name of the node of files that do not say which node they are of, where there is no other."""

_TIME = re.compile(r"@(\d+)(?=\.|$)")
_NODE_FOLDER = re.compile(r"(?:^|/)nodes/(?P<node>[^/]+)/")
_TABLES = re.compile(rb"^\*([a-z]+)\s*$", re.MULTILINE)


@dataclasses.dataclass(frozen=True, slots=True)
class Said:
    """One output's place: whose it is, of which time (1, 2, …), and what it is.

    ``data`` are its lines, each where it stands in the file; what a paste brings besides is left out of them.
    """

    path: str
    node: str
    time: int
    what: whatis.What
    data: bytes

    @property
    def observation(self) -> Observation:
        """The file as an Observation; the command is how a person sees it again."""
        name = self.what.kind or ""
        return Observation(self.node, name, ("cat", self.path), 0, self.data, b"", 0.0, 0.0)


@dataclasses.dataclass(frozen=True, slots=True)
class Loose:
    """What others recorded.

    Attributes:
        said: every file that is a node's output; two of one kind, node and time are in ``doubled`` and not here.
        doubled: (node, what) → why none of several files was taken.
        api: resource → document, as parse_kubernetes takes them; what is in no file is absent.
        unread: path, for one of several outputs of a file with its first line → why it was not used.
        damaged: path → where an API list is damaged; what it would have said is not "not in this recording".
        hints: the folder's recording.yaml.
        source: what was read, for messages.
        kind: "a folder of loose outputs" or "a cilium sysdump".
    """

    said: tuple[Said, ...]
    doubled: Mapping[tuple[str, str], Trouble]
    api: Mapping[str, Any]
    unread: Mapping[str, str]
    hints: Hints
    source: str
    kind: str
    damaged: Mapping[str, str] = dataclasses.field(default_factory=dict)


def is_recording(path: pathlib.Path) -> bool:
    """Whether this is a recording of the suite's own: packed as one, or a recording.yaml, be it one folder deeper, names its schema.

    Raises:
        RecordingError: it holds several.
    """
    if path.name.endswith(storage.PACKED) and not path.is_dir():
        return True
    if not path.is_dir():
        return path.is_file() and places.in_tar(path) is not None
    return places.in_folder(path) is not None or ((path / "api").is_dir() and any(path.glob("nodes/*/*/_round.json")))


def read(path: pathlib.Path) -> Loose:
    """Read a folder or archive.

    Raises:
        RecordingError: it is none, holds nothing that is known here, or its recording.yaml is wrong.
    """
    files = source.files_of(path)
    if not files:
        raise RecordingError(f"{path}: the {'folder' if path.is_dir() else 'archive'} is empty")
    head = files[HEAD]() if HEAD in files else None
    told = hints.load(head, f"{path}/{HEAD}")
    if sysdump.is_sysdump(files):
        return _checked(_of_sysdump(files, told, str(path)))
    return _checked(_of_folder(files, told, str(path)))


def _checked(found: Loose) -> Loose:
    if not found.said and not found.api and not found.doubled:
        few = "; ".join(f"{name}: {why}" for name, why in list({**found.damaged, **found.unread}.items())[:3])
        raise RecordingError(f"{found.source}: no output that is known here" + (f" ({few})" if few else ""))
    return found


def _of_folder(files: Files, told: Hints, place: str) -> Loose:
    missing = [name for name in told.files if name not in files]
    if missing:
        raise RecordingError(f"{place}/{HEAD}: files: {missing[0]}: there is no such file")
    whats: list[tuple[str, whatis.What, bytes]] = []
    unread: dict[str, str] = {}
    for path, read_file in files.items():
        said = told.files.get(path, hints.File())
        if path == HEAD or said.is_ == hints.IGNORE:
            continue
        for line, what, data in _outputs(path, read_file(), said):
            if what.kind is None:
                unread[f"{path}, line {line}" if line > 1 else path] = what.why or "no output that is known here"
            else:
                whats.append((path, what, data))
    objects = [what.document for _, what, _ in whats if what.kind == whatis.API]
    api = _with_hints(documents.gather(objects), told)
    known = _known_nodes([path for path, _, _ in whats], api, told)
    mine = [
        Said(path, _node_of(path, told, known), _time_of(path, told), what, data) for path, what, data in whats if what.kind != whatis.API
    ]
    said_once, doubled, left = _each_once(mine)
    damaged = _damaged((path, what) for path, what, _ in whats)
    return Loose(tuple(said_once), doubled, api, unread | left, told, place, "a folder of loose outputs", damaged)


def _damaged(whats: Iterable[tuple[str, whatis.What]]) -> dict[str, str]:
    return {path: what.why or "" for path, what in whats if what.kind == whatis.API and what.document is None}


def _outputs(path: str, data: bytes, said: hints.File) -> Iterator[tuple[int, whatis.What, bytes]]:
    """The outputs of a file, each with its first line: what recording.yaml says that it is, else what it is by itself."""
    if whatis.what_is(path, data).kind == whatis.CAPTURE or said.is_ == whatis.CAPTURE:
        yield 1, whatis.What(whatis.CAPTURE), data
        return
    parts = pasted.pieces(data)
    if said.is_ is not None:
        found = whatis.what_is(path, pasted.joined(parts).encode())
        what = dataclasses.replace(found, kind=said.is_, why=None, table=said.table or found.table)
        yield 1, what, pasted.joined(parts, commands=is_rules(what.kind)).encode()
        return
    groups: dict[object, tuple[whatis.What, list[pasted.Piece]]] = {}
    told = [dataclasses.replace(what, table=said.table or what.table) for what in (_of_piece(path, part) for part in parts)]
    for number, (what, part) in enumerate(zip(told, parts, strict=True)):
        alone = what.kind in (None, whatis.API)
        tables = {each.table for each in told if each.kind == what.kind} - {None}
        key = (what.kind, what.table if len(tables) > 1 else None)
        groups.setdefault(number if alone else key, (what, []))[1].append(part)
    for what, mine in groups.values():
        yield mine[0].line, what, pasted.joined(mine, commands=is_rules(what.kind)).encode()


def _of_piece(path: str, part: pasted.Piece) -> whatis.What:
    """What the output is; back end, family and table are told by the command above it, too."""
    text = part.text.encode()
    found = whatis.what_is(path, text)
    if not part.command or found.why == "notes":
        return found
    named = whatis.what_is(re.sub(r"[^\w.]+", "-", part.command.removeprefix("sudo ")), text)
    if named.kind is None:
        return found
    kind = found.kind if named.kind == whatis.RULES and is_rules(found.kind) else named.kind
    return dataclasses.replace(named, kind=kind, table=named.table or found.table)


def _with_hints(api: dict[str, Any], told: Hints) -> dict[str, Any]:
    """Nodes that only recording.yaml tells of."""
    if told.nodes and "nodes" not in api:
        api["nodes"] = {"items": [_node(name, node) for name, node in told.nodes.items()]}
    return api


def _node(name: str, said: hints.Node) -> dict[str, Any]:
    addresses = [{"type": "InternalIP", "address": str(ip)} for ip in said.internal_ips]
    return {"metadata": {"name": name}, "spec": {"podCIDRs": [str(cidr) for cidr in said.pod_cidrs]}, "status": {"addresses": addresses}}


def _known_nodes(paths: Iterable[str], api: Mapping[str, Any], told: Hints) -> Sequence[str]:
    """Every node that anything names."""
    names = [*told.nodes, *(file.node for file in told.files.values() if file.node)]
    names += [str((item.get("metadata") or {}).get("name")) for item in (api.get("nodes") or {}).get("items", ())]
    names += [match["node"] for path in paths if (match := _NODE_FOLDER.search("/" + path))]
    for item in (api.get("endpointslices") or {}).get("items", ()):
        names += [str(each["nodeName"]) for each in item.get("endpoints") or () if isinstance(each, dict) and each.get("nodeName")]
    return tuple(dict.fromkeys(names))


def _node_of(path: str, told: Hints, known: Sequence[str]) -> str:
    """By recording.yaml, the folder nodes/NODE/, a known node's name in the file's name or folder, or the only node there is."""
    said = told.files.get(path)
    if said is not None and said.node:
        return said.node
    folder = _NODE_FOLDER.search("/" + path)
    if folder:
        return _TIME.sub("", folder["node"])
    named = [name for name in known if re.search(rf"(?:^|[-_./@ ]){re.escape(name)}(?:[-_./@ ]|$)", path)]
    if named:
        return max(named, key=len)
    sole = list(told.nodes) if len(told.nodes) == 1 else []
    return sole[0] if sole else SOMEWHERE


def _time_of(path: str, told: Hints) -> int:
    said = told.files.get(path)
    if said is not None and said.time:
        return said.time
    found = _TIME.search(path)
    return int(found[1]) if found else 1


def _each_once(said: Iterable[Said]) -> tuple[list[Said], dict[tuple[str, str], Trouble], dict[str, str]]:
    """One file for each node, time and kind; of JSON and text of the same the JSON, of several of one form none."""
    groups: dict[tuple[str, int, str, str], list[Said]] = {}
    for each in said:
        groups.setdefault((each.node, each.time, each.what.kind or "", _part(each)), []).append(each)
    once: list[Said] = []
    doubled: dict[tuple[str, str], Trouble] = {}
    left: dict[str, str] = {}
    for (node, _, kind, _), group in groups.items():
        chosen = _chosen(group)
        if chosen is None:
            problem = f"{len(group)} files say the {kind} of {node}: {', '.join(each.path for each in group)}"
            doubled[node, kind] = Trouble(node, problem, remedy="say in recording.yaml which node or time (@1, @2) each is of")
            left |= {each.path: problem for each in group}
        else:
            once.append(chosen)
            left |= {each.path: f"says what {chosen.path} says" for each in group if each is not chosen}
    return once, doubled, left


def _chosen(group: Sequence[Said]) -> Said | None:
    """The one that is taken: the only one, or the JSON where the other is the text of the same; None where that is not known.

    Of files that do not say which node they are of, a JSON and a text are of the same where they have one name but for the form's.
    """
    if len(group) == 1:
        return group[0]
    structured = [each for each in group if each.data.lstrip()[:1] in (b"{", b"[")]
    alike = group[0].node != SOMEWHERE or len({_plain(each.path) for each in group}) == 1
    return structured[0] if len(structured) == 1 and len(group) == 2 and alike else None


def _plain(path: str) -> str:
    """A path without what names the form of the output: its ending, and json or -j as a word of its own."""
    return re.sub(r"[-_. ](?:json|txt|text|out|log|md|j|o)(?=[-_. ]|$)", "", path.lower())


def _part(said: Said) -> str:
    """What lets several files of one kind stand side by side: captures by name, rules by their tables, routes by theirs."""
    if said.what.kind == whatis.CAPTURE:
        return said.path
    if is_rules(said.what.kind):
        return b"+".join(sorted(_TABLES.findall(said.data))).decode() or said.what.table or ""
    return said.what.table or "" if (said.what.kind or "").endswith("-route") else ""


def is_rules(kind: str | None) -> bool:
    """Whether a file of this kind holds iptables' rules."""
    return kind is not None and "tables-" in kind


def _of_sysdump(files: Files, told: Hints, place: str) -> Loose:
    whats = {path: whatis.what_is(path, files[path]()) for path in sysdump.objects(files)}
    api = documents.gather(what.document for what in whats.values() if what.kind == whatis.API)
    on = {
        str((pod.get("metadata") or {}).get("name")): str((pod.get("spec") or {}).get("nodeName") or "")
        for pod in (api.get("pods") or {}).get("items", ())
    }
    said = [each for pod, names in sysdump.bugtools(files).items() for each in _of_bugtool(files, pod, names, on.get(pod) or "")]
    unread = {path: what.why or "not read" for path, what in whats.items() if what.kind is None and what.why != "empty"}
    return Loose(tuple(said), {}, api, unread, told, place, "a cilium sysdump", _damaged(whats.items()))


def _of_bugtool(files: Files, pod: str, names: Mapping[str, str], node: str) -> Iterator[Said]:
    held = files
    if "" in names:
        held = source.inside(files[names[""]](), names[""])
        names = sysdump.inner(held)
    found = {kind: (path, held[path]()) for kind, path in sysdump.commands(names)}
    host = found.pop("hostname", ("", b""))[1].decode("utf-8", "replace").strip()
    for kind, (path, data) in found.items():
        yield Said(path, node or host or pod, 1, whatis.What(kind), data)
