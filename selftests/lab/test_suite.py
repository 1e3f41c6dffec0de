"""The suite on the lab: every conclusion judged and green with its evidence, and the notes' own counts reproduced."""

import json
import os
import subprocess
import sys

import pytest

from lab.paths import PROJECT
from selftests.test_lint import CONCLUSIONS, OTHER_SETUPS

pytestmark = [pytest.mark.lab, pytest.mark.skipif(os.geteuid() != 0, reason="the lab is root's")]

NOTES_PORT = "kube-dns:dns/UDP"


@pytest.fixture(scope="module")
def facts():
    """What one run with everything on it found; the lab is brought up for it when it is not."""
    up = subprocess.run([sys.executable, "-m", "lab", "up"], cwd=PROJECT, capture_output=True, text=True, timeout=3000, check=False)
    assert up.returncode == 0, up.stderr[-3000:]
    argv = [sys.executable, "-m", "pytest", "-q", "--disruptive", "tests"]
    done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return json.loads((PROJECT / "reports" / "facts.json").read_text(encoding="utf-8"))


def exhibit(facts, conclusion, title):
    """The lines of a piece of evidence of the notes' own case: kube-dns over UDP, asked on master."""
    verdict = next(v for v in facts["verdicts"] if v["conclusion"] == conclusion and (v["node"], v["port"]) == ("master", NOTES_PORT))
    return next(e["lines"] for e in verdict["exhibits"] if e["title"].startswith(title))


def test_every_conclusion_is_judged_and_holds(facts):
    held = {v["conclusion"] for v in facts["verdicts"] if v["outcome"] == "passed"}

    assert held == CONCLUSIONS - OTHER_SETUPS
    assert {v["outcome"] for v in facts["verdicts"]} == {"passed", "skipped"}


def test_each_verdict_shows_evidence(facts):
    passed = [v for v in facts["verdicts"] if v["outcome"] == "passed"]
    bare = [(v["conclusion"], v["case"]) for v in passed if not any(e["lines"] for e in v["exhibits"])]

    assert bare == []


def test_ten_host_queries_are_ten_packets_and_1050_bytes(facts):
    summary = exhibit(facts, "host-counted-by-iptables", "Counters")[0]

    assert "KUBE-SVC +10 packets +1050 bytes, KUBE-SEP +10 packets +1050 bytes" in summary
    assert "KUBE-MARK-MASQ +10 packets +1050 bytes" in summary


def test_five_pod_queries_leave_the_counters_and_one_host_query_adds_105_bytes(facts):
    assert len(exhibit(facts, "pod-leaves-counters", "The Pod's flows")) == 5
    assert "KUBE-SVC +0 packets +0 bytes" in exhibit(facts, "pod-leaves-counters", "Counters around the Pod's flows")[0]
    assert "KUBE-SVC +1 packets +105 bytes" in exhibit(facts, "pod-leaves-counters", "Counters around the host's control flow")[0]


def test_at_most_four_round_trips_a_node_and_phase(facts):
    quiet = {phase: nodes for phase, nodes in facts["phases"].items() if not phase.startswith(("service-", "outage"))}

    assert quiet
    assert max(seen["round_trips"] for nodes in quiet.values() for seen in nodes.values()) <= 4


@pytest.mark.parametrize("node", ["master", "worker1", "worker2"])
def test_nothing_is_left_on_a_node(facts, node):
    argv = [sys.executable, "-m", "lab", "exec", node, "--", "sh", "-c", "ls /tmp; ps -eo comm"]
    said = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, timeout=30, check=True).stdout.split()

    assert [word for word in said if word.startswith("servicepath-")] == []
    assert "tcpdump" not in said
    assert "containerd" in said  # the control: the listing shows what does run


@pytest.mark.parametrize("folder", ["/var/lib/etcd", "/etc/cni/net.d"])
def test_what_this_machine_keeps_for_a_cluster_of_its_own_is_none_of_the_labs(facts, folder):
    argv = [sys.executable, "-m", "lab", "exec", "master", "--", "stat", "--file-system", "--format=%T", folder]
    done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.split() == ["tmpfs"]
