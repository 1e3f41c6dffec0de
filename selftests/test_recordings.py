"""Every recording that is kept gives the verdicts that are kept beside it: without POSIX, root, ssh, kubeconfig or network."""

import ipaddress
import re
import subprocess
import sys
import types

import pytest
from judging import ROOT, fact, judged

from bench import replayed
from fixtures import host_facts
from selftests import recordings
from servicepath.model.routing import HostRouting
from servicepath.observation import CouldNotSee, Unrecorded
from servicepath.recording import head, storage
from servicepath.recording.model import Head


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


def test_another_service_is_judged_as_far_as_the_recording_goes():
    found = judged(recordings.FOLDER / "healthy.tar.zst", "--service=kube-system/hubble-peer", "-k", "no_route", str(ROOT / "tests"))

    assert found.of("no-route") == {"skipped"}
    assert re.search(r"not in this recording: the kernel's way to (\S+) on master \(route-get-\1\)", found.message("no-route"))


def test_a_live_run_that_did_not_ask_the_kernel_is_an_error():
    vip, config = ipaddress.ip_address("10.43.0.10"), types.SimpleNamespace(stash=pytest.Stash())
    with pytest.raises(CouldNotSee, match="the control is silent: the kernel was not asked for its way to") as unseen:
        fact(host_facts.shown_routing, HostRouting((), (), {}), types.SimpleNamespace(name="n"), None, (vip,), config)

    assert not isinstance(unseen.value.trouble, Unrecorded)


def test_a_recording_says_where_its_files_are_told_of():
    first = head.dump(Head()).decode().splitlines()[0]
    (told,) = re.findall(r"(\S+\.md) says what the files are", first)

    assert "`nodes/NAME/ROUND/`" in (ROOT / told).read_text(encoding="utf-8")


def test_the_larger_recording_of_the_benchmark_is_made_of_whatever_is_shipped():
    found = replayed.measure(nodes=5)  # raises where anything of it does not hold

    assert found.outcomes["passed"] > 100
    assert set(found.outcomes) <= {"passed", "skipped"}
