"""A watch belongs to one cluster and between two runs; what it saw is lost by no file that cannot be written."""

import dataclasses
import shutil
from pathlib import Path

import pytest

from servicepath import watch
from servicepath.compare import main as compare_main
from servicepath.model import watched
from servicepath.model.baseline import Baseline, Fact, Identity, Judged, Span
from servicepath.model.between import WrongWatch
from servicepath.model.comparison import compare
from servicepath.model.watched import Asked, Series, Watch
from servicepath.parse.watch_summary import parse_watch_summary
from servicepath.report import baseline_json, watch_json

SUBJECT = "host on master → kube-dns:dns/UDP"


def sample():
    asked = (Asked(100.0, 0.001, None), Asked(100.1, None, "lost"), Asked(100.2, 0.002, None))
    return watched.sum_up(Watch(100.0, 110.0, (Series(SUBJECT, "master", asked),), ()), ())


HERE_AND_NOW = Identity("this", ("10.43.0.1",), ())


def run_at(since, until, identity=HERE_AND_NOW):
    nodes = Fact("", "nodes", ("master", "worker1"))
    held = Judged("no-interface", "", "", "master", "passed")
    return Baseline("x", identity, (), (nodes,), (held,), (), during=Span(since, until))


def watch_at(started, ended, identity=HERE_AND_NOW):
    return dataclasses.replace(sample(), started=started, ended=ended, identity=identity)


@pytest.mark.parametrize(
    ("watch", "said"),
    [
        (watch_at(86400.0, 87000.0), "a watch of another time: it is of 1970-01-02 00:00:00 to 1970-01-02 00:10:00 UTC, and the runs"),
        (watch_at(0.0, 9000.0), "a watch of another time"),
        (watch_at(10100.0, 10500.0, Identity("that", (), ())), "a watch of another cluster than the run of x: the UID"),
        (watch_at(10100.0, 10500.0, Identity(None, ("10.96.0.1",), ())), "10.96.0.1 there and 10.43.0.1 in the run"),
    ],
)
def test_a_watch_of_another_time_or_cluster_is_refused(watch, said, tmp_path, capsys):
    before, after = run_at(9900.0, 10000.0), run_at(11000.0, 11100.0)
    with pytest.raises(WrongWatch, match=said):
        compare(before, after, (), watch)
    for name, run in (("before.json", before), ("after.json", after)):
        baseline_json.write(run, tmp_path / name)
    watch_json.write(watch, tmp_path / "watch.json")
    assert compare_main([str(tmp_path / "before.json"), str(tmp_path / "after.json"), "--watch", str(tmp_path / "watch.json")]) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"{tmp_path}/watch.json: a watch of another")
    assert line.count("\n") == 1


def test_a_watch_that_says_no_cluster_is_known_by_its_nodes():
    before, after, watch = run_at(9900.0, 10000.0), run_at(11000.0, 11100.0), watch_at(10100.0, 10500.0, None)
    (note,) = compare(before, after, (), watch).notes
    assert note == "the watch in between does not say which cluster it is of: an earlier version kept it"
    strangers = tuple(dataclasses.replace(felt, node="web-1") for felt in watch.felt)
    with pytest.raises(WrongWatch, match="it asked from web-1, and the runs' nodes are master, worker1"):
        compare(before, after, (), dataclasses.replace(watch, felt=strangers))


@pytest.mark.parametrize(
    ("started", "ended", "told"),
    [(10100.0, 10500.0, False), (9800.0, 10500.0, False), (9500.0, 10500.0, True), (10500.0, 11200.0, False), (10500.0, 15000.0, True)],
)
def test_a_watch_that_reaches_beyond_is_told_and_clocks_may_differ(started, ended, told):
    found = compare(run_at(9900.0, 10000.0), run_at(11000.0, 11100.0), (), watch_at(started, ended))
    assert ["reaches beyond" in note for note in found.notes] == [True] * told


def test_a_run_that_does_not_say_when_it_was_refuses_no_watch_and_is_told():
    before, after = dataclasses.replace(run_at(0, 0), during=None), run_at(11000.0, 11100.0)
    (note,) = compare(before, after, (), watch_at(86400.0, 87000.0)).notes
    assert note == "whether the watch was made in between is not known: the run before does not say when it was"


@pytest.fixture
def watching_nothing(monkeypatch, tmp_path):
    """A watch that sees what the sample has, at once."""
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text("{}", encoding="utf-8")
    monkeypatch.setattr(watch, "run", lambda *_: sample())
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "elsewhere"))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    return [f"--inventory={inventory}", f"--json={tmp_path / 'out' / 'w.json'}", f"--html={tmp_path / 'out' / 'w.html'}"]


def test_a_watch_whose_files_can_be_written_is_written(watching_nothing, tmp_path):
    assert watch.main(watching_nothing) == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["w.html", "w.json"]


def test_a_final_write_that_fails_loses_nothing(watching_nothing, tmp_path, monkeypatch, capsys):
    def no_more(*_):
        shutil.rmtree(tmp_path / "out")
        (tmp_path / "out").write_text("a file in the folder's place", encoding="utf-8")
        return sample()

    monkeypatch.setattr(watch, "run", no_more)
    assert watch.main(watching_nothing) == 3
    said = capsys.readouterr()
    assert said.out.startswith("10 s, 1 series: 1 of 3 lost")
    first, second = said.err.splitlines()
    assert first.startswith(f"{tmp_path}/out/w.json: cannot be written: ")
    kept = Path(first.partition("it is kept as ")[2])
    assert kept.parent.parent == tmp_path / "elsewhere"
    assert parse_watch_summary(kept.read_text(encoding="utf-8")).felt == sample().felt
    assert Path(second.partition("it is kept as ")[2]).suffix == ".html"


def test_a_final_write_that_fails_everywhere_is_a_line_a_file(watching_nothing, monkeypatch, capsys):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(watch_json, "write", full)
    assert watch.main(watching_nothing) == 3
    said = capsys.readouterr()
    assert "w.json: cannot be written: No space left on device; nor in " in said.err
    assert "1 of 3 lost" in said.out


@pytest.mark.parametrize(("words", "said"), [(["--json=no/w.json"], "a folder to write into"), (["--html={json}"], "would be lost")])
def test_where_nothing_can_be_written_nothing_is_watched(watching_nothing, tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.setattr(watch, "run", lambda *_: pytest.fail("it was watched"))
    words = [word.format(json=tmp_path / "out" / "w.json") for word in words]
    assert watch.main([*watching_nothing, *words]) == 2
    line = capsys.readouterr().err
    assert said in line
    assert line.count("\n") == 1
