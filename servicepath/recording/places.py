"""Where a recording lies: in the folder or archive itself, or in the one folder below that holds it."""

from __future__ import annotations

import pathlib
import re
import tarfile
import zlib
from collections.abc import Callable, Mapping

from .codec import HEAD
from .model import RecordingError

DAMAGED = (tarfile.TarError, EOFError, zlib.error)
"""What tarfile and what it unpacks with raise on a file that is no whole archive."""


def below(files: Mapping[str, Callable[[], bytes]], source: str) -> str | None:
    """Where the recording begins: "" at the top, "today/" one folder deeper; None where no recording.yaml names the schema.

    Args:
        files: path below the folder or archive → how to read it; only those named recording.yaml are read.
        source: names it in errors.

    Raises:
        RecordingError: there are several, each in a folder of its own; one line that names them.
    """
    if HEAD in files:
        return "" if _is_head(files[HEAD]()) else None
    tops = sorted(path.removesuffix(HEAD) for path in files if re.fullmatch(rf"[^/]+/{re.escape(HEAD)}", path) and _is_head(files[path]()))
    if len(tops) > 1:
        names = ", ".join(top.rstrip("/") for top in tops)
        raise RecordingError(f"{source}: expected one recording, found {len(tops)}: {names}; give one of them")
    return tops[0] if tops else None


def in_folder(path: pathlib.Path) -> str | None:
    """The same of a folder."""
    heads = [*path.glob(HEAD), *path.glob(f"*/{HEAD}")]
    return below({head.relative_to(path).as_posix(): head.read_bytes for head in heads if head.is_file()}, str(path))


def in_tar(path: pathlib.Path) -> str | None:
    """The same of a tar that tarfile itself unpacks (.tar, .tar.gz, .tar.xz); None for what is no tar, which its reader says."""
    try:
        with tarfile.open(path) as tar:
            return below({m.name.removeprefix("./"): _reader(tar, m) for m in tar if m.isfile() and m.name.endswith(HEAD)}, str(path))
    except (*DAMAGED, OSError):
        return None


def _reader(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Callable[[], bytes]:
    def read() -> bytes:
        stream = tar.extractfile(member)
        return stream.read() if stream else b""

    return read


def _is_head(content: bytes) -> bool:
    return re.search(rb"^schema:", content, re.MULTILINE) is not None
