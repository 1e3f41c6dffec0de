"""Who is told of a night: a chat by webhook, Prometheus by its textfile, a person by one line; and the command as a whole."""

import contextlib
import dataclasses
import http.server
import json
import pathlib
import threading

import pytest
from comparison_sample import baseline, with_fact, with_outcome
from prometheus_client.parser import text_string_to_metric_families

from servicepath.model.comparison import compare
from servicepath.nightly import __main__ as command
from servicepath.nightly import night as nights
from servicepath.nightly import telling
from servicepath.nightly.locks import on_this_machine
from servicepath.nightly.night import BASELINE, Night
from servicepath.nightly.telling import TellingError
from servicepath.report import baseline_json


@contextlib.contextmanager
def receiver(status=200):
    """A chat tool's webhook on this machine: its URL, and what it got."""
    got = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            """Take a message."""
            got.append((self.headers["Content-Type"], json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_):
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hooks/s3cret", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_webhook_gets_one_text():
    with receiver() as (url, got):
        telling.webhook(url, 'held "<b>" → fine')

    assert got == [("application/json", {"text": 'held "<b>" → fine'})]


def test_a_webhook_that_refuses_or_is_not_there_is_one_line_without_its_secret():
    with receiver(status=404) as (url, _), pytest.raises(TellingError, match=r"^the webhook at 127.0.0.1: HTTP 404 Not Found$"):
        telling.webhook(url, "held")
    with pytest.raises(TellingError, match="refused") as gone:
        telling.webhook(url, "held")

    assert "s3cret" not in str(gone.value)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://a/b", "https://", "s3cret"])
def test_a_webhook_is_http_and_nothing_else(url):
    with pytest.raises(TellingError, match="expected an http or https URL") as wrong:
        telling.webhook(url, "held")

    assert "s3cret" not in str(wrong.value)


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


def test_figures_that_cannot_be_written_are_one_line(tmp_path):
    with pytest.raises(TellingError, match="cannot be written: No such file or directory"):
        telling.textfile(tmp_path / "no" / "x.prom", Night(tmp_path, baseline(), 1.0), 0, 1.0)


def test_the_line_is_one_line_whatever_it_holds():
    run = dataclasses.replace(with_outcome(baseline(), "no-interface", "a\nb\u202e", "failed"), started="2026-12-01\n02:00")
    many = with_fact(run, "evil\nnode" + "x" * 2000, "routes", "a")
    line = telling.line(many, 4, telling.changes(compare(baseline(), many)), first=False)

    assert len(line.splitlines()) == 1
    assert len(line) <= 1000


@pytest.fixture
def suite(monkeypatch, tmp_path):
    """The command with a suite that finds what it is told to."""
    found = []

    def run(folder, arguments, *, record, limit):
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
    monkeypatch.setenv("SERVICEPATH_WEBHOOK", "nonsense")
    said = suite(baseline(), with_outcome(baseline(), "no-interface", "master", "failed"))
    textfile = f"--textfile={tmp_path / 'no' / 'x.prom'}"

    assert command.main([textfile, "--notify=always", *said]) == 3
    assert command.main([textfile, *said]) == 4
    assert [line.split(":")[0] for line in capsys.readouterr().err.splitlines()] == ["the webhook", f"{tmp_path}/no/x.prom"] * 2


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
        (["--state=/dev/null/x", "--", "--replay=x"], "--state: /dev/null/x: cannot be made or used: Not a directory"),
    ],
)
def test_wrong_use_is_one_line(said, text, capsys, tmp_path):
    assert command.main(["--state", str(tmp_path), *said]) == 2
    assert capsys.readouterr().err.splitlines() == [text]


def test_a_suite_that_does_not_run_is_a_night_that_could_not_be_seen(tmp_path):
    one = nights.run(tmp_path, ["--replay=/nowhere.tar.zst"], record=False, limit=300)

    assert one.run.unfinished.startswith("ERROR: /nowhere.tar.zst: expected a recording's folder")
    assert {path.name for path in one.folder.iterdir()} == {"pytest.log", BASELINE}


def test_a_suite_that_takes_too_long_is_ended(tmp_path):
    one = nights.run(tmp_path, ["--replay=/nowhere.tar.zst"], record=False, limit=0.01)

    assert one.run.unfinished == "ended after 0 s (--limit)"
    assert pathlib.Path(one.folder, "pytest.log").exists()
