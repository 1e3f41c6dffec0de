"""The suite as a user starts it, against a cluster of stand-ins: wrong input is one line, what cannot be seen an ERROR each."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import fake_api
import fake_ssh
import pytest
from test_doctor import DNS, node, pod

ROOT = pathlib.Path(__file__).parent.parent


@pytest.fixture
def cluster(tmp_path):
    """A fake API with one node; ``inventory.yaml`` in ``tmp_path`` leads to it."""
    with fake_api.serve() as server:
        server.documents["/api/v1/nodes"] = {"items": [node("master")]}
        server.documents["/api/v1/services"] = {"items": [DNS]}
        server.documents["/api/v1/pods"] = {"items": [pod("client", "default", "10.42.0.9")]}
        server.write_kubeconfig(tmp_path / "kubeconfig.yaml")
        (tmp_path / "inventory.yaml").write_text("kubeconfig: kubeconfig.yaml\nnodes: {master: }\nlan_client: {host: desk}\n")
        yield server


@pytest.fixture
def suite(tmp_path):
    """Run the suite with a root folder of its own, so that its reports do not mix with the user's."""
    tools = fake_ssh.FakeSsh(tmp_path)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        own = ["-c", str(ROOT / "pytest.ini"), f"--rootdir={tmp_path}", f"--confcutdir={ROOT}", "-q", str(ROOT / "tests")]
        environment = os.environ | {"PATH": fake_ssh.on_path(tmp_path)}
        return subprocess.run(
            [sys.executable, "-m", "pytest", *own, *arguments], capture_output=True, text=True, timeout=120, cwd=tmp_path, env=environment
        )  # fmt: skip

    run.tools = tools
    return run


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--inventory", "none.yaml"], "none.yaml: cannot be read: No such file or directory"),
        (["--passive", "--disruptive"], "--passive and --disruptive exclude each other"),
        (["--node", "wroker1"], "--node: no node wroker1 in the cluster; there are: master"),
        (["--service", "default/none"], "--service: no Service default/none in the cluster; there are: kube-system/kube-dns"),
        (["--pod", "default/none"], "--pod: no Pod default/none in the cluster; there are: default/client"),
    ],
)
def test_wrong_input_is_one_line_and_a_usage_error(cluster, suite, arguments, says):
    finished = suite("--collect-only", *arguments)

    assert finished.returncode == pytest.ExitCode.USAGE_ERROR
    lines = [line for line in (finished.stdout + finished.stderr).splitlines() if line.startswith("ERROR: ")]
    assert [line for line in lines if line.endswith(says)] == lines
    assert len(lines) == 1
    assert "Traceback" not in finished.stdout + finished.stderr


@pytest.mark.parametrize(
    ("folder", "stands_in_the_way"),
    [
        ("inventory.yaml", "{here}/inventory.yaml: Not a directory"),
        ("inventory.yaml/deeper", "{here}/inventory.yaml: Not a directory"),
        ("/proc/x", "/proc: No such file or directory"),
        ("/sys/kernel/x", "/sys/kernel: "),  # read-only, or nothing can be made there
        ("x" * 300, "{here}/" + "x" * 300 + ": File name too long"),
    ],
)
def test_reports_that_cannot_be_written_are_one_line_before_anything_is_asked(cluster, suite, tmp_path, folder, stands_in_the_way):
    finished = suite("-k", "endpoints_ready", f"--reports={folder}")

    said = (finished.stdout + finished.stderr).splitlines()
    assert finished.returncode == pytest.ExitCode.USAGE_ERROR, said
    (line,) = [line for line in said if line.strip()]
    at = stands_in_the_way.format(here=tmp_path)
    assert line.startswith(f"ERROR: --reports: {tmp_path / folder}: expected a folder to write to: {at}")
    assert cluster.paths == []


@pytest.mark.parametrize("arguments", [["--node", "wroker1"], ["-k", "no_such_conclusion"]])
def test_a_run_that_cannot_begin_leaves_the_last_runs_report_alone(cluster, suite, tmp_path, arguments):
    suite("-k", "endpoints_ready")
    before = {path: path.read_bytes() for path in (tmp_path / "reports").rglob("*") if path.is_file()}

    finished = suite(*arguments)

    assert finished.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    assert {path.name for path in before} >= {"report.html", "junit.xml", "facts.json", "services.out"}
    assert {path: path.read_bytes() for path in (tmp_path / "reports").rglob("*") if path.is_file()} == before
    assert "Traceback" not in finished.stdout + finished.stderr


def test_an_api_that_is_down_is_an_error_of_each_test_and_no_failed_collection(cluster, suite, tmp_path):
    text = (tmp_path / "kubeconfig.yaml").read_text()
    (tmp_path / "kubeconfig.yaml").write_text(text.replace(cluster.address, "http://127.0.0.1:1"))

    finished = suite("-k", "no_interface or endpoints_ready")

    assert finished.returncode == pytest.ExitCode.TESTS_FAILED
    assert "2 errors" in finished.stdout
    assert "failed" not in finished.stdout.splitlines()[-1]
    assert "no answer from http://127.0.0.1:1" in finished.stdout


