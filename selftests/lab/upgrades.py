"""Real changes of the running lab, each under watch, with a run before and after: `make upgrades`. Every difference is explained.

Not collected by `make test`: each change takes minutes. `pytest selftests/lab/upgrades.py -k nftables` makes one of them.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lab.paths import INVENTORY, PROJECT

pytestmark = [pytest.mark.lab, pytest.mark.skipif(os.geteuid() != 0, reason="the lab is root's")]

# Facts that a change of the set-up changes with it, whatever it is.
MAY_CHANGE = [
    {"fact": "translated by", "is": "tolerated", "because": "another set-up translates elsewhere"},
    {"fact": "kube-proxy's backends", "is": "tolerated", "because": "without kube-proxy in iptables mode it has no chains to tell them by"},
    {"fact": "chains", "is": "tolerated", "because": "another set-up has other chains"},
    {"fact": "addresses at the Pod's device, *", "is": "tolerated", "because": "with socket LB the packet knows the backend alone"},
    {"fact": "KubeProxyReplacement's details", "is": "tolerated", "because": "they follow it"},
]
# What may be felt: an agent that restarts loads its programs anew; kube-proxy that changes its mode removes its rules before it has others.
FELT = [{"fact": "felt while it changed", "is": "tolerated", "because": "how much, the page shows"}]


def fact(name: str, before: str, after: str) -> dict[str, str]:
    return {"fact": name, "from": before, "to": after, "is": "expected", "because": "this is the change"}


MODE = "kube-proxy's mode"
ON, OFF = [fact("socket LB", "Disabled", "Enabled")], [fact("socket LB", "Enabled", "Disabled")]

# Name → the lab's commands one after the other, each with the facts that it must change.
CHANGES = {
    "cilium-1.19.5": [
        (["upgrade", "cilium", "1.19.5"], [fact("Cilium", "1.19.1", "1.19.5")]),
        (["upgrade", "cilium", "1.19.1"], [fact("Cilium", "1.19.5", "1.19.1")]),
    ],
    "cilium-1.18.6": [
        (["upgrade", "cilium", "1.18.6"], [fact("Cilium", "1.19.1", "1.18.6")]),
        (["upgrade", "cilium", "1.19.1"], [fact("Cilium", "1.18.6", "1.19.1")]),
    ],
    "kpr": [
        (["set", "kpr=true"], [fact("KubeProxyReplacement", "False", "True"), fact(MODE, "iptables", "no kube-proxy"), *ON]),
        (["set", "kpr=false"], [fact("KubeProxyReplacement", "True", "False"), fact(MODE, "no kube-proxy", "iptables"), *OFF]),
    ],
    "socket-lb": [
        (["set", "socket-lb=on"], ON),
        (["set", "socket-lb=off"], OFF),
    ],
    "nftables": [
        (["set", "proxy-mode=nftables"], [fact(MODE, "iptables", "nftables")]),
        (["set", "proxy-mode=iptables"], [fact(MODE, "nftables", "iptables")]),
    ],
    "kube-proxy-restart": [(["restart", "kube-proxy"], [])],
    "reboot": [(["reboot", "worker2"], [])],
}
STEPS = [
    pytest.param(words, facts, id=f"{name}-{number}")
    for name, steps in CHANGES.items()
    for number, (words, facts) in enumerate(steps, 1)
]


def run(*argv: str, timeout: float = 1800) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", *argv], cwd=PROJECT, capture_output=True, text=True, timeout=timeout, check=False)


def baseline(path: Path) -> None:
    """Run every conclusion that breaks nothing, and keep what it found."""
    done = run("pytest", "-q", f"--baseline-out={path}", "tests")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.fixture(scope="module", autouse=True)
def own_set_up():
    """Begin with the lab's own set-up, and end with it."""
    assert run("lab", "up", timeout=3600).returncode == 0
    own = ["set", "kpr=false", "proxy-mode=iptables"]
    assert run("lab", *own).returncode == 0
    yield
    assert run("lab", "upgrade", "cilium", "1.19.1").returncode == 0
    assert run("lab", *own).returncode == 0


@pytest.mark.parametrize(("words", "facts"), STEPS)
def test_a_change_is_explained(words, facts, request):
    folder = PROJECT / "reports" / "upgrades" / request.node.callspec.id
    folder.mkdir(parents=True, exist_ok=True)
    rules = folder / "rules.yaml"
    rules.write_text(yaml.safe_dump({"upgrade": {"expect": [*facts, *MAY_CHANGE, *FELT]}}), encoding="utf-8")
    baseline(folder / "before.json")
    files = [f"--json={folder / 'watch.json'}", f"--html={folder / 'watch.html'}"]
    watching = [sys.executable, "-m", "servicepath.watch", f"--inventory={INVENTORY}", "--for=1h", *files]
    with subprocess.Popen(watching, cwd=PROJECT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as watch:
        begun = watch.stderr.readline()
        changed = run("lab", *words, timeout=3600)
        watch.send_signal(signal.SIGINT)
        said = watch.communicate(timeout=300)
    assert "asking" in begun
    assert changed.returncode == 0, changed.stderr
    assert watch.returncode == 0, said
    baseline(folder / "after.json")
    files = [f"--json={folder / 'comparison.json'}", f"--html={folder / 'comparison.html'}"]
    done = run(
        "servicepath.compare", str(folder / "before.json"), str(folder / "after.json"), f"--watch={folder / 'watch.json'}",
        f"--inventory={rules}", *files,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
    expected = {each["name"] for each in found["facts"] if each["standing"] == "expected"}
    assert {each["fact"] for each in facts} <= expected


def test_a_broken_dataplane_after_a_change_is_a_regression():
    """Cilium's agents were restarted, and one node's load-balancing map lacks an entry: what the comparison is there to find."""
    folder = PROJECT / "reports" / "upgrades" / "broken"
    folder.mkdir(parents=True, exist_ok=True)
    baseline(folder / "before.json")
    assert run("lab", "restart", "cilium").returncode == 0
    try:
        assert run("lab", "fault", "apply", "map-entry-deleted").returncode == 0
        after = run("pytest", "-q", f"--baseline-out={folder / 'after.json'}", "tests")
    finally:
        assert run("lab", "fault", "revert").returncode == 0
    assert after.returncode == 1, after.stdout[-3000:]
    files = [f"--json={folder / 'comparison.json'}", f"--html={folder / 'comparison.html'}"]
    done = run("servicepath.compare", str(folder / "before.json"), str(folder / "after.json"), *files)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "pod-translated-by-ebpf" in done.stdout
