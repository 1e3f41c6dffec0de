"""The inventory: the example is good, and each mistake is one line with file, key and what was expected."""

from __future__ import annotations

import ipaddress
import pathlib

import pytest

from servicepath import inventory
from servicepath.inventory import InventoryError

EXAMPLE = pathlib.Path(__file__).parent.parent / "inventory.example.yaml"


@pytest.fixture
def write(tmp_path):
    def write(text: str) -> pathlib.Path:
        path = tmp_path / "inventory.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def uncommented(text: str) -> str:
    """The example with every key in force but those that exclude another."""
    lines = [line.removeprefix("# ") for line in text.splitlines()[3:]]
    lines = [line[2:] if line.startswith("  # ") else line for line in lines]
    lines = [line.replace("  # ", "  ", 1) if line.lstrip().startswith("# ") else line for line in lines]
    return "\n".join(line for line in lines if not line.startswith("kubeconfig: "))


def test_the_example_is_good():
    found = inventory.load(EXAMPLE)

    assert found.kubeconfig == EXAMPLE.parent / "kubeconfig.yaml"
    assert (found.ssh.user, found.nodes, found.services, found.deadline) == ("servicepath", {}, (), 600)
    assert found.file == EXAMPLE


def test_every_key_of_the_example_is_known_and_every_known_key_is_in_it(write):
    text = uncommented(EXAMPLE.read_text(encoding="utf-8")).replace("config: ssh/config", "").replace("identity: ssh/id_ed25519", "")

    found = inventory.load(write(text))

    assert found.nodes["worker1"].connection == "local"
    assert found.probes == {"default/resolver": {"dns": "dns", "5353": "dns"}}
    assert found.expect.cluster_cidr == ipaddress.ip_network("10.42.0.0/16")
    assert found.kubeconfig_from.server == "https://192.168.55.10:6443"
    assert [str(rule) for rule in found.upgrade.rules] == [
        "{fact: Cilium, where: worker*, from: 1.19.1, to: 1.19.5, is: expected}",
        "{conclusion: kpr-false-yet-clusterip, change: held→skipped, is: expected}",
    ]
    assert "kill -CONT" in found.api_outage.undo
    example = EXAMPLE.read_text(encoding="utf-8")
    models = (inventory.Inventory, inventory.Ssh, inventory.Node, inventory.KubeconfigFrom, inventory.ApiOutage, inventory.Expect)
    assert [key for model in models for key in model.model_fields if f"{key}:" not in example] == []


def test_an_empty_file_is_good(write):
    assert inventory.load(write("")).nodes == {}


def test_paths_are_relative_to_the_file(write, tmp_path):
    (tmp_path / "ssh").mkdir()
    (tmp_path / "ssh" / "config").touch()

    found = inventory.load(write("kubeconfig: k\nssh: {config: ssh/config}"))

    assert (found.kubeconfig, found.ssh.config) == (tmp_path / "k", tmp_path / "ssh" / "config")


