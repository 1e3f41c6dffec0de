"""Baselines as files, and the command that compares two: a wrong one is one line, and nothing is lost."""

import dataclasses
import json
import signal
import tempfile

import at_a_terminal
import pytest
from comparison_sample import baseline, with_fact, with_outcome

from servicepath import baselines, compare
from servicepath.model.baseline import Identity, Span
from servicepath.model.comparison import compare as compared
from servicepath.parse.baseline import SCHEMA, parse_baseline
from servicepath.report import baseline_json, comparison_html

HOSTILE = ("<script>alert('x')</script>", '"><img src=x onerror=alert(1)>', "user\u202egnp.exe", "no utf-8: \udcff", "a\x1b[31mred")


@pytest.fixture
def kept(tmp_path):
    """Write a run to a file of this name."""

    def write(name, run):
        baseline_json.write(run, tmp_path / name)
        return str(tmp_path / name)

    return write


def test_what_is_written_is_what_is_read(tmp_path):
    run = dataclasses.replace(with_fact(baseline(), "worker1", "routes", *HOSTILE), options=("--passive",), unfinished="stopped")
    baseline_json.write(run, tmp_path / "run.json")

    assert baselines.load(tmp_path / "run.json") == run


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda text: text[: len(text) // 2], "expected complete JSON (was it cut off?)"),
        (lambda text: "", "expected complete JSON"),
        (lambda text: "[" * 100_000, "JSON nested without end"),
        (lambda text: "[]", "expected an object"),
        (lambda text: '{"schema": 1, "verdicts": []}', "expected 'servicepath baseline'"),
        (lambda text: text.replace('"schema": 1', f'"schema": {SCHEMA + 1}'), "written by a newer version of the suite"),
        (lambda text: text.replace('"schema": 1', '"schema": "1"'), "'1'\": expected a whole number"),
        (lambda text: text.replace('"passed"', '"perhaps"', 1), "judged[0]: outcome: 'perhaps'"),
    ],
)
def test_a_file_that_is_no_baseline_is_one_line(tmp_path, kept, capsys, spoil, said):
    refused(tmp_path, kept, capsys, spoil(baseline_json.as_text(baseline())), said)


@pytest.mark.parametrize(
    ("there", "instead", "said"),
    [
        *(("0.0004", wrong, f"seconds[0]: {wrong.title()}") for wrong in ("-1", "1000000000", "true", "[]")),
        *(("0.0004", wrong, f"{wrong[:9]}") for wrong in ("NaN", "-Infinity", "1e999", "1" * 400, "9" * 5000)),
        *((f'"{key}":', '"other":', f"{key}: 'not there'") for key in ("facts", "judged", "timings", "options", "identity", "unfinished")),
        *((f'"{key}":', '"other":', f"[0]: {key}: 'not there'") for key in ("seconds", "value", "outcome", "case")),
        ('"facts": [', '"facts": null, "others": [', "facts: None"),
        ('"schema": 1', '"schema": 1, "schema": 1', "expected each key once"),
        ('"worker1"', '"master"', "expected something else than facts["),
        ('"during": null', '"during": {"since": 9, "until": 8}', "during: until: 8.0': expected a time that is not before since (9.0)"),
    ],
)
def test_what_no_run_writes_is_one_line(tmp_path, kept, capsys, there, instead, said):
    refused(tmp_path, kept, capsys, baseline_json.as_text(baseline()).replace(there, instead, 1), said)


def refused(tmp_path, kept, capsys, text, said):
    good, bad = kept("good.json", baseline()), tmp_path / "bad.json"
    bad.write_text(text)

    assert compare.main([str(bad), good]) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"{bad}: ")
    assert said in line
    assert len(line.splitlines()) == 1
    assert bad.read_text() == text


