"""Watching what users feel: asked for real against a server here, records read, losses summed up, drawn, and nothing left behind."""

import json
import socket
import struct
import subprocess
import sys
import threading
import time
from ipaddress import IPv4Address
from pathlib import Path
from types import SimpleNamespace

import pytest

from servicepath import watch, watching
from servicepath.channel import Command
from servicepath.compare import main as compare_main
from servicepath.deadline import Deadline
from servicepath.experiments import node_watcher
from servicepath.experiments import watching as commands
from servicepath.fleet import Fleet
from servicepath.model import watched
from servicepath.model.addresses import Socket
from servicepath.model.baseline import Baseline
from servicepath.model.comparison import compare
from servicepath.model.upgrade_rules import Rule
from servicepath.model.watched import Asked, Event, Felt, Gap, Held, Series, Summary, Unwatched, Watch
from servicepath.observation import CouldNotSee, Observation, Trouble
from servicepath.parse.errors import ParseError
from servicepath.parse.watch_record import parse_agents, parse_record
from servicepath.parse.watch_summary import parse_watch_summary
from servicepath.report import baseline_json, comparison_html, watch_html, watch_json, watch_picture

HERE = IPv4Address("127.0.0.1")


class Server:
    """Answers DNS over UDP and TCP as ``answer`` says: the reply to a question's number, None for silence."""

    def __init__(self, answer=lambda number, question: question[:2] + b"\x81\x80" + bytes(8)):
        self.answer, self.count = answer, 0
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.port = self.udp.getsockname()[1]
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.peers = []
        for job in (self.serve_udp, self.serve_tcp):
            threading.Thread(target=job, daemon=True).start()

    def serve_udp(self):  # noqa: D102
        while True:
            try:
                question, peer = self.udp.recvfrom(65535)
            except OSError:
                return
            self.peers.append(peer)
            self.count += 1
            if (reply := self.answer(self.count, question)) is not None:
                self.udp.sendto(reply, peer)

    def serve_tcp(self):  # noqa: D102
        while True:
            try:
                connection, _ = self.tcp.accept()
            except OSError:
                return
            threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        """Answer three questions, then reset the connection."""
        for _ in range(3):
            data = connection.recv(65535)
            if not data:
                return
            reply = data[2:4] + b"\x81\x80" + bytes(8)
            connection.sendall(struct.pack("!H", len(reply)) + reply)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()


def run_watcher(tmp_path: Path, seconds: float, *series) -> str:
    node_watcher.main({"seconds": seconds, "series": list(series)}, str(tmp_path / "record"))
    return (tmp_path / "record").read_text(encoding="ascii")


def said(kind: str, port: int, **more):
    series = {"kind": kind, "ip": "127.0.0.1", "port": port, "every": 0.02, "timeout": 0.2, "patience": 0.3, "payload": "00" * 17}
    return series | more


def test_each_question_has_a_port_of_its_own_and_its_answer_a_time(tmp_path):
    server = Server()
    record = parse_record(run_watcher(tmp_path, 2, said("udp", server.port, timeout=20, patience=20)))
    assert record.done
    assert len(record.asked[0]) == server.count > 2
    assert len({port for _, port in server.peers}) == server.count
    assert all(port in range(*node_watcher.PORTS) for _, port in server.peers)
    assert all(each.took is not None and 0 <= each.took < 20 for each in record.asked[0])


def test_silence_a_wrong_answer_and_a_closed_port_are_lost_each_with_its_reason(tmp_path):
    def answer(number, question):
        return {0: None, 1: question[:2] + b"\x81\x82" + bytes(8), 2: b"no" + bytes(10)}[number % 3]

    record = parse_record(run_watcher(tmp_path, 2, said("udp", Server(answer).port), said("udp", 9), said("connect", 9)))
    assert {each.error for each in record.asked[0]} == {"no answer within 0.2 s", "rcode 2", "an answer to another question"}
    assert all(each.took is None for series in (0, 1, 2) for each in record.asked[series])
    assert all("refused" in str(each.error) for each in record.asked[1] + record.asked[2])


def test_a_standing_connection_says_how_it_broke(tmp_path):
    server = Server()
    record = parse_record(run_watcher(tmp_path, 2, said("held", server.tcp.getsockname()[1]), said("held", 9)))
    assert record.held[0][0].end == "reset"
    assert record.held[0][0].since is not None
    assert record.held[1][0].end == "refused"
    assert record.held[1][0].since is None


LINES = """["asked", 0, 100.0, 0.001, null]
["open", 1, 100.1]
["asked", 0, 100.5, null, "no answer within 1 s"]
["end", 1, 101.0, "closed", "the other end closed the connection"]
["open", 1, 102.0]
["asked", 0, 103.0, 0.002, null]
"""


