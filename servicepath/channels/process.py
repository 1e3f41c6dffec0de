"""One program of this machine, with a time limit that holds."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True, slots=True)
class Finished:
    """How a program ended. ``status`` is None when it was killed because its time was up."""

    argv: tuple[str, ...]
    status: int | None
    stdout: bytes
    stderr: bytes
    took: float

    @property
    def error_text(self) -> str:
        """Standard error as text."""
        return self.stderr.decode("utf-8", "replace").strip()


def run(argv: Sequence[str], *, stdin: bytes = b"", timeout: float) -> Finished:
    """Run a program and return what it said; past ``timeout`` seconds it and its children are killed.

    Standard error goes through an unnamed file: an ssh client that becomes a multiplexing master keeps its standard error open
    for as long as the master lives (OpenSSH before 8.5), and waiting for the end of a pipe would hang as long.
    """
    started = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
        )  # fmt: skip
        status, stdout = _wait(process, stdin, timeout)
        errors.seek(0)
        return Finished(tuple(argv), status, stdout, errors.read(), time.monotonic() - started)


def _wait(process: subprocess.Popen[bytes], stdin: bytes, timeout: float) -> tuple[int | None, bytes]:
    try:
        stdout, _ = process.communicate(stdin, timeout=max(timeout, 0.1))
        return process.returncode, stdout
    except subprocess.TimeoutExpired as late:
        return None, late.output or b""
    finally:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for stream in (process.stdin, process.stdout):
            if stream:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
