"""``python -m servicepath.nightly``: run the suite, keep it, and say in one line what changed since last night.

Exit status: 0 held, 3 could not be seen (or not be kept, or was stopped by a signal), 4 broken; 2 for a wrong command line, 75 when
another run is at it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from .. import inventory
from ..inventory import Inventory, InventoryError
from ..model.history import UNSEEN
from ..observation import CouldNotSee
from . import cluster_lock, locks, night, node_lock, stopping, telling, webhook
from .locks import ClusterLock, HeldByAnother
from .night import WrongUse
from .retention import Keep
from .state import State, StateError
from .stopping import Stop, Stopped
from .telling import TellingError

BUSY = 75  # EX_TEMPFAIL of sysexits.h: try again later
_LONGEST = node_lock.LONGEST - 2 * night.GRACE  # seconds

_Number = TypeVar("_Number", int, float)


def main(arguments: Sequence[str] | None = None) -> int:
    """One night; the exit status."""
    said, rest = _said(sys.argv[1:] if arguments is None else arguments)
    replayed = any(word.startswith("--replay") for word in rest)
    with stopping.noticed() as stop:
        try:
            url = webhook.url_of(os.environ.get("SERVICEPATH_WEBHOOK"))
            if said.textfile:
                telling.check_textfile(said.textfile)
            found = None if replayed else inventory.load(said.inventory or inventory.find(pathlib.Path.cwd()))
            state = State(said.state, Keep(said.keep_nights, said.keep_days, int(said.keep_mb * 1e6)))
            return _locked(said, state, rest, found, url, stop)
        except (InventoryError, StateError, TellingError, WrongUse) as wrong:
            return _say(wrong, 2)
        except HeldByAnother as other:
            return _say(other, BUSY)
        except Stopped as asked:
            return _say(f"stopped by {asked} before the night began", UNSEEN)
        except OSError as wrong:
            return _say(f"{wrong.filename or said.state}: {wrong.strerror}", UNSEEN)


def _locked(
    said: argparse.Namespace, state: State, rest: Sequence[str], found: Inventory | None, url: str | None, stop: Stop
) -> int:  # fmt: skip
    """The night, while nobody else is at it on this machine or, where there is a cluster to look at, on the cluster."""
    with contextlib.ExitStack() as held:
        lock = None
        with stop.raising():
            holding = [held.enter_context(locks.on_this_machine(state.lock, said.wait))]
            if found is not None:
                lock = held.enter_context(_on_the_cluster(found, said.wait))
                # The suite's own deadline comes before --limit, so that there is time for the report of a run that takes too long.
                deadline = min(found.deadline, 0.9 * said.limit)
                rest = [f"--inventory={found.file.absolute()}", f"--deadline={deadline:g}", *rest]
        if lock:
            holding += lock.descriptors()
        one = night.run(
            state.nights, rest, record=found is not None and not said.no_record, limit=said.limit, stop=stop, holding=holding
        )  # fmt: skip
        troubles = [f"stopped by {stop.asked}: this night is not whole"] if stop.asked and one.run.unfinished else []
        if lock and (why := lock.lost()):
            _say(f"the lock on the cluster was lost during the run, another run may have disturbed it: {why}", 0)
        return _kept_and_told(said, state, one, found, url, troubles)


def _kept_and_told(
    said: argparse.Namespace, state: State, one: night.Night, found: Inventory | None, url: str | None, troubles: list[str]
) -> int:  # fmt: skip
    """Remember, tell; what cannot be kept or told is a line on standard error, and the verdict stays what it is."""
    status, line, changed, unkept = state.remember(one, found.upgrade.rules if found else ())
    troubles += unkept
    print(line, flush=True)
    if url and (said.notify == "always" or changed or status):
        troubles += _told(lambda: webhook.post(url, line))
    if said.textfile:
        troubles += _told(lambda: telling.textfile(said.textfile, one, status, time.time()))
    for trouble in troubles:
        _say(trouble, status)
    return max(status, UNSEEN) if troubles else status


def _told(tell: Callable[[], None]) -> list[str]:
    try:
        tell()
    except TellingError as wrong:
        return [str(wrong)]
    return []


@contextlib.contextmanager
def _on_the_cluster(found: Inventory, wait: float) -> Iterator[ClusterLock | None]:
    """Hold the cluster's lock; where none is to be had, the run goes on without, and says so."""
    with contextlib.ExitStack() as held:
        lock = None
        try:
            lock = held.enter_context(cluster_lock.held(found, wait))
        except CouldNotSee as unseen:
            print(f"no lock on the cluster, going on without: {unseen.trouble.problem}", file=sys.stderr, flush=True)
        yield lock


def _say(what: object, status: int) -> int:
    print(what, file=sys.stderr, flush=True)
    return status


def _said(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Our options, and pytest's: what stands behind the first --."""
    own = list(arguments)
    end = own.index("--") if "--" in own else len(own)
    return _parser().parse_args(own[:end]), own[end + 1 :]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m servicepath.nightly", allow_abbrev=False,
        usage="%(prog)s --state DIR [options] [-- pytest's options]",
        description="Run the suite, keep what it found, and say what changed since last night.",
        epilog="What stands behind -- goes to pytest. $SERVICEPATH_WEBHOOK: a URL that takes {\"text\": …}. "
        "Exit status: 0 held, 3 could not be seen or was stopped, 4 broken, 2 wrong use, 75 another run is at it.",
    )  # fmt: skip
    add = parser.add_argument
    add("--state", type=pathlib.Path, required=True, metavar="DIR", help="where the nights and their history are kept")
    add("--inventory", type=pathlib.Path, metavar="FILE", help="default: ./inventory.yaml, else the running lab's")
    add("--keep-nights", type=_number(int, 1, 100_000), default=30, metavar="N", help="reports and recordings of so many nights (30)")
    add("--keep-days", type=_number(float, 0.001, 100_000), default=90.0, metavar="N", help="and none older (90)")
    add("--keep-mb", type=_number(float, 0.001, 1e9), default=2000.0, metavar="N", help="and no more than so many megabytes (2000)")
    add("--wait", type=_number(float, 0, 86_400), default=0.0, metavar="SECONDS", help="how long to wait for another run to end (0)")
    add("--limit", type=_number(float, 0.01, _LONGEST), default=1800.0, metavar="SECONDS", help="the longest that the run may take (1800)")
    add("--no-record", action="store_true", help="keep no recording")
    add("--notify", choices=("change", "always"), default="change", help="when the webhook is called: on trouble or change, or always")
    add("--textfile", type=pathlib.Path, metavar="FILE", help="figures for Prometheus' textfile collector; the name ends in .prom")
    return parser


def _number(kind: Callable[[str], _Number], low: float, high: float) -> Callable[[str], _Number]:
    def number(text: str) -> _Number:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not low <= value <= high:  # NaN is in no range
            what = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"expected {what} from {low:g} to {high:g}, found {text[:40]!r}")
        return value

    return number


if __name__ == "__main__":
    sys.exit(main())
