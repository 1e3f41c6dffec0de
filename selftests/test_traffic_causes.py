"""What stands beside a verdict: Cilium's own count of what it dropped, never judged; and the pins that say which set-up is meant."""

import ipaddress
import json
import types

import pytest

from fixtures import causes
from selftests import traffic_recording as recording
from servicepath.model import drops
from servicepath.model.cilium import AgentStatus
from servicepath.model.difference import explain
from servicepath.model.drops import Metric
from servicepath.model.pins import Pins, unpinned
from servicepath.model.service_rules import walk
from servicepath.observation import Observation, Trouble
from servicepath.parse.cilium_metrics import parse_metrics
from servicepath.parse.errors import ParseError
from servicepath.parse.iptables import parse_save

ROWS = [
    {"reason": "Success", "direction": "egress", "packets": 900, "bytes": 90000, "line": 86, "file": "l3.h"},
    {"reason": "Policy denied", "direction": "ingress", "packets": 3, "bytes": 222, "line": 1271, "file": "bpf_lxc.c"},
]
NEWER = [
    {**ROWS[0], "packets": 1900},
    {**ROWS[1], "packets": 5},
    {
        "reason": "No tunnel/encapsulation endpoint (datapath BUG!)",
        "direction": "egress",
        "packets": 7,
        "bytes": 1,
        "line": 2,
        "file": "a.c",
    },
]
TOLD = (
    "Cilium dropped 7 packets meanwhile: No tunnel/encapsulation endpoint (datapath BUG!) (egress, a.c:2)",
    "Cilium dropped 2 packets meanwhile: Policy denied (ingress, bpf_lxc.c:1271)",
)


def test_what_was_dropped_meanwhile_is_told_most_first():
    before, after = parse_metrics(json.dumps(ROWS)), parse_metrics(json.dumps(NEWER))

    assert before[1] == Metric("Policy denied", "ingress", "bpf_lxc.c:1271", 3)
    assert drops.since(before, after) == TOLD
    assert drops.since(after, after) == ()


def test_counts_that_began_anew_are_no_drops():
    assert drops.since([Metric("Policy denied", "ingress", "x:1", 50)], [Metric("Policy denied", "ingress", "x:1", 4)]) == ()


def test_rows_of_older_releases_are_summed_by_direction():
    old = [{"reason": 133, "description": "Policy denied", "values": {"egress": {"packets": 2, "bytes": 9}, "ingress": {"packets": 3}}}]

    assert parse_metrics(json.dumps(old)) == (
        Metric("Policy denied", "egress", "no place given", 2), Metric("Policy denied", "ingress", "no place given", 3)
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["", "Error: cannot open map", '{"reason": "x"}', "null", "[1]", '[{"reason": "x"}]', '[{"packets": 1}]',
     '[{"reason": "x", "packets": "many"}]',
     '[{"description": "x", "values": {"egress": {}}}]', '[{"description": "x", "values": []}]',
     '[{"values": {"egress": {"packets": 1}}}]'],
)  # fmt: skip
def test_anything_else_is_no_count(text):
    with pytest.raises(ParseError, match="cilium-dbg bpf metrics list"):
        parse_metrics(text)


def said(name, text, status=0):
    return {name: Observation("master", name, (name,), status, text.encode(), b"", 0.0, 0.0)}


def causes_of(before, after):
    """What the report is told."""
    told = []
    record = types.SimpleNamespace(cause=lambda node, port, text: told.append((node, port, text)))
    causes.tell_drops(record, "master", before, after)
    return told


def test_drops_stand_beside_the_nodes_reds():
    assert causes_of(said("agent-drops", json.dumps(ROWS)), said("bpf-metrics", json.dumps(NEWER))) == [
        ("master", None, sentence) for sentence in TOLD
    ]


@pytest.mark.parametrize("before", [None, Trouble("master", "ssh: timed out")])
def test_without_a_first_count_nothing_is_told(before):
    assert causes_of(before, said("bpf-metrics", json.dumps(NEWER))) == []


def test_a_count_that_could_not_be_read_is_told_as_that():
    for after in (said("bpf-metrics", "", status=1), said("bpf-metrics", "no JSON")):
        ((node, port, text),) = causes_of(said("agent-drops", json.dumps(ROWS)), after)

        assert (node, port) == ("master", None)
        assert text.startswith("what Cilium dropped could not be seen: bpf-metrics")


STATUS = AgentStatus("1.19.1", "False", False, None, {}, "tunnel", "vxlan", "Legacy", None, {})
PINNED = Pins("v1.34.4", "1.19.1", ipaddress.ip_network("10.42.0.0/16"))


@pytest.fixture(scope="module")
def node():
    return recording.objects().node("master")


def walked(change=lambda text: text):
    """kube-dns' rules of the recording, changed."""
    rules = parse_save(change(recording.answers("master")["cut-0-nat"].text))
    return walk(rules, ipaddress.ip_address("10.43.0.10"), "UDP", 53)


def matching(source):
    """The rules of a kube-proxy that marks these sources."""
    return lambda text: text.replace("! -s 10.42.0.0/16", source)


def unmarked(text):
    """The rules of a kube-proxy without a cluster CIDR."""
    return "\n".join(line for line in text.splitlines() if not ("-A KUBE-SVC-" in line and "KUBE-MARK-MASQ" in line))


def test_the_recordings_pins_hold(node):
    assert unpinned(node, STATUS, walked(), PINNED) == ()


@pytest.mark.parametrize("walk", [walked(), walked(unmarked), None])
def test_what_is_not_pinned_is_not_judged(node, walk):
    assert unpinned(node, STATUS, walk, Pins(None, None, None)) == ()


@pytest.mark.parametrize(
    ("pins", "walk", "says"),
    [
        (Pins("v1.35.0", None, None), None, "kubelet's version - is not the one pinned by expect: - expected: v1.35.0, actual: v1.34.4"),
        (Pins(None, "1.18.0", None), None, "Cilium's version - is not the one pinned by expect: - expected: 1.18.0, actual: 1.19.1"),
        (PINNED, walked(matching("! -s 10.0.0.0/8")), "expected: ! -s 10.42.0.0/16, actual: ! -s 10.0.0.0/8"),
        (PINNED, walked(matching("-s 10.42.0.0/16")), "expected: ! -s 10.42.0.0/16, actual: -s 10.42.0.0/16"),
        (PINNED, walked(unmarked), "expected: ! -s 10.42.0.0/16, actual: no such rule"),
        (PINNED, None, "expected: ! -s 10.42.0.0/16, actual: no such rule"),
    ],
    ids=["kubelet", "Cilium", "another CIDR", "not negated", "no rule", "no rules at all"],
)  # fmt: skip
def test_a_pin_bites(node, pins, walk, says):
    (wrong,) = unpinned(node, STATUS, walk, pins)

    assert says in explain([wrong])
    assert wrong.subject.startswith("master: ")
    assert wrong.evidence or walk is None or walk.masquerade_rule is None


def test_a_version_that_is_not_said_is_not_the_pinned_one(node):
    blank = AgentStatus(None, "False", False, None, {}, "tunnel", "vxlan", "Legacy", None, {})

    assert "expected: 1.19.1, actual: not said" in explain(unpinned(node, blank, None, Pins(None, "1.19.1", None)))
