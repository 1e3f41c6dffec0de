"""Read what node_watcher.py wrote on a node: one line of JSON an event.

    ["asked", 0, 1764480001.12, 0.0004, null]
    ["asked", 0, 1764480001.17, null, "no answer within 1 s"]
    ["open", 1, 1764480001.10]
    ["end", 1, 1764480042.50, "reset", "[Errno 104] Connection reset by peer"]
    ["done", 1764480601.00]

Times are Unix time, spans are in seconds.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Sequence
from typing import Any

from ..model.watched import Asked, Held
from .errors import ParseError

_TOOL = "watch record"
_ENDS = ("reset", "closed", "time-out", "refused")


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """What one life of the asking program wrote: series' number → its questions, its connections; ``done``: to the end."""

    asked: dict[int, tuple[Asked, ...]]
    held: dict[int, tuple[Held, ...]]
    done: bool


def parse_record(text: str) -> Record:
    """Read a record; a last line without its line feed is not read, since the program may be writing it.

    Raises:
        ParseError: a line is none of the above.
    """
    asked: dict[int, list[Asked]] = {}
    opened: dict[int, float] = {}
    held: dict[int, list[Held]] = {}
    done = False
    for number, line in enumerate(text[: text.rfind("\n") + 1].splitlines(), 1):
        match _values(line):
            case ["asked", int(series), float(at), took, error] if (took is None) == isinstance(error, str):
                asked.setdefault(series, []).append(Asked(at, None if took is None else float(took), error))
            case ["open", int(series), float(at)]:
                opened[series] = at
            case ["end", int(series), float(at), str(how), str(error)] if how in _ENDS:
                held.setdefault(series, []).append(Held(opened.pop(series, None), at, how, error))
            case ["done", float(_)]:
                done = True
            case _:
                raise ParseError(_TOOL, number, line, "a line as the asking program writes it")
    for series, since in opened.items():
        held.setdefault(series, []).append(Held(since, None, None, None))
    ordered = {series: tuple(sorted(each, key=lambda one: one.at)) for series, each in asked.items()}
    return Record(ordered, {series: tuple(each) for series, each in held.items()}, done)


def parse_agents(documents: Sequence[Any]) -> tuple[tuple[str, str, float | None, bool], ...]:
    """Read a list of the agents' Pods: (node, the container's own name of this life, since when it runs, is the Pod to go).

    Raises:
        ParseError: a Pod has not the fields that every scheduled Pod has.
    """
    found = []
    for item in documents:
        try:
            node = item["spec"].get("nodeName")
            statuses = item.get("status", {}).get("containerStatuses") or ()
            status = next((each for each in statuses if each["name"] == "cilium-agent"), None)
            running = status and status["state"].get("running")
            life = (status and status.get("containerID")) or item["metadata"]["uid"]
            going = "deletionTimestamp" in item["metadata"]
        except (KeyError, TypeError, AttributeError) as error:
            raise ParseError("Pods of Cilium's agents", 0, json.dumps(item), f"a Pod ({error})") from error
        if node:
            found.append((str(node), str(life), _unix(running["startedAt"]) if running else None, going))
    return tuple(found)


def _unix(text: str) -> float:
    """Unix time of RFC 3339, as the API writes it."""
    try:
        return datetime.datetime.fromisoformat(text).timestamp()
    except ValueError as error:
        raise ParseError("Pods of Cilium's agents", 0, text, "a time as in RFC 3339") from error


def _values(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
