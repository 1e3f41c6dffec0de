"""Recording ↔ files, by name and bytes. No I/O here."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from ..observation import Observation, Trouble
from . import head
from .model import Cost, Head, Recording, RecordingError, Round

T = TypeVar("T")
Files = Mapping[str, bytes]
"""Path below the recording, with slashes → content."""

HEAD, CLOCK = "recording.yaml", "clock.json"
_ROUND, _PLAN, _TROUBLE = "_round.json", "_plan.json", "_trouble.json"
_API_TROUBLE = ".trouble.json"


def encode(recording: Recording) -> Iterator[tuple[str, bytes]]:
    """All files of a recording."""
    yield encode_head(recording.head)
    for kind, places in (("nodes", recording.nodes), ("agents", recording.agents)):
        for node, rounds in places.items():
            for name, found in rounds.items():
                cost = recording.costs.get(node, {}).get(name) if kind == "nodes" else None
                yield from encode_round(kind, node, name, found, cost)
    for node, plans in recording.plans.items():
        for name, plan in plans.items():
            yield encode_plan(node, name, plan)
    for name, answers in recording.api.items():
        for answer, found_ in answers.items():
            yield from encode_answer(name, answer, found_)
    yield encode_clock(recording.clock)


def encode_head(told: Head) -> tuple[str, bytes]:
    """The file that says what the recording is."""
    return HEAD, head.dump(told)


def encode_clock(clock: Mapping[str, tuple[float, ...]]) -> tuple[str, bytes]:
    """The file of the clock's readings."""
    return CLOCK, _json(clock)


def encode_round(kind: str, node: str, name: str, found: Round, cost: Cost | None) -> Iterator[tuple[str, bytes]]:
    """The files of one round of one node; ``kind`` is nodes or agents."""
    place = f"{kind}/{_fit(node)}/{_fit(name)}"
    told = dataclasses.asdict(cost) if cost else {}
    yield f"{place}/{_ROUND}", _json({"commands": [] if isinstance(found, Trouble) else list(found), **told})
    if isinstance(found, Trouble):
        yield f"{place}/{_TROUBLE}", _trouble(found)
        return
    for observation in found.values():
        yield from _observation(place, observation)


def encode_plan(node: str, name: str, plan: Mapping[str, Any] | Trouble) -> tuple[str, bytes]:
    """The file of what was sent in one round."""
    told = {"trouble": dataclasses.asdict(plan)} if isinstance(plan, Trouble) else plan
    return f"nodes/{_fit(node)}/{_fit(name)}/{_PLAN}", _json(told)


def encode_answer(name: str, answer: str, found: Observation | Trouble) -> Iterator[tuple[str, bytes]]:
    """The files of one answer of the API."""
    if isinstance(found, Trouble):
        yield f"api/{_fit(name)}/{_fit(answer)}{_API_TROUBLE}", _trouble(found)
    else:
        yield from _observation(f"api/{_fit(name)}", found)


def _observation(place: str, observation: Observation) -> Iterator[tuple[str, bytes]]:
    base = f"{place}/{_fit(observation.name)}"
    yield f"{base}.json", _json({key: getattr(observation, key) for key in ("argv", "status", "started", "took")})
    yield f"{base}.out", observation.stdout
    if observation.stderr:
        yield f"{base}.err", observation.stderr


def _trouble(trouble: Trouble) -> bytes:
    return _json(dataclasses.asdict(trouble))


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def _fit(name: str) -> str:
    if not name or name.startswith((".", "_")) or any(sign in name for sign in '/\\:*?"<>|\0\n'):
        raise ValueError(f"not fit for a file name: {name!r}")
    return name


def decode(files: Files, source: str) -> Recording:
    """A recording from its files.

    Raises:
        RecordingError: it is none, it is of another schema, or a file is absent or is not what it should be.
    """
    if HEAD not in files:
        raise RecordingError(f"{source}: expected a recording with a {HEAD}, found none; was the recording run broken off?")
    reader = _Reader(files, source)
    return Recording(
        nodes=reader.rounds("nodes"), agents=reader.rounds("agents"), api=reader.api(), plans=reader.plans(), clock=reader.clock(),
        costs=reader.costs(), head=head.load(files[HEAD], f"{source}: {HEAD}"), source=source,
    )  # fmt: skip


