"""A refusal is one line that names what is missing and the package that brings it; nothing else happens."""

import os
from pathlib import Path

import pytest

from lab import network, preflight, topology
from lab.__main__ import main
from lab.errors import RefusedError

LAB = topology.load()


def test_not_root(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main(["up"]) == 2
    said = capsys.readouterr().err
    assert "root" in said
    assert said.count("\n") == 1
    assert "Traceback" not in said


def test_a_missing_tool_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(preflight, "TOOLS", {"no-such-tool": "no-such-package"})
    with pytest.raises(RefusedError, match=r"no-such-tool.*apt-get install .*no-such-package") as refusal:
        preflight.check(LAB)
    assert refusal.value.status == 2


def test_a_missing_file_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(preflight, "TOOLS", {})
    monkeypatch.setattr(preflight, "FILES", {Path("/no/such/file"): "its-package"})
    with pytest.raises(RefusedError, match=r"/no/such/file.*its-package"):
        preflight.check(LAB)


def test_a_range_in_use_is_named_with_its_user(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(preflight, "TOOLS", {})
    monkeypatch.setattr(preflight, "FILES", {})
    monkeypatch.setattr(network, "users_of", lambda _: ["192.168.55.7/24 on eth0"])
    with pytest.raises(RefusedError, match=r"192\.168\.55\.0/24 is in use.*192\.168\.55\.7/24 on eth0"):
        preflight.check(LAB)


def test_a_kernel_without_something_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(preflight, "TOOLS", {})
    monkeypatch.setattr(preflight, "FILES", {})
    monkeypatch.setattr(network, "users_of", lambda _: [])
    monkeypatch.setattr(preflight, "FILE_SYSTEMS", {"nosuchfs": "CONFIG_NOSUCH_FS"})
    with pytest.raises(RefusedError, match=r"no nosuchfs file system.*CONFIG_NOSUCH_FS"):
        preflight.check(LAB)


def test_addresses_and_routes_of_others_count_and_our_own_leg_does_not(monkeypatch: pytest.MonkeyPatch):
    def said(*argv: str) -> list[dict[str, object]]:
        if "addr" in argv:
            return [
                {"ifname": "servicepath0", "addr_info": [{"local": "192.168.55.254", "prefixlen": 24}]},
                {"ifname": "eth9", "addr_info": [{"local": "192.168.55.7", "prefixlen": 24}]},
            ]
        return [{"dst": "default", "dev": "eth0"}, {"dst": "192.168.0.0/16", "dev": "tun0"}, {"dst": "10.0.0.0/8", "dev": "eth0"}]

    monkeypatch.setattr(network, "_ip_json", said)
    assert network.users_of(LAB.lan.network) == ["192.168.55.7/24 on eth9", "route 192.168.0.0/16 dev tun0"]


def test_too_few_inotify_instances_are_refused_with_the_setting_and_none_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "limit").write_text("128\n")
    monkeypatch.setattr(preflight, "INOTIFY_LIMIT", tmp_path / "limit")
    monkeypatch.setattr(preflight, "INOTIFY_INSTANCES", 100_000)
    held = len(os.listdir("/proc/self/fd"))
    with pytest.raises(RefusedError, match=r"of the 128 inotify instances .* sysctl -w fs\.inotify\.max_user_instances=1024"):
        preflight.check_inotify()
    assert len(os.listdir("/proc/self/fd")) == held


def test_as_many_inotify_instances_as_the_lab_takes_will_do(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(preflight, "INOTIFY_INSTANCES", 1)
    preflight.check_inotify()
