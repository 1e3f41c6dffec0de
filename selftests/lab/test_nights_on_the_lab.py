"""Nights on the lab: kept and told; and two at once, from two folders, kept apart by the Lease in the cluster alone."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from lab.paths import INVENTORY, PROJECT

pytestmark = [pytest.mark.lab, pytest.mark.skipif(os.geteuid() != 0, reason="the lab is root's")]

LEASE = ["-n", "servicepath-test", "get", "lease", "servicepath-nightly", "-o", "json"]


@pytest.fixture(scope="module", autouse=True)
def a_lab():
    """The lab is up."""
    up = subprocess.run([sys.executable, "-m", "lab", "up"], cwd=PROJECT, capture_output=True, text=True, timeout=3000, check=False)
    assert up.returncode == 0, up.stderr[-3000:]


def nightly(state, *arguments):
    """The command of one night that looks at little, with a folder of its own."""
    own = [f"--state={state}", f"--inventory={INVENTORY}", *arguments, "--", "-k", "no_interface or endpoints_ready"]
    return [sys.executable, "-m", "servicepath.nightly", *own]


def night(state, *arguments):
    return subprocess.run(nightly(state, *arguments), cwd=PROJECT, capture_output=True, text=True, timeout=600, check=False)


def holder():
    """Who holds the Lease; None while nobody does."""
    done = subprocess.run([sys.executable, "-m", "lab", "kubectl", *LEASE], cwd=PROJECT, capture_output=True, text=True, check=False)
    return json.loads(done.stdout)["spec"].get("holderIdentity") or None if done.returncode == 0 else None


def begun(state):
    """A night that runs, and holds the Lease by now."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(nightly(state), cwd=PROJECT, text=True, start_new_session=True, **pipes)
    end = time.monotonic() + 120
    while holder() is None:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.1)
    return process


def test_a_night_is_kept_and_told_in_one_line(tmp_path):
    done = night(tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert ": held: 2 conclusions" in done.stdout
    assert done.stdout.count("\n") == 1
    kept = {path.name for path in tmp_path.rglob("*")}
    assert kept >= {"history.html", "history.sqlite", "report.html", "junit.xml", "facts.json", "baseline.json", "recording.tar.zst"}
    assert holder() is None


def test_the_second_of_two_says_who_is_at_it(tmp_path):
    first = begun(tmp_path / "one")
    os.killpg(first.pid, signal.SIGSTOP)  # so that it is at it for as long as the second one looks
    try:
        second = night(tmp_path / "two")
    finally:
        os.killpg(first.pid, signal.SIGCONT)

    said = first.communicate(timeout=300)
    assert first.returncode == 0, said
    assert second.returncode == 75, second.stdout + second.stderr
    assert "another run is at this cluster: " in second.stderr
    assert str(first.pid) in second.stderr
    assert second.stderr.count("\n") == 1
    assert not list((tmp_path / "two").glob("nights/*"))


def test_the_lease_of_a_killed_run_frees_itself(tmp_path):
    first = begun(tmp_path / "one")
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()

    after = night(tmp_path / "one", "--wait=300")

    assert after.returncode == 0, after.stdout + after.stderr
    assert holder() is None
