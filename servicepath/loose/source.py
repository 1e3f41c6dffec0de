"""The files of a folder, a .zip, or a .tar (.gz, .xz): path → bytes, read when asked for."""

from __future__ import annotations

import io
import pathlib
import tarfile
import zipfile
from collections.abc import Callable, Mapping

from ..recording.model import RecordingError

LARGEST = 256 * 2**20
"""Bytes of the largest file that is read, so that a packed bomb ends with one line."""

Files = Mapping[str, Callable[[], bytes]]
"""Path with slashes → how to read it."""


def files_of(path: pathlib.Path) -> Files:
    """The files of a folder or archive.

    Raises:
        RecordingError: it is not there, or it is neither folder, zip nor tar.
    """
    if path.is_dir():
        found = sorted(file for file in path.rglob("*") if file.is_file())
        return {file.relative_to(path).as_posix(): _Plain(file) for file in found}
    try:
        with path.open("rb") as stream:
            start = stream.read(4)
    except OSError as wrong:
        expected = "a recording's folder or .tar.zst, a folder of outputs, or a .zip"
        raise RecordingError(f"{path}: expected {expected}: {wrong.strerror}") from wrong
    expected = "expected a folder, a .zip or a .tar of outputs, or a recording"
    try:
        return _zipped(zipfile.ZipFile(path), str(path)) if start[:2] == b"PK" else _tarred(tarfile.open(path), str(path))
    except tarfile.ReadError as wrong:  # its text says of each way to unpack why it is not this one
        raise RecordingError(f"{path}: {expected}, found a file that is none of them, or not whole") from wrong
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError) as wrong:
        raise RecordingError(f"{path}: {expected}: {wrong}") from wrong


def inside(data: bytes, place: str) -> Files:
    """The files of a tar that is itself a file (older sysdumps hold each node's bugtool as one).

    Raises:
        RecordingError: it is no tar.
    """
    try:
        return _tarred(tarfile.open(fileobj=io.BytesIO(data)), place)
    except (tarfile.TarError, EOFError, OSError) as wrong:
        raise RecordingError(f"{place}: expected a tar: {wrong}") from wrong


class _Plain:
    def __init__(self, file: pathlib.Path) -> None:
        self._file = file

    def __call__(self) -> bytes:
        try:
            _fits(self._file.stat().st_size, str(self._file))
            return self._file.read_bytes()
        except OSError as wrong:
            raise RecordingError(f"{self._file}: {wrong.strerror}") from wrong


def _zipped(archive: zipfile.ZipFile, place: str) -> Files:
    def reader(entry: zipfile.ZipInfo) -> Callable[[], bytes]:
        def read() -> bytes:
            _fits(entry.file_size, f"{place}: {entry.filename}")
            try:
                return archive.read(entry)
            except (zipfile.BadZipFile, OSError, RuntimeError, EOFError) as wrong:  # RuntimeError: it is encrypted
                raise RecordingError(f"{place}: {entry.filename}: {wrong}") from wrong

        return read

    return {entry.filename: reader(entry) for entry in archive.infolist() if not entry.is_dir()}


def _tarred(archive: tarfile.TarFile, place: str) -> Files:
    def reader(entry: tarfile.TarInfo) -> Callable[[], bytes]:
        def read() -> bytes:
            _fits(entry.size, f"{place}: {entry.name}")
            try:
                stream = archive.extractfile(entry)
                return stream.read() if stream else b""
            except (tarfile.TarError, OSError, EOFError) as wrong:
                raise RecordingError(f"{place}: {entry.name}: {wrong}") from wrong

        return read

    return {entry.name.removeprefix("./"): reader(entry) for entry in archive.getmembers() if entry.isfile()}


def _fits(size: int, place: str) -> None:
    if size > LARGEST:
        raise RecordingError(f"{place}: {size} bytes: expected at most {LARGEST}")
