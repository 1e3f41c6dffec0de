"""The counters' commands, run here with a stand-in for the conntrack program."""

import ipaddress
import os
import subprocess

import pytest

from servicepath.experiments import counters

VIP = ipaddress.ip_address("10.43.77.7")


def shell(command, *, path=None):
    environment = os.environ | ({"PATH": f"{path}:{os.environ['PATH']}"} if path else {})
    return subprocess.run(command.argv, capture_output=True, text=True, timeout=20, env=environment, check=False)


@pytest.mark.parametrize(
    ("addresses", "kept"),
    [(["10.43.0.1"], 1), (["10.43.0.10", "10.43.0.1"], 2), (["10.43.0.2"], 0), ([], 0)],
    ids=["one", "two", "none matches", "no address"],
)
def test_conntrack_keeps_the_entries_of_the_addresses_and_no_match_is_no_error(tmp_path, addresses, kept):
    tool = tmp_path / "conntrack"
    tool.write_text("#!/bin/sh\nprintf 'udp src=1.1.1.1 dst=10.43.0.1 sport=1\\nudp src=1.1.1.1 dst=10.43.0.10 sport=2\\n'\n")
    tool.chmod(0o755)

    done = shell(counters.conntrack("conntrack", [ipaddress.ip_address(a) for a in addresses]), path=tmp_path)

    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == kept


def test_a_conntrack_that_fails_is_no_empty_table(tmp_path):
    tool = tmp_path / "conntrack"
    tool.write_text("#!/bin/sh\necho 'Operation failed: insufficient rights' >&2; exit 3\n")
    tool.chmod(0o755)

    assert shell(counters.conntrack("conntrack", [VIP]), path=tmp_path).returncode == 3
