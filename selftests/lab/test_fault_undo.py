"""A few faults are made on the lab, one of each kind, and turn red what they declare and nothing else; `make faults` makes all of them."""

import os
import subprocess
import sys

import pytest

from lab.faults.catalogue import load
from lab.paths import PROJECT

pytestmark = [pytest.mark.lab, pytest.mark.skipif(os.geteuid() != 0, reason="the lab is root's")]

ONE = "clusterip-on-an-interface"
QUICK = [name for name, fault in load().items() if fault.quick]


def lab(*words: str, timeout: float = 3000) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "lab", *words], cwd=PROJECT, capture_output=True, text=True, timeout=timeout, check=False)


@pytest.fixture(scope="module", autouse=True)
def a_lab():
    """The lab is up, and no fault is left applied."""
    up = lab("up")
    assert up.returncode == 0, up.stderr[-3000:]
    yield
    assert lab("fault", "revert").returncode == 0


def test_a_few_faults_turn_red_what_they_declare_and_nothing_else():
    done = lab("fault", "check", "--again", "--together", *QUICK)

    assert done.returncode == 0, done.stderr[-6000:]
    assert f"{len(QUICK)} faults, each as declared, and all is green again" in done.stderr


def test_a_fault_that_is_left_applied_is_known_and_reverted_without_its_name():
    assert lab("fault", "apply", ONE).returncode == 0
    again = lab("fault", "apply", ONE)
    listed = lab("fault", "list")
    reverted = lab("fault", "revert")

    assert again.returncode == 1
    assert f"{ONE} is applied already" in again.stderr
    assert f"{ONE} (applied)" in listed.stdout
    assert reverted.returncode == 0
    assert f"{ONE} is taken back" in reverted.stderr
    assert "10.43.0.10" not in lab("exec", "worker1", "--", "ip", "address").stdout


def test_a_name_that_there_is_not_is_one_line():
    done = lab("fault", "apply", "no-such-fault")

    assert (done.returncode, done.stderr) == (1, "lab: no fault named 'no-such-fault': python -m lab fault list\n")
