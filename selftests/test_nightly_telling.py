"""Who is told of a night: Prometheus by its textfile, a person by one line; and the command as a whole."""

import dataclasses
import os
import pathlib

import pytest
from comparison_sample import baseline, with_case, with_fact, with_outcome, without
from prometheus_client.parser import text_string_to_metric_families
from webhook_receiver import receiver

from servicepath.model.comparison import compare
from servicepath.nightly import __main__ as command
from servicepath.nightly import night as nights
from servicepath.nightly import telling
from servicepath.nightly.locks import on_this_machine
from servicepath.nightly.night import BASELINE, Night
from servicepath.nightly.stopping import Stop
from servicepath.nightly.telling import TellingError
from servicepath.report import baseline_json


def test_prometheus_can_read_the_figures(tmp_path):
    run = with_outcome(with_outcome(baseline(), "no-interface", "master", "failed"), "pod-answers", "worker1", "skipped")
    run = with_fact(run, "master", "Cilium", 'v"1\\19\n')
    telling.textfile(tmp_path / "servicepath.prom", Night(tmp_path, run, 9.5), 4, 1700000000.0)
    samples = [one for family in text_string_to_metric_families((tmp_path / "servicepath.prom").read_text()) for one in family.samples]
    told = {(one.name, *map(one.labels.get, sorted(one.labels))): one.value for one in samples}

    assert told["servicepath_status",] == 4
    assert told["servicepath_last_run_timestamp_seconds",] == 1700000000.0
    assert told["servicepath_verdicts", "failed"] == 1
    assert told["servicepath_conclusion_held", "master", "no-interface"] == 0
    assert told["servicepath_conclusion_held", "worker1", "no-interface"] == 1
    assert ("servicepath_conclusion_held", "worker1", "pod-answers") not in told
    assert told["servicepath_answer_seconds", "Pod on master → kube-dns:dns/UDP"] == 0.00045
    assert [path.name for path in tmp_path.iterdir()] == ["servicepath.prom"]


def test_the_figures_are_readable_for_node_exporter_whatever_the_units_umask(tmp_path):
    earlier = os.umask(0o027)
    try:
        telling.textfile(tmp_path / "x.prom", Night(tmp_path, baseline(), 1.0), 0, 1.0)
    finally:
        os.umask(earlier)

    assert (tmp_path / "x.prom").stat().st_mode & 0o777 == 0o644


def test_half_of_a_surrogate_pair_stands_in_the_way_of_no_figures(tmp_path):
    run = with_fact(with_case(baseline(), "odd\ud800"), "master", "Cilium", "1\udfff")
    telling.textfile(tmp_path / "x.prom", Night(tmp_path, run, 1.0), 0, 1.0)

    assert 'case="odd⟨U+D800⟩"' in (tmp_path / "x.prom").read_text()


def test_figures_that_cannot_be_written_are_one_line(tmp_path):
    with pytest.raises(TellingError, match="cannot be written: No such file or directory"):
        telling.textfile(tmp_path / "no" / "x.prom", Night(tmp_path, baseline(), 1.0), 0, 1.0)


def test_the_line_is_one_line_whatever_it_holds():
    run = dataclasses.replace(with_outcome(baseline(), "no-interface", "a\nb\u202e", "failed"), started="2026-12-01\n02:00")
    many = with_fact(run, "evil\nnode" + "x" * 2000, "routes", "a")
    line = telling.line(many, 4, f"since last night: {telling.changes(compare(baseline(), many))}")

    assert len(line.splitlines()) == 1
    assert len(line) <= 1000


def test_one_conclusion_is_told_in_the_singular():
    run = dataclasses.replace(baseline(), judged=baseline().judged[:1])

    assert ": held: 1 conclusion, 0 skipped; " in telling.line(run, 0, "the first night")


def test_a_verdict_that_is_gone_is_named():
    changed = telling.changes(compare(baseline(), without(baseline(), "no-interface", "worker1")))

    assert changed == "gone: no-interface (worker1)"


@pytest.fixture
def suite(monkeypatch, tmp_path):
    """The command with a suite that finds what it is told to."""
    found = []

    def run(folder, arguments, *, record, limit, stop, holding):
        one = folder / f"2026-12-0{len(list(folder.iterdir())) + 1}T020000Z"
        one.mkdir()
        baseline_json.write(found[0], one / BASELINE)
        return Night(one, found.pop(0), 1.0)

    monkeypatch.setattr(nights, "run", run)

    def said(*runs):
        found.extend(runs)
        return ["--state", str(tmp_path / "state"), "--", "--replay=recording"]

    return said


def test_the_commands_status_is_the_nights(suite, capsys):
    broken, unseen = (with_outcome(baseline(), "no-interface", "master", outcome) for outcome in ("failed", "error"))
    said = suite(baseline(), broken, unseen)

    assert [command.main(said) for _ in range(3)] == [0, 4, 3]
    assert "newly broken: no-interface (master)" in capsys.readouterr().out


def test_the_webhook_is_called_on_change_and_trouble(suite, monkeypatch):
    new = baseline("1.19.5")
    said = suite(baseline(), baseline(), new, with_outcome(new, "no-interface", "master", "failed"), baseline("1.19.5"))
    with receiver() as (url, got):
        monkeypatch.setenv("SERVICEPATH_WEBHOOK", url)
        for _ in range(4):
            command.main(said)
        assert len(got) == 2
        command.main([*said[:2], "--notify=always", *said[2:]])

    assert len(got) == 3
    assert "Cilium 1.19.1 → 1.19.5" in got[0][1]["text"]


