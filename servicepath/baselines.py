"""Baseline files: read and checked; a wrong one is one line that names file, place and what was expected."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import TypeVar

from .model.baseline import Baseline
from .model.watched import Summary
from .parse.baseline import parse_baseline
from .parse.errors import ParseError
from .parse.helm_values import parse_helm_values
from .parse.watch_summary import parse_watch_summary

T = TypeVar("T")


class BaselineError(Exception):
    """A file cannot be used as a baseline; the text is one line."""


_SUITE = pathlib.Path(__file__).resolve().parent.parent

# A recording of a large cluster takes minutes to be judged again.
_REPLAY_TIMEOUT = 1800

_TRIED = 4096  # bytes that are written to see whether anything can be


def load(path: pathlib.Path) -> Baseline:
    """Read a baseline, or judge a recording again to get one.

    Raises:
        BaselineError: it cannot be read, is cut off, of a newer schema, or something else.
    """
    if path.is_dir() or path.name.endswith(".tar.zst"):
        return _replayed(path)
    return _load(path, parse_baseline)


def load_watch(path: pathlib.Path) -> Summary:
    """Read what servicepath.watch wrote.

    Raises:
        BaselineError: it cannot be read, is cut off, of another schema, or something else.
    """
    return _load(path, parse_watch_summary)


def load_helm_values(path: pathlib.Path) -> dict[str, str]:
    """Read what ``helm get values`` printed.

    Raises:
        BaselineError: it cannot be read, or is something else.
    """
    return _load(path, parse_helm_values)


def _replayed(recording: pathlib.Path) -> Baseline:
    """The baseline of a recording: a run of the suite on it, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="servicepath-") as folder:
        kept = pathlib.Path(folder) / "baseline.json"
        # With "=": pytest takes a bare path for a place to look for its configuration.
        said = (f"--replay={recording.absolute()}", f"--reports={folder}", f"--baseline-out={kept}")
        argv = [sys.executable, "-m", "pytest", "-q", *said]
        try:
            done = subprocess.run(argv, cwd=_SUITE, capture_output=True, text=True, timeout=_REPLAY_TIMEOUT)
        except subprocess.TimeoutExpired:
            raise BaselineError(f"{recording}: it was not judged within {_REPLAY_TIMEOUT} s") from None
        if not kept.exists():
            lines = [*done.stdout.splitlines(), *done.stderr.splitlines()]
            wrong = next((line for line in lines if line.startswith("ERROR: ")), lines[-1] if lines else "nothing was said")
            raise BaselineError(f"{recording}: it could not be judged: {wrong.removeprefix('ERROR: ').removeprefix(f'{recording}: ')}")
        return _load(kept, parse_baseline)


def _load(path: pathlib.Path, parse: Callable[[str], T]) -> T:
    try:
        return parse(path.read_text(encoding="utf-8"))
    except OSError as wrong:
        raise BaselineError(f"{path}: cannot be read: {wrong.strerror}") from wrong
    except UnicodeDecodeError as wrong:
        raise BaselineError(f"{path}: expected UTF-8 text: {wrong.reason} at byte {wrong.start}") from wrong
    except ParseError as wrong:
        raise BaselineError(f"{path}: {wrong}") from wrong
    except ValueError as wrong:  # a path that none can be
        raise BaselineError(f"{path}: cannot be read: {wrong}") from wrong


def check_writable(path: pathlib.Path) -> None:
    """See that a file can be written there, before a run that would be lost.

    Raises:
        BaselineError: the folder is not there or cannot be written to, or a folder stands in the file's place.
    """
    folder = path.absolute().parent
    try:
        if path.is_dir():
            raise BaselineError(f"{path}: expected a file to write to, found a folder")
        if not folder.is_dir():
            raise BaselineError(f"{path}: expected a folder to write into, found none at {folder}")
        with tempfile.TemporaryFile(dir=folder) as tried:
            tried.write(bytes(_TRIED))
            tried.flush()
            os.fsync(tried.fileno())
    except OSError as wrong:
        raise BaselineError(f"{path}: the folder {folder} cannot be written to: {wrong.strerror}") from wrong
    except ValueError as wrong:  # a path that none can be
        raise BaselineError(f"{path}: cannot be written: {wrong}") from wrong


def check_apart(written: Mapping[str, pathlib.Path | None], read: Mapping[str, pathlib.Path | None] | None = None) -> None:
    """See that what is written is neither what is read nor written twice, by whatever names (links are followed).

    Args:
        written: what an option or argument is called → its file; None where it is not given.
        read: the same of what is read.

    Raises:
        BaselineError: two are one file, which would be lost.
    """
    seen = [(name, path) for name, path in (read or {}).items() if path]
    for name, path in written.items():
        if path is None:
            continue
        for other, there in seen:
            if _one_file(path, there):
                raise BaselineError(f"{name}: {path} is {other}, too, and would be lost: expected another file")
        seen.append((name, path))


def _one_file(one: pathlib.Path, other: pathlib.Path) -> bool:
    """Whether writing to the one changes the other; of a folder (a recording) any file in it is a part."""
    try:
        if other.exists() and one.exists() and one.samefile(other):
            return True
        mine, its = one.resolve(), other.resolve()
    except (OSError, RuntimeError) as wrong:  # a link that leads to itself
        raise BaselineError(f"{one}: cannot be looked at: {wrong}") from wrong
    return mine == its or (other.is_dir() and its in mine.parents)
