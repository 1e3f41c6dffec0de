"""The lab's programs, built once from the Go modules under lab/go/ into a cache that outlives the checkout.

A module's programs lie in one folder of the cache whose name ends in a hash of all that decides their content: go.mod,
go.sum and the recipe in builds.yaml. A second checkout with the same inputs finds them and builds nothing; a build that
was broken off goes on with the first program that is not there yet.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from lab import toolchain
from lab.errors import LabError, RefusedError
from lab.locking import only_one
from lab.paths import LAB, cache
from lab.process import run
from lab.progress import Progress

RECIPES = LAB / "builds.yaml"
UPGRADES = LAB / "upgrades.yaml"
MODULES = LAB / "go"
BUILD_TIMEOUT = 3600.0  # seconds for one program; kube-apiserver from nothing takes some minutes on 2 cores


@dataclass(frozen=True)
class Module:
    """A Go module of which the lab builds programs."""

    name: str
    folder: Path
    recipe: dict[str, Any]

    @cached_property
    def version(self) -> str:
        """The version that go.mod requires, with its leading v."""
        text = (self.folder / "go.mod").read_text(encoding="utf-8")
        found = re.search(rf"^(?:require )?\s*{re.escape(self.recipe['module'])} (v\S+)", text, re.MULTILINE)
        if not found:
            raise LabError(f"{self.folder / 'go.mod'} requires no {self.recipe['module']}")
        return found.group(1)

    @cached_property
    def key(self) -> str:
        """Twelve hex digits over everything that decides what the programs are."""
        digest = hashlib.sha256()
        for name in ("go.mod", "go.sum"):
            digest.update((self.folder / name).read_bytes())
        digest.update(json.dumps(self.recipe, sort_keys=True).encode())
        return digest.hexdigest()[:12]

    @cached_property
    def target(self) -> Path:
        """The folder of the cache that holds the programs."""
        return cache() / "bin" / f"{self.name}-{self.version}-{self.key}"

    @property
    def assets(self) -> Path:
        """The folder with the module's files that are not Go."""
        return self.target / "module"

    def program(self, name: str) -> Path:
        """Return the path of a built program, which is in builds.yaml."""
        return self.target / name

    def missing(self) -> list[str]:
        """Return the names of the programs that are not built yet."""
        return [name for name in self.recipe["programs"] if not self.program(name).exists()]

    def build_argv(self, go: Path, name: str, output: Path) -> list[str]:
        """Return the ``go build`` command for one program."""
        program = self.recipe["programs"][name]
        values = {"version": self.version, "bare_version": self.version.removeprefix("v")}
        ldflags = ["-s -w", *(flag.format(**values) for flag in self.recipe["ldflags"])]
        tags = [*self.recipe["tags"], *program.get("tags", [])]
        return [
            *(str(go), "build", "-trimpath", "-o", str(output)),
            *(["-tags", ",".join(tags)] if tags else []),
            *("-ldflags", " ".join(ldflags), program["package"]),
        ]


def modules(recipes: Path = RECIPES) -> dict[str, Module]:
    """Return the modules of builds.yaml by name."""
    data = yaml.safe_load(recipes.read_text(encoding="utf-8"))
    return {name: Module(name, MODULES / name, recipe) for name, recipe in data.items()}


def cilium_of(version: str, upgrades: Path = UPGRADES) -> Module:
    """Return the module of a version of Cilium, such as "1.19.5": the lab's own, or one of upgrades.yaml.

    Raises:
        LabError: neither; the message lists the versions there are.
    """
    own = modules()["cilium"]
    if version == own.version.removeprefix("v"):
        return own
    others: dict[str, str] = yaml.safe_load(upgrades.read_text(encoding="utf-8"))
    if version not in others:
        there = ", ".join(sorted([own.version.removeprefix("v"), *others]))
        raise RefusedError(f"no Cilium {version} here; there are {there} (lab/upgrades.yaml)")
    said = f"-X 'github.com/cilium/cilium/pkg/version.ciliumVersion={{bare_version}} {others[version]}'"
    return Module("cilium", MODULES / f"cilium-{version}", {**own.recipe, "ldflags": [said]})


def build(every: Mapping[str, Module], progress: Progress) -> None:
    """Build what of some modules is not in the cache yet.

    Raises:
        LabError: a build failed; the message has Go's own words. What was built before stays and is not built again.
    """
    if _complete(every):
        return
    with only_one(progress, "cache"):
        missing = [(module, name) for module in every.values() for name in module.missing()]
        go = toolchain.find(progress)
        for module in every.values():
            _copy_assets(module, go, progress)
        for index, (module, name) in enumerate(missing, 1):
            progress.say(f"building {name} ({module.recipe['module']} {module.version}), {index} of {len(missing)}")
            with progress.step(f"built {name}"), progress.alive(f"building {name}"):
                _build(module, name, go)


def _complete(every: Mapping[str, Module]) -> bool:
    return not any(module.missing() or ("assets" in module.recipe and not module.assets.exists()) for module in every.values())


def _build(module: Module, name: str, go: Path) -> None:
    """Build one program beside its place and move it there, so that a half-written one is never taken for whole."""
    module.target.mkdir(parents=True, exist_ok=True)
    partial = module.target / f".{name}.partial"
    run(module.build_argv(go, name, partial), cwd=module.folder, env=toolchain.environment(go), timeout=BUILD_TIMEOUT)
    partial.rename(module.program(name))


def _source(module: Module, go: Path) -> Path:
    """Return the folder of Go's module cache that holds a module's source, fetched if it is not there yet.

    ``go list -m`` knows a module by its go.mod alone and names no folder for one whose source was not fetched.
    """
    name = module.recipe["module"]
    answer = run([go, "mod", "download", "-json", name], cwd=module.folder, env=toolchain.environment(go), timeout=BUILD_TIMEOUT)
    folder = json.loads(answer).get("Dir")
    if not folder:
        raise LabError(f"go mod download -json {name} names no folder: {answer.strip()}")
    return Path(folder)


def _copy_assets(module: Module, go: Path, progress: Progress) -> None:
    """Copy the files of builds.yaml's ``assets`` out of Go's module cache, which may be cleaned at any time."""
    if "assets" not in module.recipe or module.assets.exists():
        return
    progress.say(f"fetching {module.recipe['module']} {module.version}")
    with progress.alive(f"fetching {module.recipe['module']}"):
        source = _source(module, go)
    module.target.mkdir(parents=True, exist_ok=True)
    partial = module.target / ".module.partial"
    if partial.exists():
        shutil.rmtree(partial)
    for asset in module.recipe["assets"]:
        target = partial / asset
        target.parent.mkdir(parents=True, exist_ok=True)
        if (source / asset).is_dir():
            shutil.copytree(source / asset, target)
        else:
            shutil.copy(source / asset, target)
    for path in (partial, *partial.rglob("*")):
        # The module cache is read-only and without run bits; a container must be able to run the scripts.
        os.chmod(path, 0o755 if path.is_dir() or path.suffix == ".sh" else 0o644)
    partial.rename(module.assets)
