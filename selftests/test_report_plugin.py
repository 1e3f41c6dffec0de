"""The plug-in: what becomes of a test's outcome, message, evidence and placeholders, and of a run that ends early."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
INI = """[pytest]
strict = true
testpaths = tests
addopts = -p no:cacheprovider -p fixtures.report
verbosity_assertions = 2
markers =
    conclusion(section, see): a conclusion
"""
SUITE = '''"""The ClusterIP on a host.

More about it.
"""
import ipaddress
import pytest
from fixtures.told import RECORD
from servicepath.model.difference import Difference, explain
from servicepath.model.services import Node, ServicePort
from servicepath.observation import CouldNotSee, Trouble

NODE = Node("master", (), (), True, "", "", "", "", {}, {})
PORT = ServicePort("kube-system", "kube-dns", "dns", "UDP", 53, None, None, None)
TROUBLE = Trouble("worker1", "ssh failed", "ssh worker1 true", "Connection refused", "start sshd")
EVIL = Node("$(reboot)", (), (), True, "", "", "", "", {}, {})

@pytest.fixture
def node(request):
    if isinstance(request.param, Trouble):
        raise CouldNotSee(request.param)
    return request.param

@pytest.fixture
def vip():
    return ipaddress.ip_address("10.43.0.10")

@pytest.fixture
def undone():
    yield
    raise RuntimeError("the rule is still there")

@pytest.fixture
def unset():
    raise KeyError("fact")

@pytest.fixture(scope="session", autouse=True)
def told(request):
    request.config.stash[RECORD].cluster("API server", "v1.34.4")
    request.config.stash[RECORD].cause("master", None, "policy drops")

both = pytest.mark.parametrize("node", [NODE, TROUBLE], indirect=True, ids=["master", "worker1"])

@both
@pytest.mark.parametrize("port", [PORT], ids=["kube-dns:dns/UDP"])
@pytest.mark.conclusion(
    section="§4", see=("ssh {node} 'iptables-save | grep {vip}' # {port}/{protocol} {namespace}/{service}", "awk '{print}'")
)
def test_no_interface(node, port, vip, exhibit):
    """No interface
    holds the ClusterIP.

    Not this.
    """
    exhibit.show("Addresses", ["1: lo", "2: enp1s0"], command="ip address", raw="master/ip.txt")
    wrong = (Difference("master: lo", "holds it", "none", "10.43.0.10", ("[1:2] a", "  b")), Difference("x", "y", "e", "a"))
    assert not wrong, explain(wrong)

@pytest.mark.conclusion(section="§5", see=("ssh {node} x",))
@pytest.mark.parametrize("node", [EVIL], indirect=True, ids=["evil"])
def test_evil_name(node):
    """A name is not pasted into a command."""

@pytest.mark.conclusion(section="§6")
def test_compared(exhibit):
    """Two things are equal."""
    exhibit.show("Text", "a\\nb\\n", command="cat")
    assert {"a": 1} == {"a": 2}, "they differ"

def test_bare():
    """No message."""
    assert 1 == 2

def test_skipped():
    """Skipped."""
    pytest.skip("KubeProxyReplacement=true on worker1")

def test_undone(undone):
    """Undone."""

def test_unset(unset):
    """Unset."""

def test_broken():
    """Broken."""
    {}["x"]

def test_held():
    """Held."""
'''


def run(folder: Path, *arguments: str, suite: str = SUITE) -> subprocess.CompletedProcess[str]:
    (folder / "tests").mkdir(exist_ok=True)
    (folder / "pytest.ini").write_text(INI)
    (folder / "tests" / "test_tiny.py").write_text(suite)
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "150", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def facts(folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((folder / "reports" / "facts.json").read_text())
    return told


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("whole")
    return folder, run(folder).stdout


@pytest.fixture(scope="module")
def verdicts(whole: tuple[Path, str]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(v["conclusion"], v["case"]): v for v in facts(whole[0])["verdicts"]}


def test_outcomes(verdicts: dict[tuple[str, str], dict[str, Any]]) -> None:
    assert {key: v["outcome"] for key, v in verdicts.items()} == {
        ("no-interface", "kube-dns:dns/UDP, master"): "failed",
        ("no-interface", "kube-dns:dns/UDP, worker1"): "error",
        ("evil-name", "$(reboot)"): "passed",
        ("compared", ""): "failed",
        ("bare", ""): "failed",
        ("skipped", ""): "skipped",
        ("undone", ""): "error",
        ("unset", ""): "error",
        ("broken", ""): "error",
        ("held", ""): "passed",
    }


def test_a_failure_says_what_the_differences_say(verdicts: dict[tuple[str, str], dict[str, Any]]) -> None:
    verdict = verdicts["no-interface", "kube-dns:dns/UDP, master"]
    assert verdict["message"] == (
        "master: lo - holds it - expected: none, actual: 10.43.0.10\n    [1:2] a\n      b\nx - y - expected: e, actual: a"
    )
    assert verdict["sentence"] == "No interface holds the ClusterIP."
    assert verdict["group"] == "The ClusterIP on a host"
    assert (verdict["section"], verdict["node"], verdict["port"]) == ("§4", "master", "kube-dns:dns/UDP")
    assert verdict["cause"] == ["policy drops"]
    assert verdict["exhibits"] == [{"title": "Addresses", "command": "ip address", "lines": ["1: lo", "2: enp1s0"], "raw": "master/ip.txt"}]


def test_placeholders_are_filled_and_other_braces_stay(verdicts: dict[tuple[str, str], dict[str, Any]]) -> None:
    assert verdicts["no-interface", "kube-dns:dns/UDP, master"]["see"] == [
        "ssh master 'iptables-save | grep 10.43.0.10' # 53/udp kube-system/kube-dns",
        "awk '{print}'",
    ]


def test_a_name_that_a_shell_would_run_is_not_filled_in(verdicts: dict[tuple[str, str], dict[str, Any]]) -> None:
    assert verdicts["evil-name", "$(reboot)"]["see"][1:] == ["ssh $NODE x"]


def test_what_could_not_be_seen_says_the_trouble(verdicts: dict[tuple[str, str], dict[str, Any]]) -> None:
    verdict = verdicts["no-interface", "kube-dns:dns/UDP, worker1"]
    assert verdict["message"] == ("worker1: ssh failed\n  command: ssh worker1 true\n  | Connection refused\n  remedy: start sshd")
    assert verdict["node"] == "worker1"


def test_introspection_is_kept_where_it_tells_more(verdicts: dict[tuple[str, str], dict[str, Any]]) -> None:
    verdict = verdicts["compared", ""]
    assert verdict["message"] == "they differ"
    assert [e["title"] for e in verdict["exhibits"]] == ["Text", "What the assertion compared"]
    assert verdict["exhibits"][0]["lines"] == ["a", "b"]
    assert verdict["exhibits"][1]["lines"][0] == "assert {'a': 1} == {'a': 2}"
    assert verdicts["bare", ""]["message"] == "assert 1 == 2"


def test_other_messages(verdicts: dict[tuple[str, str], dict[str, Any]]) -> None:
    assert verdicts["skipped", ""]["message"] == "KubeProxyReplacement=true on worker1"
    assert verdicts["undone", ""]["message"].endswith("RuntimeError: the rule is still there")
    assert verdicts["unset", ""]["message"] == "the test could not be set up: KeyError: 'fact'"
    assert verdicts["broken", ""]["message"] == "the test itself broke: KeyError: 'x'"
    assert verdicts["held", ""]["message"] == ""


def test_verdicts_keep_the_order_of_the_file(verdicts: dict[tuple[str, str], dict[str, Any]]) -> None:
    assert list(dict.fromkeys(conclusion for conclusion, _ in verdicts)) == [
        "no-interface", "evil-name", "compared", "bare", "skipped", "undone", "unset", "broken", "held",
    ]  # fmt: skip


def test_junit_says_what_each_test_judges(whole: tuple[Path, str]) -> None:
    cases = ET.parse(whole[0] / "reports" / "junit.xml").getroot().iter("testcase")
    case = next(c for c in cases if c.get("name") == "test_no_interface[kube-dns:dns/UDP-master]")
    assert {p.get("name"): p.get("value") for p in case.iter("property")} == {
        "conclusion": "no-interface",
        "section": "§4",
        "node": "master",
        "port": "kube-dns:dns/UDP",
    }


def test_pytest_itself_calls_a_test_that_broke_an_error_and_not_a_failure(whole: tuple[Path, str]) -> None:
    cases = ET.parse(whole[0] / "reports" / "junit.xml").getroot().iter("testcase")
    found = {str(c.get("name")).partition("[")[0]: [child.tag for child in c if child.tag in ("failure", "error")] for c in cases}
    assert (found["test_broken"], found["test_bare"], found["test_held"]) == (["error"], ["failure"], [])
    assert "= 3 failed, 3 passed, 1 skipped, 4 errors in " in whole[1]
    assert "FAILED tests/test_tiny.py::test_broken" not in whole[1]
    assert "KeyError: 'x'" in whole[1]  # where it broke is still said


def test_the_page_holds_the_report_before_pytests_own_table(whole: tuple[Path, str]) -> None:
    text = (whole[0] / "reports" / "report.html").read_text()
    assert text.index('<main class="sp"') < text.index('id="results-table"')
    assert text.count("2: enp1s0") == 1  # evidence is not in pytest-html's own data again
    assert "they differ" not in text[text.index("data-jsonblob") :]
    assert str(whole[0]) not in text[text.index('<main class="sp"') : text.index("</main>")]


def test_the_terminal_ends_with_where_the_report_is(whole: tuple[Path, str]) -> None:
    lines = whole[1].splitlines()
    assert lines[-1] == "Report: reports/report.html"
    assert lines[-2].startswith("=")
    assert "failed" in lines[-2]
    assert "✗ no-interface on kube-dns:dns/UDP, master" in lines
    assert "report: reports/report.html" in lines


def test_whole_run_is_not_called_unfinished(whole: tuple[Path, str]) -> None:
    assert facts(whole[0])["unfinished"] is None


def test_stopping_at_the_first_failure_is_said(tmp_path: Path) -> None:
    run(tmp_path, "-x")
    assert facts(tmp_path)["unfinished"] == "stopping after 1 failures; 1 of 10 tests were judged"
    assert "Run was interrupted" in (tmp_path / "reports" / "report.html").read_text()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise KeyboardInterrupt", "stopped from the keyboard; 1 of 3 tests were judged"),
        ("pytest.exit('deadline of 60 s')", "deadline of 60 s; 1 of 3 tests were judged"),
    ],
)
def test_a_run_broken_off_leaves_a_partial_report(body: str, said: str, tmp_path: Path) -> None:
    suite = f"import pytest\ndef test_a():\n    pass\ndef test_b():\n    {body}\ndef test_c():\n    pass\n"
    out = run(tmp_path, suite=suite).stdout
    told = facts(tmp_path)
    assert told["unfinished"] == said
    assert [v["conclusion"] for v in told["verdicts"]] == ["a"]
    assert out.splitlines()[-1] == "Report: reports/report.html"


def test_an_internal_error_leaves_a_partial_report(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("def pytest_runtest_logstart(nodeid):\n    if 'b' in nodeid[-1]: raise OSError('disk')\n")
    run(tmp_path, suite="def test_a():\n    pass\ndef test_b():\n    pass\n")
    assert facts(tmp_path)["unfinished"] == "internal error: OSError: disk; 1 of 2 tests were judged"
    assert "internal error: OSError: disk" in (tmp_path / "reports" / "report.html").read_text()


def test_a_file_that_cannot_be_loaded_is_an_error(tmp_path: Path) -> None:
    run(tmp_path, suite="import nowhere\n")
    told = facts(tmp_path)
    assert [(v["conclusion"], v["case"], v["outcome"]) for v in told["verdicts"]] == [("collection", "tests/test_tiny.py", "error")]
    assert "No module named 'nowhere'" in told["verdicts"][0]["message"]
    assert told["unfinished"].startswith("1 error during collection")


@pytest.mark.parametrize(
    "arguments", [["--collect-only"], ["selftests"], ["tests/test_nowhere.py"], ["-k", "no_such"], ["-p", "no:html", "-k", "no_such"]]
)
def test_no_report_is_touched_when_nothing_is_judged(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "selftests").mkdir()
    (tmp_path / "selftests" / "test_own.py").write_text("def test_own():\n    pass\n")
    out = run(tmp_path, *arguments).stdout
    assert not [path for path in (tmp_path / "reports").rglob("*") if path.is_file()]  # pytest-html makes the folder in any case
    assert "Report:" not in out


def test_the_users_own_paths_count(tmp_path: Path) -> None:
    mine = ["--html", "mine/page.html", "--self-contained-html", "--junitxml", "mine/j.xml"]
    out = run(tmp_path, *mine, suite="def test_a():\n    pass\n").stdout
    assert out.splitlines()[-1] == "Report: mine/page.html"
    assert (tmp_path / "mine" / "j.xml").exists()
    assert 'href="../reports/raw/"' in (tmp_path / "mine" / "page.html").read_text()
    assert not (tmp_path / "reports" / "report.html").exists()


def test_without_pytest_html_the_facts_are_still_written(tmp_path: Path) -> None:
    out = run(tmp_path, "-p", "no:html", suite="def test_a():\n    pass\n").stdout
    assert out.splitlines()[-1] == "Report: reports/facts.json"
    assert facts(tmp_path)["verdicts"][0]["outcome"] == "passed"
