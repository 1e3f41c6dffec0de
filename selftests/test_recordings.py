"""Every recording that is kept gives the verdicts that are kept beside it: without POSIX, root, ssh, kubeconfig or network."""

import subprocess
import sys

import pytest

from selftests import recordings
from servicepath.recording import storage


@pytest.mark.parametrize("recording", [pytest.param(path, id=path.name) for path in recordings.found()])
def test_a_recording_gives_its_verdicts(recording, tmp_path):
    done = recordings.replay(recording, tmp_path, posix=False)

    assert done.returncode in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED), done.stdout[-3000:] + done.stderr[-2000:]
    assert recordings.verdicts(tmp_path) == recordings.expectation(recording).read_text(encoding="utf-8").splitlines()
    assert "Replay of a recording" in recordings.facts(tmp_path)["cluster"]


@pytest.mark.parametrize("module", recordings.POSIX)
def test_what_only_posix_has_is_really_out_of_reach(module):
    done = subprocess.run([sys.executable, "-c", f"{recordings.WITHOUT_POSIX}import {module}"], capture_output=True, text=True)

    assert f"only POSIX has {module}" in done.stderr


def test_a_recording_without_cilium_config_leaves_out_what_needs_it(tmp_path):
    files = storage.files_of(recordings.FOLDER / "healthy.tar.zst")
    storage.store(((name, content) for name, content in files.items() if "cilium-config" not in name), tmp_path / "kept")

    recordings.replay(tmp_path / "kept", tmp_path, "-k", "tunnel_mtu")

    told = {(verdict["outcome"], verdict["message"]) for verdict in recordings.facts(tmp_path)["verdicts"]}
    assert told == {("skipped", "not in this recording: the ConfigMap cilium-config, without which neither mtu nor encryption is known")}