def test_a_file_that_cannot_be_read_is_one_line(tmp_path, kept, capsys):
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")

    assert compare.main([str(tmp_path / "absent.json"), kept("a.json", baseline())]) == 2
    assert compare.main([kept("a.json", baseline()), str(tmp_path / "bytes")]) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"{tmp_path}/absent.json: cannot be read: No such file or directory",
        f"{tmp_path}/bytes: expected UTF-8 text: invalid start byte at byte 0",
    ]


def test_a_baseline_of_another_cluster_is_one_line(kept, capsys):
    other = dataclasses.replace(baseline(), identity=Identity("another", (), ()))

    assert compare.main([kept("a.json", other), kept("b.json", baseline())]) == 2
    assert "a.json: a baseline of another cluster: the UID of the Namespace kube-system is another there" in capsys.readouterr().err


def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "run.json"
    baseline_json.write(baseline(), path)
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))

    with pytest.raises(OSError, match="No space left"):
        baseline_json.write(baseline("1.19.5"), path)

    assert parse_baseline(path.read_text()) == baseline()
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]


@pytest.mark.parametrize(
    ("after", "status", "said"),
    [
        (baseline("1.19.5"), 0, "Cilium 1.19.1 → 1.19.5: 0 regressions, 0 expected changes, 3 tolerated, 19 as before"),
        (with_fact(baseline(), "master", "routes", unseen="ssh: timed out"), 3, "! routes on master: ssh: timed out"),
        (with_outcome(baseline(), "no-interface", "worker1", "failed", "eth0 holds it"), 4, "✗ no-interface on worker1: held→broken"),
    ],
)
def test_the_commands_exit_status_and_lines(kept, capsys, after, status, said):
    assert compare.main([kept("a.json", baseline()), kept("b.json", after)]) == status
    assert said in capsys.readouterr().out


def test_the_command_reads_the_inventorys_rules_and_writes_page_and_json(tmp_path, kept):
    rules = tmp_path / "inventory.yaml"
    rules.write_text("upgrade:\n  expect:\n    - {conclusion: no-interface, change: held -> broken, where: worker1, because: known}\n")
    after = kept("b.json", with_outcome(baseline(), "no-interface", "worker1", "failed", "worker1: eth0 holds it"))
    page, data = tmp_path / "c.html", tmp_path / "c.json"
    said = [kept("a.json", baseline()), after, "--inventory", str(rules), "--html", str(page), "--json", str(data)]

    assert compare.main(said) == 0
    assert "Before and after" in page.read_text()
    assert [d["because"] for d in json.loads(data.read_text())["conclusions"] if d["standing"] == "expected"] == ["known"]


def test_a_page_that_cannot_be_written_is_one_line(tmp_path, kept, capsys):
    said = [kept("a.json", baseline()), kept("b.json", baseline()), "--html", str(tmp_path / "no" / "c.html")]

    assert compare.main(said) == 2
    assert "expected a folder to write" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("{fact: Cilium, what: 1}", "upgrade.expect.0.what: unknown key; expected one of: because, change, conclusion, fact, from, is, to"),
        ("{to: 1.19.5}", "upgrade.expect.0: expected either fact: or conclusion:"),
        ("{fact: a, conclusion: b}", "upgrade.expect.0: expected either fact: or conclusion:"),
        ("{fact: routes, change: held -> broken}", "upgrade.expect.0: change: expected changed, new, gone, unasked, unseen, same, found"),
        ("{conclusion: no-interface, change: hold -> broken}", "upgrade.expect.0: change: expected held -> skipped or the like, found"),
        ("{fact: a, to: [1]}", "upgrade.expect.0.to: expected text (in quotes), found [1]"),
        ("{fact: a, to: x}\n    - {fact: a, to: y}", "upgrade: expect.1 says otherwise than expect.0 of the same change, which decides"),
        ("{fact: a, is: tolerated}\n    - {fact: a}", "upgrade: expect.1 says otherwise than expect.0 of the same change, which decides"),
        ("{fact: Cilium, is: fine}", "upgrade.expect.0.is: expected 'expected', 'tolerated' or 'regression', found 'fine'"),
    ],
)
def test_a_wrong_rule_is_one_line(tmp_path, kept, capsys, rule, said):
    path = tmp_path / "inventory.yaml"
    path.write_text(f"upgrade:\n  expect:\n    - {rule}\n")

    assert compare.main([kept("a.json", baseline()), kept("b.json", baseline()), "--inventory", str(path)]) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"{path}: {said}")
    assert len(line.splitlines()) == 1


