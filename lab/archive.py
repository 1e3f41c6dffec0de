"""Image archives of one layer, in the format that ``docker save`` writes and containerd imports.

Format: a tar with manifest.json, a configuration named by its digest, and the layer as a tar (Docker image specification v1.2).
"""

import hashlib
import io
import json
import platform
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Layer:
    """What a layer has: path in it → a file or folder of this machine, links, empty folders, and a tar below it all."""

    files: Mapping[str, Path]
    links: Mapping[str, str]
    folders: Sequence[str]
    base: Path | None


def write(path: Path, name: str, layer: Layer, command: Sequence[str], leave_out: Sequence[str]) -> None:
    """Write an image archive.

    Args:
        path: the archive.
        name: the image's full name with its tag.
        layer: its content.
        command: what its containers run unless told otherwise.
        leave_out: beginnings of paths of the base that the layer shall not have.
    """
    with tempfile.TemporaryFile(dir=path.parent) as unpacked:
        with tarfile.open(fileobj=unpacked, mode="w") as tar:
            _fill(tar, layer, tuple(leave_out))
        size = unpacked.tell()
        unpacked.seek(0)
        diff = hashlib.file_digest(unpacked, "sha256").hexdigest()
        unpacked.seek(0)
        config = json.dumps(
            {
                "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
                "os": "linux",
                "config": {"Cmd": list(command), "Env": [PATH]},
                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{diff}"]},
            }
        ).encode()
        config_name = f"{hashlib.sha256(config).hexdigest()}.json"
        manifest = json.dumps([{"Config": config_name, "RepoTags": [name], "Layers": ["layer.tar"]}]).encode()
        with tarfile.open(path, "w") as out:
            for member, data in ((config_name, config), ("manifest.json", manifest)):
                out.addfile(_entry(member, len(data)), io.BytesIO(data))
            out.addfile(_entry("layer.tar", size), unpacked)


def _fill(tar: tarfile.TarFile, layer: Layer, leave_out: tuple[str, ...]) -> None:
    if layer.base:
        with tarfile.open(layer.base) as source:
            for member in source:
                if not member.name.startswith(leave_out):
                    tar.addfile(member, source.extractfile(member) if member.isreg() else None)
    for folder in layer.folders:
        entry = _entry(folder, 0)
        entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
        tar.addfile(entry)
    for target, path in layer.files.items():
        tar.add(path.resolve(), arcname=target, filter=_as_root)
    for target, points_to in layer.links.items():
        entry = _entry(target, 0)
        entry.type, entry.linkname = tarfile.SYMTYPE, points_to
        tar.addfile(entry)


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size = size
    return entry


def _as_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mtime = 0  # the same inputs make the same layer
    return entry
