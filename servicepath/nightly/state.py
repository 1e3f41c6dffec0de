"""The state folder: the nights, their history, the page. What one night could not put in, the next one does."""

from __future__ import annotations

import pathlib
import time

from .. import baselines
from ..baselines import BaselineError
from ..model.baseline import Baseline
from ..model.comparison import AnotherCluster, Comparison, compare
from ..model.history import status_of
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
        """Compare the night with the one before, put it into the history, draw the pages, remove what is not kept.

        Returns:
            The night's status, its line, what changed in it, and what could not be kept, a line each.
        """
        troubles: list[str] = []
        before = self._before(one)
        found = self._compared(before, one.run, rules, troubles)
        status, changed = status_of(one.run), telling.changes(found)
        line = telling.line(one.run, status, changed, first=before is None)
        try:
            if found is not None:
                comparison_html.write(found, one.folder / "comparison.html")
            self._into_history(one, status, changed, troubles)
            retention.apply(self.nights, self.keep, time.time())
        except (HistoryError, OSError) as wrong:
            troubles.append(str(wrong) if isinstance(wrong, HistoryError) else f"{wrong.filename or self.folder}: {wrong.strerror}")
        return status, line, changed, troubles

    def _before(self, one: Night) -> Baseline | None:
        """The latest night before this one in which something was judged."""
        for folder in sorted(self.nights.iterdir(), reverse=True):
            if folder.is_dir() and folder.name < one.folder.name and (run := _kept(folder)) and run.judged:
                return run
        return None

    def _compared(self, before: Baseline | None, now: Baseline, rules: tuple[Rule, ...], troubles: list[str]) -> Comparison | None:
        if before is None or not now.judged:
            return None
        try:
            return compare(before, now, rules)
        except AnotherCluster as wrong:
            troubles.append(f"{self.folder}: it holds the nights of another cluster, and this night stays out of its history: {wrong}")
            return None

    def _into_history(self, one: Night, status: int, changed: str, troubles: list[str]) -> None:
        """This night, and those before it that are not in it yet; then the page."""
        stranger = any("another cluster" in trouble for trouble in troubles)
        with history.opened(self.history) as db:
            known = history.names(db)
            for folder in sorted(self.nights.iterdir()):
                run = _kept(folder) if folder.name not in known and folder != one.folder else None
                if run is not None and self._same_cluster(run, one.run) is not stranger:
                    history.add(db, folder.name, run, status_of(run), "")
            if not stranger:
                history.add(db, one.folder.name, one.run, status, changed)
            history.forget(db, REMEMBERED)
            told = history.read(db)
        kept = frozenset(folder.name for folder in self.nights.iterdir() if folder.is_dir())
        history_html.write(told, kept, self.folder / "history.html")

    def _same_cluster(self, run: Baseline, other: Baseline) -> bool:
        return not (run.identity and other.identity and run.identity.unlike(other.identity))


def _kept(folder: pathlib.Path) -> Baseline | None:
    """A night's baseline; None where there is none that can be read."""
    try:
        return baselines.load(folder / BASELINE) if (folder / BASELINE).is_file() else None
    except BaselineError:
        return None
