"""How the dataplanes follow a Service that comes and goes, judged only where it could be followed."""

import dataclasses
import ipaddress
import types

import pytest
from judging import fact

from fixtures import disruption, following
from selftests import traffic_recording as recording
from servicepath.cluster import LiveClock
from servicepath.experiments import temporary_service
from servicepath.model import following as model
from servicepath.model.addresses import Socket
from servicepath.model.cilium import MapService
from servicepath.model.difference import explain
from servicepath.model.following import Following, Presence
from servicepath.model.service_rules import NodeRules
from servicepath.observation import CouldNotSee, Trouble
from servicepath.parse.cilium_services import parse_service_list
from servicepath.parse.iproute import parse_ip_route
from servicepath.parse.iptables import parse_save

VIP = ipaddress.ip_address("10.43.77.7")
BACKEND = Socket(ipaddress.ip_address("10.42.1.145"), 53)
MADE = temporary_service.TemporaryService(VIP, BACKEND, "UDP")
YES, NO = Presence(True, True, True), Presence(False, False, False)
ROUTES = frozenset(parse_ip_route("default via 192.168.55.1 dev enp1s0\n10.42.1.0/24 via 10.42.0.9 dev cilium_host mtu 1450\n"))
CIDRS = (ipaddress.ip_network("10.42.0.0/16"), ipaddress.ip_network("10.43.0.0/16"))


RULES = """\
*nat
:OUTPUT ACCEPT [0:0]
:PREROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-A - [0:0]
:KUBE-SEP-A - [0:0]
-A OUTPUT -j KUBE-SERVICES
-A PREROUTING -j KUBE-SERVICES
{service}COMMIT
"""
WITH = """\
-A KUBE-SERVICES -d 10.43.77.7/32 -p udp -m udp --dport 53535 -j KUBE-SVC-A
-A KUBE-SVC-A -m comment --comment "servicepath-test/x:probe -> 10.42.1.145:53" -j KUBE-SEP-A
-A KUBE-SEP-A -p udp -m udp -j DNAT --to-destination 10.42.1.145:53
"""
REFUSED = """\
COMMIT
*filter
:KUBE-SERVICES - [0:0]
-A KUBE-SERVICES -d 10.43.77.7/32 -p udp -m udp --dport 53535 -j REJECT
"""
FRONT = Socket(VIP, temporary_service.PORT)


def reading(rules="", agent=None, mapped=None):
    """One node's dataplanes; agent and mapped are the backends listed, None for no entry at all."""
    listed = [] if agent is None else [agent_service(agent)]
    maps = [] if mapped is None else [MapService(FRONT, "UDP", "external", "ClusterIP", (), tuple(mapped), (), False)]
    return following.Reading(NodeRules(parse_save(RULES.format(service=rules)), None), tuple(listed), tuple(maps), ROUTES)


def agent_service(backends):
    text = "ID   Frontend               Service Type   Backend\n7    10.43.77.7:53535/UDP   ClusterIP"
    found = parse_service_list(text + ("      1 => 10.42.1.145:53/UDP (active)\n" if backends else "\n"))
    return found[0]


def observer(looks=()):
    made = following.Observer(None, None, LiveClock(), None, {"master": "iptables"})
    left = list(looks)
    made.look = lambda phase: {"master": left.pop(0) if len(left) > 1 else left[0]}
    return made


@pytest.mark.parametrize(
    ("one", "present", "trace"),
    [
        (reading(), NO, NO),
        (reading(WITH, [BACKEND], [BACKEND]), YES, YES),
        (reading(REFUSED, [], []), NO, YES),
        (reading(agent=[]), NO, Presence(False, True, False)),
        (reading(mapped=[]), NO, Presence(False, False, True)),
        (reading(WITH, [BACKEND]), Presence(True, True, False), Presence(True, True, False)),
    ],
    ids=["nothing", "all", "without backends", "left in the list", "left in the map", "not yet in the map"],
)
def test_a_service_is_there_with_its_backend_and_gone_without_a_trace(one, present, trace):
    assert following.presence(one, MADE) == present
    assert following.trace(one, MADE) == trace


def test_it_is_looked_at_until_it_is_so(monkeypatch):
    monkeypatch.setattr(following, "EVERY", 0)
    whole, part = reading(WITH, [BACKEND], [BACKEND]), reading(WITH)

    assert observer([part, part, whole]).until(MADE, there=True)[0] == {"master": whole}
    assert observer([whole, reading(mapped=[]), reading()]).until(MADE, there=False)[0] == {"master": reading()}
    monkeypatch.setattr(following, "WITHIN", -1)
    assert observer([part]).until(MADE, there=True)[0] == {"master": part}


