"""Facts of one host, made from what its commands said: which of a LAN host's rules must have been read before their absence counts."""

import json

import pytest

from fixtures import host_facts
from servicepath.model import lan
from servicepath.observation import CouldNotSee, Observation

SAVE = "*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n"
ABSENT = 127


def lan_answers(*, nft=(0, SAVE), legacy=(0, ""), tables=(0, "")):
    """What a plain LAN host says; of each back end the exit status and text of its iptables-save."""
    said = {
        "iptables-nft-save": nft,
        "iptables-legacy-save": legacy,
        "ip-tables-names": tables,
        "ip-addr": (0, "[]"),
        "ip-route": (0, json.dumps([{"dst": "default", "gateway": "192.168.55.1", "dev": "eth0"}])),
        "ip-rule": (0, "[]"),
        "connect-10.43.0.10-53": (0, "timed-out"),
        "control-192.168.55.10-22": (0, "connected"),
    }
    words = {"connect-10.43.0.10-53": ("10.43.0.10", "53", "2"), "control-192.168.55.10-22": ("192.168.55.10", "22", "2")}
    return {
        name: Observation("lan-client", name, words.get(name, (name,)), status, text.encode(), b"", 0.0, 0.0)
        for name, (status, text) in said.items()
    }


def silent(**changed):
    return lan.lan_host_silent(host_facts.lan_host_of(lan_answers(**changed)))


def test_both_back_ends_of_a_lan_host_are_read():
    assert silent() is None
    # The kernel has no nat table of the legacy back end, or none of its tables at all: there is nothing that its program could show.
    assert silent(legacy=(ABSENT, "")) is None
    assert silent(legacy=(ABSENT, ""), tables=(1, "")) is None


def test_one_readable_back_end_of_a_lan_host_is_not_both():
    assert "iptables-nft-save is not there" in silent(nft=(ABSENT, ""), legacy=(0, SAVE))
    assert "iptables-legacy-save is not there" in silent(legacy=(ABSENT, ""), tables=(0, "filter\nnat\n"))
    with pytest.raises(CouldNotSee, match="iptables-legacy-save"):
        silent(legacy=(4, ""))
