"""What is asked of nodes and of the LAN client, run here with stand-ins for the node's tools."""

from __future__ import annotations

import ipaddress
import json
import pathlib
import shutil
import socket

import fake_ssh
import pytest

from servicepath import troubles
from servicepath.channels.local import LocalChannel
from servicepath.experiments import counters, kubeconfig, lan, snapshot
from servicepath.model.addresses import Socket
from servicepath.observation import CouldNotSee

VIP = ipaddress.ip_address("10.43.0.10")
# What the scripts themselves need; all else on a node may be absent.
BARE = ("sh", "date", "timeout", "grep", "cat", "head", "sleep", "uname")


@pytest.fixture
def node(tmp_path, monkeypatch):
    """A node with the barest PATH: only what a test puts there, and what no Linux lacks."""
    fake = fake_ssh.FakeSsh(tmp_path)
    for tool in BARE:
        (tmp_path / tool).symlink_to(shutil.which(tool))
    fake.program("id", "echo 0")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("servicepath.framing._PRELUDE", framing_without_usual_folders())
    monkeypatch.setattr("servicepath.channels.local.LAUNCH", "/bin/sh")
    return fake


def framing_without_usual_folders() -> str:
    from servicepath import framing

    return framing._PRELUDE.replace(framing.PATH, ":")


def take(**wanted):
    return LocalChannel("worker1").run(snapshot.commands(lookups=[], **wanted), timeout=30, phase="snapshot")


def test_each_back_end_has_its_own_tool(node):
    node.program("iptables-nft-save", 'echo "nft $*"')
    node.program("iptables-legacy-save", 'echo "legacy $*"')

    said = take()

    assert (said["iptables-nft-save"].text, said["iptables-legacy-save"].text) == ("nft -c\n", "legacy -c\n")


def test_k3s_multi_call_programs_serve(node):
    node.program("xtables-nft-multi", 'echo "multi $*"')

    assert take()["iptables-nft-save"].text == "multi iptables-save -c\n"


@pytest.mark.parametrize(
    ("version", "nft", "legacy"),
    [
        ("iptables-save v1.8.9 (nf_tables)", 0, 127),
        ("iptables-save v1.8.4 (legacy)", 127, 0),
        ("iptables-save v1.6.1", 127, 0),
    ],
)
def test_a_plain_iptables_save_is_told_by_its_version(node, version, nft, legacy):
    node.program("iptables-save", f'[ "$1" = -V ] && echo "{version}" || echo rules')

    said = take()

    assert (said["iptables-nft-save"].status, said["iptables-legacy-save"].status) == (nft, legacy)
    absent = said["iptables-nft-save"] if nft else said["iptables-legacy-save"]
    assert troubles.of_command(absent).remedy == "install the Debian package iptables"


def test_absent_tools_are_named_with_their_packages(node):
    said = take()

    for name, package in (("ip-addr", "iproute2"), ("listeners", "iproute2"), ("nft-kube-proxy", "nftables"), ("kube-proxy-mode", "curl")):
        assert troubles.of_command(said[name]).remedy == f"install the Debian package {package}"


@pytest.mark.parametrize("tool", ["curl", "wget", "python3"])
def test_kube_proxy_is_asked_by_what_is_there(node, tool):
    node.program(tool, 'printf "kubeproxy_sync_proxy_rules_last_timestamp_seconds 1.5\\nother 3\\n"')

    said = take()

    assert said["kube-proxy-sync"].text == "kubeproxy_sync_proxy_rules_last_timestamp_seconds 1.5\n"
    assert "other 3" in said["kube-proxy-mode"].text


def test_a_kube_proxy_that_does_not_answer_keeps_the_tools_status(node):
    node.program("curl", "echo 'curl: (7) refused' >&2; exit 7")

    assert [take()[name].status for name in ("kube-proxy-mode", "kube-proxy-sync")] == [7, 7]


def test_a_kube_proxy_that_hangs_is_asked_once_a_mark_and_the_rules_handles_tell_instead(node, tmp_path):
    for tool in ("curl", "wget", "python3"):
        node.program(tool, f"echo {tool} >> {tmp_path}/asked; exit 28")
    node.program("nft", "echo 'jump KUBE-SVC-A # handle 7'")
    mark = next(command for command in counters.cut(0, ("true",), [VIP]) if command.name == "cut-0-sync-1")

    said = LocalChannel("worker1").run([mark], timeout=30, phase="traffic")["cut-0-sync-1"]

    assert said.text == "jump KUBE-SVC-A # handle 7\n"
    assert (tmp_path / "asked").read_text() == "curl\n"


def test_ipv6_is_asked_for_only_where_there_is_some(node):
    names = {command.name for command in snapshot.commands(lookups=[VIP, ipaddress.ip_address("fd00::a"), VIP], ipv6=True)}

    assert {"ip6tables-nft-save", "ip6-route", "ip6-rule", "route-get-10.43.0.10", "route-get-fd00--a"} <= names
    assert not any(command.name.startswith("ip6") for command in snapshot.commands(lookups=[]))


def test_tool_versions_are_those_of_the_tools_that_are_there(node):
    node.program("ip", "echo ip utility, iproute2-6.1.0; echo more")

    assert take()["tool-versions"].text == "ip\tip utility, iproute2-6.1.0\n"