def test_the_page_escapes_what_nodes_and_the_api_say():
    after = with_outcome(with_fact(baseline(), HOSTILE[0], HOSTILE[1], *HOSTILE), "no-interface", "master", "failed", "\n".join(HOSTILE))
    page = comparison_html.render(compared(with_fact(baseline(), HOSTILE[0], HOSTILE[1], "x"), after))

    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "&lt;script&gt;" in page
    assert "⟨U+202E⟩" in page


def test_the_page_shows_regressions_before_changes_before_what_stayed():
    after = with_outcome(baseline("1.19.5"), "no-interface", "master", "failed", "eth0 holds it")
    page = comparison_html.render(compared(baseline(), after))

    places = [page.index(text) for text in ('id="regressions"', "eth0 holds it", 'id="changed"', "1.19.5</span>", 'id="stayed"')]
    assert places == sorted(places)
    assert "Cilium 1.19.1 → 1.19.5" in page


@pytest.mark.parametrize(
    ("started", "told"),
    [
        ("2026-11-30 02:00:01 UTC", "2026-11-30 02:00:00 to 2026-11-30 02:01:30 UTC"),
        ("2026-12-24 08:00:00 UTC", "2026-11-30 02:00:00 to 2026-11-30 02:01:30 UTC, judged again 2026-12-24 08:00:00 UTC"),
        ("2026-12-24 08:00:00 XYZT", "2026-11-30 02:00:00 to 2026-11-30 02:01:30 UTC, judged again 2026-12-24 08:00:00 XYZT"),
    ],
)
def test_page_and_json_tell_when_the_cluster_was_asked_and_when_a_recording_was_judged_again(tmp_path, kept, started, told):
    before = kept("before.json", dataclasses.replace(baseline(started=started), during=Span(1796004000.0, 1796004090.0)))
    page, told_json = tmp_path / "page.html", tmp_path / "page.json"
    compare.main([before, kept("after.json", baseline(started="2027-01-01")), f"--html={page}", f"--json={told_json}"])

    assert f"Before: the run of {told}. After: the run of 2027-01-01." in page.read_text()
    document = json.loads(told_json.read_text())
    assert (document["before"], document["after_during"]) == (started, None)
    assert document["before_during"] == {"since": 1796004000.0, "until": 1796004090.0}


def test_what_is_compared_is_not_overwritten_by_whatever_name(tmp_path, kept, capsys):
    before, after = kept("a.json", baseline()), kept("b.json", baseline("1.19.5"))
    (tmp_path / "link.json").symlink_to("a.json")
    (tmp_path / "hard.json").hardlink_to(before)
    (tmp_path / "inventory.yaml").write_text("{}")
    texts = {path: path.read_bytes() for path in tmp_path.iterdir()}
    other = tmp_path / "c.html"
    for said in (
        ["--html", before], ["--json", before], ["--json", after], ["--html", str(tmp_path / "link.json")],
        ["--json", str(tmp_path / "hard.json")], ["--html", str(tmp_path / "x" / ".." / "a.json")],
        ["--html", str(other), "--json", str(other)],
        ["--inventory", str(tmp_path / "inventory.yaml"), "--json", str(tmp_path / "inventory.yaml")],
    ):  # fmt: skip
        assert compare.main([before, after, *said]) == 2, said
        line = capsys.readouterr().err
        assert line.count("\n") == 1
        assert "would be lost: expected another file" in line
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == texts


