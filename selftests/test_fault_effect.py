"""A fault is taken back whatever comes in between; what is still applied, or not seen gone, is told."""

import io
import os
import signal
import subprocess

import pytest

from lab import __main__, preflight
from lab.errors import LabError
from lab.faults import actions, check, command, effect, record
from lab.faults.catalogue import Fault, Step
from lab.faults.record import Applied
from lab.interrupts import heard_once
from lab.progress import Progress
from lab.waiting import NotInTimeError

ONE, OTHER = (
    Fault(name, "It does something.", (Step("worker1", "do", "undo", "seen", None, None),), (), False, False, False, "1-host")
    for name in ("one", "other")
)


def interrupt() -> None:
    """As somebody does who has no patience."""
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
        os.kill(os.getpid(), number)


@pytest.fixture(autouse=True)
def lab(monkeypatch, tmp_path):
    """Return the list of what is done in the lab, in which nothing is really done."""
    done: list[str] = []
    monkeypatch.setattr(record, "RECORD", tmp_path / "faults.json")
    monkeypatch.setattr(actions, "Api", lambda topology: None)
    monkeypatch.setattr(actions, "variables", lambda topology, api: {"DNS_VIP": "10.43.0.10"})
    monkeypatch.setattr(actions, "_must", lambda fault, topology, place, text, known: done.append(f"{text} {fault.name}"))
    monkeypatch.setattr(actions, "_await", lambda *_, **__: None)
    monkeypatch.setattr(actions, "_not_well", lambda topology: None)
    return done


@pytest.fixture
def progress() -> Progress:
    return Progress(out=io.StringIO())


def test_an_impatient_interrupt_cuts_the_inside_off_and_no_undo_nor_a_program_of_it(lab, progress, monkeypatch):
    def must(fault, topology, place, text, known):
        if text == "undo":
            interrupt()
            # Ctrl-C reaches this one, too.
            subprocess.run(["sh", "-c", "kill -INT $$; kill -TERM $$"], check=True, timeout=20)
        lab.append(f"{text} {fault.name}")

    monkeypatch.setattr(actions, "_must", must)

    def inside() -> None:
        assert record.told() == ["applied: one (python -m lab fault revert one takes it back)"]
        interrupt()
        lab.append("the inside went on")

    with pytest.raises(KeyboardInterrupt), heard_once() as interrupts, effect.in_effect([ONE], None, progress, interrupts):
        inside()

    assert lab == ["do one", "undo one"]
    assert record.applied() == {}
    assert "interrupted: one is taken back first" in progress.out.getvalue()


def test_an_interrupt_in_the_undo_is_raised_after_it_and_a_step_that_it_ended_is_done_again(lab, progress, monkeypatch):
    def must(fault, topology, place, text, known):
        lab.append(text)
        if lab.count("undo") == 1:
            interrupt()
            raise LabError("exit status -2")

    monkeypatch.setattr(actions, "_must", must)
    with pytest.raises(KeyboardInterrupt), heard_once() as interrupts, effect.in_effect([ONE], None, progress, interrupts):
        lab.append("inside")

    assert lab == ["do", "inside", "undo", "undo"]
    assert record.applied() == {}


def test_a_revert_that_is_interrupted_says_what_it_took_back(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(preflight, "check_root", lambda: None)
    monkeypatch.setattr(command, "load", lambda: {"one": ONE, "other": OTHER})
    monkeypatch.setattr(actions, "_must", lambda *_: interrupt())
    record.write({"one": Applied({}), "other": Applied({})})

    assert __main__.main(["fault", "revert"]) == 130
    told = capsys.readouterr().err
    assert all(f"{name} is taken back, and the lab is well" in told for name in ("one", "other"))
    assert record.applied() == {}


def test_what_cannot_be_taken_back_is_told_with_the_command_that_does(lab, progress, monkeypatch):
    monkeypatch.setattr(actions, "_not_well", lambda topology: pytest.fail("not asked"))

    def must(fault, topology, place, text, known):
        if text == "undo":
            raise LabError("exit status 1")

    monkeypatch.setattr(actions, "_must", must)
    still = pytest.raises(effect.NotTakenBackError)
    with heard_once() as interrupts, still as wrong, effect.in_effect([ONE], None, progress, interrupts):
        interrupt()

    assert str(wrong.value) == "exit status 1; one is still applied: python -m lab fault revert one"
    assert record.applied() == {"one": Applied({"DNS_VIP": "10.43.0.10"})}


def test_what_was_not_applied_here_is_not_taken_back(lab, progress):
    record.write({"one": Applied({})})
    refused = pytest.raises(LabError, match="one is applied already: python -m lab fault revert one")
    with heard_once() as interrupts, refused, effect.in_effect([ONE], None, progress, interrupts):
        pass

    assert lab == []


def test_a_fault_that_is_undone_and_not_seen_gone_blocks_no_other_and_can_be_tried_again(lab, monkeypatch):
    def still_there(*_, there):
        if not there:
            raise NotInTimeError("one gone: not after 90 s: on worker1: seen: exit status 0")

    actions.apply(ONE, None)
    with pytest.raises(LabError, match="one is applied already"):
        actions.apply(OTHER, None)
    with monkeypatch.context() as patch:
        patch.setattr(actions, "_await", still_there)
        with pytest.raises(actions.StillSeenError, match="one was undone and the lab is well, but it is not seen gone"):
            actions.revert(ONE, None)

    assert record.told() == ["undone, but not seen gone: one (python -m lab fault revert one tries again)"]
    actions.apply(OTHER, None)
    actions.revert(OTHER, None)
    actions.revert(ONE, None)
    assert record.applied() == {}


@pytest.fixture
def checked(monkeypatch, progress, tmp_path):
    """Return a check of one fault, whose runs are made by the function that is given to it."""
    monkeypatch.setattr(check.setups, "bring", lambda words, topology: False)
    monkeypatch.setattr(check, "all_green", lambda *_, **__: {})

    def checked(runs):
        monkeypatch.setattr(check, "_runs", runs)
        with heard_once() as interrupts:
            return check.check([ONE], None, check.Results(tmp_path / "results"), progress, check.Manner(interrupts))

    return checked


def test_a_check_that_is_cut_off_ends_with_what_became_of_its_fault(checked, lab):
    with pytest.raises(check.CutOffError) as told:
        checked(lambda fault, manner: interrupt())

    assert str(told.value) == "interrupted: one was taken back; run again to go on"
    assert told.value.status == 130
    assert lab == ["do one", "undo one"]


def test_a_fault_that_is_not_seen_gone_is_not_as_declared_and_ends_no_check(checked, monkeypatch):
    def still_there(*_, there):
        if not there:
            raise NotInTimeError("one gone: not after 90 s")

    monkeypatch.setattr(actions, "_await", still_there)
    result = checked(lambda fault, manner: [()])["one"]

    assert "it is not seen gone" in result.wrong[0]


def test_a_check_says_what_it_takes_back_before_it_looks(checked, progress, monkeypatch):
    record.write({"other": Applied({})})
    monkeypatch.setattr(check, "load", lambda: {"other": OTHER})
    checked(lambda fault, manner: [()])

    assert "other is applied, by hand or by a check that was cut off: it is taken back before" in progress.out.getvalue()
    assert record.applied() == {}


@pytest.mark.parametrize("text", ["[]", "{", '{"one": {"DNS_VIP": "10.43.0.10"}}', '{"one": 3}'])
def test_a_record_of_another_form_is_one_line(text):
    record.RECORD.write_text(text, encoding="utf-8")

    with pytest.raises(LabError, match=r"faults\.json: expected the faults that are applied"):
        record.applied()
