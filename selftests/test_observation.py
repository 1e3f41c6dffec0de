"""Observations and what becomes of them: the archive, and the reading of failures."""

from __future__ import annotations

import dataclasses
import json

import pytest

from servicepath import troubles
from servicepath.observation import Archive, Observation


def said(status, stderr="", stdout="", argv=("tcpdump", "-w", "-"), name="capture"):
    return Observation("worker1", name, argv, status, stdout.encode(), stderr.encode(), 1764480001.25, 0.5)


def lines(folder):
    return [json.loads(line) for line in (folder / "commands.jsonl").read_text().splitlines()]


def test_what_is_kept_is_there_as_it_came(tmp_path):
    capture = Observation("worker1", "capture-underlay", ("tcpdump", "-w", "-"), None, bytes(range(256)), "é".encode(), 2.0, 9.0)
    lookup = Observation("worker1", "route-get-fd00--a", ("ip", "route", "é"), 2, b"", b"", 2.0, 0.0)

    archive = Archive(tmp_path)
    archive.add([Observation("api", "services", ("GET", "/api/v1/services"), 0, b"{}", b"", 1.5, 0.25), capture])
    archive.add([lookup])

    assert (tmp_path / "worker1" / "capture-underlay.out").read_bytes() == bytes(range(256))
    assert (tmp_path / "worker1" / "capture-underlay.err").read_text() == "é"
    # What has no answer, or an error beside it, is kept as it came.
    assert (tmp_path / "worker1" / "route-get-fd00--a.out").read_bytes() == b""
    assert lines(tmp_path / "api") == [
        {"name": "services", "argv": ["GET", "/api/v1/services"], "status": 0, "started": 1.5, "took": 0.25}
    ]  # fmt: skip
    assert lines(tmp_path / "worker1") == [
        {"name": "capture-underlay", "argv": ["tcpdump", "-w", "-"], "status": None, "started": 2.0, "took": 9.0},
        {"name": "route-get-fd00--a", "argv": ["ip", "route", "é"], "status": 2, "started": 2.0, "took": 0.0},
    ]


def test_the_kernels_answers_for_addresses_are_in_no_file_of_their_own(tmp_path):
    lookup = Observation("worker1", "route-get-10.42.0.7", ("ip", "route", "get", "10.42.0.7"), 0, b'[{"dst":"10.42.0.7"}]', b"", 2.0, 0.0)

    Archive(tmp_path).add([lookup])

    assert [path.name for path in (tmp_path / "worker1").iterdir()] == ["commands.jsonl"]
    assert lines(tmp_path / "worker1")[0]["stdout"] == '[{"dst":"10.42.0.7"}]'


def test_an_answer_takes_the_place_of_an_earlier_one_of_its_name(tmp_path):
    archive = Archive(tmp_path)
    archive.add([said(1, "refused", "half")])

    archive.add([said(0, stdout="whole")])

    assert (tmp_path / "worker1" / "capture.out").read_text() == "whole"
    assert lines(tmp_path / "worker1")[-1]["status"] == 0
    assert sorted(path.name for path in (tmp_path / "worker1").iterdir()) == ["capture.out", "commands.jsonl"]


def test_clearing_leaves_what_is_not_ours(tmp_path):
    archive = Archive(tmp_path)
    archive.add([said(0)])
    (tmp_path / ".gitkeep").touch()
    (tmp_path / "worker1" / "notes.txt").touch()

    archive.clear()

    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [".gitkeep", "notes.txt"]


@pytest.mark.parametrize(("node", "name"), [("worker1", "../x"), ("worker1", ".hidden"), ("../x", "a"), ("a/b", "a")])
def test_a_name_cannot_leave_the_folder(tmp_path, node, name):
    with pytest.raises(ValueError, match="not fit for a file name"):
        Archive(tmp_path).add([dataclasses.replace(said(0, name=name), node=node)])


def test_a_capture_named_by_its_path_stays_one_file(tmp_path):
    Archive(tmp_path).add([said(0, name="capture-nodes/../x.pcap")])

    assert [path.name for path in tmp_path.rglob("*.out")] == ["capture-nodes%2F..%2Fx.pcap.out"]


@pytest.mark.parametrize(
    ("observation", "tool"),
    [
        (said(127, "timeout: failed to run command 'tcpdump': No such file or directory"), "tcpdump"),
        (said(127, "timeout: failed to run command ‘tcpdump’: No such file or directory"), "tcpdump"),
        (said(127, "sh: 3: tcpdump: not found", argv=("sh", "-c", "tcpdump | x")), "tcpdump"),
        (said(127, "sh: line 8: tcpdump: command not found", argv=("sh", "-c", "x")), "tcpdump"),
        (said(127, "nsenter: failed to execute dig: No such file or directory", argv=("nsenter", "--net=x", "dig")), "dig"),
        (said(127, "timeout: can't execute 'conntrack': No such file or directory"), "conntrack"),
        (said(127, ""), "tcpdump"),
        (said(1, "x: not found"), None),
    ],
)
def test_a_tool_that_is_absent_is_named(observation, tool):
    assert troubles.missing_tool(observation) == tool


@pytest.mark.parametrize(
    ("observation", "problem", "remedy"),
    [
        (said(127, "sh: 1: dig: not found"), "capture: dig is not on the node", "install the Debian package dnsutils"),
        (said(127, "sh: 1: blub: not found"), "capture: blub is not on the node", "install blub"),
        (said(None), "capture: not finished after 0 s, ended", "see it by hand; is the node overloaded?"),
        (said(1, "tcpdump: no such device"), "capture: exit status 1", None),
    ],
)
def test_a_command_that_failed_says_why_and_what_to_do(observation, problem, remedy):
    trouble = troubles.of_command(observation)

    assert (trouble.problem, trouble.remedy, trouble.command) == (problem, remedy, "tcpdump -w -")


def test_statuses_that_are_expected_are_no_trouble():
    assert troubles.of_command(said(0)) is None
    assert troubles.of_command(said(2), allowed=(0, 2)) is None