def test_a_record_is_read_as_far_as_it_is_written():
    record = parse_record(LINES + '["done", 104.0]\n["ask')
    assert record.done
    assert record.asked[0][1] == Asked(100.5, None, "no answer within 1 s")
    assert record.held[1] == (Held(100.1, 101.0, "closed", "the other end closed the connection"), Held(102.0, None, None, None))
    assert not parse_record(LINES + '["done", 104.0]').done


@pytest.mark.parametrize("line", ["x", "{}", '["asked", 0, 100.0, null, null]', '["end", 0, 1.0, "bored", "x"]', '["open", "a", 1.0]'])
def test_a_line_that_is_none_of_ours_is_named(line):
    with pytest.raises(ParseError, match="watch record: line 7"):
        parse_record(f"{LINES}{line}\n")


def asked(*took):
    return tuple(Asked(100.0 + 0.1 * number, each, None if each is not None else "lost") for number, each in enumerate(took))


def test_a_gap_reaches_from_answer_to_answer_and_a_silence_of_our_own_is_none():
    found = watched.gaps(asked(0.1, None, None, 0.1, 0.1, None))
    assert [(round(gap.seconds, 1), gap.lost) for gap in found] == [(0.3, 2), (0.1, 1)]
    assert watched.gaps((Asked(100.0, 0.1, None), Asked(200.0, 0.1, None))) == ()
    far = (Asked(100.0, 0.1, None), Asked(105.0, None, "lost"), Asked(105.5, None, "lost"), Asked(130.0, 0.1, None))
    assert watched.gaps(far) == (Gap(105.0, 105.5, 2),)
    assert watched.gaps(asked(None, None)) == (Gap(100.0, 100.1, 2),)


def test_percentiles_are_measured_values():
    values = [0.1 * number for number in range(1, 101)]
    assert watched.percentile(values, 0.5) == pytest.approx(5.0)
    assert watched.percentile(values, 0.99) == pytest.approx(9.9)
    assert watched.percentile([], 0.5) is None


def agent_status(life, since):
    return {"containerStatuses": [{"name": "cilium-agent", "containerID": life, "state": {"running": {"startedAt": since}}}]}


POD = {"metadata": {"uid": "1"}, "spec": {"nodeName": "master"}, "status": agent_status("c1", "2026-11-30T08:00:00Z")}


def test_agents_restarts_are_told_from_the_api():
    gone = {**POD, "metadata": {"uid": "1", "deletionTimestamp": "2026-11-30T08:05:00Z"}}
    new = {"metadata": {"uid": "2"}, "spec": {"nodeName": "master"}, "status": agent_status("c2", "2026-11-30T08:05:10Z")}
    begun = 1796025600.0 + 60
    assert parse_agents([POD])[0][2] == begun - 60
    readings = [(begun, [POD]), (begun + 240, [gone]), (begun + 241, [gone]), (begun + 252, [new])]
    found = watched.restarts(((when, parse_agents(pods)) for when, pods in readings), begun)
    assert found == (Event(begun + 240, "master", "agent stops"), Event(begun + 250, "master", "agent runs"))
    with pytest.raises(ParseError, match="expected a Pod"):
        parse_agents([{"metadata": {}}])


def sample() -> Summary:
    series = (
        Series("host on master → kube-dns:dns/UDP", "master", asked(0.001, None, 0.002)),
        Series("host on master → kube-dns:dns-tcp/TCP", "master", (), (Held(100.0, 100.2, "reset", "x"), Held(100.3, None, None, None))),
        Series("Pod on <b> → kube-dns:dns/UDP", "<b>", asked(0.001, 0.001)),
    )
    events = (Event(100.1, "master", "agent stops"), Event(100.2, "master", "agent runs"))
    told = Watch(100.0, 110.0, series, events, (Unwatched("host on master", 105.0, 107.0, "the node was rebooted"),))
    return watched.sum_up(told, ["worker1: nothing was asked"])


