"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write text into a temporary file beside ``path``, then rename it; what was there before stays until then, and if that fails.

    Raises:
        OSError: the folder cannot be made or written to, or the disk is full.
    """
    path = path.absolute()  # as mkstemp makes its own: both by one way, also where the working folder was reached by another
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)  # mkstemp's 0600 would hide it from other readers
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def check_folder(folder: Path) -> None:
    """See that files can be put into a folder, which is made later where it is not there, before a run that would be lost.

    Raises:
        OSError: they cannot; ``filename`` is what stands in the way: the folder, or the nearest one above it that is there.
    """
    at = folder.absolute()
    try:
        while not at.exists() and at != at.parent:
            at = at.parent
        with tempfile.TemporaryFile(dir=at) as tried:
            tried.write(b"tried")
            tried.flush()
            os.fsync(tried.fileno())
    except OSError as wrong:
        raise OSError(wrong.errno, wrong.strerror, str(at)) from wrong
