"""Programs are found again by what decides them, and built by exactly the flags that tools read versions from."""

import shutil
from pathlib import Path

import pytest

from lab import builds
from lab.builds import Module
from lab.errors import LabError
from lab.progress import Progress

GO = Path("/go/bin/go")
OUT = Path("/out")


@pytest.fixture
def copy(tmp_path: Path) -> Module:
    """Return a copy of the CoreDNS module in another folder, as a second checkout has it."""
    original = builds.modules()["coredns"]
    shutil.copytree(original.folder, tmp_path / "coredns")
    return Module("coredns", tmp_path / "coredns", original.recipe)


def test_the_versions_are_the_notes_own():
    versions = {name: module.version for name, module in builds.modules().items()}
    assert versions == {"kubernetes": "v1.34.4", "cilium": "v1.19.1", "coredns": "v1.13.1", "helm": "v3.19.4"}


def test_another_checkout_finds_the_same_programs(copy: Module):
    assert copy.target == builds.modules()["coredns"].target


@pytest.mark.parametrize("file", ["go.mod", "go.sum"])
def test_another_input_makes_another_key(copy: Module, file: str):
    with (copy.folder / file).open("a", encoding="utf-8") as changed:
        changed.write("\n")
    assert copy.key != builds.modules()["coredns"].key


def test_another_flag_makes_another_key(copy: Module):
    changed = Module(copy.name, copy.folder, {**copy.recipe, "ldflags": ["-X a.b=c"]})
    assert changed.key != copy.key


def test_every_program_is_a_tool_of_its_go_mod():
    for module in builds.modules().values():
        text = (module.folder / "go.mod").read_text(encoding="utf-8")
        for program in module.recipe["programs"].values():
            assert program["package"] in text


def test_cilium_says_its_version_in_three_words():
    argv = builds.modules()["cilium"].build_argv(GO, "cilium-agent", OUT)
    flags = argv[argv.index("-ldflags") + 1]
    words = flags.split("ciliumVersion=")[1].rstrip("'").split()
    assert len(words) == 3
    assert words[0] == "1.19.1"


def test_the_operator_can_do_cluster_pool_and_the_agent_needs_no_such_tag():
    cilium = builds.modules()["cilium"]
    assert "osusergo,ipam_provider_operator" in cilium.build_argv(GO, "cilium-operator", OUT)
    assert "osusergo" in cilium.build_argv(GO, "cilium-agent", OUT)


def test_a_half_written_program_does_not_count(copy: Module, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    copy.target.mkdir(parents=True)
    (copy.target / ".coredns.partial").touch()
    assert copy.missing() == ["coredns"]
    copy.program("coredns").touch()
    assert copy.missing() == []


# Go with an empty module cache: `list -m` names no folder until `mod download` has fetched the source.
EMPTY_CACHE = """#!/bin/sh
here=$(dirname "$0")
case "$1 $2" in
"list -m") [ ! -e "$here/fetched" ] || echo "$here/source" ;;
"mod download") touch "$here/fetched"; echo "{\\"Path\\": \\"$4\\", \\"Dir\\": \\"$here/source\\"}" ;;
esac
"""


@pytest.fixture
def cilium(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Module:
    """Return the Cilium module with an empty cache of programs, and its source, with one asset, where the fake Go has it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "source" / "bpf").mkdir(parents=True)
    (tmp_path / "source" / "bpf" / "init.sh").touch()
    original = builds.modules()["cilium"]
    return Module("cilium", original.folder, {**original.recipe, "assets": ["bpf"]})


def test_assets_are_fetched_where_gos_own_cache_is_empty(cilium: Module, tmp_path: Path):
    go = tmp_path / "go"
    go.write_text(EMPTY_CACHE)
    go.chmod(0o755)
    builds._copy_assets(cilium, go, Progress())
    assert (cilium.assets / "bpf" / "init.sh").exists()


def test_a_go_that_names_no_folder_is_one_line(cilium: Module, tmp_path: Path):
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho '{}'\n")
    go.chmod(0o755)
    with pytest.raises(LabError, match="names no folder"):
        builds._copy_assets(cilium, go, Progress())
