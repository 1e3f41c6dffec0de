"""``cilium-dbg status`` in every shape that Cilium printed from 1.7 to 1.20."""

import csv
import ipaddress
import json
import pathlib
import re

import pytest

from servicepath.parse.cilium_status import parse_status
from servicepath.parse.errors import ParseError

DATA = pathlib.Path(__file__).parent / "data"
SHAPES = DATA / "cases" / "14-cilium-status-shapes"
REAL = DATA / "cilium-1.19.1"
WORDS = {True: "enabled", False: "disabled", None: "unknown"}


def rows():
    with (SHAPES / "expected.tsv").open() as table:
        return [row for row in csv.DictReader(table, delimiter="\t") if "wrong tool" not in row["kpr"]]


def plain(text):
    return text.partition("(")[0]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["file"])
def test_status_of_every_version_is_read_as_the_case_says(row):
    status = parse_status((SHAPES / row["file"]).read_text())

    assert status.kube_proxy_replacement is not None
    assert status.kube_proxy_replacement.lower() == row["kpr"]
    assert WORDS[status.socket_lb] == plain(row["socket_lb"])
    assert WORDS[status.services.get("ClusterIP")] == plain(row["clusterip"])
    assert WORDS[status.services.get("NodePort")] == plain(row["nodeport"])
    hostns_only = {"full": False, "hostns-only": True}.get(row["socket_lb_coverage"])  # meaningless where LB is off
    assert status.socket_lb_hostns_only is hostns_only


def test_brackets_hold_devices_or_features():
    old = parse_status((SHAPES / "v1.8-probe.txt").read_text())
    new = parse_status((SHAPES / "v1.10-probe-dualstack.txt").read_text())

    assert old.devices == {}
    assert old.services == {"NodePort": True, "externalIPs": True}
    assert new.devices == {"eth0": (ipaddress.ip_address("192.0.2.10"), ipaddress.ip_address("fd00:81::a51:a"))}


def test_several_devices_with_several_addresses():
    status = parse_status((DATA / "cases" / "02-k3s-kpr-wanted-proxy-active" / "cilium-status-short.txt").read_text())

    assert [(name, len(addresses)) for name, addresses in status.devices.items()] == [("eth0", 2), ("eth1", 2)]
    assert (status.kube_proxy_replacement, status.routing, status.tunnel, status.host_routing) == ("True", "native", None, "BPF")
    assert status.socket_lb is None


def test_false_beside_cluster_ip_enabled_is_the_normal_pair():
    status = parse_status((DATA / "cases" / "01-aks-kpr-off-pod-vs-host" / "cilium-status-details.txt").read_text())

    assert status.kube_proxy_replacement == "False"
    assert status.services["ClusterIP"] is True


@pytest.mark.parametrize("name", ["short-status-of-cilium-cli.txt", "../13-bpf-backend-not-found/cilium-status-brief.txt"])
def test_another_tools_status_is_no_status(name):
    with pytest.raises(ParseError, match="cilium-dbg status"):
        parse_status((SHAPES / name).read_text())


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"cilium": 1}', '{"cilium": {', "Error: Cannot get status"])
def test_what_is_no_status_is_refused(text):
    with pytest.raises(ParseError):
        parse_status(text)


def test_real_json_of_1_19():
    status = parse_status((REAL / "status.json").read_text())

    assert (status.kube_proxy_replacement, status.socket_lb, status.socket_lb_hostns_only) == ("False", False, None)
    assert (status.routing, status.tunnel, status.host_routing) == ("tunnel", "vxlan", "Legacy")
    assert status.masquerading == "IPTables [IPv4: Enabled, IPv6: Disabled]"
    assert status.services == {"NodePort": False, "externalIPs": False, "HostPort": False}  # ClusterIP: only text has it
    assert status.devices["enp1s0"][0] == ipaddress.ip_address("192.168.55.11")  # behind two empty strings
    assert status.version is None  # this build does not know it: "(v-)"
    assert status.ipam == "IPv4: 3/254 allocated from 10.42.1.0/24"


def test_text_fills_what_json_does_not_have():
    both = parse_status((REAL / "status.json").read_text(), (REAL / "status-verbose.txt").read_text())
    text = parse_status((REAL / "status-verbose.txt").read_text())

    assert both.services == {**text.services}
    assert both.services["ClusterIP"] is True
    assert both.cluster_health == "0/3 reachable"
    assert (both.routing, both.tunnel, both.masquerading) == (text.routing, text.tunnel, text.masquerading)


def test_forms_that_contradict_each_other_are_refused():
    with pytest.raises(ParseError, match="one mode in both forms"):
        parse_status((REAL / "status.json").read_text(), (SHAPES / "v1.20-true-hostns-only.txt").read_text())


def test_version_and_hostns_only_of_json():
    data = json.loads((REAL / "status.json").read_text())
    data["cilium"]["msg"] = "1.19.1 (v1.19.1-d0d0c879)"
    data["kube-proxy-replacement"]["features"]["socketLB"] = {"enabled": True}

    status = parse_status(json.dumps(data))

    assert (status.version, status.socket_lb, status.socket_lb_hostns_only) == ("1.19.1", True, False)


@pytest.mark.parametrize(
    ("word", "line", "encryption"),
    [
        ("Disabled", "Disabled", "disabled"),
        ("Wireguard", "Wireguard         [NodeEncryption: Disabled, cilium_wg0 (Pubkey: k=, Port: 51871, Peers: 2)]", "wireguard"),
        ("IPsec", "IPsec", "ipsec"),
    ],
)
def test_encryption_is_read_in_both_forms(word, line, encryption):
    data = json.loads((REAL / "status.json").read_text())
    data["encryption"] = {"mode": word}
    text = re.sub(r"(?m)^(Encryption: +).*$", rf"\g<1>{line}", (REAL / "status-verbose.txt").read_text())

    assert parse_status(json.dumps(data)).encryption == encryption
    assert parse_status(text).encryption == encryption


def test_what_kubectl_says_first_is_passed_over():
    said = 'Defaulted container "cilium-agent" out of: cilium-agent, config (init)\n'

    assert parse_status(said + (REAL / "status.json").read_text()).tunnel == "vxlan"