def test_three_looks_tell_how_a_node_followed():
    looks = tuple({"master": one} for one in (reading(), reading(WITH, [BACKEND], [BACKEND]), reading()))

    found = following.followed("master", MADE, looks, (1.0, 2.0))

    assert (found.before, found.created, found.deleted) == (NO, YES, NO)
    lost = following.followed("master", MADE, (*looks[:2], {"master": Trouble("master", "lost")}), (1.0, 2.0))
    assert isinstance(lost, Trouble)
    assert lost.problem == "lost"


def followed(before=NO, created=YES, deleted=NO, routes=(ROUTES, ROUTES, ROUTES)):
    return Following("master", VIP, before, created, deleted, routes, (1.0, 2.0), BACKEND.ip)


def test_dataplanes_follow_bites():
    late, stays = followed(created=Presence(True, True, False)), followed(deleted=Presence(True, False, False))

    assert model.not_followed(followed()) == ()
    text = explain(model.not_followed(late))
    assert "master: the temporary Service 10.43.77.7" in text
    assert "actual: iptables: yes, agent's Service list: yes, load-balancing map: no" in text
    assert "still there 2.0 s after its deletion" in explain(model.not_followed(stays))
    assert len(model.lines(stays)) == 4


@pytest.mark.parametrize(
    ("route", "wrong"),
    [
        ("10.43.77.7 dev cilium_host", 2),
        ("10.42.1.145 dev lxc1", 2),
        ("172.16.0.0/12 dev x", 0),
        # Endpoint routes: another Pod came, and what leads to it is no doing of the Service's.
        ("10.42.1.146 dev lxc9 proto kernel scope link", 0),
        ("10.43.77.7 dev lxc9", 2),
        ("10.42.1.128/25 dev lxc9", 2),
        ("10.42.1.146 dev cilium_host", 2),
    ],
)
def test_dnat_adds_no_route_bites(route, wrong):
    more = ROUTES | frozenset(parse_ip_route(route + "\n"))
    came_and_went, stayed = followed(routes=(ROUTES, more, ROUTES)), followed(routes=(ROUTES, more, more))

    assert model.routes_changed(followed(), CIDRS) == ()
    assert len(model.routes_changed(came_and_went, CIDRS)) == wrong // 2
    found = model.routes_changed(stayed, CIDRS)
    assert len(found) == wrong
    assert not wrong or "+ " in explain(found)


def test_a_route_that_goes_with_the_service_bites():
    default = frozenset(r for r in ROUTES if r.destination.prefixlen == 0)

    assert "- " in explain(model.routes_changed(followed(routes=(ROUTES, default, ROUTES)), CIDRS))


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (Trouble("master", "ssh: timed out"), "ssh: timed out"),
        (followed(before=Presence(False, False, True)), "was in use before"),
    ],
)
def test_a_service_that_could_not_be_followed_is_no_verdict(found, says):
    with pytest.raises(CouldNotSee, match=says):
        fact(disruption.followed, types.SimpleNamespace(name="master"), {"master": found})


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (Trouble("master", "ssh: timed out"), "ssh: timed out"),
        (followed(created=Presence(False, True, True)), "the NAT rules did not change"),
        (followed(routes=(frozenset(),) * 3), "no route at all"),
    ],
)
def test_unchanged_routes_need_changed_rules_and_a_listing(found, says):
    assert fact(disruption.all_followed, {"master": followed()}) == (followed(),)
    with pytest.raises(CouldNotSee, match=says):
        fact(disruption.all_followed, {"worker1": followed(), "master": found})


def test_routes_are_judged_by_the_cidrs_that_the_api_names():
    known, nets = recording.objects(), [ipaddress.ip_network(cidr) for cidr in ("10.42.0.0/24", "10.43.0.0/16", "10.43.77.7/32")]
    published = dataclasses.replace(known, service_cidrs=(nets[1],))

    assert {nets[0], nets[1]} <= set(fact(disruption.pod_and_service_cidrs, published, (followed(),)))
    assert {nets[0], nets[2]} <= set(fact(disruption.pod_and_service_cidrs, dataclasses.replace(known, service_cidrs=()), (followed(),)))
