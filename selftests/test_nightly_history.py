"""The nights: a week of them in the history, and a history file that is locked, full, damaged or of another schema."""

import contextlib
import dataclasses
import html.parser
import itertools
import pathlib
import re
import shutil
import sqlite3
import time

import pytest
from comparison_sample import PATH, baseline, with_case, with_fact, with_outcome

from servicepath.model.baseline import Identity, Timing
from servicepath.model.history import History, Outcome, Pace, Strip, Trend
from servicepath.nightly import history, retention
from servicepath.nightly.history import HistoryError
from servicepath.nightly.night import BASELINE, Night
from servicepath.nightly.retention import Keep
from servicepath.nightly.state import State
from servicepath.report import baseline_json, history_html

KEEP = Keep(30, 90, 10**9)
HOSTILE = "<script>alert('x')</script>"


@pytest.fixture
def state(tmp_path):
    return State(tmp_path / "state", KEEP)


def night(state, day, run):
    """One night of December: its folder as a run leaves it."""
    run = dataclasses.replace(run, started=f"2026-12-{day:02} 02:00:00 UTC")
    folder = state.nights / f"2026-12-{day:02}T020000Z"
    folder.mkdir()
    (folder / "report.html").write_text("report")
    baseline_json.write(run, folder / BASELINE)
    return Night(folder, run, 9.5)


def week():
    """Seven nights: an upgrade before the third, a fault in the fourth and fifth, and one node out of reach in the seventh."""
    old, new = baseline("1.19.1"), baseline("1.19.5")
    fault = with_outcome(new, "pod-answers", "worker1", "failed", "worker1: no answer")
    unseen = with_fact(with_outcome(new, "no-interface", "worker2", "error", "timed out"), "worker2", "routes", unseen="ssh: timed out")
    slow = dataclasses.replace(new, timings=(Timing(PATH, (0.002, 0.003, 0.002)),))
    return (old, old, new, fault, fault, slow, unseen)


def remembered(state):
    """What became of each night of the week."""
    return [state.remember(night(state, day, run)) for day, run in enumerate(week(), 1)]


def test_a_week_with_an_upgrade_and_two_faults(state):
    told = remembered(state)

    assert [status for status, *_ in told] == [0, 0, 0, 4, 4, 0, 3]
    assert [troubles for *_, troubles in told] == [[]] * 7
    assert [line for _, line, *_ in told] == [
        "2026-12-01 02:00:00 UTC: held: 2 conclusions, 0 skipped; the first night",
        "2026-12-02 02:00:00 UTC: held: 2 conclusions, 0 skipped; since last night: nothing changed",
        "2026-12-03 02:00:00 UTC: held: 2 conclusions, 0 skipped; since last night: Cilium 1.19.1 → 1.19.5",
        "2026-12-04 02:00:00 UTC: broken: 1 of 2 conclusions (pod-answers); since last night: newly broken: pod-answers (worker1)",
        "2026-12-05 02:00:00 UTC: broken: 1 of 2 conclusions (pod-answers); since last night: nothing changed",
        "2026-12-06 02:00:00 UTC: held: 2 conclusions, 0 skipped; since last night: holds now: pod-answers (worker1)",
        "2026-12-07 02:00:00 UTC: could not be seen: 1 of 2 conclusions (no-interface); "
        "since last night: no more to be seen: no-interface (worker2)",
    ]


def test_the_week_stands_in_the_history(state):
    remembered(state)
    with history.opened(state.history) as db:
        told = history.read(db)
    strips = {strip.conclusion: strip for strip in told.strips}

    assert [each.outcome for each in strips["pod-answers"].outcomes] == ["passed"] * 3 + ["failed"] * 2 + ["passed"] * 2
    assert strips["pod-answers"].outcomes[3] == Outcome("failed", 1, 3, ("worker1",))
    assert (strips["pod-answers"].first_broken, strips["pod-answers"].broken_now) == (3, None)
    assert strips["pod-answers"].flake_ratio == pytest.approx(2 / 6)
    assert strips["no-interface"].outcomes[6].outcome == "error"
    assert [night.versions["Cilium"] for night in told.nights] == ["1.19.1"] * 2 + ["1.19.5"] * 5
    assert told.trends[0].paces[5] == Pace(0.002, 0.002, 0.0025)


