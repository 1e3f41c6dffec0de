"""The suite run on a node of the lab itself, without ssh, and with a kubeconfig that only root may read on a node."""

import json
import os
import subprocess
import sys

import pytest

from lab.paths import PROJECT, SSH, SUITE_KUBECONFIG
from selftests.lab import inside

pytestmark = [pytest.mark.lab, pytest.mark.skipif(os.geteuid() != 0, reason="the lab is root's")]

LOOPBACK = "https://127.0.0.1:6443"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of the project's own, so that a node sees it, too; with the suite's kubeconfig as k3s writes its own."""
    up = subprocess.run([sys.executable, "-m", "lab", "up"], cwd=PROJECT, capture_output=True, text=True, timeout=3000, check=False)
    assert up.returncode == 0, up.stderr[-3000:]
    made = PROJECT / "reports" / tmp_path_factory.mktemp("on-a-node").name
    made.mkdir(parents=True)
    text = SUITE_KUBECONFIG.read_text(encoding="utf-8").replace("https://192.168.55.10:6443", LOOPBACK)
    assert LOOPBACK in text
    (made / "kubeconfig.yaml").write_text(text, encoding="utf-8")
    (made / "kubeconfig.yaml").chmod(0o600)
    yield made
    for path in made.iterdir():
        path.unlink()
    made.rmdir()


def outcomes(command, folder):
    """What the run that the command begins judged; the command's own pytest arguments come first."""
    argv = [*command, f"--inventory={folder / 'inventory.yaml'}", "-q", "tests"]
    done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return json.loads((PROJECT / "reports" / "facts.json").read_text(encoding="utf-8"))


def test_a_run_on_the_node_itself_needs_no_ssh_and_skips_what_takes_another_node_or_a_lan_host(folder):
    lines = ["kubeconfig_from:", "  node: master", f"  path: {folder / 'kubeconfig.yaml'}", "nodes:", "  master: {connection: local}"]
    (folder / "inventory.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    script = f'cd {PROJECT} && exec {sys.executable} -m pytest "$@"'
    with inside.shown("master", PROJECT):
        facts = outcomes([sys.executable, "-m", "lab", "exec", "master", "--", "sh", "-c", script, "pytest"], folder)

    told = {v["conclusion"]: v for v in facts["verdicts"]}
    assert {v["outcome"] for v in facts["verdicts"]} == {"passed", "skipped"}
    assert "no other node to compare with" in told["rules-equal-on-nodes"]["message"]
    assert "the machine that runs pytest is a node" in told["lan-host-has-neither"]["message"]
    assert {v["node"] for v in facts["verdicts"] if v["outcome"] == "passed"} == {None, "master"}
    for conclusion in ("no-listener", "host-counted-by-iptables", "pod-translated-by-ebpf", "tunnel-endpoints", "chain-names"):
        assert "passed" in {v["outcome"] for v in facts["verdicts"] if v["conclusion"] == conclusion}


def test_the_kubeconfig_is_read_from_a_node_as_root_and_its_loopback_is_replaced(folder):
    lines = ["kubeconfig_from:", "  node: master", "  path: /etc/servicepath-selftest.yaml", "ssh:", "  user: servicepath"]
    lines += [f"  config: {SSH / 'config'}", "nodes:", "  worker1: {}"]
    (folder / "inventory.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    master = [sys.executable, "-m", "lab", "exec", "master", "--", "sh", "-c"]
    put = "umask 077; cat > /etc/servicepath-selftest.yaml"
    subprocess.run([*master, put], cwd=PROJECT, input=(folder / "kubeconfig.yaml").read_bytes(), timeout=60, check=True)
    try:
        facts = outcomes([sys.executable, "-m", "pytest", "-k", "chain_names or no_interface"], folder)
    finally:
        subprocess.run([*master, "rm /etc/servicepath-selftest.yaml"], cwd=PROJECT, timeout=60, check=True)

    assert {(v["node"], v["outcome"]) for v in facts["verdicts"]} == {("worker1", "passed")}
