"""Programs of this machine that the lab runs to their end (never through a shell), and how their failures read."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.errors import LabError


def run(
    argv: Sequence[str | Path],
    *,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 120,
) -> str:
    """Run a program to its end and return its standard output.

    Args:
        argv: the program, found by PATH, and its arguments.
        stdin: text for its standard input; without it the input is empty.
        env: variables set on top of this process's own.
        cwd: the folder to run in.
        timeout: seconds after which it is ended.

    Raises:
        LabError: it is missing, failed or took too long; the message has the command and the last of what it said.
    """
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words,
            input="" if stdin is None else stdin,
            env={**os.environ, **env} if env else None,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError as error:
        raise LabError(f"{words[0]}: no such program on this machine") from error
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{shown(words)}: no end after {timeout:.0f} s") from error
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip())[-2000:]
        raise LabError(f"{shown(words)}: exit status {done.returncode}: {said}")
    return done.stdout


def shown(words: Sequence[str], limit: int = 300) -> str:
    """Return a command as one line for a message, cut after ``limit`` characters."""
    line = " ".join(words)
    return line if len(line) <= limit else line[:limit] + "…"
