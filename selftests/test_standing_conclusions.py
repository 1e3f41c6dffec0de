"""The tests of standing state, run on made facts: green on a healthy node, red, error or skipped exactly where they should be."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent
TESTS = ("tests/test_1_control_path.py", "tests/test_3_clusterip_on_a_host.py", "tests/test_4_routing_to_a_remote_podcidr.py")
MINE = (
    "test_no_interface", "test_no_listener", "test_no_route", "test_lan_host_has_neither", "test_remote_podcidr_route",
    "test_cilium_host_address", "test_tunnel_mtu", "test_endpoints_ready",
)  # fmt: skip


@pytest.fixture(scope="module")
def outcomes():
    """Way of spoiling → test → outcome, of those that are not passed; one run for all."""
    plugins = ("-p", "fixtures.host_facts", "-p", "fixtures.endpoints", "-p", "standing_facts")
    command = (sys.executable, "-m", "pytest", "--noconftest", *plugins, "-v", "--tb=no", "-k", " or ".join(MINE), *TESTS)
    environment = os.environ | {"PYTHONPATH": str(ROOT / "selftests")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    found = re.findall(r"^\S+::(\w+)(?:\[(\w+)\])? (PASSED|FAILED|ERROR|SKIPPED)", done.stdout, re.MULTILINE)
    told: dict[str, dict[str, str]] = {"all": {test: outcome for test, _, outcome in found}}
    for test, way, outcome in found:
        told.setdefault(way, {})
        if outcome != "PASSED":
            told[way][test] = outcome
    assert set(told["all"]) == set(MINE), done.stdout + done.stderr
    return told


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ("healthy", {}),
        ("interface", {"test_no_interface": "FAILED"}),
        ("socket", {"test_no_listener": "FAILED"}),
        ("route", {"test_no_route": "FAILED"}),
        ("lan", {"test_lan_host_has_neither": "FAILED"}),
        ("remote", {"test_remote_podcidr_route": "FAILED"}),
        ("mtu", {"test_tunnel_mtu": "FAILED"}),
        ("pod", {"test_endpoints_ready": "FAILED"}),
        ("selector", {"test_endpoints_ready": "SKIPPED"}),
        ("single", {"test_remote_podcidr_route": "SKIPPED", "test_tunnel_mtu": "SKIPPED"}),
        (
            "blind",
            {test: "ERROR" for test in (*MINE[:4], "test_cilium_host_address", "test_tunnel_mtu")}
            | {"test_remote_podcidr_route": "FAILED"},
        ),
    ],
)
def test_each_outcome_is_the_right_one(outcomes, way, expected):
    assert outcomes[way] == expected
