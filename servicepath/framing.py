r"""One POSIX shell script for a batch of commands, and its output taken apart again.

The script writes a marker line before the first command and after each one, on both streams, so that the answer reads

    \n<boundary> 0 1764480001.123456789 80211.42\n        (index, Unix time, uptime)
    …output of command 0, byte for byte…
    \n<boundary> 1 0 80211.43\n                           (index, exit status of command 0, uptime)
    …

and on standard error the index alone. (Uptime, since the shell reads it without a process: a `date` beside each command costs as
much as many a command.)

The boundary is 128 random bits, new for each batch, so no output can hold it: bytes need no encoding (a pcap file comes through
as it is, where base64 would cost a third more and a process), nothing is written to the node's disk, and whatever a login
shell or sudo prints goes before marker 0. A stream without its last marker was cut off, and is no answer at all.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
import secrets
import shlex
from collections.abc import Mapping, Sequence

from .channel import Command
from .observation import Observation

# A login without /usr/sbin, or sudo's secure_path, must not hide tools; k3s brings its own iptables, which is asked last.
PATH = (
    'PATH="${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin'
    ':/var/lib/rancher/k3s/data/current/bin:/var/lib/rancher/k3s/data/current/bin/aux"; export PATH'
)

# Where coreutils' and busybox' `timeout` are both absent the shell itself ends the command; the watcher ends its own sleep.
# It is told by SIGUSR1: a shell that was begun with SIGTERM ignored cannot trap that, and the batch would wait for the sleep.
_PRELUDE = PATH + r"""
LC_ALL=C; export LC_ALL
if timeout -k 1 1 true >/dev/null 2>&1; then
  limit() { s=$1; shift; timeout -k 2 "$s" "$@"; }
else
  limit() {
    s=$1; shift; exec 3<&0
    "$@" <&3 3<&- & p=$!
    ( trap 'kill -9 $z; exit' USR1; sleep "$s" & z=$!; wait $z; kill $p; sleep 2 & z=$!; wait $z; kill -9 $p ) \
      >/dev/null 2>&1 3<&- </dev/null & w=$!
    wait $p; r=$?; kill -USR1 $w 2>/dev/null; wait $w 2>/dev/null; exec 3<&-; return $r
  }
fi
if read -r up rest </proc/uptime; then clock() { read -r up rest </proc/uptime; }
else clock() { up=$(date +%s); }; fi 2>/dev/null
mark() { clock; printf '\n%s %s %s %s\n' "$B" "$1" "$2" "$up"; printf '\n%s %s\n' "$B" "$1" >&2; }
"""
_ENDED_BY_US = frozenset({124, 137, 143})
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-+=.,:;/(){}[]<>#@*?!|&~^$\"")
_AS_PRINTED = {byte: f"\\{byte:03o}" for byte in range(256) if byte not in _PLAIN}


class CutOff(Exception):
    """A stream ended before its last marker; the text says which stream and how far it came."""


@dataclasses.dataclass(frozen=True, slots=True)
class Frame:
    """What lies between two markers of standard output."""

    output: bytes
    status: int
    started: float
    ended: float


def new_boundary() -> str:
    """128 random bits in hexadecimal."""
    return secrets.token_hex(16)


def build(commands: Sequence[Command], boundary: str) -> bytes:
    """The script that runs the commands one after the other.

    It is one compound command, so a shell that gets only a part of it runs none of it.
    """
    lines = [f"B={boundary}", 'mark 0 "$(date +%s.%N)"']
    for number, command in enumerate(commands, start=1):
        lines += [_line(command), f"mark {number} $?"]
    return ("{ " + _PRELUDE + "\n".join(lines) + "\nexit 0\n}\n").encode()


def take_apart(stdout: bytes, stderr: bytes, commands: Sequence[Command], boundary: str, node: str) -> dict[str, Observation]:
    """The Observation of each command, by name.

    Raises:
        CutOff: when a stream does not come to its last marker.
    """
    frames = _frames(stdout, boundary, len(commands))
    errors = _pieces(stderr, boundary, len(commands))
    found: dict[str, Observation] = {}
    for command, frame, error in zip(commands, frames, errors, strict=True):
        if command.name in found:
            raise ValueError(f"two commands of one batch are called {command.name!r}")
        took = frame.ended - frame.started
        ended_by_us = frame.status in _ENDED_BY_US and took >= math.floor(command.timeout) - 0.1
        found[command.name] = Observation(
            node=node, name=command.name, argv=argv_of(command), status=None if ended_by_us else frame.status,
            stdout=frame.output, stderr=error, started=frame.started, took=took,
        )  # fmt: skip
    return found


def argv_of(command: Command) -> tuple[str, ...]:
    """The command as it runs, its network namespace included."""
    return ("nsenter", f"--net={command.netns}", *command.argv) if command.netns else command.argv


def as_printf(data: bytes) -> str:
    r"""Any bytes as the format of the shell's own printf, which has no limit of length as an argument of a program would.

    >>> as_printf(b"50%\n")
    "printf '50\\045\\012'"
    """
    return f"printf '{data.decode('latin-1').translate(_AS_PRINTED)}'"


def _line(command: Command) -> str:
    # Whole seconds, rounded up: busybox' timeout knows no fractions.
    run = f"limit {max(1, math.ceil(command.timeout))} {shlex.join(argv_of(command))}"
    return f"{as_printf(command.stdin)} | {run}" if command.stdin else f"{run} </dev/null"


def _frames(stdout: bytes, boundary: str, count: int) -> list[Frame]:
    marks = list(re.finditer(rb"\n" + boundary.encode() + rb" (\d+) (\S+) (\S+)\n", stdout))
    _check(marks, count, "standard output", len(stdout))
    # Unix time less uptime: what turns the one into the other.
    offset = _seconds(marks[0][2]) - _seconds(marks[0][3])
    frames = []
    for before, after in itertools.pairwise(marks):
        began, ended = offset + _seconds(before[3]), offset + _seconds(after[3])
        frames.append(Frame(stdout[before.end() : after.start()], int(after[2]), began, ended))
    return frames


def _pieces(stderr: bytes, boundary: str, count: int) -> list[bytes]:
    marks = list(re.finditer(rb"\n" + boundary.encode() + rb" (\d+)\n", stderr))
    _check(marks, count, "standard error", len(stderr))
    return [stderr[before.end() : after.start()] for before, after in itertools.pairwise(marks)]


def _check(marks: Sequence[re.Match[bytes]], count: int, stream: str, size: int) -> None:
    if [int(mark[1]) for mark in marks] != list(range(count + 1)):
        raise CutOff(f"{stream} was cut off after {size} bytes, in command {max(len(marks), 1)} of {count}")


def _seconds(text: bytes) -> float:
    # busybox' date prints %N as it stands, or nothing for it.
    whole, _, fraction = text.decode().partition(".")
    return float(f"{whole}.{fraction}" if fraction.isdigit() else whole)


def last_words(stdout: bytes, boundary: str, commands: Sequence[Command]) -> Mapping[str, str]:
    """Of a stream that was cut off: the command that ran last and the end of its output, for the error's text."""
    marks = list(re.finditer(rb"\n" + boundary.encode() + rb" (\d+) \S+ \S+\n", stdout))
    if not marks or int(marks[-1][1]) >= len(commands):
        return {}
    tail = stdout[marks[-1].end() :][-500:].decode("utf-8", "replace")
    return {"command": shlex.join(argv_of(commands[int(marks[-1][1])])), "output": tail}
