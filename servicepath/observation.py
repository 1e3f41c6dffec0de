"""What a command on a node, or the API, said: kept raw, never interpreted here."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import shlex
from collections.abc import Iterable


@dataclasses.dataclass(frozen=True, slots=True)
class Observation:
    """One command's answer.

    Attributes:
        node: the node's name as Kubernetes spells it, "lan-client", or "api".
        name: what was asked, stable over runs and fit for a file name ("iptables-nft-save", "cut-2-conntrack").
        argv: the command exactly as it ran; for the API the verb and path.
        status: exit status; None when the command never came to an end.
        stdout: raw bytes.
        stderr: raw bytes.
        started: Unix time on the node (API: here), in seconds.
        took: seconds.
    """

    node: str
    name: str
    argv: tuple[str, ...]
    status: int | None
    stdout: bytes
    stderr: bytes
    started: float
    took: float

    @property
    def text(self) -> str:
        """Standard output as text; bytes that are no UTF-8 are kept as replacement characters."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def error_text(self) -> str:
        """Standard error as text."""
        return self.stderr.decode("utf-8", "replace")

    @property
    def command(self) -> str:
        """The command as a person would type it."""
        return shlex.join(self.argv)


@dataclasses.dataclass(frozen=True, slots=True)
class Trouble:
    """Why something could not be seen; travels as a value and is raised only by the tests that it touches.

    Attributes:
        node: where ("api" for the API).
        problem: one line: what was tried and what went wrong.
        command: the command, as a person would type it; None when there was none.
        output: what it said (standard error first), possibly long.
        remedy: one line a person can act on; None when nothing better than the output is known.
    """

    node: str
    problem: str
    command: str | None = None
    output: str = ""
    remedy: str | None = None

    def __str__(self) -> str:
        """The trouble in the form in which reports and errors show it."""
        lines = [f"{self.node}: {self.problem}"]
        if self.command:
            lines.append(f"  command: {self.command}")
        if self.output.strip():
            lines.extend(f"  | {line}" for line in self.output.strip().splitlines()[:20])
        if self.remedy:
            lines.append(f"  remedy: {self.remedy}")
        return "\n".join(lines)


@dataclasses.dataclass(frozen=True, slots=True)
class Unrecorded(Trouble):
    """What a replayed recording does not hold: no trouble of the cluster, so that its tests are SKIPPED and no ERROR."""


class CouldNotSee(Exception):
    """Raised in a fixture, so that pytest says ERROR and never FAILED: the thing could not be observed."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(str(trouble))
        self.trouble = trouble


class NotRecorded(CouldNotSee):
    """A recording is replayed, and does not hold this.

    Args:
        node: as in Observation.
        what: what was looked for, as a path below the recording ("nodes/worker1/snapshot-1/ip-rule").
    """

    def __init__(self, node: str, what: str) -> None:
        super().__init__(Unrecorded(node, f"not in this recording: {what}"))


LOOKUP = "route-get-"
"""How the name of an Observation begins that is the kernel's answer for one address."""


class Archive:
    """A folder of Observations: ``<node>/<name>.out`` and ``.err`` (where there is any) as they came, and ``<node>/commands.jsonl``.

    The latter has a line for each: name, argv, status, when it began (Unix time) and how long it took, in seconds; of one name the last
    line counts. What the kernel answers for one address is there, too (``stdout``), and in no file of its own: a node of a cluster of two
    hundred is asked for two hundred routes, and 40,000 files take ten seconds to make.

    Args:
        folder: made when it is not there.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self._made: set[pathlib.Path] = set()

    def clear(self) -> None:
        """Remove what an earlier run kept here, and nothing else."""
        for path in self.folder.glob("*/*"):
            if path.suffix in {".out", ".err", ".json", ".jsonl"}:  # .json: of before there was commands.jsonl
                path.unlink()

    def add(self, observations: Iterable[Observation]) -> None:
        """Keep the Observations; one of the same node and name is replaced."""
        lines: dict[pathlib.Path, list[str]] = {}
        for observation in observations:
            base = self._base(observation.node, observation.name)
            if base.parent not in self._made:
                base.parent.mkdir(parents=True, exist_ok=True)
                self._made.add(base.parent)
            told = {name: getattr(observation, name) for name in ("name", "argv", "status", "started", "took")}
            if observation.name.startswith(LOOKUP) and observation.stdout and not observation.stderr:
                told["stdout"] = observation.text
            else:
                self._write(base, observation)
            lines.setdefault(base.parent, []).append(json.dumps(told) + "\n")
        for folder, written in lines.items():
            with open(folder / "commands.jsonl", "a", encoding="ascii") as file:
                file.write("".join(written))

    def _write(self, base: pathlib.Path, observation: Observation) -> None:
        with open(f"{base}.out", "wb") as file:  # a path's own methods take twice the time
            file.write(observation.stdout)
        if observation.stderr:
            with open(f"{base}.err", "wb") as file:
                file.write(observation.stderr)
        else:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{base}.err")  # of an earlier one of that name

    def _base(self, node: str, name: str) -> pathlib.Path:
        if "/" in node or node.startswith(".") or name.startswith("."):
            raise ValueError(f"not fit for a file name: {node!r}, {name!r}")
        return self.folder / node / name.replace("/", "%2F")  # a capture of others' is named by its path in their folder
