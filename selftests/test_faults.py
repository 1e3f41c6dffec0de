"""The table of faults and its comparison with a run; the faults themselves are made on the lab (selftests/lab/test_fault_undo.py)."""

import dataclasses
import os
import re
import signal
import subprocess
import sys

import at_a_terminal
import pytest

from lab.errors import LabError
from lab.faults import catalogue, check, compare, document, suite
from lab.faults.catalogue import ALL, Fault, Step, Turned, load
from lab.faults.record import Applied
from lab.faults.suite import Judged
from lab.interrupts import Interrupts
from lab.progress import Progress
from lab.topology import load as load_topology
from selftests.test_lint import CONCLUSIONS

FAULTS = load()
HOLDS = [Judged("no-route", "worker1, dns", "worker1", "passed", ""), Judged("no-route", "worker2, dns", "worker2", "passed", "")]
HEALTHY = {(judged.conclusion, judged.case): judged for judged in HOLDS}
STEP = Step("worker1", "do", "undo", "seen", None, None)


def fault(*turns: Turned) -> Fault:
    return Fault("one", "It does something.", (STEP,), turns, False, False, False, "1-host")


def run(outcome: str, message: str, where: str = "worker1") -> list[Judged]:
    """A run in which the verdict of one node is another than in the healthy one."""
    return [dataclasses.replace(j, outcome=outcome, message=message) if j.node == where else j for j in HOLDS]


FAILS = Turned("failed", ("no-route",), ("has a route",), ("worker1",))


def test_every_conclusion_is_bitten_by_at_least_one_of_thirty_faults_that_break_something():
    bitten = {conclusion for each in FAULTS.values() for conclusion in each.conclusions}

    assert sorted(CONCLUSIONS - bitten) == []
    assert sum(bool(each.conclusions) for each in FAULTS.values()) >= 30


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_names_what_is_there(name):
    each = FAULTS[name]
    places = {host.name for host in load_topology().hosts} | {catalogue.NODES, catalogue.MACHINE}

    assert {step.where for step in each.steps} <= places
    assert {c for turned in each.turns for c in turned.conclusions} <= CONCLUSIONS | {ALL}
    assert {node for turned in each.turns for node in turned.at or ()} <= places
    assert each.group in document.TITLES


@pytest.mark.parametrize("name", FAULTS)
def test_what_tells_that_a_fault_is_gone_reads_no_file_that_the_undo_deletes(name):
    for step in FAULTS[name].steps:
        removed = {word.strip("\"'") for command in re.findall(r"\brm ([^;&|\n#]*)", step.undo) for word in command.split()}
        read = " ".join(re.findall(r"\$\(([^()]*)\)", step.seen))

        assert not [file for file in removed if "/" in file and file in read]


@pytest.mark.parametrize(("kept", "shown", "seen"), [("", "", 1), ("AAAAnew", "AAAAnew", 0), ("AAAAnew", "AAAAold", 1)])
def test_a_host_key_is_seen_changed_only_where_the_new_one_is_known_and_shown(tmp_path, kept, shown, seen):
    (tmp_path / "ssh-keyscan").write_text(f"#!/bin/sh\necho 127.0.0.1 ssh-ed25519 {shown}\n", encoding="utf-8")
    (tmp_path / "ssh-keyscan").chmod(0o755)
    if kept:
        (tmp_path / "key.pub").write_text(f"ssh-ed25519 {kept} somebody\n", encoding="utf-8")
    (step,) = FAULTS["host-key-changed"].steps

    done = subprocess.run(
        ["sh", "-e", "-c", step.seen], env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "KEEP": str(tmp_path)}, timeout=20, check=False
    )

    assert done.returncode == seen


def test_a_run_that_is_as_declared_is_not_wrong():
    assert compare.wrong(fault(FAILS), run("failed", "table main has a route"), HEALTHY) == []
    assert compare.wrong(fault(), HOLDS, HEALTHY) == []


@pytest.mark.parametrize(
    ("turns", "judged", "said"),
    [
        ((), run("failed", "table main has a route"), "unasked: no-route failed on worker1, dns: table main has a route"),
        ((FAILS,), run("failed", "table main has a route", "worker2"), "unasked: no-route failed on worker2, dns"),
        ((FAILS,), run("error", "table main has a route"), "unasked: no-route error on worker1, dns"),
        ((FAILS,), run("skipped", "no Service"), "unasked: no-route skipped on worker1, dns"),
        ((FAILS,), run("failed", "AttributeError"), "another reason: no-route failed on worker1, dns: expected 'has a route'"),
        ((FAILS,), HOLDS, "unseen: no-route should have turned failed"),
        ((dataclasses.replace(FAILS, at=("worker1", "worker2")),), run("failed", "has a route"), "failed on worker2, too"),
        ((dataclasses.replace(FAILS, says=("has a route", "by a rule")),), run("failed", "has a route"), "says 'by a rule'"),
        ((), HOLDS[:1], "not judged: no-route on worker2, dns"),
        ((Turned("error", (ALL,), ("ssh",), ("worker1",)),), HOLDS, "unseen: no-route should have turned error"),
        ((Turned("error", (ALL,), ("ssh",), ("worker1",)),), run("error", "ssh", "worker2"), "unasked: no-route error on worker2"),
    ],
)
def test_what_is_not_as_declared_is_told(turns, judged, said):
    assert any(said in line for line in compare.wrong(fault(*turns), judged, HEALTHY))


def test_what_is_left_to_chance_may_turn_and_need_not():
    maybe = fault(dataclasses.replace(FAILS, chance=True))

    assert compare.wrong(maybe, HOLDS, HEALTHY) == []
    assert compare.wrong(maybe, run("failed", "has a route"), HEALTHY) == []


