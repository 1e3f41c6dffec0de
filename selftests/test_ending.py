"""A run that somebody ends by a signal undoes what it began."""

import os
import pathlib
import signal
import subprocess
import sys

import at_a_terminal
import pytest

PROJECT = pathlib.Path(__file__).parent.parent
SUITE = """
import signal, pytest

@pytest.fixture(scope="session")
def begun():
    yield
    print("undone")

def test_it(begun):
    print("begun", flush=True)
    signal.sigtimedwait([signal.SIGUSR1], 60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_what_was_begun_is_undone(number, tmp_path):
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["fixtures.ending"]\n', encoding="utf-8")
    (tmp_path / "test_it.py").write_text(SUITE, encoding="utf-8")
    argv = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", "test_it.py"]
    with subprocess.Popen(
        argv, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(PROJECT)},
        preexec_fn=at_a_terminal.signals,
    ) as run:  # fmt: skip
        assert run.stdout is not None
        assert "begun" in run.stdout.readline()
        run.send_signal(number)
        said = run.stdout.read()

    assert "undone" in said
    assert run.returncode == pytest.ExitCode.INTERRUPTED


WITHIN = """
import signal, pytest

SIGNALS = (signal.SIGTERM, signal.SIGHUP)

def test_outer():
    before = [signal.getsignal(number) for number in SIGNALS]
    assert signal.SIG_DFL not in before
    assert pytest.main(["-q", "-s", "-p", "no:cacheprovider", __file__ + "::test_inner"]) == 0
    assert [signal.getsignal(number) for number in SIGNALS] == before

def test_inner():
    assert True
"""


def test_a_run_within_a_run_leaves_the_outer_ones_signals_as_they_are(tmp_path):
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["fixtures.ending"]\n', encoding="utf-8")
    (tmp_path / "test_within.py").write_text(WITHIN, encoding="utf-8")
    outer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", "test_within.py::test_outer"],
        cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(PROJECT)},
        preexec_fn=at_a_terminal.signals, timeout=60,
    )  # fmt: skip

    assert outer.returncode == 0, outer.stdout
