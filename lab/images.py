"""Container images and the containerd folder that has them, made once into the cache.

Each image is one layer, put together from built programs and Debian packages (images.yaml). All are imported once into a
containerd folder of the cache; a node gets that folder's snapshots and blobs as read-only mounts and its own copy of the
databases, so that nothing is imported while a cluster starts.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lab import archive
from lab.builds import Module
from lab.containerd import import_archives
from lab.errors import LabError
from lab.host import Staged
from lab.locking import only_one
from lab.paths import LAB, cache
from lab.process import run
from lab.progress import Progress

TABLE = LAB / "images.yaml"
CILIUM = ("cilium", "cilium-operator")  # the images that follow Cilium's version
REPOSITORY = "localhost/servicepath-lab"
SNAPSHOTS = "io.containerd.snapshotter.v1.overlayfs/snapshots"
BLOBS = "io.containerd.content.v1.content/blobs"
BASE_TIMEOUT = 1800.0  # seconds for the packages of the base to come and be unpacked


@dataclass(frozen=True)
class Images:
    """The images of the lab: where the filled containerd folder is, and what each image is called."""

    folder: Path
    names: Mapping[str, str]

    def staged(self) -> list[Staged]:
        """Return the folders that every node mounts read-only: each layer's files and each blob."""
        # Each by itself: a node can then add layers and blobs of its own, as an upgrade does.
        below = [str(path.relative_to(self.folder)) for path in sorted((self.folder / SNAPSHOTS).iterdir())]
        below += [str(path.relative_to(self.folder)) for path in sorted((self.folder / BLOBS).glob("*/*"))]
        return [Staged(self.folder / path, f"containerd/{path}") for path in below]

    def copy_databases(self, target: Path) -> None:
        """Copy into a node's containerd folder what is not mounted: the databases and empty folders."""
        skipped = {self.folder / SNAPSHOTS, self.folder / BLOBS}

        def ignore(folder: str, names: list[str]) -> list[str]:
            return [name for name in names if Path(folder, name) in skipped]

        shutil.copytree(self.folder, target, ignore=ignore, dirs_exist_ok=True)


def prepare(modules: Mapping[str, Module], progress: Progress) -> Images:
    """Return the images, making them first where the cache has none from the same inputs.

    Raises:
        LabError: a package, a program or containerd failed; the message says which.
    """
    table = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    names = {name: _name(name, image, modules) for name, image in table["images"].items()}
    images = Images(cache() / "images" / f"containerd-{_key(table, names, modules)}", names)
    if images.folder.exists():
        return images
    with only_one(progress, "cache"):
        if not images.folder.exists():
            _fill(images, table, modules, progress)
    return images


def names_with(images: Images, cilium: Module) -> dict[str, str]:
    """Return the images' names, Cilium's in another version."""
    table = yaml.safe_load(TABLE.read_text(encoding="utf-8"))["images"]
    return {name: _name(name, table[name], {"cilium": cilium}) if name in CILIUM else full for name, full in images.names.items()}


def _fill(images: Images, table: Mapping[str, Any], modules: Mapping[str, Module], progress: Progress) -> None:
    work = cache() / "images" / ".partial"
    if work.exists():
        shutil.rmtree(work)
    work.mkdir(parents=True)
    base = _base(table["base"], progress)
    archives = []
    for name, image in table["images"].items():
        with progress.step(f"put together the image {name}"):
            path = work / f"{name}.tar"
            files = {target: source(said, modules) for target, said in image["files"].items()}
            layer = archive.Layer(files, image.get("links", {}), image.get("folders", []), base if image.get("base") else None)
            archive.write(path, images.names[name], layer, image["command"], table["base"]["leave_out"])
            archives.append(path)
    with progress.step("imported the images into the cache's containerd folder"):
        import_archives(archives, work / "containerd")
    (work / "containerd").rename(images.folder)
    shutil.rmtree(work)


def _base(recipe: Mapping[str, Any], progress: Progress) -> Path:
    """Return the tar of the base's root file system, made from Debian packages."""
    digest = hashlib.sha256(json.dumps([recipe["suite"], recipe["packages"]]).encode()).hexdigest()[:12]
    path = cache() / "images" / f"base-{digest}.tar"
    if not path.exists():
        progress.say(f"putting together the base system of the images: Debian's {', '.join(recipe['packages'])}")
        with progress.step("put together the base system"):
            partial = path.with_name(f".{path.name}")
            packages = f"--include={','.join(recipe['packages'])}"
            run(
                ["mmdebstrap", "--variant=apt", "--mode=root", "--format=tar", packages, recipe["suite"], partial],
                env={"DEBIAN_FRONTEND": "noninteractive"},
                timeout=BASE_TIMEOUT,
            )
            partial.rename(path)
    return path


def source(said: str, modules: Mapping[str, Module]) -> Path:
    """Return the file or folder that a source of images.yaml means.

    Raises:
        LabError: it is not there.
    """
    if said.startswith("/"):
        path = Path(said)
    elif ":" in said:
        name, _, asset = said.partition(":")
        path = modules[name].assets / asset
    else:
        name, _, program = said.partition("/")
        path = modules[name].program(program)
    if not path.exists():
        raise LabError(f"{TABLE}: {said} is not there: {path}")
    return path


def _module_of(image: Mapping[str, Any], modules: Mapping[str, Module]) -> Module | None:
    """Return the module that an image's programs come from, if any."""
    names = (source.partition("/")[0] for source in image["files"].values() if not source.startswith("/"))
    return next((modules[name] for name in names if name in modules), None)


def _name(name: str, image: Mapping[str, Any], modules: Mapping[str, Module]) -> str:
    module = _module_of(image, modules)
    return f"{REPOSITORY}/{name}:{module.version if module else 1}"


def _key(table: Mapping[str, Any], names: Mapping[str, str], modules: Mapping[str, Module]) -> str:
    used = sorted({module.target.name for image in table["images"].values() if (module := _module_of(image, modules))})
    machine = [os.path.getsize(source) for source in _machine_files(table)]
    return hashlib.sha256(json.dumps([table, dict(names), used, machine], sort_keys=True).encode()).hexdigest()[:12]


def _machine_files(table: Mapping[str, Any]) -> list[str]:
    sources = (source for image in table["images"].values() for source in image["files"].values())
    return sorted({source for source in sources if source.startswith("/usr") or source.startswith("/bin")})
