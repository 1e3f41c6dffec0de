"""An outage of the API is undone whatever happens, and what was seen meanwhile is judged only where its control speaks."""

import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import time
import types

import pytest
from judging import fact

from fixtures import disruption
from selftests import traffic_recording as recording
from servicepath.cluster import LiveClock, LivePlans
from servicepath.experiments import outage
from servicepath.model import judge_flows
from servicepath.model.difference import explain
from servicepath.model.flows import Source
from servicepath.observation import CouldNotSee, Observation, Trouble


def shell(command, *, path=None):
    environment = os.environ | ({"PATH": f"{path}:{os.environ['PATH']}"} if path else {})
    return subprocess.run(command.argv, capture_output=True, text=True, timeout=20, env=environment, check=False)


def ended(process):
    """Whether a process has ended; one that nobody has waited for yet has."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def until(so):
    """Whether it becomes so within a minute."""
    end = time.monotonic() + 60
    while not so() and time.monotonic() < end:
        time.sleep(0.01)
    return so()


@pytest.fixture
def switch(tmp_path):
    """A file that stands for the API: do removes it, undo puts it back."""
    api = tmp_path / "api"
    api.touch()
    return types.SimpleNamespace(api=api, do=f"rm {api}", undo=f"touch {api}")


def test_an_outage_ends_with_its_undo_and_leaves_no_timer(switch):
    timer = shell(outage.begin(f"echo stopping; {switch.do}", switch.undo)).stdout
    assert not switch.api.exists()
    assert timer.endswith("stopping\n")

    assert shell(outage.end(switch.undo, timer)).returncode == 0
    assert switch.api.exists()
    assert until(lambda: ended(int(timer.split()[0])))


def test_the_timer_brings_the_api_back_when_nobody_else_does(switch, monkeypatch):
    monkeypatch.setattr(outage, "LONGEST", 0.1)
    timer = shell(outage.begin(switch.do, f"{switch.undo}; echo undone > {switch.api}")).stdout
    assert until(lambda: switch.api.exists() and switch.api.read_text() == "undone\n")
    assert shell(outage.end(switch.undo, timer)).returncode == 0


def test_an_undo_that_fails_is_said_and_the_timer_stays_armed(switch):
    timer = shell(outage.begin(switch.do, "exit 7")).stdout

    try:
        assert shell(outage.end("exit 7", timer)).returncode == 7
        assert not ended(int(timer))
    finally:
        os.killpg(int(timer), signal.SIGKILL)


def test_an_outage_that_never_began_is_still_undone(switch):
    switch.api.unlink()

    assert shell(outage.end(switch.undo, "")).returncode == 0
    assert switch.api.exists()


class Nodes:
    """A fleet that answers by a function of node and commands, and remembers what it was asked."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def run_one(self, node, commands, *, phase, undoing=False):
        """As Fleet.run_one."""
        self.asked += [(node, command.name) for command in commands]
        assert undoing is (phase == "outage-end")  # its time is never up
        return self.answer(node, commands)

    def run(self, plan, *, phase):
        """As Fleet.run."""
        return {node: self.run_one(node, commands, phase=phase) for node, commands in plan.items()}


def said(node, name, text="", status=0):
    return Observation(node, name, (name,), status, text.encode(), b"", 0.0, 0.0)


def answered(known):
    """Answers the senders of a short plan as the recorded flows of the same probes were."""
    kept = {}
    for name, observation in recording.answers("master").items():
        if name.startswith("send-"):
            kept |= {json.loads(line)["id"]: line for line in observation.text.splitlines()}

    def one(node, commands):
        out = {}
        for command in commands:
            ids = [i for i in kept if f'"{i}\\"'.encode() in command.stdin or f'{i}\\"'.encode() in command.stdin]
            out[command.name] = said(node, command.name, "".join(kept[i] + "\n" for i in ids) if ids else "123\n")
        return out

    return one


@pytest.fixture(scope="module")
def recorded():
    """What the API said, and the experiment of master."""
    known = recording.objects()
    return known, recording.read("master", known)


