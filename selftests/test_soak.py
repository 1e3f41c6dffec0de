"""What grows over many runs is told."""

import pytest

import lab.__main__
from lab import soak
from lab.errors import LabError
from lab.faults import actions, record
from lab.faults.record import Applied
from lab.interrupts import Interrupts
from lab.progress import Progress
from lab.soak import Use

STEADY = [Use(100.0, 0, 0, 3), Use(101.0, 0, 0, 3), Use(99.0, 0, 0, 3), Use(102.0, 0, 0, 3)]


@pytest.mark.parametrize("number", ["0", "-3", "x", "1.5", "²", ""])
def test_a_number_of_runs_that_is_none_is_refused(number, capsys):
    with pytest.raises(SystemExit) as refused:
        lab.__main__.main(["soak", "--", number])

    assert refused.value.code == 2
    assert f"argument N: expected a whole number of at least 1, not '{number}'" in capsys.readouterr().err


def test_a_soak_beside_a_fault_is_refused(monkeypatch):
    monkeypatch.setattr(record, "applied", lambda: {"route-missing": Applied({})})

    with pytest.raises(LabError, match="route-missing is applied: python -m lab fault revert route-missing"):
        soak.soak(1, None, None, Interrupts())


def test_load_that_could_be_made_in_part_is_taken_away(monkeypatch):
    there: dict[str, Applied] = {}

    def apply(fault, _, *, alone):
        there[fault.name] = Applied({})
        if len(there) == 2:
            raise LabError("the second one could not be made")

    monkeypatch.setattr(record, "applied", lambda: dict(there))
    monkeypatch.setattr(actions, "apply", apply)
    monkeypatch.setattr(actions, "revert", lambda fault, _: there.pop(fault.name))

    with pytest.raises(LabError, match="could not be made"):
        soak.soak(1, None, Progress(), Interrupts())
    assert not there


def test_what_varies_a_little_does_not_grow():
    assert soak.grown(STEADY) == []
    assert soak.grown(STEADY[:1]) == []


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (Use(100.0, 1, 0, 3), "processes grew: 0 after the first run, 1 after the last"),
        (Use(100.0, 0, 2, 3), "files grew: 0 after the first run, 2 after the last"),
        (Use(100.0, 0, 0, 4), "connections grew: 3 after the first run, 4 after the last"),
    ],
)
def test_a_count_that_is_higher_in_the_end_has_grown(last, said):
    assert soak.grown([*STEADY, last]) == [said]


def test_memory_that_climbs_has_grown():
    used = [Use(100.0 + 10 * number, 0, 0, 0) for number in range(8)]

    assert soak.grown(used) == ["memory grew: 120 MiB in the first half, 160 MiB in the second"]
