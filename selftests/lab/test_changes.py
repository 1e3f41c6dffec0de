"""The running lab is changed and changed back, each time to a state that was seen. The slower changes are in `make upgrades`."""

import os
import subprocess
import sys

import pytest
import yaml

from lab import state
from lab.paths import INVENTORY, PROJECT

pytestmark = [pytest.mark.lab, pytest.mark.skipif(os.geteuid() != 0, reason="the lab is root's")]


def lab(*words: str, timeout: float = 900) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "lab", *words], cwd=PROJECT, capture_output=True, text=True, timeout=timeout, check=False)


@pytest.fixture(autouse=True)
def own_set_up():
    """See to it that the lab is up, and that it has its own set-up again afterwards."""
    assert lab("up", timeout=2700).returncode == 0
    yield
    done = lab("set", "proxy-mode=iptables", "kpr=false")
    assert done.returncode == 0, done.stderr


def on_master(*command: str) -> str:
    return lab("exec", "master", "--", *command).stdout


def test_kube_proxy_changes_its_mode_and_its_rules_and_the_inventory_follows():
    done = lab("set", "proxy-mode=nftables")
    assert done.returncode == 0, done.stderr
    assert on_master("curl", "-s", "http://127.0.0.1:10249/proxyMode") == "nftables"
    assert "KUBE-SVC" not in on_master("iptables-save")
    assert yaml.safe_load(INVENTORY.read_text(encoding="utf-8"))["expect"]["proxy_mode"] == "nftables"
    before = state.read()
    again = lab("set", "proxy-mode=nftables")
    assert again.returncode == 0
    assert "already" in again.stderr
    assert state.read() == before
    assert lab("set", "proxy-mode=iptables").returncode == 0
    assert "KUBE-SVC" in on_master("iptables-save")
    assert "kube-proxy" not in on_master("nft", "list", "tables")
    assert lab("status").returncode == 0


def test_a_kube_proxy_is_restarted_where_it_was_asked_for():
    before = state.read()
    done = lab("restart", "kube-proxy", "worker1")
    assert done.returncode == 0, done.stderr
    after = state.read()
    changed = {name for name in after.components if after.components[name] != before.components[name]}
    assert changed == {"worker1"}


def test_words_that_are_no_change_leave_the_lab_alone():
    before = state.read()
    for words in (["set", "kpr=maybe"], ["upgrade", "cilium", "9.9.9"], ["restart", "kube-proxy", "worker9"], ["reboot", "lan-client"]):
        done = lab(*words)
        assert done.returncode in (1, 2)
        assert done.stderr.count("\n") == 1
        assert done.stderr.startswith("lab: ")
    assert state.read() == before
