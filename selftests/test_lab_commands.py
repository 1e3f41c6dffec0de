"""What the lab's commands say: who is busy, what is applied, that there is no lab, and that a long step goes on."""

import io
import os
import sys
import threading

import pytest

from lab import __main__, api, preflight, status
from lab.errors import LabError, RefusedError
from lab.faults import command, record
from lab.faults.catalogue import load
from lab.faults.check import Results
from lab.faults.record import Applied
from lab.locking import only_one
from lab.progress import Progress
from lab.topology import load as load_topology

APPLIED = "applied: one (python -m lab fault revert one takes it back)"


class Told(io.StringIO):
    """Keeps what is written, and tells when something was."""

    def __init__(self) -> None:
        super().__init__()
        self.something = threading.Event()

    def write(self, text: str) -> int:
        """As its parent's."""
        written = super().write(text)
        self.something.set()
        return written


@pytest.fixture(autouse=True)
def a_lab_with_a_fault(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(record, "RECORD", tmp_path / "faults.json")
    monkeypatch.setattr(status, "complaints", lambda topology: [])
    monkeypatch.setattr(preflight, "check", lambda topology: None)
    record.write({"one": Applied({})})


def test_the_status_and_up_name_the_fault_that_is_applied(capsys):
    assert __main__.main(["status"]) == 1
    assert capsys.readouterr().out == f"{APPLIED}\n"

    assert __main__.main(["up"]) == 0
    assert APPLIED in capsys.readouterr().err


def test_an_interrupted_command_names_the_fault_that_is_left_applied(capsys, monkeypatch):
    def interrupted(topology):
        raise KeyboardInterrupt

    monkeypatch.setattr(status, "complaints", interrupted)

    assert __main__.main(["status"]) == 130
    assert capsys.readouterr().err == f"lab: interrupted; {APPLIED}\n"


def test_who_waits_says_for_which_command_and_since_when(monkeypatch):
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "lab", "up"])
    told = Told()

    def second() -> None:
        with only_one(Progress(out=told)):
            told.write("in\n")

    waiting = threading.Thread(target=second)
    with only_one(Progress()):
        waiting.start()
        assert told.something.wait(20)
        said = told.getvalue()
    waiting.join(20)

    assert f"another command is busy with the lab: python -m lab up (process {os.getpid()}, since " in said
    assert told.getvalue().endswith("in\n")


def test_who_may_not_wait_is_refused_in_one_line(capsys, monkeypatch):
    monkeypatch.setattr(preflight, "check_root", lambda: None)
    monkeypatch.setattr(command.actions, "apply", lambda *_: pytest.fail("applied"))
    with only_one(Progress()):
        assert __main__.main(["fault", "apply", "node-down"]) == RefusedError.status

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("lab: another command is busy with the lab: ")
    assert line.endswith("; nothing was done: run this again when that has ended")


def test_without_a_lab_its_api_is_one_line(tmp_path):
    with pytest.raises(LabError, match=r"^the lab is not up: python -m lab up$"):
        api.Api(load_topology(), tmp_path / "pki")


@pytest.mark.parametrize("words", [["fault", "apply", "node-down"], ["fault", "revert"], ["fault", "check"], ["soak", "1"], ["down"]])
def test_what_is_roots_is_refused_to_others(words, capsys, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    assert __main__.main(words) == 2
    assert capsys.readouterr().err == "lab: the lab is root's: run this as root (sudo)\n"


def test_a_lab_that_is_not_to_be_read_is_one_line(capsys, monkeypatch):
    def refused(topology):
        raise PermissionError(13, "Permission denied", "state.json")

    monkeypatch.setattr(status, "complaints", refused)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    assert __main__.main(["status"]) == 2
    assert capsys.readouterr().err == "lab: state.json: not to be read: the lab is root's: run this as root (sudo)\n"


def test_a_check_says_what_it_looked_at():
    assert command.ended(["one"], []) == ["1 faults, each as declared, and all is green again"]
    assert command.ended(["one"], ["two"])[0].startswith("2 faults, each as declared, 1 of them by kept results of these very sources,")
    assert command.ended([], ["two"]) == [
        "1 faults: kept results of these very sources; nothing was looked at now (--again looks again)",
        APPLIED,
    ]


def test_a_page_that_is_left_as_it_is_says_how_many_results_are_missing_and_where_they_are_kept(tmp_path):
    progress = Progress(out=io.StringIO())
    faults = load()

    command._document(faults, Results(tmp_path), progress)

    first, second = progress.out.getvalue().splitlines()
    assert first.endswith(f"docs/faults.md is left as it is: {len(faults)} of {len(faults)} have no result of these sources yet")
    assert second.endswith(f"the results are kept in {tmp_path}")


def test_a_long_step_says_that_it_goes_on():
    told = Told()
    with Progress(out=told).alive("building cilium-agent", every=0.001):
        assert told.something.wait(20)

    assert "building cilium-agent: 0 s so far" in told.getvalue()
