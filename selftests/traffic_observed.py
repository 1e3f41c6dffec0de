"""A plug-in that puts a recorded traffic experiment in place of what is observed, whole or spoilt in one of the ways of traffic_ways.

Each conclusion about traffic, with the fixtures and controls before it, runs on it as it does on a cluster. What became of each test
is written as JSON to the file that TRAFFIC_OUTCOMES names: way → test → [outcome, text].
"""

import dataclasses
import functools
import json
import os
import pathlib
import types

import pytest

from fixtures import traffic_facts
from fixtures.disruption import Outage
from selftests import traffic_recording as recording
from selftests.traffic_ways import FOLLOWED, KNOWN, METRICS, SERVICE, WAYS, Seen
from servicepath.observation import CouldNotSee, Observation, Trouble

OUTCOMES = {}

# A way spoils one or two outputs; the others are read once for all ways.
traffic_facts.parse_save = functools.cache(traffic_facts.parse_save)
traffic_facts.parse_conntrack = functools.cache(traffic_facts.parse_conntrack)
parse_pcap = traffic_facts.parse_pcap


@functools.cache
def all_packets(data, interface, vxlan_port):
    """Every packet of a capture; ``wanted`` only spares time."""
    return parse_pcap(data, interface=interface, vxlan_port=vxlan_port)


traffic_facts.parse_pcap = lambda data, *, wanted, **rest: all_packets(data, **rest)


@functools.cache
def healthy(node):
    """The recorded experiment as it is."""
    return recording.read(node, KNOWN)


@functools.cache
def spoilt_by(way):
    """What a way leaves, and the facts that are read from it."""
    node, _, spoil = WAYS[way]
    said = {name: one.stdout for name, one in recording.answers(node).items()}
    flows = tuple(t.flow for t in healthy(node).traffic.traces if t.probe.window in ("host", "pod"))
    outage = Outage("no answer", {node: flows}, "stop")
    seen = Seen(node, healthy(node).plan, dict(said), outage, {node: dataclasses.replace(FOLLOWED, node=node)})
    spoil(seen)
    untouched = (seen.said, seen.ct) == (said, None) and seen.plan == healthy(node).plan
    return seen, healthy(node) if untouched else read(seen)


def read(seen):
    """The facts, or why there are none."""
    if seen.said is None:
        return Trouble(seen.node, "ssh: timed out", f"ssh {seen.node} id")
    answers = {name: observed(seen.node, name, text) for name, text in seen.said.items()}
    ct = (seen.ct or answers["bpf-ct"]) if seen.plan.client else None
    try:
        return traffic_facts.read(seen.plan, answers, ct, KNOWN, 8472)
    except CouldNotSee as unseen:
        return unseen.trouble


def observed(node, name, text):
    """What a command said."""
    return Observation(node, name, (name,), 0, text if isinstance(text, bytes) else text.encode(), b"", 0.0, 0.0)


def on_all_nodes(said):
    """The same answers of every node."""
    return {node.name: {name: observed(node.name, name, text) for name, text in said.items()} for node in KNOWN.nodes}


def pytest_generate_tests(metafunc):
    """Run each conclusion once a way."""
    metafunc.parametrize("way", list(WAYS), indirect=True)


@pytest.fixture(autouse=True)
def way(request):
    """The way's name."""
    return request.param


@pytest.fixture
def seen(way):
    """What the way leaves."""
    return spoilt_by(way)[0]


@pytest.fixture
def traffic_runs(way, seen):
    return {seen.node: spoilt_by(way)[1]}


@pytest.fixture
def node(seen):
    return KNOWN.node(seen.node)


@pytest.fixture
def port(way):
    return WAYS[way][1]


@pytest.fixture
def service():
    return SERVICE


@pytest.fixture
def vip():
    return SERVICE.cluster_ips[0]


@pytest.fixture
def speaks_what(port):
    return "tcp" if port == METRICS else "dns"


@pytest.fixture(scope="session")
def api_observed():
    return KNOWN


@pytest.fixture
def snapshots(seen):
    return on_all_nodes({"kube-proxy-mode": seen.mode, "ip-addr": seen.interfaces})


@pytest.fixture
def agents_observed(seen):
    return on_all_nodes({"agent-status": seen.status, "agent-status-verbose": seen.verbose})


@pytest.fixture
def lan_observed():
    pytest.skip("no LAN client")


@pytest.fixture
def followings(seen):
    return seen.followings


@pytest.fixture
def outage_seen(seen):
    return seen.outage


@pytest.fixture
def exhibit():
    return types.SimpleNamespace(show=lambda title, lines, *, command, raw=None: list(lines))


def pytest_runtest_logreport(report):
    """Remember what became of a test."""
    if report.when == "call" or not report.passed:
        test, _, way = report.nodeid.rpartition("::")[2].partition("[")
        outcome = "error" if report.failed and report.when != "call" else report.outcome
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr or "")
        OUTCOMES.setdefault(way[:-1], {}).setdefault(test.removeprefix("test_"), [outcome, text])


def pytest_sessionfinish():
    """Write it all."""
    pathlib.Path(os.environ["TRAFFIC_OUTCOMES"]).write_text(json.dumps(OUTCOMES), encoding="utf-8")