@pytest.fixture
def during(monkeypatch, recorded):
    """The outage as the fixture makes it, on a fleet of stand-ins, with the API's word of that moment."""
    known, run = recorded

    def measure(answer, *, api=("no answer", "no answer"), runs=None):
        monkeypatch.setattr(disruption, "inventory_of", lambda config: types.SimpleNamespace(api_outage=said_outage))
        words = list(api)
        monkeypatch.setattr(disruption, "_why_unreachable", lambda client: words.pop(0))
        monkeypatch.setattr(disruption, "_wait_for_api", lambda client, clock: None)
        monkeypatch.setattr(disruption, "plans_of", lambda config: LivePlans())
        monkeypatch.setattr(disruption, "clock_of", lambda config: LiveClock())
        nodes = Nodes(answer)
        try:
            return fact(disruption.outage_seen, None, nodes, None, known, runs or {"master": run}), nodes
        finally:
            measure.nodes = nodes

    said_outage = types.SimpleNamespace(node="master", do="stop", undo="start")
    measure.known = known
    return measure


def test_the_service_is_asked_from_host_and_pod_while_the_api_is_gone(during):
    seen, nodes = during(answered(during.known))
    flows = fact(disruption.outage_flows, seen)

    assert [name for _, name in nodes.asked] == ["outage-begin", "outage-host", "outage-pod", "outage-end"]
    assert {(f.probe.port.id, f.probe.source) for f in flows} == {
        (f"kube-dns:{port}", source) for port in ("dns/UDP", "dns-tcp/TCP", "metrics/TCP") for source in Source
    }
    assert all(flow.answered for flow in flows)


def test_packets_that_need_the_api_bite(during):
    flow = fact(disruption.outage_flows, during(answered(during.known))[0])[0]
    silent = dataclasses.replace(flow, answers=(None,) * len(flow.answers), connected=False, error="no answer within 2 s")

    text = explain(judge_flows.unanswered([silent], {}))

    assert all(word in text for word in (flow.probe.id, "not answered", "expected:", "actual: no answer within 2 s"))


@pytest.mark.parametrize(
    ("spoilt", "says"),
    [
        ({"api": [None]}, "the API answered"),
        ({"api": ["no answer", None]}, "the API answered"),
        ({"runs": {"worker1": Trouble("worker1", "ssh: timed out")}}, "ssh: timed out"),
        ({"answer": lambda node, commands: {c.name: said(node, c.name, "1\n") for c in commands}}, "probe sender"),
        ({"answer": lambda node, commands: {c.name: said(node, c.name, "1\n", 0 if "begin" in c.name or "end" in c.name else 1)
                                            for c in commands}}, "exit status 1"),
    ],
    ids=["no outage", "over too soon", "no node", "cut off", "no sender"],
)  # fmt: skip
def test_an_outage_without_its_control_is_no_verdict(during, spoilt, says):
    answer = spoilt.pop("answer", answered(during.known))
    seen, _ = during(answer, **spoilt)

    with pytest.raises(CouldNotSee, match=says):
        fact(disruption.outage_flows, seen)


@pytest.mark.parametrize("broken", ["outage-begin", "outage-host"])
def test_the_api_comes_back_whatever_breaks(during, broken):
    def breaks(node, commands):
        if commands[0].name == broken:
            raise KeyboardInterrupt
        return answered(during.known)(node, commands)

    with pytest.raises(KeyboardInterrupt):
        during(breaks)

    assert during.nodes.asked[-1] == ("master", "outage-end")


def test_a_flow_that_could_not_be_sent_in_the_outage_is_no_verdict(during):
    seen, _ = during(answered(during.known))
    flows = tuple(dataclasses.replace(f, unsent=True, error="Address already in use") for f in seen.flows["master"])

    with pytest.raises(CouldNotSee, match="was not sent"):
        fact(disruption.outage_flows, dataclasses.replace(seen, flows={"master": flows}))
