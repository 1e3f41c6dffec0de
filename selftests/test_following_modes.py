"""How a temporary Service is followed where kube-proxy is in nftables mode, or Cilium is in its place."""

import collections
import ipaddress
import types

import pytest

from fixtures import following
from servicepath.cluster import LiveClock
from servicepath.experiments import temporary_service
from servicepath.model.addresses import Socket
from servicepath.model.cilium import AgentBackend, AgentService
from servicepath.model.difference import explain
from servicepath.model.following import Following, Presence, not_followed
from servicepath.model.nft_rules import NftService, NftTable
from servicepath.observation import Observation

VIP = ipaddress.ip_address("10.43.77.7")
FRONT = Socket(VIP, temporary_service.PORT)
BACKEND, ANOTHER = Socket(ipaddress.ip_address("10.42.1.145"), 53), Socket(ipaddress.ip_address("10.42.1.146"), 53)
MADE = temporary_service.TemporaryService(VIP, BACKEND, "UDP")
LISTED = AgentService(FRONT, "UDP", "ClusterIP", "external", None, None, (AgentBackend(BACKEND, "active"),))


def nft(*endpoints, refused=False):
    """kube-proxy's nftables table with the Service in it, where it has endpoints or is refused for want of them."""
    services = (NftService(FRONT, "udp", "service-A", endpoints),) if endpoints else ()
    return NftTable(services, {}, {(FRONT, "udp"): "reject"} if refused else {}, frozenset())


@pytest.mark.parametrize(
    ("nat", "present", "trace"),
    [
        (nft(BACKEND), True, True),
        (nft(ANOTHER), False, True),
        (nft(refused=True), False, True),
        (nft(), False, False),
        (None, None, None),
    ],
    ids=["there", "another backend", "refused", "nothing", "no kube-proxy"],
)
def test_kube_proxys_part(nat, present, trace):
    one = following.Reading(nat, (LISTED,), (), frozenset())
    proxy = "iptables" if nat is None else "nftables"

    assert following.presence(one, MADE) == Presence(present, True, False, proxy)
    assert following.trace(one, MADE) == Presence(trace, True, False, proxy)


def test_without_kube_proxy_there_are_two_dataplanes():
    assert Presence(None, True, True).everywhere
    assert not Presence(None, True, False).everywhere
    assert Presence(None, False, False).nowhere
    assert not Presence(None, False, True).nowhere
    assert str(Presence(None, True, False)) == "agent's Service list: yes, load-balancing map: no"
    assert str(Presence(False, True, False, "nftables")).startswith("nftables: no, ")
    nothing, part = Presence(None, False, False), Presence(None, True, False)
    found = Following("master", VIP, nothing, part, nothing, (frozenset(), frozenset(), frozenset()), (9.0, 9.0), VIP)
    assert "expected: in both dataplanes, actual: agent's Service list: yes, load-balancing map: no" in explain(not_followed(found))


@pytest.mark.parametrize(
    ("mode", "asked"),
    [
        ("iptables", {"iptables-nft-save", "iptables-legacy-save", "ip-rule", "ip-route"}),
        ("nftables", {"nft-kube-proxy", "ip-rule", "ip-route"}),
        (None, {"ip-rule", "ip-route"}),
        ("ipvs", {"ip-rule", "ip-route"}),
    ],
)
def test_what_a_node_is_asked_follows_from_its_mode(mode, asked):
    plans = []
    said = collections.defaultdict(lambda: Observation("master", "ip-route", ("ip",), 0, b"[]", b"", 0.0, 0.0))

    def run(plan, *, phase):
        plans.append(plan)
        return {"master": said}

    cluster = types.SimpleNamespace(run=run, exec_in_agents=lambda agents, batch, *, phase: {"master": said}, agents={})
    seen = following.Observer(cluster, cluster, LiveClock(), cluster, {"master": mode}).look("service-before")

    assert {command.name for command in plans[0]["master"]} == asked
    if mode == "ipvs":
        assert seen["master"].problem == "no rules of kube-proxy were read in ipvs mode"
