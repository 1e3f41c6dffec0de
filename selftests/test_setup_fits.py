"""Which conclusions a set-up leaves out: by what was seen of the node, and by what is expected where it could not be seen."""

import pytest

from fixtures import setup
from servicepath.inventory import Inventory
from servicepath.model.mode import EXPECTED, EXPECTED_REPLACED, Mode
from servicepath.observation import CouldNotSee, Trouble

UNSEEN = CouldNotSee(Trouble("worker2", "no Cilium agent's Pod runs on this node"))


def seen(**parts):
    return Mode(**{**dict.fromkeys(Mode.__slots__), **parts})


@pytest.mark.parametrize(
    ("need", "found", "said"),
    [
        ("iptables", seen(proxy_mode="iptables"), None),
        ("iptables", seen(proxy_mode="nftables"), "kube-proxy is in nftables mode"),
        ("nftables", seen(proxy_mode="iptables"), "kube-proxy is in iptables mode"),
        ("iptables", EXPECTED_REPLACED, "there is no kube-proxy"),
        ("not-replaced", seen(kpr="False", socket_lb=False), None),
        ("not-replaced", seen(kpr="True"), "KubeProxyReplacement is True"),
        ("not-replaced", seen(kpr="False", socket_lb=True), "socket LB is on"),
        ("beside-kube-proxy", seen(kpr="False", socket_lb=True), None),
        ("socket-lb", seen(socket_lb=False), "socket LB is off"),
        ("socket-lb", seen(socket_lb=True), None),
        ("socket-lb-in-pods", seen(socket_lb=True), None),
        ("socket-lb-in-pods", seen(socket_lb=False), "socket LB is off"),
        ("socket-lb-in-pods", seen(socket_lb=True, hostns_only=True), "socket LB is on in the host's namespace alone"),
        ("per-packet", seen(socket_lb=False), None),
        ("per-packet", seen(socket_lb=True, hostns_only=True), None),
        ("per-packet", seen(kpr="True", socket_lb=True, hostns_only=False), "socket LB is on"),
        ("replaced", seen(kpr="False"), "KubeProxyReplacement is False"),
        ("tunnel", seen(routing="native"), "routing is native"),
        ("tunnel", seen(routing="tunnel", tunnel="geneve"), "the tunnel is geneve"),
        ("tunnel", EXPECTED, None),
        ("readable", seen(encryption="disabled"), None),
        ("readable", seen(), None),
        ("readable", seen(encryption="wireguard"), "what goes to other nodes is encrypted by Cilium (wireguard)"),
        ("readable", seen(encryption="ipsec"), "what goes to other nodes is encrypted by Cilium (ipsec)"),
        ("encapsulated", seen(routing="native"), "routing is native"),
        ("encapsulated", seen(routing="tunnel", tunnel="geneve"), None),
    ],
)
def test_a_set_up_is_named_that_is_not_the_needed_one(need, found, said):
    assert setup._otherwise(need, found) == said


class Request:
    """As much of pytest's request as the expectation is asked from."""

    def __init__(self, **pins):
        self.config = type("Config", (), {"option": type("Option", (), {"passive": False})})
        self.inventory = Inventory(expect=pins)


def other(monkeypatch, need, **pins):
    def unseen(*_):
        raise UNSEEN

    request = Request(**pins)
    monkeypatch.setattr(setup, "_seen", unseen)
    monkeypatch.setattr(setup, "inventory_of", lambda _: request.inventory)
    return setup._other_setup(request, None, need)


def test_where_nothing_was_seen_only_the_expected_set_ups_conclusions_are_judged(monkeypatch):
    told = other(monkeypatch, "socket-lb")

    assert told == "expected is that socket LB is off, and it could not be seen (no Cilium agent's Pod runs on this node)"
    assert other(monkeypatch, "not-replaced") is None
    assert "KubeProxyReplacement is False" in other(monkeypatch, "replaced")
    assert "kube-proxy is in iptables mode" in other(monkeypatch, "nftables")


def test_what_the_inventory_pins_is_expected(monkeypatch):
    assert other(monkeypatch, "socket-lb", socket_lb=True) is None
    assert "socket LB is on" in other(monkeypatch, "not-replaced", socket_lb=True)
    assert other(monkeypatch, "nftables", proxy_mode="nftables") is None
    assert other(monkeypatch, "replaced", kube_proxy_replacement="True") is None


@pytest.mark.parametrize(("config", "said"), [({"enable-endpoint-routes": "true"}, "endpoint routes are on"), ({}, None), (None, None)])
def test_endpoint_routes_let_the_hosts_stack_carry_pods_packets(monkeypatch, config, said):
    request = Request()
    request.getfixturevalue = lambda name: type("Objects", (), {"cilium_config": config})
    monkeypatch.setattr(setup, "_seen", lambda *_: seen(routing="tunnel", tunnel="vxlan"))

    found = setup._other_setup(request, None, "untracked")

    assert found is None if said is None else found.startswith(said)
