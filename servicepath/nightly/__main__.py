"""``python -m servicepath.nightly``: run the suite, keep it, and say in one line what changed since last night.

Exit status: 0 held, 3 could not be seen (or not be kept), 4 broken; 2 for a wrong command line, 75 when another run is at it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from .. import inventory
from ..inventory import Inventory, InventoryError
from ..model.history import UNSEEN
from ..observation import CouldNotSee
from . import cluster_lock, locks, night, telling
from .locks import HeldByAnother
from .retention import Keep
from .state import State, StateError

BUSY = 75  # EX_TEMPFAIL of sysexits.h: try again later


_Number = TypeVar("_Number", int, float)


def main(arguments: Sequence[str] | None = None) -> int:
    """One night; the exit status."""
    said, rest = _parser().parse_known_args(arguments)
    rest = [word for word in rest if word != "--"]
    replayed = any(word.startswith("--replay") for word in rest)
    try:
        found = None if replayed else inventory.load(said.inventory or inventory.find(pathlib.Path.cwd()))
        state = State(said.state, Keep(said.keep_nights, said.keep_days, int(said.keep_mb * 1e6)))
        with contextlib.ExitStack() as held:
            held.enter_context(_ends_on_signal())
            held.enter_context(locks.on_this_machine(state.lock, said.wait))
            if found is not None:
                held.enter_context(_on_the_cluster(found, said.wait))
                rest = [f"--inventory={found.file.absolute()}", *rest]
            return _night(said, state, rest, found)
    except (InventoryError, StateError) as wrong:
        return _say(wrong, 2)
    except HeldByAnother as other:
        return _say(other, BUSY)
    except OSError as wrong:
        return _say(f"{wrong.filename or said.state}: {wrong.strerror}", UNSEEN)


def _night(said: argparse.Namespace, state: State, arguments: Sequence[str], found: Inventory | None) -> int:
    """Run, remember, tell; what cannot be kept or told is a line on standard error, and the verdict stays what it is."""
    one = night.run(state.nights, arguments, record=found is not None and not said.no_record, limit=said.limit)
    status, line, changed, troubles = state.remember(one, found.upgrade.rules if found else ())
    print(line, flush=True)
    url = os.environ.get("SERVICEPATH_WEBHOOK")
    if url and (said.notify == "always" or (said.notify == "change" and (changed or status))):
        troubles += _told(lambda: telling.webhook(url, line))
    if said.textfile:
        troubles += _told(lambda: telling.textfile(said.textfile, one, status, time.time()))
    for trouble in troubles:
        _say(trouble, status)
    return max(status, UNSEEN) if troubles else status


def _told(tell: Callable[[], None]) -> list[str]:
    try:
        tell()
    except telling.TellingError as wrong:
        return [str(wrong)]
    return []


@contextlib.contextmanager
def _on_the_cluster(found: Inventory, wait: float) -> Iterator[None]:
    """Hold the cluster's lock; where none is to be had, the run goes on without, and says so."""
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(cluster_lock.held(found, wait))
        except CouldNotSee as unseen:
            print(f"no lock on the cluster, going on without: {unseen.trouble.problem}", file=sys.stderr, flush=True)
        yield


@contextlib.contextmanager
def _ends_on_signal() -> Iterator[None]:
    """SIGTERM ends the run as Ctrl-C does, so that what is held is given back."""

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    earlier = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, earlier)


def _say(what: object, status: int) -> int:
    print(what, file=sys.stderr, flush=True)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m servicepath.nightly", description="Run the suite, keep what it found, and say what changed since last night.",
        epilog="What stands behind -- goes to pytest. $SERVICEPATH_WEBHOOK: a URL that takes {\"text\": …}. "
        "Exit status: 0 held, 3 could not be seen, 4 broken, 2 wrong use, 75 another run is at it.",
    )  # fmt: skip
    add = parser.add_argument
    add("--state", type=pathlib.Path, required=True, metavar="DIR", help="where the nights and their history are kept")
    add("--inventory", type=pathlib.Path, metavar="FILE", help="default: ./inventory.yaml, else the running lab's")
    add("--keep-nights", type=_positive(int), default=30, metavar="N", help="reports and recordings of so many nights (30)")
    add("--keep-days", type=_positive(float), default=90.0, metavar="N", help="and none older (90)")
    add("--keep-mb", type=_positive(float), default=2000.0, metavar="N", help="and no more than so many megabytes (2000)")
    add("--wait", type=float, default=0.0, metavar="SECONDS", help="how long to wait for another run to end (0)")
    add("--limit", type=_positive(float), default=1800.0, metavar="SECONDS", help="the longest that the run may take (1800)")
    add("--no-record", action="store_true", help="keep no recording")
    add("--notify", choices=("change", "always"), default="change", help="when the webhook is called: on trouble or change, or always")
    add("--textfile", type=pathlib.Path, metavar="FILE", help="figures for Prometheus' textfile collector; the name ends in .prom")
    return parser


def _positive(kind: Callable[[str], _Number]) -> Callable[[str], _Number]:
    def number(text: str) -> _Number:
        value = kind(text)
        if not value > 0:
            raise argparse.ArgumentTypeError("expected more than 0")
        return value

    return number


if __name__ == "__main__":
    sys.exit(main())