def test_a_node_with_nothing_behind_it_is_one_that_ssh_knows(write):
    assert inventory.load(write("nodes: {master: }")).nodes == {"master": inventory.Node()}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "line 1, column 5: not good YAML"),
        ("- x", "expected keys with values"),
        ("ssh: {user: a}\nssh: {user: b}", "line 2, column 1: not good YAML: the key ssh is given twice"),
        ("kubconfig: x", "kubconfig: unknown key; expected one of: api_outage, "),
        ("ssh: {usr: x}", "ssh.usr: unknown key; expected one of: config, identity, port, user"),
        ("ssh: {user: 3}", "ssh.user: expected text (in quotes), found 3"),
        ("ssh: {port: 99999}", "ssh.port: expected a port, 1 to 65535, found 99999"),
        ("ssh: {config: none}", "ssh.config: expected a file, found none at "),
        ("nodes: [a]", "nodes: expected keys with values, found ['a']"),
        ("nodes: {a: {hst: b}}", "nodes.a.hst: unknown key; expected one of: connection, host"),
        ("nodes: {a: {connection: telnet}}", "nodes.a.connection: expected 'ssh' or 'local', found 'telnet'"),
        ("nodes: {a: {host: '-oProxyCommand=x'}}", "nodes.a.host: expected a host name, an address or an ssh alias"),
        ("lan_client: foo", "lan_client: expected keys with values, found 'foo'"),
        ("services: [kube-dns]", "services.0: expected namespace/name, found 'kube-dns'"),
        ("services: kube-system/kube-dns", "services: expected namespace/name"),
        ("pods: [default/A]", "pods.0: expected namespace/name, found 'default/A'"),
        ("probes: {default/x: {53: foo}}", "probes.default/x.53: expected dns or tcp, found 'foo'"),
        ("probes: {x: {53: dns}}", "probes.x.[key]: expected namespace/name, found 'x'"),
        ("expect: {cluster_cidr: 10.42.0.1/16}", "expect.cluster_cidr: expected a network such as 10.42.0.0/16"),
        ("expect: {socket_lb: 'no'}", "expect.socket_lb: expected a valid boolean, found 'no'"),
        ("expect: {kube_proxy_replacement: false}", "expect.kube_proxy_replacement: expected text (in quotes), found False"),
        ("api_outage: {node: a, do: b}", "api_outage.undo: expected a value, found none"),
        ("kubeconfig: a\nkubeconfig_from: {node: x}", "kubeconfig and kubeconfig_from exclude each other"),
        ("kubeconfig_from: {node: x, server: 10.0.0.1}", "kubeconfig_from.server: expected a URL such as https://"),
        ("deadline: 0", "deadline: expected a finite number of seconds, more than 0, found 0"),
        ("deadline: .inf", "deadline: expected a finite number of seconds, more than 0"),
        ("deadline: 0\nfoo: 1", "(and 1 more)"),
    ],
)
def test_a_mistake_is_one_line_with_file_key_and_what_was_expected(write, text, says):
    path = write(text)

    with pytest.raises(InventoryError) as raised:
        inventory.load(path)

    assert str(raised.value).startswith(f"{path}: ")
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(InventoryError, match="No such file"):
        inventory.load(tmp_path / "none.yaml")


def test_the_default_is_the_file_beside_else_the_labs_else_advice(tmp_path):
    lab = tmp_path / "lab.yaml"
    with pytest.raises(InventoryError, match="python -m lab up"):
        inventory.find(tmp_path, lab)

    lab.touch()
    assert inventory.find(tmp_path, lab) == lab

    (tmp_path / "inventory.yaml").touch()
    assert inventory.find(tmp_path, lab) == tmp_path / "inventory.yaml"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("? [a]\n: b\n", "a key must be one word"),
        ("? {a: b}\n: b\n", "a key must be one word"),
        ("a: " + "[" * 5000, "nested too deeply"),
        ("ssh: {port: " + "9" * 5000 + "}", "not YAML"),
        ("context: 2020-13-45", "not YAML: month must be in 1..12"),
        ("kubeconfig: ~nobody-of-that-name/x", "expected a path"),
        ('"a\\nb": 1', "unknown key"),
        ('"\\e[31mred": 1', "unknown key"),
        ('context: ["' + "x" * 100000 + '"]', "expected text"),
    ],
)
def test_a_file_that_nobody_would_write_is_one_short_line_too(write, text, said):
    with pytest.raises(InventoryError, match=said) as raised:
        inventory.load(write(text))

    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 500


def test_the_option_is_named_as_it_works(tmp_path):
    """With a blank instead of =, pytest takes a file elsewhere for a place of tests, and reads neither pytest.ini nor the options."""
    with pytest.raises(InventoryError, match="--inventory=FILE"):
        inventory.find(tmp_path, tmp_path / "none")