def test_the_page_shows_the_week(state):
    remembered(state)
    page = (state.folder / "history.html").read_text()
    row = page[page.index("<code>pod-answers</code>") :]

    assert re.findall(r'<span class="\w+" title="[^"]*" role="img" [^>]*>(.)</span>', row[: row.index("</tr>")]) == list("✓✓✓✗✗✓✓")
    assert '<td class="told">holds now; broken 2 of 7 nights, last 2026-12-05 02:00:00 UTC</td>' in row
    assert "33%" in row[: row.index("</tr>")]
    assert "Cilium 1.19.1 → 1.19.5" in page
    assert page.count("<polyline") == 1
    assert 'href="nights/2026-12-07T020000Z/report.html"' in page
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)


@pytest.mark.parametrize(
    ("outcomes", "told"),
    [
        (("failed", "passed", "failed"), ' broken">broken since 2026-12-03<br>first seen broken 2026-12-01'),
        (("failed", "passed", None), '">holds now; broken 1 of 2 nights, last 2026-12-01'),
        (("failed", "error", "skipped"), '">skipped now; broken 1 of 2 nights, last 2026-12-01'),
        (("passed", "failed", "error"), '">not seen now; broken 1 of 3 nights, last 2026-12-02'),
        (("passed", "passed", "passed"), '">'),
    ],
)
def test_what_was_broken_is_red_only_while_it_is(outcomes, told):
    strip = Strip("x", "", tuple(each and Outcome(each, 1, 1) for each in outcomes))
    nights = tuple(dataclasses.replace(one_night().nights[0], started=f"2026-12-0{day}") for day in (1, 2, 3))

    assert f'<td class="told{told}</td>' in history_html.render(History(nights, (strip,), ()))


def test_versions_that_stay_have_a_sign_of_their_own(state):
    remembered(state)
    page = (state.folder / "history.html").read_text()
    row = page[page.index("Versions<span") :]

    assert "↑ other than the night before, = the same" in row
    assert re.findall(r'<span class="\w+" title="[^"]*">(.)</span>', row[: row.index("</tr>")]) == list("==↑====")


def test_each_night_has_its_comparison(state):
    remembered(state)

    assert "1.19.1 → 1.19.5" in (state.nights / "2026-12-03T020000Z" / "comparison.html").read_text()
    assert not (state.nights / "2026-12-01T020000Z" / "comparison.html").exists()


def test_a_page_whose_reports_are_gone_links_to_none(state):
    remembered(state)
    with history.opened(state.history) as db:
        page = history_html.render(history.read(db))

    assert "report.html" not in page


def test_what_nodes_say_is_escaped():
    strip = Strip(HOSTILE, HOSTILE, (Outcome("failed", 1, 1, (HOSTILE, '" onmouseover="x')),))
    page = history_html.render(History((), (), (Trend(HOSTILE, (Pace(1, 1, 1),)),)))
    told = [(tag, dict(attrs)) for tag, attrs in elements(page)]
    with_strip = history_html.render(dataclasses.replace(one_night(), strips=(strip,)))

    assert HOSTILE not in page + with_strip
    assert not any("onmouseover" in attrs for _, attrs in [*told, *elements_of(with_strip)])


def one_night():
    """A history of one night."""
    run = baseline()
    path = pathlib.Path(":memory:")
    with history.opened(path) as db:
        history.add(db, "2026-12-01T020000Z", run, 0, HOSTILE)
        return history.read(db)


def elements(page):
    """Every element of a page with its attributes."""
    found = []
    parser = html.parser.HTMLParser()
    parser.handle_starttag = lambda tag, attrs: found.append((tag, attrs))
    parser.feed(page)
    return found


def elements_of(page):
    return [(tag, dict(attrs)) for tag, attrs in elements(page)]


