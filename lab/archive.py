"""Image archives that containerd imports: of one layer as ``docker save`` writes them, or of one layer on top of another image.

Formats: a tar with manifest.json, a configuration named by its digest, and the layer as a tar (Docker image specification v1.2);
a tar with index.json, a manifest, a configuration and a compressed layer as blobs (OCI image layout 1.0).
"""

import gzip
import hashlib
import io
import json
import platform
import shutil
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
OCI = "application/vnd.oci.image"
OPAQUE = ".wh..wh..opq"  # in a folder: nothing of the layers below is seen in it (OCI image layers, whiteouts)
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Layer:
    """What a layer has: path in it → a file or folder of this machine, links, empty folders, and a tar below it all."""

    files: Mapping[str, Path]
    links: Mapping[str, str]
    folders: Sequence[str]
    base: Path | None
    replaced: Sequence[str] = ()  # folders of the image below of which nothing stays


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
        config = _config(command, [f"sha256:{diff}"])
        config_name = f"{hashlib.sha256(config).hexdigest()}.json"
        manifest = json.dumps([{"Config": config_name, "RepoTags": [name], "Layers": ["layer.tar"]}]).encode()
        with tarfile.open(path, "w") as out:
            for member, data in ((config_name, config), ("manifest.json", manifest)):
                out.addfile(_entry(member, len(data)), io.BytesIO(data))
            out.addfile(_entry("layer.tar", size), unpacked)


def write_above(path: Path, name: str, layer: Layer, command: Sequence[str], below: Mapping[str, Any], diff_ids: Sequence[str]) -> None:
    """Write an image archive of one layer above an image that is already where this one will be imported.

    Args:
        path: the archive.
        name: the image's full name with its tag.
        layer: what is added to the image below.
        command: what its containers run unless told otherwise.
        below: the manifest of the image below.
        diff_ids: the digests of its uncompressed layers.
    """
    with tempfile.TemporaryFile(dir=path.parent) as packed:
        diff, top = _pack(layer, packed, path.parent)
        config = _config(command, [*diff_ids, diff])
        layers = [*below["layers"], top]
        kind = f"{OCI}.manifest.v1+json"
        manifest = {"schemaVersion": 2, "mediaType": kind, "config": _blob(f"{OCI}.config.v1+json", config), "layers": layers}
        described = json.dumps(manifest).encode()
        entry = {**_blob(kind, described), "annotations": {"io.containerd.image.name": name}}
        index = json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode()
        layout = json.dumps({"imageLayoutVersion": "1.0.0"}).encode()
        members = {_place(_digest(config)): config, _place(_digest(described)): described, "index.json": index, "oci-layout": layout}
        with tarfile.open(path, "w") as out:
            for member, data in members.items():
                out.addfile(_entry(member, len(data)), io.BytesIO(data))
            out.addfile(_entry(_place(top["digest"]), top["size"]), packed)


def _pack(layer: Layer, packed: io.BufferedRandom, folder: Path) -> tuple[str, dict[str, Any]]:
    """Write a layer, compressed, and return the digest of what it is uncompressed, and its own descriptor."""
    with tempfile.TemporaryFile(dir=folder) as unpacked:
        with tarfile.open(fileobj=unpacked, mode="w") as tar:
            _fill(tar, layer, ())
        unpacked.seek(0)
        diff = f"sha256:{hashlib.file_digest(unpacked, 'sha256').hexdigest()}"
        unpacked.seek(0)
        with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1, mtime=0) as compressed:
            shutil.copyfileobj(unpacked, compressed)
    size = packed.tell()
    packed.seek(0)
    digest = f"sha256:{hashlib.file_digest(packed, 'sha256').hexdigest()}"
    packed.seek(0)
    return diff, {"mediaType": f"{OCI}.layer.v1.tar+gzip", "digest": digest, "size": size}


def _config(command: Sequence[str], diff_ids: Sequence[str]) -> bytes:
    return json.dumps(
        {
            "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": {"Cmd": list(command), "Env": [PATH]},
            "rootfs": {"type": "layers", "diff_ids": list(diff_ids)},
        }
    ).encode()


def _blob(kind: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "digest": _digest(data), "size": len(data)}


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _place(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


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
    for folder in layer.replaced:
        tar.addfile(_entry(f"{folder}/{OPAQUE}", 0))
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