def test_a_summary_is_written_and_read_back(tmp_path):
    watch_json.write(sample(), tmp_path / "watch.json")
    assert parse_watch_summary((tmp_path / "watch.json").read_text(encoding="utf-8")) == sample()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda text: text[:-40], "complete JSON"),
        (lambda text: "[]", "an object"),
        (lambda text: text.replace('"schema": 1', '"schema": 2'), "newer"),
        (lambda text: text.replace('"lost": 1', '"lost": "one"', 1), "felt.0.lost"),
    ],
)
def test_another_file_is_refused_in_one_line(tmp_path, change, expected):
    watch_json.write(sample(), tmp_path / "watch.json")
    with pytest.raises(ParseError) as refused:
        parse_watch_summary(change((tmp_path / "watch.json").read_text(encoding="utf-8")))
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_picture_has_a_row_a_place_and_marks_what_was_lost_and_when_agents_went():
    picture = watch_picture.draw(sample())
    assert [row.bad for row in picture.rows] == [True, True, False]
    assert [bar.kind for bar in picture.rows[0].bars] == ["lost", "unwatched"]
    assert [bar.kind for bar in picture.rows[1].bars] == ["broken", "unwatched"]
    assert [mark.kind for mark in picture.marks] == ["stops", "runs"]
    assert all(0 <= mark.x <= picture.width for mark in picture.marks)
    page = watch_html.render(sample())
    assert "Pod on &lt;b&gt;" in page
    assert "<b>" not in page
    assert "master: agent stops" in page


def test_what_is_felt_is_said_in_a_line_each():
    lines = list(watch_html.lines(sample()))
    assert lines[0] == "10 s, 3 series: 1 of 5 lost, the longest gap 0.2 s, 1 standing connections broken"
    assert lines[1].startswith("✗ host on master → kube-dns:dns/UDP: 1 of 3 lost, longest gap 0.2 s")
    assert lines[-1] == "! worker1: nothing was asked"
    assert watched.fact_lines(sample().felt[1]) == ("a standing connection was broken: reset",)
    assert watched.fact_lines(Felt("x", "n", 5, 0, None, None, None, (), (), ())) == ()


class LocalNode:
    """A channel to this machine that breaks as ``broken`` says, by its calls' number."""

    def __init__(self, broken=()):
        self.log, self.calls, self.broken = [], 0, broken

    def run(self, batch: list[Command], *, timeout: float, phase: str) -> dict[str, Observation]:  # noqa: D102
        self.calls += 1
        if self.calls in self.broken:
            raise CouldNotSee(Trouble(node="master", problem="the connection broke"))
        found = {}
        for each in batch:
            done = subprocess.run(each.argv, input=each.stdin, capture_output=True, timeout=timeout, check=False)
            found[each.name] = Observation("master", each.name, each.argv, done.returncode, done.stdout, done.stderr, time.time(), 0.0)
        return found

    def close(self): ...  # noqa: D102


@pytest.fixture
def quick(monkeypatch):
    """Look often, and give up soon."""
    monkeypatch.setattr(watching, "LOOK_EVERY", 0.1)
    monkeypatch.setattr(watching, "PATIENCE", 30.0)
    monkeypatch.setattr(watching.api, "get", lambda *_, **__: SimpleNamespace(status=0, stdout=b'{"items": []}', started=time.time()))


def felt_through(broken, tmp_path, seconds=1.5):
    server = Server()
    series = commands.Series("host on master → x", "udp", Socket(HERE, server.port), 0.02)
    post = commands.Post("master", None, (series,), str(tmp_path / "folder"))
    channel = LocalNode(broken)
    fleet = Fleet({"master": channel}, Deadline.starting_now(30))
    lines: list[str] = []
    found, unseen = watching.watch(fleet, None, (post,), "kubernetes.default.svc.cluster.local", seconds, lines.append)
    return watched.sum_up(found, map(str, unseen)), lines, server


def asking(record: Path) -> None:
    """Return once some answers stand in a record."""
    end = time.monotonic() + 60
    while not record.exists() or record.read_text(encoding="ascii").count("\n") < 5:
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("broken", [(), (1,), (3, 4, 5), tuple(range(4, 12))])
def test_a_broken_connection_loses_nothing_that_was_asked(broken, tmp_path, quick):
    found, lines, server = felt_through(broken, tmp_path)
    assert found.unseen == ()
    assert found.felt[0].asked == server.count > 2
    assert found.felt[0].lost == 0
    assert any("the connection broke" in line for line in lines) == bool(broken)
    assert "master: asking from the host" in lines
    assert not (tmp_path / "folder").exists()


def test_a_watch_that_is_ended_early_is_whole(tmp_path, quick):
    series = commands.Series("host on master → x", "udp", Socket(HERE, Server().port), 0.02)
    post = commands.Post("master", None, (series,), str(tmp_path / "folder"))
    enough = threading.Event()
    threading.Thread(target=lambda: (asking(tmp_path / "folder" / "record"), enough.set()), daemon=True).start()
    begun = time.monotonic()
    fleet = Fleet({"master": LocalNode()}, Deadline.starting_now(60))
    found, unseen = watching.watch(fleet, None, (post,), "kubernetes.default.svc.cluster.local", 600, lambda _: None, enough)
    assert unseen == ()
    assert len(found.series[0].asked) > 2
    assert time.monotonic() - begun < 300
    assert not (tmp_path / "folder").exists()


