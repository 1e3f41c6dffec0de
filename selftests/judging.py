"""Runs the suite's own conclusions on a folder of others' outputs, in this process, and gives what became of each."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import pathlib
import tempfile
from collections.abc import Mapping
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).parent.parent
CASES = pathlib.Path(__file__).parent / "data" / "cases"


def fact(fixture: Any, *facts: Any) -> Any:
    """What one of the suite's fixtures gives, made of these facts."""
    return fixture.__wrapped__(*facts)


@dataclasses.dataclass
class Outcomes:
    """Test id (``service-rule[node1-web:80/TCP]``) → (outcome, message)."""

    found: dict[str, tuple[str, str]] = dataclasses.field(default_factory=dict)
    code: int = 0
    said: str = ""

    def of(self, conclusion: str, *parts: str) -> set[str]:
        """The outcomes of the conclusion's tests whose id holds these parts."""
        return {outcome for outcome, _ in self.these(conclusion, *parts).values()}

    def these(self, conclusion: str, *parts: str) -> dict[str, tuple[str, str]]:
        """The tests themselves."""
        return {
            name: told for name, told in self.found.items()
            if name.partition("[")[0] == conclusion and all(part in name for part in parts)
        }  # fmt: skip

    def message(self, conclusion: str, *parts: str) -> str:
        """What they say, together."""
        return "\n".join(message for _, message in self.these(conclusion, *parts).values())


class _Collector:
    def __init__(self, outcomes: Outcomes) -> None:
        self.outcomes = outcomes

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        plugin = config.pluginmanager.get_plugin("servicepath-report")
        if plugin:
            config.pluginmanager.unregister(plugin)  # nobody reads the report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> object:
        report = yield
        if report.when == "call" or report.outcome != "passed":
            name = item.originalname.removeprefix("test_").replace("_", "-") + item.name[len(item.originalname) :]
            outcome = "error" if report.failed and report.when != "call" else report.outcome
            text = str(call.excinfo.value) if call.excinfo else ""
            if name not in self.outcomes.found or outcome in ("failed", "error"):
                self.outcomes.found[name] = (outcome, text)
        return report


def judged(folder: pathlib.Path, *arguments: str) -> Outcomes:
    """Judge a folder or archive as ``pytest --replay=FOLDER`` does."""
    outcomes = Outcomes()
    output = io.StringIO()
    # Raw output and junit.xml would go to reports/, which is the user's.
    with tempfile.TemporaryDirectory() as aside, contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        outcomes.code = pytest.main(
            [f"--replay={folder}", f"--rootdir={ROOT}", f"-c{ROOT}/pytest.ini", "-q", "-p", "no:html", "-p",
             "no:cacheprovider", f"--reports={aside}", *(arguments or [str(ROOT / "tests")])],
            plugins=[_Collector(outcomes)],
        )  # fmt: skip
    outcomes.said = output.getvalue()
    return outcomes


def laid_out(target: pathlib.Path, files: Mapping[str, str | bytes | pathlib.Path]) -> pathlib.Path:
    """Make a folder: path → text, or a file of the recorded cases (``04/nat.save``)."""
    for name, content in files.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, pathlib.Path):
            content = content.read_bytes()
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return target


def case(number: str, name: str) -> pathlib.Path:
    """A file of the recorded case whose folder starts with this number."""
    (folder,) = CASES.glob(f"{number}-*")
    return folder / name
