"""recording.yaml: what a recording is, and all that verdicts depend on besides what was seen."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import platform
import time
from typing import Any

import pydantic
import yaml

from ..experiments import private
from ..inventory import Inventory
from ..inventory import Node as Target
from ..selection import Options
from .model import SCHEMA, Head, RecordingError

# What of this machine's own programs may decide how output reads.
_LIBRARIES = ("pytest", "scapy", "dnspython", "kubernetes")

# What of the inventory verdicts depend on, and nothing of how to connect.
_OF_INVENTORY = frozenset({"services", "pods", "probes", "api_outage", "expect", "upgrade", "cluster_domain"})


def of_run(inventory: Inventory, options: Options, *, lan_client: bool) -> Head:
    """The head of a run that is recorded now.

    Args:
        inventory: of the run; what may be a credential is taken out.
        options: of the run.
        lan_client: whether the run had one, be it this very machine.
    """
    changed: dict[str, Any] = {key: getattr(inventory, key) for key in _OF_INVENTORY}
    changed["upgrade"] = inventory.upgrade.model_copy(update={"helm_values": None})  # a file of this machine
    changed["nodes"] = {name: Target(connection=node.connection) for name, node in inventory.nodes.items()}
    changed["lan_client"] = Target() if lan_client else None
    outage = inventory.api_outage
    if outage:
        do, undo = private.without_credentials(outage.do), private.without_credentials(outage.undo)
        changed["api_outage"] = outage.model_copy(update={"do": do, "undo": undo})
    versions = {name: importlib.metadata.version(name) for name in _LIBRARIES}
    return Head(
        made=time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()), by=platform.node() or "a machine without a name",
        inventory=Inventory(**changed), options=dataclasses.replace(options, inventory=None, deadline=None),
        tools={"python": platform.python_version(), **versions},
    )  # fmt: skip


class _Options(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="ignore", strict=True)

    services: list[str] = []
    nodes: list[str] = []
    pods: list[str] = []
    passive: bool = False
    disruptive: bool = False


class _File(pydantic.BaseModel):
    """What is needed is checked; what a later version adds without a new schema is ignored."""

    model_config = pydantic.ConfigDict(extra="ignore")

    made: str
    by: str
    redacted: bool = False
    tools: dict[str, str] = {}
    options: _Options = _Options()
    inventory: Inventory = Inventory()


def dump(head: Head) -> bytes:
    """recording.yaml's bytes."""
    options = {key: list(getattr(head.options, key)) for key in ("services", "nodes", "pods")}
    told = {
        "schema": SCHEMA,
        "made": head.made,
        "by": head.by,
        "redacted": head.redacted,
        "tools": dict(head.tools),
        "options": {**options, "passive": head.options.passive, "disruptive": head.options.disruptive},
        "inventory": head.inventory.model_dump(mode="json", exclude_defaults=True),
    }
    text = "# A recording of servicepath: `pytest --replay` judges it again. docs/recordings.md says what the files are.\n"
    return (text + yaml.safe_dump(told, sort_keys=False, allow_unicode=True)).encode()


def load(content: bytes, place: str) -> Head:
    """Read recording.yaml.

    Args:
        content: its bytes.
        place: names it in errors.

    Raises:
        RecordingError: it is no YAML, of another schema, or holds what it must not.
    """
    try:
        told = yaml.safe_load(content.decode())
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as wrong:
        raise RecordingError(f"{place}: expected YAML: {' '.join(str(wrong).split())}") from wrong
    schema = told.get("schema") if isinstance(told, dict) else None
    if not isinstance(schema, int) or isinstance(schema, bool):
        raise RecordingError(f"{place}: schema: expected {SCHEMA}, found {'none' if schema is None else repr(schema)[:60]}")
    if schema != SCHEMA:
        remedy = "use a newer servicepath" if schema > SCHEMA else "record again, or use the servicepath that made it"
        raise RecordingError(f"{place}: schema: expected {SCHEMA}, found {schema}: {remedy}")
    try:
        found = _File.model_validate(told)
    except pydantic.ValidationError as wrong:
        first = wrong.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise RecordingError(f"{place}: {key}: {first['msg']}, found {repr(first['input'])[:120]}") from wrong
    said = found.options
    options = Options(
        services=tuple(said.services), nodes=tuple(said.nodes), pods=tuple(said.pods), passive=said.passive, disruptive=said.disruptive
    )
    return Head(found.made, found.by, found.inventory, options, found.tools, found.redacted)
