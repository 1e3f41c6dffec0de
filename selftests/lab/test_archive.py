"""An image of one layer above another names the layers below and brings only its own."""

import gzip
import hashlib
import json
import tarfile
from pathlib import Path

from lab import archive

BELOW = {"layers": [{"mediaType": "m", "digest": "sha256:below", "size": 7}], "config": {}}


def test_a_layer_above_an_image_that_is_already_there(tmp_path: Path):
    (tmp_path / "agent").write_text("new", encoding="ascii")
    (tmp_path / "bpf").mkdir()
    (tmp_path / "bpf" / "a.c").write_text("c", encoding="ascii")
    layer = archive.Layer({"usr/bin/agent": tmp_path / "agent", "lib/bpf": tmp_path / "bpf"}, {}, [], None, ["lib/bpf"])
    archive.write_above(tmp_path / "image.tar", "localhost/x:v2", layer, ["/agent"], BELOW, ["sha256:below-diff"])

    with tarfile.open(tmp_path / "image.tar") as tar:
        blobs = {member.name: tar.extractfile(member).read() for member in tar}
    assert all(hashlib.sha256(data).hexdigest() == name.rpartition("/")[2] for name, data in blobs.items() if name.startswith("blobs/"))
    (entry,) = json.loads(blobs["index.json"])["manifests"]
    assert entry["annotations"] == {"io.containerd.image.name": "localhost/x:v2"}
    manifest = json.loads(blobs[f"blobs/{entry['digest'].replace(':', '/')}"])
    assert [each["digest"] for each in manifest["layers"][:1]] == ["sha256:below"]
    assert "blobs/sha256/below" not in blobs
    top = gzip.decompress(blobs[f"blobs/{manifest['layers'][1]['digest'].replace(':', '/')}"])
    config = json.loads(blobs[f"blobs/{manifest['config']['digest'].replace(':', '/')}"])
    assert config["rootfs"]["diff_ids"] == ["sha256:below-diff", f"sha256:{hashlib.sha256(top).hexdigest()}"]
    (tmp_path / "top.tar").write_bytes(top)
    with tarfile.open(tmp_path / "top.tar") as tar:
        names = tar.getnames()
    assert {"usr/bin/agent", "lib/bpf/a.c", "lib/bpf/.wh..wh..opq"} <= set(names)