@pytest.mark.parametrize(
    ("outcomes", "flake", "now", "first"),
    [
        ("", None, None, None),
        ("p", None, None, None),
        ("pfpf", 1.0, 3, 1),
        ("pp.ff", 1 / 3, 3, 3),
        ("ffss", 0.0, None, 0),
        ("pef", 0.5, 2, 2),
        ("ff.", 0.0, 0, 0),
    ],
)
def test_flips_and_streaks(outcomes, flake, now, first):
    names = {"p": "passed", "f": "failed", "e": "error", "s": "skipped"}
    strip = Strip("x", "", tuple(None if each == "." else Outcome(names[each], 1, 1) for each in outcomes))

    assert strip.flake_ratio == (flake if flake is None else pytest.approx(flake))
    assert (strip.broken_now, strip.first_broken) == (now, first)


def test_a_locked_history_is_one_line_and_the_night_comes_in_with_the_next(state, monkeypatch):
    first, second, third = week()[:3]
    state.remember(night(state, 1, first))
    other = sqlite3.connect(state.history, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    monkeypatch.setattr("servicepath.nightly.history.sqlite3.connect", quick(sqlite3.connect))

    status, line, _, troubles = state.remember(night(state, 2, second))
    other.execute("ROLLBACK")
    other.close()
    state.remember(night(state, 3, third))

    assert (status, "nothing changed" in line) == (0, True)
    assert len(troubles) == 1
    assert "another program has locked it" in troubles[0]
    assert kept(state) == ["2026-12-01T020000Z", "2026-12-02T020000Z", "2026-12-03T020000Z"]


def quick(connect):
    """A connection that waits for nobody."""
    return lambda path, timeout, **rest: connect(path, timeout=0.01, **rest)


def kept(state):
    """The nights in the history."""
    with history.opened(state.history) as db:
        return sorted(history.names(db))


def test_a_full_disk_is_one_line_and_loses_nothing(state, monkeypatch):
    first, second, third = week()[:3]
    state.remember(night(state, 1, first))
    connect = sqlite3.connect

    def full(*arguments, **rest):
        db = connect(*arguments, **rest)
        db.execute(f"PRAGMA max_page_count = {db.execute('PRAGMA page_count').fetchone()[0]}")
        return db

    monkeypatch.setattr("servicepath.nightly.history.sqlite3.connect", full)
    many = (dataclasses.replace(judged, case=f"{judged.case} {n}") for n in range(2000) for judged in second.judged)
    big = dataclasses.replace(second, judged=tuple(many))
    *_, troubles = state.remember(night(state, 2, big))
    monkeypatch.undo()

    assert len(troubles) == 1
    assert "no space is left on its disk" in troubles[0]
    assert kept(state) == ["2026-12-01T020000Z"]
    state.remember(night(state, 3, third))
    assert kept(state) == ["2026-12-01T020000Z", "2026-12-02T020000Z", "2026-12-03T020000Z"]


@pytest.mark.parametrize(
    "damage", [lambda data: b"no database, only text" * 99, lambda data: data[:4096] + b"\xff" * (len(data) - 4096)], ids=["other", "pages"]
)
def test_a_damaged_history_is_one_line_stays_as_it_is_and_is_made_anew_from_the_nights(state, damage):
    runs = week()
    for day, run in enumerate(runs[:3], 1):
        state.remember(night(state, day, run))
    spoilt = damage(state.history.read_bytes())
    state.history.write_bytes(spoilt)

    status, _, _, troubles = state.remember(night(state, 4, runs[3]))

    assert (status, len(troubles)) == (4, 1)
    assert "it is damaged" in troubles[0]
    assert state.history.read_bytes() == spoilt
    state.history.rename(state.folder / "damaged.sqlite")
    state.remember(night(state, 5, runs[4]))
    assert kept(state) == [f"2026-12-0{day}T020000Z" for day in range(1, 6)]


def test_a_history_of_a_newer_schema_is_one_line_and_stays_as_it_is(state):
    db = sqlite3.connect(state.history)
    db.execute("CREATE TABLE tomorrow (x)")
    db.execute("PRAGMA user_version = 99")
    db.close()
    before = state.history.read_bytes()

    *_, troubles = state.remember(night(state, 1, baseline()))

    assert len(troubles) == 1
    assert "found 99: use a newer servicepath" in troubles[0]
    assert state.history.read_bytes() == before


def test_each_older_schema_is_brought_up_with_what_is_in_it(tmp_path):
    for version in range(1, len(history.MIGRATIONS)):
        path = tmp_path / f"{version}.sqlite"
        db = sqlite3.connect(path)
        for migrate in history.MIGRATIONS[:version]:
            migrate(db)
        db.execute("INSERT INTO night (name, started, status) VALUES ('2026-11-01T020000Z', '2026-11-01 02:00:00 UTC', 0)")
        db.execute(f"PRAGMA user_version = {version}")
        db.commit()
        db.close()
        with history.opened(path) as db:
            history.add(db, "2026-12-01T020000Z", baseline(), 0, "")
            told = history.read(db)

        assert [night.name for night in told.nights] == ["2026-11-01T020000Z", "2026-12-01T020000Z"]
        assert told.nights[0].versions == {}


def test_a_migration_that_breaks_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "h.sqlite"
    with history.opened(path) as db:
        history.add(db, "2026-12-01T020000Z", baseline(), 0, "")

    def broken(db):
        db.execute("DELETE FROM night")
        db.execute("no SQL at all")

    monkeypatch.setattr(history, "MIGRATIONS", (*history.MIGRATIONS, broken))
    with pytest.raises(HistoryError, match="syntax error"), history.opened(path):
        pass
    monkeypatch.undo()
    with history.opened(path) as db:
        assert history.names(db) == {"2026-12-01T020000Z"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE night SET versions = 'no JSON'", "expected versions as a JSON object of texts, found 'no JSON'"),
        ("UPDATE night SET versions = '[1]'", "expected versions as a JSON object of texts"),
        ("UPDATE night SET versions = '{\"Cilium\": 1}'", "expected versions as a JSON object of texts"),
        (f"UPDATE night SET versions = '{'[' * 100000}'", "expected versions as a JSON object of texts"),
        ("UPDATE night SET status = 'good'", "expected a status (one of 0, 3, 4), found 'good'"),
        ("UPDATE night SET started = x'00ff'", "expected text, found b'"),
        ("UPDATE night SET started = CAST(x'ff' AS TEXT)", "expected UTF-8 text"),
        ("UPDATE night SET name = x'00'", "expected text, found b'"),
        ("UPDATE verdict SET outcome = 'perhaps'", "expected an outcome (one of failed, error, passed, skipped), found 'perhaps'"),
        ("UPDATE verdict SET outcome = 7", "expected an outcome"),
        ("UPDATE verdict SET case_ = x'ff' || case_", "expected UTF-8 text"),
        ("UPDATE conclusion SET id = x'ff' WHERE place = 0", "expected text, found b'"),
        ("UPDATE timing SET median = 'slow'", "expected seconds, found 'slow'"),
        ("UPDATE timing SET high = 9e999", "expected seconds, found inf"),
    ],
)
def test_a_value_that_is_none_of_ours_is_one_line_and_the_nights_verdict_stays(state, change, said):
    runs = week()
    state.remember(night(state, 1, runs[0]))
    with contextlib.closing(sqlite3.connect(state.history)) as db:
        db.execute(change)
        db.commit()
    spoilt = state.history.read_bytes()

    status, line, _, troubles = state.remember(night(state, 4, runs[3]))

    assert (status, "newly broken: pod-answers (worker1)" in line) == (4, True)
    assert len(troubles) == 1
    assert troubles[0].startswith(f"{state.history}: expected ")
    assert said in troubles[0]
    assert troubles[0].endswith("move it away, and the nights that are kept make a new one")
    assert len(troubles[0].splitlines()) == 1
    assert state.history.read_bytes() == spoilt


