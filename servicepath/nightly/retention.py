"""What is kept of the nights: the latest ones, as many, as old and as large as said; a rotating set-up must not grow without bound."""

from __future__ import annotations

import dataclasses
import pathlib
import shutil
from collections.abc import Iterable

DAY = 86400.0


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


def folders(parent: pathlib.Path) -> tuple[Folder, ...]:
    """The nights that are kept, oldest first."""
    found = [path for path in parent.glob("*") if path.is_dir() and not path.is_symlink()]
    return tuple(Folder(path, path.stat().st_mtime, size_of(path)) for path in sorted(found))


def size_of(folder: pathlib.Path) -> int:
    """Bytes of all files below it."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() or path.is_symlink())


def surplus(kept: Iterable[Folder], keep: Keep, now: float) -> tuple[Folder, ...]:
    """The nights to remove, oldest first; the latest one stays whatever it takes, since nothing else says what the cluster is like."""
    newest_first = sorted(kept, key=lambda folder: folder.path.name, reverse=True)
    gone, size = [], 0
    for number, folder in enumerate(newest_first):
        size += folder.size
        if number and (number >= keep.nights or now - folder.made > keep.days * DAY or size > keep.size):
            gone.append(folder)
            size -= folder.size
    return tuple(reversed(gone))


def apply(parent: pathlib.Path, keep: Keep, now: float) -> tuple[str, ...]:
    """Remove the surplus; return the names of what is gone.

    Raises:
        OSError: some could not be removed; all others are gone.
    """
    gone, unremoved = [], None
    for folder in surplus(folders(parent), keep, now):
        try:
            shutil.rmtree(folder.path)
            gone.append(folder.path.name)
        except OSError as wrong:
            unremoved = unremoved or wrong
    if unremoved:
        raise unremoved
    return tuple(gone)