def test_a_pods_namespace_is_the_one_that_holds_its_address(node, tmp_path, monkeypatch):
    folder = tmp_path / "netns"
    folder.mkdir()
    for name, ip in (("cni-1", "10.42.0.5"), ("cni-2", "10.42.0.55"), ("cni-3", "10.42.0.7")):
        (folder / name).write_text(json.dumps([{"addr_info": [{"local": ip}]}], separators=(",", ":")))
    node.program("nsenter", 'cat "${1#--net=}"')
    monkeypatch.setattr(snapshot, "_NAMESPACES", f"{folder}/*")
    pods = [ipaddress.ip_address(ip) for ip in ("10.42.0.7", "10.42.0.5", "10.42.0.99")]

    found = snapshot.namespaces(take(pod_ips=pods)["pod-namespaces"])

    assert {str(ip): pathlib.Path(path).name for ip, (path, _) in found.items()} == {"10.42.0.5": "cni-1", "10.42.0.7": "cni-3"}
    assert json.loads(found[pods[0]][1]) == [{"addr_info": [{"local": "10.42.0.7"}]}]


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield Socket(ipaddress.ip_address("127.0.0.1"), server.getsockname()[1])


@pytest.fixture
def closed(listener):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number = probe.getsockname()[1]
    return Socket(listener.ip, number)


@pytest.mark.parametrize("program", ["python3", "bash"])
def test_the_lan_client_tries_connections_by_what_is_there(node, tmp_path, listener, closed, program):
    (tmp_path / program).symlink_to(pathlib.Path(shutil.which(program, path="/usr/bin:/bin:/usr/local/bin")).resolve())

    said = lan.each_attempt(LocalChannel("lan-client").run(lan.commands([closed], [listener]), timeout=30, phase="lan"))

    assert said[lan.connect_name(closed)].argv[-3:] == (str(closed.ip), str(closed.port), "2")
    assert said[lan.connect_name(closed)].text == "refused\n"
    assert said[lan.connect_name(listener, "control")].text == "connected\n"


def test_a_lan_client_with_neither_is_told_what_to_install(node, closed):
    said = lan.each_attempt(LocalChannel("lan-client").run(lan.commands([closed], []), timeout=30, phase="lan"))

    assert troubles.of_command(said[lan.connect_name(closed)]).remedy == "install the Debian package python3"


def kubeconfig_on(path: pathlib.Path, server: str) -> pathlib.Path:
    path.write_text(f"clusters: [{{name: default, cluster: {{server: '{server}'}}}}]\nusers: []\n")
    return path


@pytest.mark.parametrize(
    ("named", "server", "address", "put_in"),
    [
        ("https://127.0.0.1:6443", None, "192.168.55.10", "https://192.168.55.10:6443"),
        ("https://localhost", None, "fd00::10", "https://[fd00::10]:443"),
        ("https://127.0.0.1:6443", "https://k3s.lan:6443", "192.168.55.10", "https://k3s.lan:6443"),
        ("https://10.0.0.9:6443", "https://k3s.lan:6443", "192.168.55.10", "https://10.0.0.9:6443"),
    ],
)
def test_a_nodes_kubeconfig_gets_an_address_that_can_be_reached(node, tmp_path, named, server, address, put_in):
    path = kubeconfig_on(tmp_path / "k3s.yaml", named)

    found = kubeconfig.read(LocalChannel("master"), str(path), server=server, address=address, timeout=10)

    assert found["clusters"][0]["cluster"]["server"] == put_in


@pytest.mark.parametrize(
    ("content", "says"), [("key: sesame\n", "is no kubeconfig"), ("{ sesame", "is no kubeconfig"), (None, "exit status 1")]
)
def test_a_kubeconfig_that_cannot_be_used_is_one_line_without_its_content(node, tmp_path, content, says):
    path = tmp_path / "k3s.yaml"
    if content:
        path.write_text(content)

    with pytest.raises(CouldNotSee, match=says) as raised:
        kubeconfig.read(LocalChannel("master"), str(path), server=None, address="x", timeout=10)

    assert "sesame" not in str(raised.value)


def test_an_address_that_no_service_has_is_found_beside_a_clusterip():
    v4, v6 = ipaddress.ip_address("10.43.0.10"), ipaddress.ip_address("fd00::10")
    taken = {v4, v6, ipaddress.ip_address("10.43.0.254")}

    found = lan.unassigned([Socket(v4, 53), Socket(v6, 9153)], taken)

    assert found == (Socket(ipaddress.ip_address("10.43.0.253"), 53), Socket(ipaddress.ip_address("fd00::fe"), 9153))


def test_a_proxy_that_takes_every_connection_proves_nothing_of_the_clusterip(listener):
    everywhere = lan.each_attempt(LocalChannel("lan-client").run(lan.commands([listener], [], [listener]), timeout=30, phase="lan"))

    trouble = lan.answered_by_no_service(everywhere)

    assert trouble
    assert f"{listener.ip}:{listener.port}, which is no Service's, was connected too" in trouble.problem


def test_a_connection_to_the_clusterip_alone_stays_a_finding(listener):
    nobody = Socket(ipaddress.ip_address("127.0.0.2"), listener.port)
    there = lan.each_attempt(LocalChannel("lan-client").run(lan.commands([listener], [], [nobody]), timeout=30, phase="lan"))

    assert lan.answered_by_no_service(there) is None
    assert there[lan.connect_name(listener)].text == "connected\n"