def test_half_of_a_surrogate_pair_is_spelled_out_and_nothing_is_lost(state):
    run = with_fact(with_case(baseline(), "odd\ud800"), "", "Kubernetes", "v1\udfff")
    run = dataclasses.replace(run, timings=(Timing("\ud800", (0.1,)),))

    told = [state.remember(night(state, day, each)) for day, each in enumerate((baseline(), run), 1)]
    with history.opened(state.history) as db:
        read = history.read(db)

    assert [troubles for *_, troubles in told] == [[], []]
    assert read.nights[1].versions["Kubernetes"] == "v1⟨U+DFFF⟩"
    assert "odd⟨U+D800⟩" in {case for case, in sqlite3.connect(state.history).execute("SELECT case_ FROM verdict")}
    assert "v1⟨U+DFFF⟩" in (state.folder / "history.html").read_text()


@pytest.mark.parametrize("spoil", [lambda path: path.write_text("no database" * 999), pathlib.Path.mkdir], ids=["damaged", "no file"])
def test_nights_do_not_pile_up_while_the_history_cannot_be_used(tmp_path, spoil):
    state = State(tmp_path / "state", Keep(2, 90, 10**9))
    spoil(state.history)

    told = [state.remember(night(state, day, run)) for day, run in enumerate(week(), 1)]

    assert [len(troubles) for *_, troubles in told] == [1] * 7
    assert sorted(folder.name for folder in state.nights.iterdir()) == ["2026-12-06T020000Z", "2026-12-07T020000Z"]


