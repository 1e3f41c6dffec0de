"""The nights in one SQLite file: written in one transaction a night, read for the page; an odd file is one line and is left as it is."""

from __future__ import annotations

import contextlib
import json
import math
import pathlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from ..model.baseline import Baseline
from ..model.history import BROKEN, HELD, UNSEEN, WORST_FIRST, History, Night, Outcome, Pace, Strip, Trend, pace, worst
from ..report.visible import visible

T = TypeVar("T")
_EVER = "~"  # behind the name of every night
BUSY = 20.0  # seconds to wait for another program that has the file
_ANEW = "move it away, and the nights that are kept make a new one"


class HistoryError(Exception):
    """The history cannot be used now; the text is one line, and the file is as it was."""


class _Odd(Exception):
    """A value that this program has not written: SQLite keeps whatever somebody puts into a column."""


def _first(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE night (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, started TEXT NOT NULL, status INTEGER NOT NULL)")
    db.execute("CREATE TABLE conclusion (id TEXT PRIMARY KEY, sentence TEXT NOT NULL, place INTEGER NOT NULL)")
    db.execute(
        "CREATE TABLE verdict (night INTEGER NOT NULL REFERENCES night(id) ON DELETE CASCADE, conclusion TEXT NOT NULL, "
        "case_ TEXT NOT NULL, outcome TEXT NOT NULL, PRIMARY KEY (night, conclusion, case_)) WITHOUT ROWID"
    )
    db.execute(
        "CREATE TABLE timing (night INTEGER NOT NULL REFERENCES night(id) ON DELETE CASCADE, subject TEXT NOT NULL, "
        "median REAL NOT NULL, low REAL NOT NULL, high REAL NOT NULL, PRIMARY KEY (night, subject)) WITHOUT ROWID"
    )


def _second(db: sqlite3.Connection) -> None:
    db.execute("ALTER TABLE night ADD COLUMN versions TEXT NOT NULL DEFAULT '{}'")
    db.execute("ALTER TABLE night ADD COLUMN changed TEXT NOT NULL DEFAULT ''")


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (_first, _second)
"""Migration n leads from schema n to n + 1; the file's schema is SQLite's user_version, 0 for a new file."""


@contextlib.contextmanager
def opened(path: pathlib.Path, *, busy: float = BUSY) -> Iterator[sqlite3.Connection]:
    """The file, brought to this version's schema; what is done inside is one transaction.

    Raises:
        HistoryError: locked by another program, full, damaged, of a newer schema, not to be opened, or with values that are none of ours.
    """
    db = None
    try:
        db = sqlite3.connect(path, timeout=busy, isolation_level=None)
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("BEGIN IMMEDIATE")
        _migrate(db, path)
        yield db
        db.execute("COMMIT")
    except sqlite3.Error as wrong:
        raise HistoryError(f"{path}: {_said(wrong)}") from wrong
    except _Odd as wrong:
        raise HistoryError(f"{path}: {wrong}; {_ANEW}") from wrong
    finally:
        if db is not None:
            db.close()  # what was not committed is rolled back


def _migrate(db: sqlite3.Connection, path: pathlib.Path) -> None:
    (schema,) = db.execute("PRAGMA user_version").fetchone()
    if schema > len(MIGRATIONS):
        raise HistoryError(f"{path}: expected a history of schema {len(MIGRATIONS)} or less, found {schema}: use a newer servicepath")
    if not schema and db.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise HistoryError(f"{path}: expected a history, found a database of another program; {_ANEW}")
    for number in range(schema, len(MIGRATIONS)):
        MIGRATIONS[number](db)
        db.execute(f"PRAGMA user_version = {number + 1}")


def _said(wrong: sqlite3.Error) -> str:
    text = str(wrong)
    if "locked" in text or "busy" in text:
        return f"another program has locked it (waited {BUSY:.0f} s); this night comes in with the next one"
    if "full" in text:
        return "no space is left on its disk; this night comes in with the next one, once there is"
    if isinstance(wrong, sqlite3.DatabaseError) and ("malformed" in text or "not a database" in text):
        return f"it is damaged ({text}); {_ANEW}"
    if "decode" in text:
        return f"expected UTF-8 text; {_ANEW}"
    return text


def add(db: sqlite3.Connection, name: str, run: Baseline, status: int, changed: str) -> None:
    """Add a night, or replace the one of this name. What is no text to SQLite (half of a surrogate pair) is spelled out."""
    name = visible(name)
    db.execute("DELETE FROM night WHERE name = ?", (name,))
    versions = {fact: visible(" and ".join(run.values(fact))) for fact in ("Cilium", "Kubernetes") if run.values(fact)}
    row = (name, visible(run.started), status, json.dumps(versions), visible(changed))
    night = db.execute("INSERT INTO night (name, started, status, versions, changed) VALUES (?, ?, ?, ?, ?)", row).lastrowid
    places = {judged.conclusion: (judged.sentence, place) for place, judged in reversed(list(enumerate(run.judged)))}
    conclusions = [(visible(one), visible(sentence), place) for one, (sentence, place) in places.items()]
    db.executemany("INSERT OR REPLACE INTO conclusion VALUES (?, ?, ?)", conclusions)
    verdicts = [(night, visible(judged.conclusion), visible(judged.case), judged.outcome) for judged in run.judged]
    db.executemany("INSERT OR REPLACE INTO verdict VALUES (?, ?, ?, ?)", verdicts)
    paces = ((visible(timing.subject), pace(timing.seconds)) for timing in run.timings if timing.seconds)
    db.executemany("INSERT OR REPLACE INTO timing VALUES (?, ?, ?, ?, ?)", [(night, s, p.median, p.low, p.high) for s, p in paces])


def names(db: sqlite3.Connection) -> frozenset[str]:
    """The nights that are in it."""
    return frozenset(_text(name) for (name,) in db.execute("SELECT name FROM night"))


def forget(db: sqlite3.Connection, keep: int, last: str = _EVER) -> None:
    """Leave only the latest nights; ``last`` as in read()."""
    db.execute("DELETE FROM night WHERE id NOT IN (SELECT id FROM night ORDER BY name <= ? DESC, name DESC LIMIT ?)", (last, keep))


def read(db: sqlite3.Connection, nights: int = 30, last: str = _EVER) -> History:
    """The latest nights, of which ``last`` was just run: a name beyond it is of a clock that was ahead, and counts as the oldest."""
    columns = "SELECT id, name, started, status, versions, changed FROM night "
    rows = db.execute(columns + "ORDER BY name <= ? DESC, name DESC LIMIT ?", (last, nights)).fetchall()  # as retention.newest_first
    rows.reverse()
    verdicts: dict[int, dict[str, list[tuple[str, str]]]] = {}
    paces: dict[tuple[int, str], Pace] = {}
    for row in rows:
        mine = verdicts.setdefault(row[0], {})
        for conclusion, case, outcome in db.execute("SELECT conclusion, case_, outcome FROM verdict WHERE night = ?", (row[0],)):
            mine.setdefault(_text(conclusion), []).append((_text(case), _one_of(WORST_FIRST, outcome, "an outcome")))
        for subject, *pace_ in db.execute("SELECT subject, median, low, high FROM timing WHERE night = ?", (row[0],)):
            paces[row[0], _text(subject)] = Pace(*map(_seconds, pace_))
    ids = [row[0] for row in rows]
    told = [_night(row, verdicts[row[0]].values()) for row in rows]
    subjects = sorted({subject for _, subject in paces})
    trends = (Trend(subject, tuple(paces.get((night, subject)) for night in ids)) for subject in subjects)
    return History(tuple(told), tuple(_strips(db, [verdicts[night] for night in ids])), tuple(trends))


def _night(row: Sequence[object], verdicts: Iterable[list[tuple[str, str]]]) -> Night:
    counts = Counter(outcome for mine in verdicts for _, outcome in mine)
    _, name, started, status, versions, changed = row
    status = _one_of((HELD, UNSEEN, BROKEN), status, "a status")
    return Night(_text(name), _text(started), status, _versions(versions), _text(changed), counts)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _Odd(f"expected text, found {value!r:.60}")
    return value


def _one_of(known: Sequence[T], value: object, what: str) -> T:
    for each in known:
        if each == value:
            return each
    raise _Odd(f"expected {what} (one of {', '.join(map(str, known))}), found {value!r:.60}")


def _seconds(value: object) -> float:
    if not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise _Odd(f"expected seconds, found {value!r:.60}")
    return float(value)


def _versions(value: object) -> dict[str, str]:
    try:
        found = json.loads(_text(value))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise _Odd(f"expected versions as a JSON object of texts, found {value!r:.60}")
    return found


def _strips(db: sqlite3.Connection, nights: Sequence[dict[str, list[tuple[str, str]]]]) -> Iterator[Strip]:
    seen = {conclusion for night in nights for conclusion in night}
    for conclusion, sentence in db.execute("SELECT id, sentence FROM conclusion ORDER BY place"):
        if _text(conclusion) in seen:
            outcomes: list[Outcome | None] = [worst(night[conclusion]) if conclusion in night else None for night in nights]
            yield Strip(conclusion, _text(sentence), tuple(outcomes))
