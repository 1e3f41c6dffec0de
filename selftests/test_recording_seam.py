"""What a recording holds answers as the cluster did; what it does not hold is NotRecorded, at whatever granularity."""

import copy

import pytest

from servicepath.observation import CouldNotSee, NotRecorded, Observation, Trouble, Unrecorded
from servicepath.recording import codec
from servicepath.recording.model import Cost, Recording
from servicepath.recording.replay import ReplayingChannel, ReplayingClock, ReplayingCluster, ReplayingPlans


def said(name, text="", node="a", status=0, error=""):
    return Observation(node, name, ("x", name), status, text.encode(), error.encode(), 1.5, 0.25)


REFUSED = Trouble("a", "ssh: connection refused", "ssh a", "output", "is sshd running?")
WHOLE = Recording(
    nodes={"a": {"snapshot-1": {"second": said("second", "2"), "first": said("first", "1", status=None, error="late")}, "lan-1": REFUSED}},
    api={"discover-1": {"version": said("version", "{}", "api"), "pods": Trouble("api", "no answer")}},
    agents={"a": {"state-1": {"agent-status": said("agent-status", "\xe9")}}},
    plans={"a": {"traffic-1": {"probes": []}, "traffic-2": REFUSED}},
    clock={"service-created": (1.0, 2.5)},
    costs={"a": {"snapshot-1": Cost(0.5, 3), "lan-1": Cost(0.1, 0)}},
    source="x",
)


def test_a_recording_is_the_same_when_it_was_written_and_read():
    back = codec.decode(dict(codec.encode(WHOLE)), "x")

    assert back == WHOLE
    assert list(back.nodes["a"]["snapshot-1"]) == ["second", "first"]


def test_each_batch_of_a_phase_has_the_phases_next_round():
    channel = ReplayingChannel("a", WHOLE)

    assert channel.run([], timeout=1, phase="snapshot")["first"].error_text == "late"
    with pytest.raises(CouldNotSee, match="connection refused"):
        channel.run([], timeout=1, phase="lan")
    with pytest.raises(NotRecorded, match="not in this recording: nodes/a/snapshot-2"):
        channel.run([], timeout=1, phase="snapshot")
    assert [(trip.phase, trip.took) for trip in channel.log] == [("snapshot", 0.5), ("lan", 0.1)]


def test_a_single_observation_that_is_not_there_is_not_recorded():
    answers = ReplayingChannel("a", WHOLE).run([], timeout=1, phase="snapshot")

    for each in (answers, copy.copy(answers)):
        assert "third" not in each
        with pytest.raises(NotRecorded, match="nodes/a/snapshot-1/third"):
            each["third"]


def test_the_api_the_agents_and_the_clock_answer_from_the_recording():
    cluster, clock = ReplayingCluster(WHOLE), ReplayingClock(WHOLE)

    assert cluster.get("version", "/version", phase="discover").text == "{}"
    with pytest.raises(CouldNotSee, match="no answer"):
        cluster.get("pods", "/api/v1/pods", phase="discover")
    with pytest.raises(NotRecorded, match="api/discover-1/nodes"):
        cluster.get("nodes", "/api/v1/nodes", phase="discover")
    found = cluster.exec_in_agents({}, {"a": (), "b": ()}, phase="state")
    assert found["a"]["agent-status"].text == "\xe9"
    assert isinstance(found["b"], Unrecorded)
    assert [clock.now("service-created"), clock.now("service-created")] == [1.0, 2.5]
    with pytest.raises(NotRecorded):
        clock.now("service-created")


def test_a_plan_that_was_none_is_none_again():
    plans = ReplayingPlans(WHOLE)

    with pytest.raises(CouldNotSee, match="save_tool"):
        plans.plan("a", "traffic", _NoObjects(), None)
    with pytest.raises(CouldNotSee, match="connection refused"):
        plans.plan("a", "traffic", _NoObjects(), None)
    with pytest.raises(NotRecorded):
        plans.plan("a", "traffic", _NoObjects(), None)


class _NoObjects:
    services = ()
