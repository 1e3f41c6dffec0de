"""What is kept of the nights: the latest ones, as many, as old and as large as said; a rotating set-up must not grow without bound."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import shutil
from collections.abc import Iterable

DAY = 86400.0
_NIGHT = re.compile(r"\d{4}-\d\d-\d\dT\d{6}Z")  # as night.py names its folders


@dataclasses.dataclass(frozen=True, slots=True)
class Keep:
    """The most that is kept: nights, days, bytes."""

    nights: int
    days: float
    size: int


@dataclasses.dataclass(frozen=True, slots=True)
class Folder:
    """One night's folder: when it was made (Unix time), and the bytes that it takes."""

    path: pathlib.Path
    made: float
    size: int


def nights(parent: pathlib.Path) -> tuple[pathlib.Path, ...]:
    """The nights' folders, by name; what else lies there, and what is a link, is somebody else's."""
    return tuple(sorted(path for path in parent.iterdir() if _NIGHT.fullmatch(path.name) and path.is_dir() and not path.is_symlink()))


def newest_first(names: Iterable[str], last: str) -> tuple[str, ...]:
    """Nights in order, ``last`` the one that was just run: a name beyond it is of a clock that was ahead, and counts as the oldest."""
    return tuple(sorted(names, key=lambda name: (name <= last, name), reverse=True))


def folders(parent: pathlib.Path) -> tuple[Folder, ...]:
    """The nights that are kept, by name."""
    return tuple(Folder(path, path.stat().st_mtime, size_of(path)) for path in nights(parent))


def size_of(folder: pathlib.Path) -> int:
    """Bytes of all files below it."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() or path.is_symlink())


def surplus(kept: Iterable[Folder], keep: Keep, now: float, last: str) -> tuple[Folder, ...]:
    """The nights to remove, oldest first; ``last``, just run, stays whatever it takes: nothing else says what the cluster is like."""
    by_name = {folder.path.name: folder for folder in kept}
    gone, size = [], 0
    for number, folder in enumerate(by_name[name] for name in newest_first(by_name, last)):
        size += folder.size
        if number and (number >= keep.nights or now - folder.made > keep.days * DAY or size > keep.size):
            gone.append(folder)
            size -= folder.size
    return tuple(reversed(gone))


def apply(parent: pathlib.Path, keep: Keep, now: float, last: str) -> tuple[str, ...]:
    """Remove the surplus, ``last`` being the name of the night that was just run; return the names of what is gone.

    Raises:
        OSError: some could not be removed; all others are gone.
    """
    gone, unremoved = [], None
    for folder in surplus(folders(parent), keep, now, last):
        try:
            shutil.rmtree(folder.path)
            gone.append(folder.path.name)
        except OSError as wrong:
            unremoved = unremoved or wrong
    if unremoved:
        raise unremoved
    return tuple(gone)
