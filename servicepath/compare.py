"""Compare two runs that were kept: ``python -m servicepath.compare BEFORE AFTER``; what changed, and what the rules make of it.

Exit status: 0 nothing got worse, 3 something could not be seen (or a signal came), 4 something got worse; 2 for a wrong command line
or file.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from collections.abc import Sequence

from . import baselines, inventory
from .baselines import BaselineError
from .inventory import InventoryError
from .model.between import WrongWatch
from .model.comparison import AnotherCluster, compare
from .model.history import UNSEEN
from .model.upgrade_rules import Rule
from .nightly import stopping
from .nightly.stopping import Stopped
from .report import comparison_html, comparison_json, comparison_text
from .report.visible import one_line, visible

_INVENTORY = pathlib.Path("inventory.yaml")


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, print the lines, write the files; return the exit status.

    A signal ends it as an error would: a recording that is judged again meanwhile leaves no folder behind.
    """
    said = _parser().parse_args(arguments)
    with stopping.noticed() as stop:
        try:
            with stop.raising():
                return _compared(said)
        except Stopped as asked:
            print(f"stopped by {asked}: nothing was compared", file=sys.stderr)
            return UNSEEN


def _compared(said: argparse.Namespace) -> int:
    try:
        _check_files(said)
        watch = baselines.load_watch(said.watch) if said.watch else None
        found = compare(baselines.load(said.before), baselines.load(said.after), _rules(said.inventory), watch)
        for path, write in ((said.html, comparison_html.write), (said.json, comparison_json.write)):
            if path:
                write(found, path)
    except (BaselineError, InventoryError) as wrong:
        print(wrong, file=sys.stderr)
        return 2
    except (AnotherCluster, WrongWatch) as wrong:
        print(f"{said.watch if isinstance(wrong, WrongWatch) else said.before}: {visible(one_line(wrong))}", file=sys.stderr)
        return 2
    except OSError as wrong:
        print(f"{wrong.filename or 'the comparison'}: cannot be written: {wrong.strerror}", file=sys.stderr)
        return 2
    for line in comparison_text.lines(found):
        print(line)
    return found.exit_status


def _check_files(said: argparse.Namespace) -> None:
    """Before minutes are spent on a recording: what is read is not overwritten, and what is written can be."""
    read = {"BEFORE": said.before, "AFTER": said.after, "--watch": said.watch, "--inventory": said.inventory or _INVENTORY}
    baselines.check_apart({"--html": said.html, "--json": said.json}, read)
    for path in (said.html, said.json):
        if path:
            baselines.check_writable(path)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m servicepath.compare", description="What changed between two runs, and what got worse.",
        epilog="Exit status: 0 nothing got worse, 3 something could not be seen, 4 something got worse.",
    )  # fmt: skip
    parser.add_argument("before", type=pathlib.Path, metavar="BEFORE", help="what pytest --baseline-out wrote")
    parser.add_argument("after", type=pathlib.Path, metavar="AFTER", help="the same of the later run")
    parser.add_argument("--inventory", type=pathlib.Path, metavar="FILE", help="whose rules (upgrade: expect:) count; ./inventory.yaml")
    parser.add_argument("--watch", type=pathlib.Path, metavar="FILE", help="what servicepath.watch wrote in between: judged too")
    parser.add_argument("--html", type=pathlib.Path, metavar="FILE", help="write the comparison as a page")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the comparison for programs")
    return parser


def _rules(named: pathlib.Path | None) -> tuple[Rule, ...]:
    path = named or _INVENTORY
    return inventory.load(path).upgrade.rules if named or path.exists() else ()


if __name__ == "__main__":
    sys.exit(main())
