"""A recording that somebody unpacked or packed anew is found one folder deeper; what is none is one clear line."""

from __future__ import annotations

import io
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import pytest
import zstandard
from judging import judged

from servicepath.loose import reader
from servicepath.observation import Observation
from servicepath.recording import storage
from servicepath.recording.model import Recording, RecordingError


@pytest.fixture
def kept(tmp_path):
    """A small recording in PARENT/today."""
    said = Observation("a", "first", ("x",), 0, b"out", b"", 0.0, 0.0)
    storage.write(Recording(nodes={"a": {"snapshot-1": {"first": said}}}, api={}, clock={"x": (1.0,)}), tmp_path / "parent" / "today")
    return tmp_path / "parent" / "today"


def packed(folder: pathlib.Path, name: str, top: str) -> pathlib.Path:
    """The folder as somebody packs it, its files below ``top``."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz" if name.endswith("gz") else "w:") as tar:
        tar.add(folder, top)
    target = folder.parent.parent / name
    target.write_bytes(zstandard.compress(whole.getvalue()) if name.endswith("zst") else whole.getvalue())
    return target


def test_a_recording_one_folder_deeper_is_read_from_there(kept):
    assert reader.is_recording(kept.parent)
    assert storage.read(kept.parent) == storage.read(kept)
    assert storage.read(kept.parent).source == str(kept)


@pytest.mark.parametrize("name", ["x.tar.zst", "x.tar.gz", "x.tar"])
@pytest.mark.parametrize("top", [".", "today", "./today"])
def test_a_recording_that_was_packed_with_its_folder_is_read(kept, name, top):
    archive = packed(kept, name, top)

    assert reader.is_recording(archive)
    assert storage.files_of(archive) == storage.files_of(kept)


def test_several_recordings_are_named_in_one_line(kept):
    shutil.copytree(kept, kept.parent / "yesterday")
    for what in (kept.parent, packed(kept.parent, "x.tar.zst", ".")):
        with pytest.raises(RecordingError, match=r"expected one recording, found 2: today, yesterday; give one of them$"):
            storage.read(what)
    with pytest.raises(RecordingError, match="found 2: today, yesterday"):
        reader.is_recording(kept.parent)


def test_loose_outputs_with_hints_of_their_own_stay_loose(kept):
    (kept.parent / "recording.yaml").write_text("kubernetes: v1.30.0\n")

    assert not reader.is_recording(kept.parent)


def test_a_text_file_is_one_line_that_says_what_was_expected(tmp_path):
    (tmp_path / "notes.txt").write_text("hello\n")
    found = judged(tmp_path / "notes.txt")
    told = [line for line in found.said.splitlines() if line.strip()]

    assert told == [
        f"ERROR: {tmp_path}/notes.txt: expected a folder, a .zip or a .tar of outputs, or a recording, found a file that is none of them, "
        "or not whole"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "target", "says"),
    [("empty", "new", "empty: the folder is empty"), ("today", "there.tar.zst", "there.tar.zst: expected .* into: it is there already")],
)
def test_redact_says_what_is_empty_or_there_already(kept, source, target, says):
    (kept.parent / "empty").mkdir()
    (kept.parent / "there.tar.zst").write_bytes(b"x")
    done = subprocess.run(
        [sys.executable, "-m", "servicepath.redact", str(kept.parent / source), str(kept.parent / target)],
        cwd=pathlib.Path(__file__).parent.parent, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert re.search(says, done.stderr)
