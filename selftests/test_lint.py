"""The linters are tests; and the house rules that no linter knows."""

import ast
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = sorted(p for folder in ("lab", "servicepath", "fixtures", "tests", "bench") for p in (ROOT / folder).rglob("*.py"))

# The conclusions of the table that this suite asserts, each by one test.
# What is judged with kube-proxy in nftables mode, with socket LB on or with kube-proxy replaced, and skipped elsewhere.
OTHER_SETUPS = frozenset(
    {
        "nft-service", "nft-alone", "host-translated-at-connect", "pod-translated-at-connect", "host-leaves-counters",
        "replacement-programmed",
    }
)  # fmt: skip
CONCLUSIONS = frozenset(
    {
        "endpoints-ready", "dataplanes-programmed", "dataplanes-follow", "packets-skip-the-api", "mode-as-expected",
        "service-rule", "chain-names", "backend-choice", "endpoint-dnat", "rules-equal-on-nodes",
        "no-interface", "no-listener", "no-route", "lan-host-has-neither",
        "remote-podcidr-route", "cilium-host-address", "tunnel-mtu", "full-size-packet", "dnat-adds-no-route",
        "host-answers", "host-counted-by-iptables", "host-marked-for-masquerade", "host-translated-by-conntrack",
        "host-sees-the-clusterip",
        "pod-answers", "pod-leaves-counters", "pod-translated-by-ebpf", "translated-at-the-pod", "counters-count-flows",
        "kpr-false-yet-clusterip",
        "tunnel-endpoints", "inner-is-the-pod", "no-clusterip-inside", "same-way-for-aaaa", "answer-comes-back",
        "host-inner-source", "local-backend-untunnelled",
        "path-matrix", *OTHER_SETUPS,
    }
)  # fmt: skip


def conclusions() -> dict[str, ast.FunctionDef]:
    """Every test of tests/, by name."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "tests").glob("test_*.py"))
    return {n.name: n for tree in trees for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")}


@pytest.mark.parametrize("arguments", [("ruff", "check", "."), ("mypy",)], ids=["ruff", "mypy"])
def test_linters_are_content(arguments):
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


def test_each_conclusion_is_one_test():
    assert {name.removeprefix("test_").replace("_", "-") for name in conclusions()} == CONCLUSIONS


def test_the_polish_page_names_every_conclusion():
    page = (ROOT / "docs" / "pl.md").read_text(encoding="utf-8")
    assert not [name for name in CONCLUSIONS if f"`{name}`" not in page]


@pytest.mark.parametrize("name", sorted(conclusions()))
def test_a_conclusion_is_a_sentence_with_an_assert_and_no_branch(name):
    test = conclusions()[name]

    assert (ast.get_docstring(test) or "").rstrip().endswith(".")
    assert sum(isinstance(node, ast.Assert) for node in ast.walk(test)) >= 1
    assert not any(isinstance(node, ast.If | ast.For | ast.While | ast.Try | ast.With) for node in ast.walk(test))


@pytest.mark.parametrize("path", [pytest.param(p, id=str(p.relative_to(ROOT))) for p in SOURCES])
def test_modules_and_functions_are_short_and_documented(path):
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]

    assert len(text.splitlines()) <= 310
    assert [f"{f.name}: {f.end_lineno - f.lineno + 1} lines" for f in functions if f.end_lineno - f.lineno + 1 > 45] == []
    assert ast.get_docstring(tree) or not text.strip()


def test_the_readme_shows_the_sudoers_line_that_the_lab_proves():
    lines = (ROOT / "docs" / "rights" / "sudoers").read_text(encoding="utf-8").splitlines()
    rights = [line for line in lines if line and not line.startswith("#")]

    assert rights
    assert all(line in (ROOT / "README.md").read_text(encoding="utf-8") for line in rights)


def test_the_example_of_a_nights_line_counts_the_conclusions_that_there_are():
    text = (ROOT / "docs" / "nightly.md").read_text(encoding="utf-8")
    conclusions = [line for path in (ROOT / "tests").glob("test_*.py") for line in path.read_text().splitlines() if line[:9] == "def test_"]

    assert f"broken: 1 of {len(conclusions)} conclusions" in text


def test_no_two_modules_of_tests_have_one_name():
    """Pytest imports a test by its file's name alone: the second of one name ends the whole run, though each folder alone passes."""
    names = [path.name for folder in ("tests", "selftests") for path in (ROOT / folder).rglob("*.py")]

    assert sorted(set(names)) == sorted(names)
