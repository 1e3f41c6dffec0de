"""The files of a recording in a folder, or packed as .tar.zst; what somebody packed anew is read, too."""

from __future__ import annotations

import functools
import io
import pathlib
import tarfile
from collections.abc import Iterable, Iterator

import zstandard

from . import codec, places
from .model import Recording, RecordingError

PACKED = ".tar.zst"

# A recording of some hundred nodes has tens of MiB; what unpacks to more than this is none.
LARGEST = 4 * 1024**3

# Repeated readings of the API differ in little; a window of 128 MiB (2^27) sees that, and every zstd unpacks it (with --long=27).
_WINDOW = 27


def read(path: pathlib.Path) -> Recording:
    """A recording from its folder or .tar.zst, or from another tar of its folder.

    Raises:
        RecordingError: it is absent, no recording, cut off, or of another schema.
    """
    folder = path / (_in_folder(path) or "") if path.is_dir() else path
    return codec.decode(files_of(folder), str(folder))


def files_of(path: pathlib.Path) -> dict[str, bytes]:
    """The files by their path below the recording; raises RecordingError."""
    try:
        if path.is_dir():
            top = path / (_in_folder(path) or "")
            found = {p.relative_to(top).as_posix(): p.read_bytes() for p in sorted(top.rglob("*")) if p.is_file()}
        else:
            found = _lifted(_unpack(path), str(path))
    except OSError as wrong:
        raise RecordingError(f"{path}: expected a recording's folder or {PACKED}: {wrong.strerror or wrong}") from wrong
    if not found:
        raise RecordingError(f"{path}: the {'folder' if path.is_dir() else 'archive'} is empty")
    return found


def _in_folder(path: pathlib.Path) -> str | None:
    try:
        return places.in_folder(path)
    except OSError as wrong:
        raise RecordingError(f"{path}: expected a recording's folder or {PACKED}: {wrong.strerror or wrong}") from wrong


def _lifted(files: dict[str, bytes], source: str) -> dict[str, bytes]:
    """The files of the folder that holds the recording, by their path below it."""
    top = places.below({path: functools.partial(files.__getitem__, path) for path in files}, source)
    return {path.removeprefix(top): data for path, data in files.items() if path.startswith(top)} if top else files


def _unpack(path: pathlib.Path) -> dict[str, bytes]:
    try:
        if not path.name.endswith(PACKED) and places.in_tar(path) is not None:
            with tarfile.open(path) as other:
                return dict(_read(other, path))
        whole = _decompressed(path)
        with tarfile.open(fileobj=io.BytesIO(whole), mode="r:") as tar:
            return dict(_members(tar, whole))
    except (zstandard.ZstdError, *places.DAMAGED) as wrong:
        what = " ".join(str(wrong).split())
        raise RecordingError(f"{path}: expected a whole {PACKED} of a recording, found a corrupt or foreign file ({what})") from wrong


def _read(tar: tarfile.TarFile, path: pathlib.Path) -> Iterator[tuple[str, bytes]]:
    """The files of a tar that is unpacked as it is read."""
    size = 0
    for member in tar:
        size += member.size
        if size > LARGEST:
            raise RecordingError(f"{path}: expected a recording, found more than {LARGEST} bytes")
        stream = tar.extractfile(member) if member.isfile() else None
        if stream:
            yield member.name.removeprefix("./"), stream.read()


def _decompressed(path: pathlib.Path) -> bytes:
    whole = bytearray()
    with path.open("rb") as packed, zstandard.ZstdDecompressor(max_window_size=2**_WINDOW).stream_reader(packed) as stream:
        while chunk := stream.read(2**20):
            whole += chunk
            if len(whole) > LARGEST:
                raise RecordingError(f"{path}: expected a recording, found more than {LARGEST} bytes")
    return bytes(whole)


def _members(tar: tarfile.TarFile, whole: bytes) -> Iterator[tuple[str, bytes]]:
    """The files by name. A slice of what is in memory costs a third of reading a member as a file (88,000 of them at 200 nodes)."""
    for member in tar:
        end = member.offset_data + member.size
        if end > len(whole):
            raise EOFError("unexpected end of data")
        if member.isfile():
            yield member.name.removeprefix("./"), whole[member.offset_data : end]


def write(recording: Recording, path: pathlib.Path) -> None:
    """Write a recording to a folder, or packed when the name says so.

    Raises:
        RecordingError: something is there already, or it cannot be written.
    """
    check_new(path)
    store(codec.encode(recording), path)


def check_new(path: pathlib.Path) -> None:
    """Raise RecordingError unless the path is free (an empty folder is)."""
    if path.is_dir() and path.name.endswith(PACKED):
        raise RecordingError(f"{path}: expected a new file, found a folder")
    if (path.exists() or path.is_symlink()) and not (path.is_dir() and not any(path.iterdir())):
        raise RecordingError(f"{path}: expected a new folder or file to record into: it is there already")


def store(files: Iterable[tuple[str, bytes]], path: pathlib.Path) -> None:
    """Write files into a folder, where they may be replaced, or into a .tar.zst; raises RecordingError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.name.endswith(PACKED):
            _pack(files, path)
        else:
            for name, content in files:
                target = path / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
    except OSError as wrong:
        raise RecordingError(f"{path}: cannot be written: {wrong.strerror or wrong}") from wrong


def _pack(files: Iterable[tuple[str, bytes]], path: pathlib.Path) -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(10, window_log=_WINDOW, enable_ldm=True)
    partial = path.with_name(f".{path.name}.partial")
    with (
        partial.open("wb") as packed,
        zstandard.ZstdCompressor(compression_params=parameters).stream_writer(packed) as stream,
        tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, content in files:
            member = tarfile.TarInfo(name)  # no owner and no time: the same recording packs to the same bytes
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    partial.replace(path)
