"""What has ended is told with its log's last line, and ends a wait at once."""

import os
import subprocess
from pathlib import Path

import pytest

from lab import cluster, paths, status
from lab.api import ApiError
from lab.errors import LabError
from lab.state import Process, State, start_time
from lab.waiting import until


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> State:
    """Return a lab of one host, whose process 1 is this process, with one component that runs and one that has ended."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    log = paths.logs() / "master" / "kubelet.log"
    log.parent.mkdir(parents=True)
    log.write_text("kubelet begins\ntoo many open files\n")
    me = Process(os.getpid(), start_time(os.getpid()) or 0)
    child = subprocess.Popen(["true"])
    child.wait()
    return State(inits={"master": me}, components={"master": {"etcd": me, "kubelet": Process(child.pid, 1)}})


def test_an_ended_component_is_named_with_its_last_words_and_log(started: State):
    log = paths.logs() / "master" / "kubelet.log"
    assert status.ended(started) == [f"kubelet on master has ended: too many open files (see {log})"]


def test_an_ended_host_is_named(started: State):
    started.inits["master"] = Process(os.getpid(), 1)
    assert status.ended(started) == ["the host master has ended"]


def test_nobody_waits_for_what_an_ended_component_should_bring(started: State):
    asked: list[None] = []

    def check() -> str:
        asked.append(None)
        return "nodes that are not Ready: master"

    with pytest.raises(LabError, match="kubelet on master has ended: too many open files"):
        until(lambda: cluster.unless_ended(started, check), "the nodes", seconds=3600)
    assert not asked


def test_while_all_run_the_check_decides(started: State):
    del started.components["master"]["kubelet"]
    assert cluster.unless_ended(started, lambda: "not yet") == "not yet"


def test_a_busy_api_server_is_waited_for_and_a_refusal_is_not(started: State):
    del started.components["master"]["kubelet"]
    answers = iter([ApiError("GET /api/v1/pods: The read operation timed out"), None])

    def check() -> None:
        answer = next(answers)
        if answer:
            raise answer

    until(lambda: cluster.unless_ended(started, check), "the Pods", seconds=3600, every=0)

    def refused() -> None:
        raise ApiError("GET /api/v1/pods: 403 Forbidden", 403)

    with pytest.raises(ApiError, match="403"):
        cluster.unless_ended(started, refused)
