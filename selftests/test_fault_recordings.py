"""What was recorded of faults on the lab turns red, when it is judged again, what the table of faults declares, and nothing else.

    data/faults/healthy.tar.zst, healthy-SETUP.tar.zst      the lab without a fault, in its own set-up and in others
    data/faults/NAME.tar.zst                                the lab with the fault of this name

To make them anew: ``python -m lab fault check --record-to=selftests/data/faults NAME …``. Of each kind of fault there are one or two:
a recording has a quarter of a megabyte, and takes seconds to judge. `make faults` makes and judges all of them, on the lab.
"""

import contextlib
import functools
import io
import json
import pathlib

import pytest

from lab.faults import check, compare, suite
from lab.faults.catalogue import load

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = pathlib.Path(__file__).parent / "data" / "faults"
FAULTS = load()
RECORDED = sorted(path.name.removesuffix(".tar.zst") for path in FOLDER.iterdir() if not path.name.startswith("healthy"))


@functools.cache
def replayed(name: str, folder: pathlib.Path) -> tuple[suite.Judged, ...]:
    """What a recording gives, judged in this process; the reports go to the folder."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        pytest.main(
            [f"--replay={FOLDER / name}.tar.zst", f"--rootdir={ROOT}", f"-c{ROOT}/pytest.ini", "-q", "-p", "no:html", "-p",
             "no:cacheprovider", "--capture=no", f"--reports={folder / name}", str(ROOT / "tests")],
        )  # fmt: skip
    facts = folder / name / "facts.json"
    assert facts.exists(), said.getvalue()[-3000:]
    return suite.judged(json.loads(facts.read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


def healthy(setup: str, reports: pathlib.Path) -> compare.Healthy:
    """The verdicts of a set-up without a fault, all of which hold."""
    run = replayed(check.healthy_name(setup), reports)
    assert [judged for judged in run if judged.outcome in compare.RED] == []
    return {(judged.conclusion, judged.case): judged for judged in run}


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_fault_turns_red_what_the_table_declares_and_nothing_else(name, reports):
    fault = FAULTS[name]

    wrong = compare.wrong(fault, replayed(name, reports), check.comparable(healthy(fault.setup, reports), fault))

    assert wrong == []


def test_the_recorded_faults_are_of_every_kind():
    assert {FAULTS[name].group for name in RECORDED} == {fault.group for fault in FAULTS.values()}