def test_a_record_that_is_gone_is_begun_anew_and_the_time_between_is_not_watched(tmp_path, quick, monkeypatch):
    def reboot():
        asking(tmp_path / "folder" / "record")
        pid = (tmp_path / "folder" / "pid").read_text(encoding="ascii").strip()
        subprocess.run(["sh", "-c", f"kill -KILL -{pid}; rm -rf {tmp_path / 'folder'}"], check=True)

    threading.Thread(target=reboot, daemon=True).start()
    found, _, _ = felt_through((), tmp_path, seconds=8)
    assert found.unseen == ()
    assert [each.subject for each in found.unwatched] == ["host on master"]
    assert found.felt[0].asked > 2
    assert not (tmp_path / "folder").exists()


def test_a_node_that_is_never_reached_is_not_seen(tmp_path, quick, monkeypatch):
    monkeypatch.setattr(watching, "PATIENCE", 1.0)
    found, _, _ = felt_through(range(1000), tmp_path, seconds=0.5)
    assert found.felt == ()
    assert any("nothing was asked from the host on master" in line for line in found.unseen)


def test_the_program_ends_by_itself_and_its_folder_goes_when_nobody_comes_back(tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "KEPT", 1)
    series = commands.Series("x", "udp", Socket(HERE, Server().port), 0.02)
    post = commands.Post("master", None, (series,), str(tmp_path / "folder"))
    LocalNode().run([commands.start(post, "a.example", 0.3)], timeout=10, phase="x")
    assert (tmp_path / "folder").exists()
    end = time.monotonic() + 15
    while (tmp_path / "folder").exists():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_pod_whose_network_is_not_there_is_said(tmp_path):
    series = commands.Series("x", "udp", Socket(HERE, 9), 0.02)
    post = commands.Post("master", IPv4Address("10.42.250.250"), (series,), str(tmp_path / "folder"))
    done = LocalNode().run([commands.start(post, "a.example", 1)], timeout=10, phase="x")["watch-start"]
    assert done.status == commands.NO_NAMESPACE
    assert "no network namespace of this node has the address 10.42.250.250" in done.error_text
    assert not (tmp_path / "folder").exists()


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("1.5h", 5400)])
def test_a_time_is_read(text, seconds):
    assert watch.duration(text) == seconds


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--for", "ten"], "'ten': expected a time such as 90s"),
        (["--for", "0s"], "one second to one day"),
        (["--rate", "1000"], "from 0.1 to 200"),
    ],
)
def test_a_wrong_command_line_is_said(words, said, capsys):
    with pytest.raises(SystemExit) as ended:
        watch.main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_no_inventory_is_one_line():
    argv = [sys.executable, "-m", "servicepath.watch", "--inventory", "/nowhere.yaml"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "/nowhere.yaml" in done.stderr


def test_the_file_is_json_for_anybody(tmp_path):
    watch_json.write(sample(), tmp_path / "watch.json")
    value = json.loads((tmp_path / "watch.json").read_text(encoding="utf-8"))
    assert (value["kind"], value["schema"]) == ("servicepath watch", 1)


def run_of(**more):
    return Baseline(started="x", identity=None, options=(), facts=(), judged=(), timings=(), **more)


def test_what_was_felt_in_between_is_judged_by_the_rules(tmp_path):
    bare = compare(run_of(), run_of(), (), sample())
    assert {(each.name, each.subject) for each in bare.regressions} == {
        ("felt while it changed", "host on master → kube-dns:dns/UDP"),
        ("felt while it changed", "host on master → kube-dns:dns-tcp/TCP"),
    }
    assert "the watch in between: worker1: nothing was asked" in bare.unseen
    rule = Rule("fact", "felt while it changed", "tolerated", where="host on master*", because="the host waits for kube-proxy")
    assert compare(run_of(), run_of(), (rule,), sample()).exit_status == 3
    page = comparison_html.render(bare)
    assert "What users felt in between" in page
    assert "1 of 3 lost, the longest gap 0.2 s" in page


def test_the_command_takes_a_watch_in(tmp_path, capsys):
    for name in ("before.json", "after.json"):
        baseline_json.write(run_of(), tmp_path / name)
    watch_json.write(sample(), tmp_path / "watch.json")
    words = [str(tmp_path / "before.json"), str(tmp_path / "after.json"), "--watch"]
    assert compare_main([*words, str(tmp_path / "watch.json")]) == 4
    assert "felt while it changed" in capsys.readouterr().out
    (tmp_path / "cut.json").write_text("{", encoding="utf-8")
    assert compare_main([*words, str(tmp_path / "cut.json")]) == 2
    assert "cut.json: watch: " in capsys.readouterr().err