class _Reader:
    def __init__(self, files: Files, source: str) -> None:
        self._files = files
        self._source = source
        self._tree: dict[str, dict[str, dict[str, list[str]]]] = {"nodes": {}, "agents": {}, "api": {}}
        for path in sorted(files):
            kind, *places = path.split("/")[:-1] or [""]
            if kind in self._tree and len(places) == (1 if kind == "api" else 2):
                self._tree[kind].setdefault(places[0], {}).setdefault(places[-1], []).append(path)

    def rounds(self, kind: str) -> dict[str, dict[str, Round]]:
        return {
            node: {name: self._round(f"{kind}/{node}/{name}", node) for name, paths in rounds.items() if _is_round(paths)}
            for node, rounds in self._tree[kind].items()
        }  # fmt: skip

    def _round(self, place: str, node: str) -> Round:
        if f"{place}/{_TROUBLE}" in self._files:
            return self._trouble(f"{place}/{_TROUBLE}")
        names = self._told(f"{place}/{_ROUND}", lambda told: [str(name) for name in told["commands"]])
        return {name: self._observation(f"{place}/{name}", node, name) for name in names}

    def _observation(self, base: str, node: str, name: str) -> Observation:
        def build(told: Any) -> Observation:
            status, started, took = told["status"], told["started"], told["took"]
            if not isinstance(status, int | None) or not isinstance(started, int | float) or not isinstance(took, int | float):
                raise TypeError("status, started and took are numbers")
            return Observation(
                node, name, tuple(map(str, told["argv"])), status, self._bytes(f"{base}.out"), self._files.get(f"{base}.err", b""),
                started, took,
            )  # fmt: skip

        return self._told(f"{base}.json", build)

    def api(self) -> dict[str, dict[str, Observation | Trouble]]:
        found: dict[str, dict[str, Observation | Trouble]] = {}
        for name, rounds in self._tree["api"].items():
            for path in (path for paths in rounds.values() for path in paths if path.endswith(".json")):
                answer = pathlib.PurePosixPath(path).name
                if answer.endswith(_API_TROUBLE):
                    found.setdefault(name, {})[answer.removesuffix(_API_TROUBLE)] = self._trouble(path)
                else:
                    base, short = path.removesuffix(".json"), answer.removesuffix(".json")
                    found.setdefault(name, {})[short] = self._observation(base, "api", short)
        return found

    def plans(self) -> dict[str, dict[str, dict[str, Any] | Trouble]]:
        def build(told: Any) -> dict[str, Any] | Trouble:
            return _built_trouble(told["trouble"]) if "trouble" in told else dict(told)

        return {
            node: {name: self._told(path, build) for name in rounds if (path := f"nodes/{node}/{name}/{_PLAN}") in self._files}
            for node, rounds in self._tree["nodes"].items()
        }  # fmt: skip

    def costs(self) -> dict[str, dict[str, Cost]]:
        def build(told: Any) -> Cost | None:
            return Cost(float(told["took"]), int(told["received"])) if "took" in told else None

        return {
            node: {
                name: cost for name in rounds
                if (path := f"nodes/{node}/{name}/{_ROUND}") in self._files and (cost := self._told(path, build))
            }
            for node, rounds in self._tree["nodes"].items()
        }  # fmt: skip

    def clock(self) -> dict[str, tuple[float, ...]]:
        if CLOCK not in self._files:
            return {}
        return self._told(CLOCK, lambda told: {what: tuple(map(float, readings)) for what, readings in told.items()})

    def _trouble(self, path: str) -> Trouble:
        return self._told(path, _built_trouble)

    def _told(self, path: str, build: Callable[[Any], T]) -> T:
        """What a JSON file holds, built into what it stands for."""
        try:
            return build(json.loads(self._bytes(path)))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as wrong:
            what = f"no {wrong}" if isinstance(wrong, KeyError) else " ".join(str(wrong).split())
            raise RecordingError(f"{self._source}: {path}: expected what --record writes there, found {what}") from wrong

    def _bytes(self, path: str) -> bytes:
        if path not in self._files:
            raise RecordingError(f"{self._source}: {path}: expected a file, found none")
        return self._files[path]


def _is_round(paths: list[str]) -> bool:
    """Whether the round holds answers or a trouble, and not only a plan whose commands never ran."""
    return any(not path.endswith(f"/{_PLAN}") for path in paths)


def _built_trouble(told: Any) -> Trouble:
    if not all(isinstance(told[key], str) for key in ("node", "problem", "output")):
        raise TypeError("node, problem and output are text")
    return Trouble(told["node"], told["problem"], told["command"], told["output"], told["remedy"])
