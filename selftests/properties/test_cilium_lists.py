"""Cilium's load-balancing map, service list and status, made up at random and printed as its releases do: each is read back the same."""

from __future__ import annotations

import dataclasses
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from properties import cilium_printers as printed
from servicepath.model.addresses import Socket
from servicepath.model.cilium import AgentBackend, AgentService, AgentStatus, MapService
from servicepath.parse.cilium_services import parse_lb_list, parse_service_list
from servicepath.parse.cilium_status import parse_status
from servicepath.parse.errors import ParseError

PORTS = st.integers(1, 65535)
SCOPES = st.sampled_from(["external", "internal"])
TYPES = st.sampled_from(["ClusterIP", "NodePort", "LoadBalancer", "ExternalIPs", "HostPort", "LocalRedirect"])
FLAGS = st.lists(st.sampled_from(["non-routable", "Local", "two-scopes", "InternalLocal", "l7-load-balancer"]), max_size=2, unique=True)
NAMES = st.text(string.ascii_lowercase + string.digits + "-", min_size=1, max_size=9)


@st.composite
def map_services(draw: st.DrawFn) -> list[MapService]:
    """Frontends of both families, in the order in which their rows stand."""
    found: dict[object, MapService] = {}
    for _ in range(draw(st.integers(1, 4))):
        version = draw(st.sampled_from([4, 6]))
        sockets = st.builds(Socket, st.ip_addresses(v=version).filter(lambda ip: not ip.is_unspecified), PORTS)
        wildcard = draw(st.integers(0, 4)) == 0
        frontend = Socket(draw(sockets).ip, 0) if wildcard else draw(sockets)
        backends = () if wildcard else tuple(draw(st.lists(sockets, max_size=3, unique=True)))
        missing = () if wildcard else tuple(sorted(draw(st.sets(st.integers(1, 2**32 - 1), max_size=2))))
        protocol = None if wildcard else draw(st.sampled_from(["TCP", "UDP", "SCTP"]))
        each = MapService(frontend, protocol, draw(SCOPES), draw(TYPES), tuple(draw(FLAGS)), backends, missing, wildcard)
        found[frontend, protocol, each.scope] = each
    return list(found.values())


@st.composite
def agent_services(draw: st.DrawFn) -> list[AgentService]:
    """Frontends with what JSON says of them."""
    found = []
    for _ in range(draw(st.integers(1, 4))):
        version = draw(st.sampled_from([4, 6]))
        sockets = st.builds(Socket, st.ip_addresses(v=version), PORTS)
        states = st.sampled_from(["active", "terminating", "quarantined", "maintenance", "terminating-not-serving"])
        backends = st.lists(st.builds(AgentBackend, sockets, states, st.none() | NAMES), max_size=3)
        protocol = draw(st.sampled_from(["TCP", "UDP", "SCTP"]))
        found.append(AgentService(draw(sockets), protocol, draw(TYPES), draw(SCOPES), draw(NAMES), draw(NAMES), tuple(draw(backends))))
    return found


@st.composite
def statuses(draw: st.DrawFn) -> AgentStatus:
    """A status of 1.19."""
    socket_lb = draw(st.booleans())
    tunnelled = draw(st.booleans())
    ips = st.lists(st.ip_addresses(), min_size=1, max_size=3).map(tuple)
    return AgentStatus(
        version=draw(st.sampled_from(["1.19.1", "1.18.6", "1.20.0-pre.2", "1.16.19"])),
        kube_proxy_replacement=draw(st.sampled_from(["True", "False"])),
        socket_lb=socket_lb,
        socket_lb_hostns_only=draw(st.booleans()) if socket_lb else None,
        services={name: draw(st.booleans()) for name in ("NodePort", "HostPort")},
        routing="tunnel" if tunnelled else "native",
        tunnel=draw(st.sampled_from(["vxlan", "geneve"])) if tunnelled else None,
        host_routing=draw(st.sampled_from(["Legacy", "BPF"])),
        masquerading=None,
        devices=draw(st.dictionaries(st.sampled_from(["eth0", "enp1s0", "bond0.7"]), ips, max_size=2)),
        cluster_health=draw(st.sampled_from(["3/3 reachable", "0/200 reachable"])),
        encryption=draw(st.sampled_from(["disabled", "wireguard", "ipsec"])),
    )


@given(map_services(), st.randoms(use_true_random=False))
def test_a_map_is_read_back_the_same_whatever_the_order_of_its_rows(made, shuffler):
    rows = [row for each in made for row in printed.map_rows(each)]
    shuffler.shuffle(rows)

    for text in (printed.map_text(rows), printed.map_json(rows)):
        found = parse_lb_list(text)
        assert {(each.frontend, each.protocol, each.scope): each for each in found} == {
            (each.frontend, each.protocol, each.scope): each for each in made
        }
        assert len(found) == len(made)


@given(map_services(), st.booleans())
def test_a_map_of_before_1_16_is_read_back_the_same_without_protocols(made, slots):
    once = {each.frontend: dataclasses.replace(each, protocol=None, scope="external") for each in made}

    assert list(parse_lb_list(printed.map_text_before_1_16(once.values(), slots=slots))) == list(once.values())


@given(agent_services())
def test_a_service_list_is_read_back_the_same(made):
    nameless = [
        dataclasses.replace(
            each, namespace=None, name=None, backends=tuple(dataclasses.replace(backend, node=None) for backend in each.backends)
        )
        for each in made
    ]  # fmt: skip

    assert list(parse_service_list(printed.service_json(made))) == made
    assert list(parse_service_list(printed.service_text(made, protocols=True, states=True))) == nameless


@given(agent_services())
def test_a_service_list_of_before_1_17_is_read_back_the_same_but_for_protocols(made):
    found = parse_service_list(printed.service_text(made, protocols=False, states=False))

    assert [(each.frontend, each.type, each.scope, [b.socket for b in each.backends]) for each in found] == [
        (each.frontend, each.type, each.scope, [b.socket for b in each.backends]) for each in made
    ]
    assert {each.protocol for each in found} == {None}
    assert {backend.state for each in found for backend in each.backends} <= {None}


@given(statuses())
def test_a_status_is_read_back_the_same(made):
    from_json, from_text = parse_status(printed.status_json(made)), parse_status(printed.status_text(made))
    both = parse_status(printed.status_json(made), printed.status_text(made))

    assert dataclasses.replace(from_json, raw="") == dataclasses.replace(made, cluster_health=None)
    assert dataclasses.replace(from_text, raw="") == made
    assert dataclasses.replace(both, raw="") == made


@given(map_services(), st.sampled_from(["65536", "-1", "", "x"]))
def test_a_port_of_the_map_that_is_none_is_an_error(made, bad):
    rows = printed.map_rows(made[0])
    old = f":{made[0].frontend.port}/"

    with pytest.raises(ParseError, match="cilium-dbg bpf lb list: "):
        parse_lb_list(printed.map_text([(left.replace(old, f":{bad}/"), right) for left, right in rows]))
