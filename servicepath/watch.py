"""What do the Services' users feel? ``python -m servicepath.watch --for 10m`` asks from every node while something is changed.

From each node's host and from its client Pod, every DNS and TCP port of the Services under test is asked many times a second, each
question from a port of its own, and one TCP connection is kept standing. What was lost, for how long, how long answers took, and
which connections broke how goes to a JSON file (which ``servicepath.compare --watch`` takes) and to a page with a picture.

Ctrl-C ends it early; what was seen until then is written all the same.

Exit status: 0 everything was seen, 3 something could not be seen, or not be written where it was to be, 2 for a wrong command line or
inventory. What was lost is no failure of the watch: the comparison judges it.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence

from . import baselines, connection, inventory, watching
from .baselines import BaselineError
from .channels.ssh import SocketFolder
from .deadline import Deadline
from .experiments import api
from .fleet import Fleet
from .inventory import Inventory, InventoryError
from .model import meaning, watched
from .observation import CouldNotSee
from .parse.errors import ParseError
from .parse.kubernetes import parse_kubernetes
from .report import watch_html, watch_json
from .selection import Options, SelectionError

OK, WRONG_USE, CANNOT_SEE = 0, 2, 3
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST = 24 * 3600.0
_GRACE = 300.0  # seconds beside the watch itself: to begin, to fetch, to clean up


def main(arguments: Sequence[str] | None = None) -> int:
    """Watch, print the lines, write the files; return the exit status."""
    said = _parser().parse_args(arguments)
    try:
        found = inventory.load(said.inventory or inventory.find(pathlib.Path.cwd()))
        baselines.check_apart({"--json": said.json, "--html": said.html})
        for path in (said.json, said.html):
            baselines.check_writable(path)
        summary = run(found, said.seconds, 1.0 / said.rate)
    except (InventoryError, SelectionError, BaselineError) as wrong:
        print(wrong, file=sys.stderr)
        return WRONG_USE
    except (CouldNotSee, ParseError) as unseen:
        print(unseen, file=sys.stderr)
        return CANNOT_SEE
    for line in watch_html.lines(summary):
        print(line)
    troubles = [*_kept(summary, said.json, watch_json.write), *_kept(summary, said.html, watch_html.write)]
    for trouble in troubles:
        print(trouble, file=sys.stderr)
    return CANNOT_SEE if summary.unseen or troubles else OK


def _kept(summary: watched.Summary, path: pathlib.Path, write: Callable[[watched.Summary, pathlib.Path], None]) -> Iterator[str]:
    """Write a file; where it cannot be, elsewhere: the time that was watched does not come again. What was wrong is said in a line."""
    try:
        write(summary, path)
        return
    except OSError as failed:
        wrong = failed
    try:
        other = pathlib.Path(tempfile.mkdtemp(prefix="servicepath-watch-")) / path.name
        write(summary, other)
    except OSError as failed:
        yield f"{path}: cannot be written: {wrong.strerror}; nor in {tempfile.gettempdir()}: {failed.strerror}"
    else:
        yield f"{path}: cannot be written: {wrong.strerror}; it is kept as {other}"


def run(found: Inventory, seconds: float, every: float) -> watched.Summary:
    """Watch for so many seconds, a question of each kind and place ``every`` so many.

    Raises:
        CouldNotSee: the API cannot be read at the start.
        SelectionError: something is named that the cluster does not have.
    """
    deadline = Deadline.starting_now(seconds + _GRACE)
    sockets = SocketFolder()
    try:
        client = connection.kube_client(found, sockets, deadline)
        objects = parse_kubernetes(api.read_cluster(client).documents)
        chosen = watching.posts(objects, found, Options(), every)
        ways = connection.channels(found, objects.nodes, sockets)
        fleet = Fleet({node: ways[node] for node in dict.fromkeys(post.node for post in chosen)}, deadline)
        try:
            name = f"kubernetes.default.svc.{found.cluster_domain.rstrip('.')}"
            told, troubles = watching.watch(fleet, client, chosen, name, seconds, _say, _enough())
        finally:
            fleet.close()
    finally:
        sockets.remove()
    return watched.sum_up(told, (str(trouble) for trouble in troubles), meaning.identity_of(objects))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _enough() -> threading.Event:
    """An event that an interrupt (Ctrl-C, or kill's TERM) sets: the watch then ends early, and whole."""
    event = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: event.set())
    return event


def duration(text: str) -> float:
    """Seconds of ``90``, ``90s``, ``10m`` or ``1h``.

    Raises:
        argparse.ArgumentTypeError: it is none of these, or out of range.
    """
    read = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    seconds = float(read[1]) * _UNITS[read[2] or "s"] if read else 0.0
    if not 1 <= seconds <= _LONGEST:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a time such as 90s, 10m or 1h, one second to one day")
    return seconds


def _rate(text: str) -> float:
    if not re.fullmatch(r"\d+(\.\d+)?", text) or not 0.1 <= float(text) <= 200:
        raise argparse.ArgumentTypeError(f"{text!r}: expected questions a second, from 0.1 to 200")
    return float(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m servicepath.watch", description=(__doc__ or "").partition("\n")[0],
        epilog="Exit status: 0 everything was seen, 3 something could not be seen.",
    )  # fmt: skip
    parser.add_argument("--inventory", type=pathlib.Path, metavar="FILE", help="default: as pytest finds it")
    parser.add_argument("--for", dest="seconds", type=duration, default="10m", metavar="TIME", help="90s, 10m, 1h; default 10m")
    parser.add_argument("--rate", type=_rate, default="20", metavar="N", help="questions a second, of each kind and place; default 20")
    parser.add_argument("--json", type=pathlib.Path, default=pathlib.Path("reports/watch.json"), metavar="FILE")
    parser.add_argument("--html", type=pathlib.Path, default=pathlib.Path("reports/watch.html"), metavar="FILE")
    return parser


if __name__ == "__main__":
    sys.exit(main())
