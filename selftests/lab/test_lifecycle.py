"""The lab comes, stays and goes as promised, also when it is killed on its way or from outside.

These take the lab down and bring it up again: they need root and a machine on which nobody uses the lab meanwhile.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lab import cgroups, state
from lab.paths import INVENTORY, PROJECT, RUN, TIMINGS, logs
from selftests.lab import traces

pytestmark = [pytest.mark.lab, pytest.mark.skipif(os.geteuid() != 0, reason="the lab is root's")]

LAB = [sys.executable, "-m", "lab"]
# Seconds: the first `up` on a machine builds Kubernetes and Cilium, a quarter of an hour on two cores.
NOTHING = traces.Traces(*[frozenset()] * 6)


def lab(*words: str, timeout: float = 2700) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*LAB, *words], cwd=PROJECT, capture_output=True, text=True, timeout=timeout, check=False)


@pytest.fixture
def no_lab() -> Iterator[traces.Traces]:
    """Take the lab down for a test, give the machine's traces without it, and leave it up and well afterwards."""
    assert lab("down").returncode == 0
    yield traces.take()
    assert lab("up").returncode == 0


@pytest.fixture
def a_lab() -> None:
    """See to it that the lab is up."""
    done = lab("up")
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("a_lab")
def test_a_second_up_says_so_and_is_quick():
    before = state.read()
    begun = time.monotonic()
    done = lab("up")
    assert done.returncode == 0
    assert "already up and well" in done.stderr
    assert time.monotonic() - begun < 5
    assert state.read() == before


@pytest.mark.usefixtures("a_lab")
def test_the_inventory_names_files_that_are_there():
    inventory = yaml.safe_load(INVENTORY.read_text(encoding="utf-8"))
    assert (RUN / inventory["kubeconfig"]).exists()
    assert (RUN / inventory["ssh"]["config"]).exists()
    assert set(inventory["nodes"]) == {"master", "worker1", "worker2"}


@pytest.mark.usefixtures("a_lab")
def test_the_suites_user_has_the_rights_of_the_documents_and_no_more():
    def allowed(*words: str) -> bool:
        argv = ["kubectl", "auth", "can-i", *words, "--as", "servicepath"]
        return lab(*argv).stdout.strip() == "yes"

    assert allowed("list", "services", "-A")
    assert allowed("create", "pods", "--subresource=exec", "-n", "kube-system")
    assert allowed("create", "services", "-n", "servicepath-test")
    assert not allowed("create", "services", "-n", "default")
    assert not allowed("create", "pods", "--subresource=exec", "-n", "default")
    assert not allowed("list", "secrets", "-n", "kube-system")


@pytest.mark.parametrize("host", ["master", "worker1", "worker2", "lan-client"])
@pytest.mark.usefixtures("a_lab")
def test_ssh_lands_in_the_hosts_own_cgroup(host: str):
    script = "cat /proc/self/cgroup; hostname; id -u"
    argv = ["ssh", "-F", str(RUN / "ssh/config"), host, "sudo", "-n", "/bin/sh", "-c", f"'{script}'"]
    said = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True).stdout.splitlines()
    assert said[-2:] == [host, "0"]
    pids = {pid for folder in cgroups.folders(host) for pid in cgroups.processes(folder)}
    listener = (Path(f"/proc/{state.read().inits[host].pid}/root/run/sshd.pid")).read_text(encoding="ascii").strip()
    assert any(state.inner_pid(pid) == int(listener) for pid in pids)


def test_down_leaves_nothing(no_lab: traces.Traces):
    done = lab("up")
    assert done.returncode == 0, done.stderr
    assert TIMINGS.exists()
    done = lab("down")
    assert done.returncode == 0, done.stderr
    assert traces.of_the_lab() == NOTHING
    assert traces.take() == no_lab
    assert (logs() / "master" / "kube-apiserver.log").exists()


def test_a_second_down_says_that_there_is_no_lab(no_lab: traces.Traces):
    done = lab("down")
    assert done.returncode == 0
    assert "there is no lab" in done.stderr
    assert lab("status").returncode == 3
    assert traces.take() == no_lab


@pytest.mark.parametrize("after", [0.3, 1.0, 4.0, 12.0])
def test_down_after_up_was_killed_on_its_way(no_lab: traces.Traces, after: float):
    with subprocess.Popen([*LAB, "up"], cwd=PROJECT, stderr=subprocess.DEVNULL) as up:
        with pytest.raises(subprocess.TimeoutExpired):
            up.wait(after)
        up.send_signal(signal.SIGKILL)
    done = lab("down")
    assert done.returncode == 0, done.stderr
    assert traces.of_the_lab() == NOTHING
    assert traces.take() == no_lab


def test_a_dead_lab_is_cleared_away_by_the_next_up(no_lab: traces.Traces):
    assert lab("up").returncode == 0
    for init in state.read().inits.values():
        os.kill(init.pid, signal.SIGKILL)
    assert lab("status").returncode == 1
    done = lab("up")
    assert done.returncode == 0, done.stderr
    assert "clearing away" in done.stderr
    assert lab("down").returncode == 0
    assert traces.take() == no_lab


def test_a_crashed_component_is_named_with_its_log(no_lab: traces.Traces):
    assert lab("up").returncode == 0
    assert lab("exec", "worker2", "--", "sh", "-c", "kill -9 $(cat /run/servicepath/kube-proxy.pid)").returncode == 0
    done = lab("status")
    assert done.returncode == 1
    assert "kube-proxy on worker2 has ended" in done.stdout
    assert "kube-proxy.log" in done.stdout
    assert lab("down").returncode == 0
    assert traces.take() == no_lab