def test_what_cannot_be_told_makes_no_night_good_or_bad(suite, capsys, monkeypatch, tmp_path):
    with receiver(status=500) as (url, _):
        pass  # nobody is there any more
    monkeypatch.setenv("SERVICEPATH_WEBHOOK", url)
    said = suite(baseline(), with_outcome(baseline(), "no-interface", "master", "failed"))
    textfile = f"--textfile={tmp_path / 'no' / 'x.prom'}"
    monkeypatch.setattr(telling, "check_textfile", lambda _: None)  # its folder goes during the night

    assert command.main([textfile, "--notify=always", *said]) == 3
    assert command.main([textfile, *said]) == 4
    assert [line.split(":")[0] for line in capsys.readouterr().err.splitlines()] == ["the webhook at http", f"{tmp_path}/no/x.prom"] * 2


def test_a_second_command_says_who_is_at_it(suite, capsys, tmp_path):
    said = suite(baseline())
    command.main(said)
    with on_this_machine(tmp_path / "state" / "lock", 0):
        assert command.main(said) == 75

    assert "another run has" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (["--inventory=/nowhere/inventory.yaml"], "/nowhere/inventory.yaml: cannot be read: No such file or directory"),
        (["--textfile=/tmp/x.txt"], "--textfile: /tmp/x.txt: expected a name that ends in .prom: node_exporter reads no other"),
        (["--textfile=/no/x.prom"], "--textfile: /no/x.prom: expected a folder that node_exporter reads, found none at /no"),
        (["--textfile=/proc/x.prom"], "--textfile: /proc/x.prom: the folder cannot be written to: No such file or directory"),
        (["--state=/dev/null/x", "--", "--replay=x"], "--state: /dev/null/x: cannot be made or used: Not a directory"),
    ],
)
def test_wrong_use_is_one_line(said, text, capsys, tmp_path):
    assert command.main(["--state", str(tmp_path), *said]) == 2
    assert capsys.readouterr().err.splitlines() == [text]


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("--replay=/nowhere.tar.zst", "/nowhere.tar.zst: expected a recording's folder"),
        ("--replay=x --reports=/proc/x", "--reports: /proc/x: expected a folder to write to"),
        ("--replay=x --rply=x", "unrecognized arguments: --rply=x"),
    ],
)
def test_what_the_suite_refuses_is_one_line_and_no_night(option, text, capsys, tmp_path):
    assert command.main(["--state", str(tmp_path), "--", *option.split()]) == 2
    said = capsys.readouterr()

    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert said.err.startswith(f"the suite refused to begin: {text}")
    assert list((tmp_path / "nights").iterdir()) == []
    assert not (tmp_path / "history.sqlite").exists()


def test_a_suite_that_breaks_is_a_night_that_could_not_be_seen(monkeypatch, tmp_path):
    monkeypatch.setattr(nights, "_pytest", lambda _, log, *__: (None, min(log.write_text("begun\nINTERNALERROR> no\n"), 3)))
    one = nights.run(tmp_path, [], record=False, limit=300, stop=Stop())

    assert one.run.unfinished == "INTERNALERROR> no"
    assert {path.name for path in one.folder.iterdir()} == {"pytest.log", BASELINE}


def test_a_night_that_nothing_can_be_written_of_is_told_and_makes_room(suite, capsys, monkeypatch, tmp_path):
    said = [*suite(baseline(), baseline())[:2], "--keep-nights=1", "--", "--replay=recording"]
    assert [command.main(said) for _ in range(2)] == [0, 0]
    monkeypatch.undo()
    monkeypatch.setattr(nights, "_pytest", lambda _, log, *__: (None, log.write_text("ERROR: no space")))
    monkeypatch.setattr(baseline_json, "write", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))

    assert command.main(said) == 3
    line = capsys.readouterr().out.splitlines()[-1]
    assert "nothing can be written: No space left on device" in line
    assert len(list((tmp_path / "state" / "nights").iterdir())) == 1


def test_a_suite_that_takes_too_long_is_ended(tmp_path):
    one = nights.run(tmp_path, ["--replay=/nowhere.tar.zst"], record=False, limit=0.01, stop=Stop())

    assert one.run.unfinished == "ended after 0 s (--limit)"
    assert pathlib.Path(one.folder, "pytest.log").exists()


@pytest.mark.parametrize(
    "said",
    [f"--{name}={value}" for name in ("keep-nights", "keep-days", "keep-mb", "limit") for value in ("0", "-1", "nan", "inf", "1e300", "x")]
    + [f"--wait={value}" for value in ("-1", "nan", "inf", "-inf", "1e300", "")]
    + ["--keep-nights=1.5", "--keep-nights=" + "9" * 5000],
)
def test_a_number_that_is_none_is_one_line(said, capsys, tmp_path):
    with pytest.raises(SystemExit) as ended:
        command.main(["--state", str(tmp_path / "state"), said, "--", "--replay=x"])

    option, err = said.partition("=")[0], capsys.readouterr().err
    assert ended.value.code == 2
    assert f"error: argument {option}: expected a " in err.splitlines()[-1]
    assert len(err) < 400
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("said", [["--kepp", "3"], ["--service", "default/x"], ["tests"], ["--keep-n=3"]])
def test_what_nightly_does_not_know_is_for_pytest_only_behind_two_dashes(said, capsys, tmp_path):
    with pytest.raises(SystemExit) as ended:
        command.main(["--state", str(tmp_path / "state"), *said, "--", "--replay=x"])

    assert ended.value.code == 2
    assert f"error: unrecognized arguments: {' '.join(said)}" in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "state").exists()