def test_nights_do_not_pile_up_whatever_breaks(tmp_path, monkeypatch):
    state = State(tmp_path / "state", Keep(1, 90, 10**9))
    state.remember(night(state, 1, baseline()))
    monkeypatch.setattr(history, "add", lambda *_: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        state.remember(night(state, 2, baseline()))

    assert [folder.name for folder in state.nights.iterdir()] == ["2026-12-02T020000Z"]


def test_what_goes_is_in_the_history_by_then_and_the_page_links_to_what_is_left(tmp_path):
    state = State(tmp_path / "state", Keep(1, 90, 10**9))
    waiting = night(state, 1, baseline())  # one that could not go into the history in its time
    state.remember(night(state, 2, baseline()))

    assert not waiting.folder.exists()
    assert kept(state) == ["2026-12-01T020000Z", "2026-12-02T020000Z"]
    page = (state.folder / "history.html").read_text()
    assert set(re.findall(r"nights/([^/]*)/report.html", page)) == {"2026-12-02T020000Z"}


def test_a_night_that_cannot_be_removed_keeps_no_other(tmp_path, monkeypatch):
    for day in (1, 2, 3):
        (tmp_path / f"2026-12-0{day}T020000Z").mkdir()
    remove = shutil.rmtree

    def rmtree(path):
        if path.name == "2026-12-01T020000Z":
            raise PermissionError(13, "Permission denied", str(path))
        remove(path)

    monkeypatch.setattr("servicepath.nightly.retention.shutil.rmtree", rmtree)
    with pytest.raises(PermissionError, match="2026-12-01"):
        retention.apply(tmp_path, Keep(1, 90, 10**9), time.time(), "2026-12-03T020000Z")

    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["2026-12-01T020000Z", "2026-12-03T020000Z"]


def test_the_line_says_what_was_compared_and_never_that_nothing_changed_where_nothing_was(state):
    empty = dataclasses.replace(baseline(), judged=(), unfinished="it said nothing")
    runs = [empty, baseline(), empty, baseline(), baseline()]
    said = [state.remember(night(state, day, run))[1].partition("; ")[2] for day, run in enumerate(runs, 1)]
    night(state, 6, baseline())
    (state.nights / "2026-12-06T020000Z" / BASELINE).write_text("cut o")
    said.append(state.remember(night(state, 7, baseline()))[1].partition("; ")[2])

    assert said == [
        "the first night",
        "not compared: no night before it can be read and has verdicts",
        "not compared: nothing was judged",
        "since 2026-12-02 02:00:00 UTC: nothing changed",
        "since last night: nothing changed",
        "since 2026-12-05 02:00:00 UTC: nothing changed",
    ]


def test_a_night_of_a_clock_that_was_ahead_is_compared_with_shown_and_kept_as_the_oldest(tmp_path):
    state = State(tmp_path / "state", Keep(2, 90, 10**9))
    broken = with_outcome(baseline(), "pod-answers", "worker1", "failed")
    told = [state.remember(night(state, day, run))[1] for day, run in ((31, broken), (1, baseline()), (2, baseline()))]

    assert [line.partition("; ")[2] for line in told[1:]] == [
        "since last night: holds now: pod-answers (worker1)", "since last night: nothing changed",
    ]  # fmt: skip
    assert [folder.name for folder in retention.nights(state.nights)] == ["2026-12-01T020000Z", "2026-12-02T020000Z"]
    page = (state.folder / "history.html").read_text()
    assert "holds now; broken 1 of 3 nights, last 2026-12-31" in page
    assert "broken since" not in page
    with history.opened(state.history) as db:
        history.forget(db, 2, "2026-12-02T020000Z")
        assert sorted(history.names(db)) == ["2026-12-01T020000Z", "2026-12-02T020000Z"]


def test_what_changed_across_a_night_that_could_not_see_is_told(state):
    before, after = baseline("1.19.1"), with_fact(baseline("1.19.5"), "master", "routes", "none")
    facts = (dataclasses.replace(fact, value=(), unseen="timed out") for fact in before.facts)
    blind = dataclasses.replace(
        before, facts=tuple(facts), judged=tuple(dataclasses.replace(each, outcome="error") for each in before.judged)
    )  # fmt: skip
    *_, (_, line, _, _) = [state.remember(night(state, day, run)) for day, run in enumerate((before, blind, after), 1)]

    assert line.partition("; ")[2] == (
        "since 2026-12-01 02:00:00 UTC: Cilium 1.19.1 → 1.19.5; facts that changed without a rule: routes (master)"
    )


def test_what_changed_across_a_night_that_was_broken_off_is_told(state):
    before, after = baseline(), with_fact(baseline(), "worker2", "routes", "none")
    half = dataclasses.replace(before, judged=before.judged[:1], facts=before.facts[:1], unfinished="stopped by SIGTERM")
    said = [state.remember(night(state, day, run))[1].partition("; ")[2] for day, run in enumerate((half, before, half, after), 1)]

    assert said[1].startswith("since last night: ")  # there is no whole one
    assert said[3] == "since 2026-12-02 02:00:00 UTC: facts that changed without a rule: routes (worker2)"


def test_the_database_of_another_program_is_left_as_it_is(state):
    with contextlib.closing(sqlite3.connect(state.history)) as db, db:
        db.execute("CREATE TABLE theirs (a)")
    before = state.history.read_bytes()
    *_, troubles = state.remember(night(state, 1, baseline()))

    assert troubles == [
        f"{state.history}: expected a history, found a database of another program; "
        "move it away, and the nights that are kept make a new one"
    ]
    assert state.history.read_bytes() == before


def test_nights_of_another_cluster_stay_out_of_the_history(state):
    state.remember(night(state, 1, baseline()))
    other = dataclasses.replace(baseline(), identity=Identity("another", ("10.43.0.1",), ()))
    _, line, _, troubles = state.remember(night(state, 2, other))

    assert line.endswith("; not compared: the night before it is another cluster's")
    assert len(troubles) == 1
    assert "it holds the nights of another cluster" in troubles[0]
    assert kept(state) == ["2026-12-01T020000Z"]
    assert (state.nights / "2026-12-02T020000Z" / BASELINE).exists()


def test_the_history_forgets_the_oldest(tmp_path):
    with history.opened(tmp_path / "h.sqlite") as db:
        for day in range(1, 10):
            history.add(db, f"2026-12-0{day}T020000Z", baseline(), 0, "")
        history.forget(db, 3)

        assert sorted(history.names(db)) == [f"2026-12-0{day}T020000Z" for day in (7, 8, 9)]
        assert db.execute("SELECT count(DISTINCT night) FROM verdict").fetchone() == (3,)


def test_a_latency_with_a_gap_is_drawn_in_two_pieces():
    paces = [Pace(0.001, 0.0005, 0.002)] * 2 + [None] + [Pace(0.004, 0.003, 0.005)] * 2
    drawn = history_html.spark(Trend("p", tuple(paces)))
    heights = [float(point.split(",")[1]) for line in drawn.lines for point in line.split()]

    assert len(drawn.lines) == len(drawn.bands) == 2
    assert all(0 <= height <= history_html.HEIGHT for height in heights)
    assert list(itertools.accumulate(heights, min)) == heights  # slower is higher up
    assert drawn.change == "× 4.0"