def test_a_node_that_cannot_be_reached_is_an_error_with_command_output_and_remedy_and_no_ssh_stays(cluster, suite):
    suite.tools.behave("echo 'ssh: connect to host master port 22: Connection refused' >&2; exit 255")

    finished = suite("-k", "no_interface")

    assert "1 error" in finished.stdout
    for part in ("master: ssh: connection refused", "command: ssh master 'sudo -n /bin/sh -c id'", "remedy: is sshd running there"):
        assert part in finished.stdout
    assert sum(" -O exit " not in call for call in suite.tools.calls()) == 1


def test_what_the_options_leave_out_is_skipped_once_and_not_for_each_node_and_port(cluster, suite):
    cluster.documents["/api/v1/nodes"] = {"items": [node("master"), node("worker1")]}

    finished = suite("--passive", "-rs", "-k", "host_answers or mode_as_expected or dnat_adds_no_route")

    assert "3 skipped" in finished.stdout
    told = {line.partition(": ")[2] for line in finished.stdout.splitlines() if line.startswith("SKIPPED")}
    assert told == {
        "sends traffic, captures or executes in Pods, which --passive leaves out",
        "creates or breaks something, which only --disruptive allows",
    }
    assert suite.tools.calls() == []
    assert not any("exec" in path for path in cluster.paths)


def test_a_case_that_is_named_is_found_and_skipped(cluster, suite):
    finished = suite("--passive", "-k", "mode_as_expected", f"{ROOT}/tests/test_1_control_path.py::test_mode_as_expected[master]")

    assert finished.returncode == pytest.ExitCode.OK, finished.stdout + finished.stderr
    assert "1 skipped" in finished.stdout


def test_an_earlier_baseline_is_written_over_neither_on_purpose_nor_by_a_run_that_judged_nothing(cluster, suite, tmp_path):
    kept = tmp_path / "before.json"
    suite("-k", "endpoints_ready", f"--baseline-out={kept}")
    whole = kept.read_bytes()
    (tmp_path / "link.json").symlink_to(kept)

    same = suite("-k", "endpoints_ready", f"--baseline={kept}", f"--baseline-out={tmp_path / 'link.json'}")
    nothing = suite("-k", "host_answers", "--passive", f"--baseline-out={kept}")

    assert same.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--baseline-out" in same.stdout + same.stderr
    assert kept.read_bytes() == whole
    assert f"Baseline: {kept} was left as it is, since this run judged nothing" in nothing.stdout, nothing.stdout + nothing.stderr


def test_helm_values_that_the_inventory_names_are_kept_with_the_run_and_with_no_other(cluster, suite, tmp_path):
    with (tmp_path / "inventory.yaml").open("a") as inventory:
        inventory.write("upgrade: {helm_values: values.yaml}\n")
    (tmp_path / "values.yaml").write_text("USER-SUPPLIED VALUES:\nMTU: 1450\nipam: {token: planted}\n")
    kept, recorded = tmp_path / "before.json", tmp_path / "recording"

    finished = suite("-k", "endpoints_ready", f"--baseline-out={kept}", f"--record={recorded}")
    assert f"Baseline: {kept}" in finished.stdout
    facts = {fact["name"]: fact["value"] for fact in json.loads(kept.read_text())["facts"]}
    assert facts["Helm value MTU"] == ["1450"]
    run = json.loads(kept.read_text())
    assert "-k endpoints_ready" in run["options"]
    assert 0 < run["during"]["since"] <= run["during"]["until"]
    assert "left out" in facts["Helm value ipam.token"][0]
    for path in (path for folder in (recorded, tmp_path / "reports") for path in folder.rglob("*") if path.is_file()):
        assert b"planted" not in path.read_bytes(), path
        assert b"values.yaml" not in path.read_bytes(), path

    (tmp_path / "values.yaml").write_text("Error: release: not found\n")
    wrong = suite("-k", "endpoints_ready", f"--baseline={kept}")
    assert wrong.returncode == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in (wrong.stdout + wrong.stderr).splitlines() if line.startswith("ERROR: ")]
    assert line.startswith(f"ERROR: {tmp_path / 'values.yaml'}: helm get values: line 1: 'Error: release: not found': expected YAML")
    assert suite("-k", "endpoints_ready").returncode != pytest.ExitCode.USAGE_ERROR


def test_only_what_the_selected_tests_need_is_asked(cluster, suite):
    suite("-k", "endpoints_ready")

    assert suite.tools.calls() == []
    assert not any("exec" in path for path in cluster.paths)
