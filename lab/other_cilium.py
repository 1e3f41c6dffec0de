"""Bringing the images of another version of Cilium onto the running nodes, as a registry would.

The agent's image is one layer above the one that the nodes already have, so that its base system is neither stored nor unpacked
again. What is imported lies on the lab's tmpfs: some 400 MB a node and version.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from lab import archive
from lab.builds import Module
from lab.containerd import IMPORT_TIMEOUT, NAMESPACE
from lab.errors import LabError
from lab.host import LabHost
from lab.images import BLOBS, CILIUM, TABLE, Images, source
from lab.paths import cache


def bring(images: Images, names: Mapping[str, str], cilium: Module, nodes: Sequence[LabHost]) -> None:
    """Import the images of a version into every node's containerd, where they are not there yet.

    Args:
        images: the lab's own.
        names: what the images are called in that version.
        cilium: the version; its programs are built.
        nodes: where to.

    Raises:
        LabError: an import failed; the message has containerd's words.
    """
    table = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    for name in CILIUM:
        lacking = [node for node in nodes if names[name] not in _there(node)]
        if not lacking:
            continue
        path = _archived(images, name, names[name], table["images"][name], cilium, _manifest(images, name, lacking[0]))
        for node in lacking:
            done = node.run(["ctr", "-n", NAMESPACE, "images", "import", "-"], timeout=IMPORT_TIMEOUT, stdin=path)
            if done.returncode != 0:
                raise LabError(f"{node.name}: importing {names[name]}: {done.stderr.strip()[-500:]}")


def _there(node: LabHost) -> dict[str, str]:
    """Return the images of a node: name → digest of what it stands for."""
    done = node.run(["ctr", "-n", NAMESPACE, "images", "list"])
    if done.returncode != 0:
        raise LabError(f"{node.name}: ctr images list: {done.stderr.strip()[-500:]}")
    rows = (line.split() for line in done.stdout.splitlines()[1:])
    return {row[0]: row[2] for row in rows}


def _manifest(images: Images, name: str, node: LabHost) -> dict[str, Any]:
    manifest: dict[str, Any] = _blob(images, _there(node)[images.names[name]])
    return manifest


def _blob(images: Images, digest: str) -> Any:
    path = images.folder / BLOBS / digest.replace(":", "/")
    return json.loads(path.read_text(encoding="utf-8"))


def _archived(
    images: Images, name: str, full: str, image: Mapping[str, Any], cilium: Module, below: Mapping[str, Any]
) -> Path:
    """Return the archive of an image, written where the cache has none from the same inputs."""
    key = hashlib.sha256(json.dumps([full, image, cilium.target.name, below], sort_keys=True).encode()).hexdigest()[:12]
    path = cache() / "images" / f"{name}-{cilium.version}-{key}.tar"
    if not path.exists():
        partial = path.with_name(f".{path.name}")
        own = {target: said for target, said in image["files"].items() if not said.startswith("/")}
        files = {target: source(said, {"cilium": cilium}) for target, said in own.items()}
        replaced = [target for target, found in files.items() if found.is_dir()]
        diff_ids = _blob(images, below["config"]["digest"])["rootfs"]["diff_ids"]
        archive.write_above(partial, full, archive.Layer(files, {}, [], None, replaced), image["command"], below, diff_ids)
        partial.rename(path)
    return path