def test_an_output_that_cannot_be_written_is_said_before_anything_is_compared(kept, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    monkeypatch.setattr(baselines, "load", lambda _: pytest.fail("read before it was known that the outcome can be written"))

    assert compare.main([str(tmp_path / "a.json"), str(tmp_path / "b.json"), "--html", str(tmp_path / "c.html")]) == 2
    assert capsys.readouterr().err == f"{tmp_path}/c.html: the folder {tmp_path} cannot be written to: No space left on device\n"
    assert not list(tmp_path.iterdir())


def test_the_same_change_of_several_subjects_is_one_line_that_names_them(kept, capsys):
    before = after = baseline()
    for node, port in (("master", "dns/UDP"), ("worker1", "dns/UDP"), ("worker1", "dns-tcp/TCP")):
        path, name = f"Pod on {node} → kube-dns:{port}", "addresses on the underlay"
        protocol = port[-3:]
        before = with_fact(before, path, name, f"Pod default/client-{node} → the backend:53/{protocol}")
        after = with_fact(after, path, name, f"CiliumInternalIP of {node} → the backend:53/{protocol}")
    after = with_fact(with_fact(after, "master", "routes", "none"), "worker1", "routes", "another")
    compare.main([kept("before.json", before), kept("after.json", after)])
    said = capsys.readouterr().out.splitlines()

    paths = "3 paths (Pod on master → kube-dns:dns/UDP; Pod on worker1 → kube-dns:dns/UDP; Pod on worker1 → kube-dns:dns-tcp/TCP)"
    assert [line.partition(": changed")[0] for line in said if line.startswith("✗")] == [
        f"✗ addresses on the underlay on {paths}", "✗ routes on master", "✗ routes on worker1",
    ]  # fmt: skip
    first = said.index("    on Pod on master → kube-dns:dns/UDP:")
    assert said[first + 1] == "    - Pod default/client-master → the backend:53/UDP"


def test_one_of_a_kind_is_told_in_the_singular(kept, capsys):
    broken = with_outcome(baseline(), "no-interface", "master", "failed")
    compare.main([kept("before.json", broken), kept("after.json", baseline())])

    assert ": 0 regressions, 1 expected change, " in capsys.readouterr().out


def test_the_page_counts_subjects_by_their_kind():
    after = before = baseline()
    for number in range(7):
        before = with_fact(before, f"master, x{number}:dns/UDP", "chains", "one")
        after = with_fact(after, f"master, x{number}:dns/UDP", "chains", "other")

    assert "<summary>on 7 ports</summary>" in comparison_html.render(compared(before, after))


def test_what_a_file_says_drives_no_terminal(kept, capsys):
    other = dataclasses.replace(baseline(), identity=Identity("a\x1b[2J\nOK\u202e", (), ()))

    assert compare.main([kept("a.json", other), kept("b.json", baseline())]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "⟨U+001B⟩[2J OK⟨U+202E⟩" in said


def test_a_recording_that_takes_too_long_is_one_line(kept, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(baselines, "_REPLAY_TIMEOUT", 0)
    (tmp_path / "recording").mkdir()

    assert compare.main([str(tmp_path / "recording"), kept("b.json", baseline())]) == 2
    assert capsys.readouterr().err == f"{tmp_path}/recording: it was not judged within 0 s\n"


def test_a_signal_while_a_recording_is_judged_again_is_one_line_and_leaves_nothing(kept, tmp_path, capsys, monkeypatch):
    recording, temporary = tmp_path / "night.tar.zst", tmp_path / "temporary"
    recording.write_bytes(b"")
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(baselines.subprocess, "run", lambda *_, **__: signal.raise_signal(signal.SIGTERM))

    with at_a_terminal.heard():
        assert compare.main([kept("a.json", baseline()), str(recording)]) == 3

    assert capsys.readouterr().err == "stopped by SIGTERM: nothing was compared\n"
    assert list(temporary.iterdir()) == []
