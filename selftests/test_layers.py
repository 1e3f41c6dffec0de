"""The import rule: tests → model; fixtures → experiments, parse, model; parse → model; model → standard library."""

import ast
import pathlib
import sys
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
FORBIDDEN_FOR_PURE = {"subprocess", "socket", "kubernetes", "testinfra"}
SENDING = {"send", "sendp", "sr", "sr1", "srp", "sniff", "AsyncSniffer"}


def imports(path: pathlib.Path) -> Iterator[tuple[str, frozenset[str]]]:
    """Every module that a file imports, absolute, with the names taken from it."""
    package = path.relative_to(ROOT).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, frozenset()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level]) if node.level else ""
            module = ".".join(part for part in (base, node.module or "") if part)
            names = frozenset(alias.name for alias in node.names)
            yield module, names
            yield from ((f"{module}.{name}", frozenset()) for name in names)


def files(folder: str) -> list[pathlib.Path]:
    """The Python files of a folder of the project, and of those below it."""
    return sorted((ROOT / folder).rglob("*.py"))


def named(paths: list[pathlib.Path]) -> list[object]:
    """Each file as a test's parameter, named by its place."""
    return [pytest.param(path, id=str(path.relative_to(ROOT))) for path in paths]


@pytest.mark.parametrize("path", named(files("servicepath/model")))
def test_model_imports_the_standard_library_and_itself(path):
    foreign = {m for m, _ in imports(path) if m.split(".")[0] not in sys.stdlib_module_names and not m.startswith("servicepath.model")}

    assert foreign == set()


@pytest.mark.parametrize("path", named(files("servicepath/parse")))
def test_parse_imports_model_and_no_io(path):
    taken = list(imports(path))
    outside = {m for m, _ in taken if m.startswith("servicepath") and not m.startswith(("servicepath.model", "servicepath.parse"))}

    assert outside == set()
    assert {m for m, _ in taken if m.split(".")[0] in FORBIDDEN_FOR_PURE} == set()
    assert {n for m, names in taken if m.startswith("scapy") for n in names & SENDING} == set()


@pytest.mark.parametrize("path", named(files("servicepath/model")))
def test_model_does_no_io(path):
    assert {m for m, _ in imports(path) if m.split(".")[0] in FORBIDDEN_FOR_PURE} == set()


@pytest.mark.parametrize("path", named(files("tests")))
def test_tests_import_pytest_and_model(path):
    allowed = ("pytest", "servicepath.model")

    assert {m for m, _ in imports(path) if not m.startswith(allowed)} == set()


@pytest.mark.parametrize("path", named([*files("lab"), *files("servicepath"), *files("fixtures"), *files("tests")]))
def test_nothing_imports_lab_and_lab_imports_no_tests(path):
    tops = {m.split(".")[0] for m, _ in imports(path)}

    assert not (tops & ({"tests", "fixtures", "selftests"} if path.is_relative_to(ROOT / "lab") else {"lab", "selftests"}))


@pytest.mark.parametrize("path", named(files("servicepath/experiments")))
def test_experiments_neither_parse_nor_judge(path):
    taken = {m for m, _ in imports(path)}

    assert {m for m in taken if m.startswith(("servicepath.parse", "servicepath.model.judge", "fixtures"))} == set()