def test_what_was_skipped_before_and_is_skipped_now_has_not_turned():
    skipped = run("skipped", "no Pod here")
    healthy = {(judged.conclusion, judged.case): judged for judged in skipped}

    assert compare.turned(skipped, healthy) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: {does: No end}", "a.yaml: a: does: expected one sentence"),
        ("a: {does: It., where: worker1, do: x}", "a.yaml: a: seen: expected a shell command"),
        ("a: {does: It., wehre: worker1}", "a.yaml: a: unknown key wehre"),
        ("a: {does: It., turns: [{failed: no-route}]}", "a.yaml: a: turns: says: expected a fragment"),
        ("a: {does: It., turns: [{failed: no-route, error: no-route, says: x}]}", "expected exactly one of failed, error, skipped"),
        ("a: 3", "a.yaml: a: expected keys and values"),
    ],
)
def test_a_table_that_is_not_right_is_one_line(tmp_path, text, said):
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")

    with pytest.raises(LabError) as wrong:
        load(tmp_path)

    assert said in str(wrong.value)
    assert "\n" not in str(wrong.value)


def test_a_name_that_two_files_have_is_refused(tmp_path):
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("same: {does: It.}", encoding="utf-8")

    with pytest.raises(LabError, match=r"b\.yaml: same: there is another fault of this name, in a"):
        load(tmp_path)


def test_a_result_counts_as_long_as_the_fault_is_the_same(tmp_path):
    results = check.Results(tmp_path)
    results.keep(fault(FAILS), check.Result("one", (), tuple(run("failed", "has a route")[:1])))

    assert results.get(fault(FAILS)) == check.Result("one", (), tuple(run("failed", "has a route")[:1]))
    assert results.get(fault()) is None


def test_a_run_does_not_go_on_behind_who_waited_for_it(tmp_path, monkeypatch):
    process = subprocess.Popen(
        [sys.executable, "-c", "import signal; signal.sigtimedwait([signal.SIGUSR1], 60)"],
        preexec_fn=at_a_terminal.signals,
    )
    waited = process.wait
    answers = iter([KeyboardInterrupt])

    def wait(timeout=None):
        if interrupted := next(answers, None):
            raise interrupted
        return waited(timeout)

    monkeypatch.setattr(process, "wait", wait)

    with pytest.raises(KeyboardInterrupt), suite.Run(tmp_path, process) as run:
        suite.finish(run)
    assert process.poll() == -signal.SIGINT


@pytest.mark.parametrize("left", ["", "{", "[]", "null", '{"key": "of another version"}', "\xff"])
def test_what_a_crash_or_another_version_left_is_no_result(left, tmp_path):
    (tmp_path / "one.json").write_bytes(left.encode("latin-1"))
    results = check.Results(tmp_path)

    assert results.get(fault(FAILS)) is None
    results.keep(fault(FAILS), check.Result("one", (), ()))
    assert results.get(fault(FAILS)) == check.Result("one", (), ())
    assert [path.name for path in tmp_path.iterdir()] == ["one.json"]


def test_a_fault_that_is_still_applied_and_that_the_catalogue_has_no_more_is_named(monkeypatch):
    monkeypatch.setattr(check.record, "applied", lambda: {"of-another-version": Applied({})})

    with pytest.raises(LabError, match="no fault named 'of-another-version'"):
        check.clear(None, Progress(), Interrupts())


def test_a_result_is_of_other_sources_when_one_of_them_changes(tmp_path):
    for folder in ("servicepath", "lab/faults"):
        (tmp_path / folder).mkdir(parents=True)
    source = tmp_path / "servicepath" / "one.py"
    source.write_text("1", encoding="utf-8")
    before = check.tree(tmp_path)
    source.write_text("2", encoding="utf-8")

    assert check.tree(tmp_path) != before


def test_the_document_has_one_row_a_fault_with_its_name_plain_and_its_message_escaped():
    (judged,) = run("failed", "route <b> | via\n    evidence")[:1]
    result = check.Result("one", (), (dataclasses.replace(judged, see=("ssh worker1 'ip route | grep 10.43'", "another")),))

    rows = [line for line in document.text([fault(FAILS)], {"one": result}).splitlines() if line.startswith("| one |")]

    hand = "<br>judged on: worker1, dns<br>by hand: ssh worker1 'ip route \\| grep 10.43'<br>by hand: another"
    shown = "route &lt;b> \\| via<br>evidence" + hand
    row = f"| one | It does something. | FAILED: no-route | no-route: {shown} |"
    assert rows == [row]


def test_of_a_long_error_the_document_has_the_remedy():
    text = "worker1: the host key is not known\n  | @@@@@@@@\n" + "  | more\n" * 9 + "  remedy: compare the fingerprint"
    result = check.Result("one", (), tuple(run("error", text)[:1]))

    (row,) = (line for line in document.text([fault(FAILS)], {"one": result}).splitlines() if line.startswith("| one |"))

    assert "no-route: worker1: the host key is not known<br>\\| more<br>" in row
    assert row.endswith("<br>… 4 more lines<br>remedy: compare the fingerprint |")


def test_the_document_shows_the_message_that_the_fault_declares_and_not_the_first():
    told = zip(run("failed", "")[:2], ("beside", "has a route"), strict=True)
    first, second = (dataclasses.replace(judged, message=text) for judged, text in told)
    result = check.Result("one", (), (first, dataclasses.replace(second, outcome="failed", conclusion="no-route")))

    (row,) = (line for line in document.text([fault(FAILS)], {"one": result}).splitlines() if line.startswith("| one |"))

    assert "no-route: has a route<br>" in row
