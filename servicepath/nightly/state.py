"""The state folder: the nights, their history, the page. What one night could not put in, the next one does."""

from __future__ import annotations

import contextlib
import pathlib
import time
from collections.abc import Iterable, Iterator

from .. import baselines
from ..baselines import BaselineError
from ..model.absence import judged
from ..model.baseline import Baseline
from ..model.comparison import AnotherCluster, Comparison, compare
from ..model.history import History, status_of
from ..model.upgrade_rules import Rule
from ..report import comparison_html, history_html
from . import history, retention, telling
from .history import HistoryError
from .night import BASELINE, Night
from .retention import Keep

REMEMBERED = 400  # nights in the history; it is small, and outlives the reports


class StateError(Exception):
    """The folder cannot be used; the text is one line."""


class State:
    """The folder.

    Args:
        folder: made when it is not there.
        keep: how much is kept of the nights.

    Raises:
        StateError: it cannot be made.
    """

    def __init__(self, folder: pathlib.Path, keep: Keep) -> None:
        self.folder, self.keep = folder.absolute(), keep
        self.nights = self.folder / "nights"
        self.lock = self.folder / "lock"
        self.history = self.folder / "history.sqlite"
        try:
            self.nights.mkdir(parents=True, exist_ok=True)
        except OSError as wrong:
            raise StateError(f"--state: {folder}: cannot be made or used: {wrong.strerror}") from wrong

    def remember(self, one: Night, rules: tuple[Rule, ...] = ()) -> tuple[int, str, str, list[str]]:
        """Compare the night, which was just run, with the one before, put it into the history, remove what is not kept, draw the pages.

        What goes wrong in one of these is told and hinders none of the others; what is removed is in the history by then, if it can be.

        Returns:
            The night's status, its line, what changed in it, and what could not be kept, a line each.
        """
        troubles: list[str] = []
        try:
            found, since, stranger = *self._compared(one, rules), False
        except AnotherCluster as wrong:
            found, since, stranger = None, "not compared: the night before it is another cluster's", True
            troubles.append(f"{self.folder}: it holds the nights of another cluster, and this night stays out of its history: {wrong}")
        status, changed, told = status_of(one.run), telling.changes(found), None
        try:
            with self._noted(troubles):
                if found is not None:
                    comparison_html.write(found, one.folder / "comparison.html")
            with self._noted(troubles):
                told = self._into_history(one, status, changed, stranger=stranger)
        finally:  # also of a history that cannot be used, or the nights pile up; and behind it: what goes is in it, if it can be
            with self._noted(troubles):
                retention.apply(self.nights, self.keep, time.time(), one.folder.name)
        if told is not None:
            with self._noted(troubles):
                kept = frozenset(folder.name for folder in retention.nights(self.nights))
                history_html.write(told, kept, self.folder / "history.html")
        return status, telling.line(one.run, status, since), changed, troubles

    @contextlib.contextmanager
    def _noted(self, troubles: list[str]) -> Iterator[None]:
        """What cannot be kept is a line, and hinders nothing that comes after."""
        try:
            yield
        except HistoryError as wrong:
            troubles.append(str(wrong))
        except OSError as wrong:
            troubles.append(f"{wrong.filename or self.folder}: {wrong.strerror or wrong}")

    def _compared(self, one: Night, rules: tuple[Rule, ...]) -> tuple[Comparison | None, str]:
        """The comparison with the latest whole night before this one in which something was judged, and what the line says of it.

        Raises:
            AnotherCluster: that night's is not this night's.
        """
        names = {each.name for each in retention.nights(self.nights)} - {one.folder.name}
        earlier = [self.nights / name for name in retention.newest_first(names, one.folder.name)]
        if not earlier:
            return None, "the first night"
        if not one.run.judged:
            return None, "not compared: nothing was judged"
        folder, before = _last_judged(earlier)
        if before is None:
            return None, "not compared: no night before it can be read and has verdicts"
        found = compare(before, one.run, rules)
        when = "last night" if folder == earlier[0] else before.started
        return found, f"since {when}: {telling.changes(found) or 'nothing changed'}"

    def _into_history(self, one: Night, status: int, changed: str, *, stranger: bool) -> History:
        """Add this night, unless it is another cluster's, and those before it that are not in it yet; all that it holds now."""
        with history.opened(self.history) as db:
            known = history.names(db)
            for folder in retention.nights(self.nights):
                run = _kept(folder) if folder.name not in known and folder != one.folder else None
                if run is not None and self._same_cluster(run, one.run) is not stranger:
                    history.add(db, folder.name, run, status_of(run), "")
            if not stranger:
                history.add(db, one.folder.name, one.run, status, changed)
            history.forget(db, REMEMBERED, one.folder.name)
            return history.read(db, last=one.folder.name)

    def _same_cluster(self, run: Baseline, other: Baseline) -> bool:
        return not (run.identity and other.identity and run.identity.unlike(other.identity))


def _last_judged(newest_first: Iterable[pathlib.Path]) -> tuple[pathlib.Path | None, Baseline | None]:
    """The first night that held or broke something and is whole, else the first that did; of one that is not whole little is known."""
    found: tuple[pathlib.Path | None, Baseline | None] = None, None
    for folder in newest_first:
        run = _kept(folder)
        if run and judged(run) and (found[1] is None or not run.unfinished):
            found = folder, run
            if not run.unfinished:
                break
    return found


def _kept(folder: pathlib.Path) -> Baseline | None:
    """A night's baseline; None where there is none that can be read."""
    try:
        return baselines.load(folder / BASELINE) if (folder / BASELINE).is_file() else None
    except BaselineError:
        return None
