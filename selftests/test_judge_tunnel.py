"""Routes into the tunnel, cilium_host's address, and MTUs: on a healthy node, on broken ones, and on the cases."""

import dataclasses
import json
import pathlib

import host_samples as sample
import pytest
from host_samples import ip, net

from servicepath.model import judge_tunnel
from servicepath.model.cilium import AgentStatus
from servicepath.model.services import CiliumNode
from servicepath.model.underlay import underlay_devices
from servicepath.parse import cilium_config, iproute, kubernetes
from servicepath.parse.errors import ParseError

CASES = pathlib.Path(__file__).parent / "data" / "cases"
OWN, *OTHERS = sample.NODES
CASE_22_OWN = sample.cilium_node("node1", "10.233.72.0/24", "10.233.72.96")


def read(case, name):
    return next(CASES.glob(f"{case}-*")).joinpath(name).read_text()


def status(**devices):
    return AgentStatus("1.19.1", "False", False, None, {}, "tunnel", "vxlan", "legacy", None, devices)


def routes_wrong(**changes):
    return judge_tunnel.judge_remote_routes("master", sample.routing(**changes), OWN, OTHERS)


def mtu_wrong(*, interfaces=sample.INTERFACES, config=None, node=None, **changes):
    host, seen, node = sample.routing(**changes), sample.interfaces(interfaces), node or sample.node()
    config = config or {}
    devices = underlay_devices(seen, host, node, status(), config)
    expected = judge_tunnel.tunnel_mtu(devices, node, config, cilium_config.parse_mtu(config))
    return judge_tunnel.judge_tunnel_mtu("master", expected, host, seen, OTHERS)


def test_a_healthy_node_holds():
    assert routes_wrong() == ()
    assert judge_tunnel.judge_tunnel_device("master", sample.interfaces()) == ()
    assert judge_tunnel.judge_cilium_host("master", sample.interfaces(), OWN) == ()
    assert mtu_wrong() == ()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("10.42.1.0/24 via 10.42.0.9 dev cilium_host proto kernel src 10.42.0.9 mtu 1450\n", "", "has no route of its own"),
        ("10.42.1.0/24 via 10.42.0.9 dev cilium_host", "10.42.1.0/24 via 192.168.55.11 dev enp1s0", "is routed another way"),
        ("10.42.1.0/24 via 10.42.0.9 dev cilium_host proto kernel src 10.42.0.9", "10.42.1.0/24 dev cilium_host", "is routed another way"),
        (
            "10.42.1.0/24 via 10.42.0.9 dev cilium_host proto kernel src 10.42.0.9",
            "10.42.1.0/24 dev cilium_host src 10.42.0.1",
            "another way",
        ),
        ("10.42.1.0/24 via 10.42.0.9 dev cilium_host", "unreachable 10.42.1.0/24 dev cilium_host", "is routed another way"),
        ("10.42.1.0/24 via 10.42.0.9 dev cilium_host", "10.42.1.0/24 via 10.42.0.7 dev cilium_host", "is routed another way"),
    ],
)
def test_a_podcidr_that_is_routed_otherwise_is_named(old, new, says):
    assert old in sample.ROUTES
    wrong = routes_wrong(routes=sample.ROUTES.replace(old, new))
    assert says in str(wrong[0])
    assert "10.42.1.0/24" in wrong[0].subject


def test_the_kernels_own_answer_must_go_into_the_tunnel_too():
    hijacked = sample.LOOKUPS.replace(
        "10.42.1.182 dev cilium_host src 10.42.0.9", "10.42.1.182 via 192.168.55.11 dev enp1s0 src 192.168.55.10"
    )
    assert [d.subject for d in routes_wrong(lookups=hijacked)] == ["master: ip route get 10.42.1.182"]


def test_podcidrs_are_the_cilium_nodes_own_and_of_its_families():
    two = sample.cilium_node("worker1", "10.42.1.0/24", "10.42.1.182", "10.50.0.0/27", "fd42::/112")
    wrong = judge_tunnel.judge_remote_routes("master", sample.routing(), OWN, (two,))
    assert [d.subject for d in wrong] == ["master: worker1's PodCIDR 10.50.0.0/27"]


def test_an_ipv6_route_has_no_gateway():
    own = CiliumNode("master", (net("fd42:0::/112"),), (), (ip("fd42::9"),))
    other = CiliumNode("worker1", (net("fd42:1::/112"),), (), ())
    host = sample.routing(
        routes="fd42:1::/112 dev cilium_host proto kernel src fd42::9 metric 1024 mtu 1450 pref medium\n", rules="", lookups=""
    )
    assert judge_tunnel.judge_remote_routes("master", host, own, (other,)) == ()


def test_the_address_may_be_of_any_scope_but_must_be_there():
    scope_link = sample.INTERFACES.replace("inet 10.42.0.9/32 scope global", "inet 10.42.0.9/32 scope link")
    assert judge_tunnel.judge_cilium_host("master", sample.interfaces(scope_link), OWN) == ()
    moved = judge_tunnel.judge_cilium_host("master", sample.interfaces(sample.INTERFACES.replace("10.42.0.9/32", "10.42.0.8/32")), OWN)
    assert "10.42.0.8/32" in moved[0].actual
    gone = judge_tunnel.judge_cilium_host("master", sample.interfaces()[:2], OWN)
    assert "is not there" in str(gone[0])


def test_case_22_the_address_with_scope_link_is_legal():
    seen = iproute.parse_ip_addr(read("22", "ip-addr-cilium.txt"))
    own = sample.cilium_node("node1", "10.0.1.0/24", "10.0.1.108")
    assert judge_tunnel.judge_cilium_host("node1", seen, own) == ()


@pytest.mark.parametrize(
    ("routes", "config", "holds"),
    [
        (sample.ROUTES, {}, True),
        (sample.ROUTES.replace("mtu 1450", "mtu 1500"), {}, False),
        (sample.ROUTES.replace("mtu 1450", "mtu 1400"), {}, False),
        (sample.ROUTES.replace(" mtu 1450", ""), {}, False),
        (sample.ROUTES.replace("mtu 1450", "mtu 1370"), {"enable-wireguard": "true"}, True),
        (sample.ROUTES.replace("mtu 1450", "mtu 1373"), {"enable-ipsec": "true"}, True),
        (sample.ROUTES.replace("mtu 1450", "mtu 1370"), {"enable-wireguard": "false"}, False),
        (sample.ROUTES.replace("mtu 1450", "mtu 1470"), {"enable-wireguard": "true"}, False),
        (sample.ROUTES.replace("mtu 1450", "mtu 1430"), {"underlay-protocol": "ipv6"}, True),
        (sample.ROUTES, {"underlay-protocol": "ipv6"}, False),
    ],
)
def test_the_routes_mtu_leaves_room_for_the_tunnels_header(routes, config, holds):
    assert (mtu_wrong(routes=routes, config=config) == ()) is holds


def test_a_configured_mtu_explains_a_smaller_one_and_never_a_larger():
    smaller = {"routes": sample.ROUTES.replace("mtu 1450", "mtu 1350"), "config": {"mtu": "1400"}}
    devices = sample.INTERFACES.replace("cilium_net@cilium_host: <BROADCAST,MULTICAST,NOARP,UP,LOWER_UP> mtu 1500", "x: <UP> mtu 1500")
    for name in ("cilium_host@cilium_net", "cilium_vxlan"):
        devices = devices.replace(f"{name}: <BROADCAST,MULTICAST,NOARP,UP,LOWER_UP> mtu 1500", f"{name}: <BROADCAST,UP> mtu 1400")
        devices = devices.replace(f"{name}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500", f"{name}: <BROADCAST,UP> mtu 1400")
    assert mtu_wrong(interfaces=devices, **smaller) == ()
    larger = mtu_wrong(routes=sample.ROUTES.replace("mtu 1450", "mtu 8950"), config={"mtu": "9000"})
    assert sum("full-size packets do not fit" in str(d) for d in larger) == 2


def test_devices_that_do_not_keep_the_base_are_named():
    wrong = mtu_wrong(
        interfaces=sample.INTERFACES.replace("cilium_vxlan: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500", "cilium_vxlan: <UP> mtu 1450")
    )
    assert [d.subject for d in wrong] == ["master: cilium_vxlan"]


def test_an_ipv6_underlay_takes_seventy():
    found = judge_tunnel.tunnel_mtu(sample.interfaces()[1:2], sample.node("n", "fd00:55::10"), {}, None)
    assert (found.route, found.ceiling, str(found)) == (1430, 1430, "1430 (1500 of enp1s0 less 70)")


def test_the_smallest_of_all_devices_that_cilium_selects_counts():
    second = "9: eth1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1400 qdisc mq state UP group default\n    inet 10.9.0.1/24 scope global eth1\n"
    others = (
        "10: docker0: <BROADCAST,UP> mtu 1300 qdisc noqueue state UP\n    inet 172.17.0.1/16 scope global docker0\n"
        "11: eth2: <BROADCAST,UP> mtu 1200 qdisc mq master bond0 state UP\n    inet 10.8.0.1/24 scope global eth2\n"
        "12: eth3: <BROADCAST> mtu 1100 qdisc mq state DOWN\n    inet 10.7.0.1/24 scope global eth3\n"
        "13: eth4: <BROADCAST,UP> mtu 1000 qdisc mq state UP\n"
    )
    routes = sample.ROUTES + "".join(f"10.{n}.0.0/24 dev {d}\n" for n, d in ((9, "eth1"), (8, "eth2"), (7, "eth3"), (6, "docker0")))
    seen = sample.interfaces(sample.INTERFACES + second + others)

    def names(agent=None, config=None):
        found = underlay_devices(seen, sample.routing(routes=routes), sample.node(), agent, config or {})
        return [interface.name for interface in found]

    assert names() == ["enp1s0", "eth1"]
    assert names(status(eth4=())) == ["eth4"]
    assert names(config={"devices": "eth+"}) == ["eth1", "eth2", "eth3", "eth4"]
    assert names(config={"devices": "eth0 enp1s0"}) == ["enp1s0"]
    assert names(config={"devices": "!eth1", "force-device-detection": "true"}) == ["enp1s0"]


def test_a_veth_counts_only_with_a_default_route_and_the_nodes_own_device_stands_in():
    seen = tuple(dataclasses.replace(i, kind="veth") if i.name == "enp1s0" else i for i in sample.interfaces())
    assert [i.name for i in underlay_devices(seen, sample.routing(), sample.node(), status(), {})] == ["enp1s0"]
    bare = sample.routing(routes=sample.ROUTES.replace("default via 192.168.55.1 dev enp1s0\n", ""))
    assert [i.name for i in underlay_devices(seen, bare, sample.node(), None, {})] == ["enp1s0"]  # holds the InternalIP
    assert judge_tunnel.tunnel_mtu((), sample.node(), {}, None) is None


@pytest.mark.parametrize(
    ("said", "config", "expected"),
    [
        (status(), None, "tunnel"),
        (dataclasses.replace(status(), routing="native"), {"routing-mode": "tunnel"}, "native"),
        (None, {"routing-mode": "native"}, "native"),
        (None, {"tunnel": "disabled"}, "native"),
        (None, {"tunnel": "vxlan"}, "tunnel"),
        (None, {}, "tunnel"),
        (dataclasses.replace(status(), routing=None), None, None),
    ],
)
def test_only_a_tunnel_is_judged_and_how_pods_are_routed_is_not_guessed(said, config, expected):
    assert judge_tunnel.pod_routing(said, config) == expected


def test_a_podcidr_that_the_kernel_was_not_asked_for_proves_nothing():
    assert judge_tunnel.lookups_silent(sample.routing(), OWN, OTHERS) is None
    fewer = sample.routing(lookups=sample.LOOKUPS.splitlines()[0])
    assert "10.42.1.0/24, 10.42.2.0/24" in judge_tunnel.lookups_silent(fewer, OWN, OTHERS)
    assert "no CiliumInternalIP" in judge_tunnel.lookups_silent(sample.routing(), CiliumNode("master", (), (), ()), OTHERS)


def test_case_16_routes_and_mtu_hold():
    nodes = {n.name: n for n in kubernetes.parse_nodes(json.loads(read("16", "nodes.json")))}
    host = dataclasses.replace(sample.routing(), routes=iproute.parse_ip_route(read("16", "ip-j-route.json")), lookups={})
    seen = iproute.parse_ip_addr(read("16", "ip-j-addr.json"))
    own, other = sample.cilium_node("node2", "10.244.1.0/24", "10.244.1.55"), sample.cilium_node("node1", "10.244.0.0/24", "10.244.0.1")
    expected = judge_tunnel.tunnel_mtu(underlay_devices(seen, host, nodes["node2"], None, {}), nodes["node2"], {}, None)
    assert judge_tunnel.judge_remote_routes("node2", host, own, (other,)) == ()
    assert judge_tunnel.judge_cilium_host("node2", seen, own) == ()
    assert judge_tunnel.judge_tunnel_mtu("node2", expected, host, seen, (other,)) == ()


def test_case_19_the_tunnel_device_is_down_and_its_rival_is_named():
    exact = judge_tunnel.judge_tunnel_device("node1", iproute.parse_ip_link(read("19", "ip-j-d-link-type-vxlan.json")))
    assert "is down" in str(exact[0])
    assert "flannel.1 holds UDP port 8472" in exact[0].actual
    plain = judge_tunnel.judge_tunnel_device("node1", iproute.parse_ip_link(read("19", "ip-link.txt")))
    assert [d.problem for d in plain] == ["is down"]  # without -d no port is shown, and flannel.1's state UNKNOWN is a working one
    assert "has no tunnel device" in str(judge_tunnel.judge_tunnel_device("node1", ())[0])


def case_22(addr, route):
    host = dataclasses.replace(sample.routing(), routes=iproute.parse_ip_route(read("22", route)), lookups={})
    return iproute.parse_ip_addr(read("22", addr)), host


def test_case_22_a_tunnel_under_encryption_holds():
    bond, host = case_22("ip-link-bond0.txt", "ip-route-tunnel-8874.txt")
    others = (sample.cilium_node("node2", "10.233.64.0/24", "10.233.64.1"), sample.cilium_node("node3", "10.233.65.0/24", "10.233.65.1"))
    assert judge_tunnel.judge_remote_routes("node1", host, CASE_22_OWN, others) == ()

    def wrong(config):
        devices = underlay_devices(bond, host, sample.node("node1", "10.20.0.14"), status(bond0=()), config)
        expected = judge_tunnel.tunnel_mtu(devices, sample.node("node1", "10.20.0.14"), config, None)
        return judge_tunnel.judge_tunnel_mtu("node1", expected, host, bond, others)

    assert wrong({"enable-ipsec": "true"}) == ()
    assert len(wrong({})) == 2  # nothing would explain 8874


def test_case_22_no_room_for_the_header_is_a_fault():
    seen, host = case_22("mtu-too-big-addr.txt", "mtu-too-big-route.txt")
    node = sample.node("node3", "192.168.100.11")
    expected = judge_tunnel.tunnel_mtu(underlay_devices(seen, host, node, None, {}), node, {}, None)
    wrong = judge_tunnel.judge_tunnel_mtu("node3", expected, host, seen, (sample.cilium_node("node1", "10.244.0.0/24", "10.244.0.1"),))
    assert [(d.expected, d.actual) for d in wrong] == [
        ("1350 (1400 of eth0 less 50)", "1400: full-size packets do not fit into the tunnel")
    ]


def test_a_configured_mtu_that_is_no_number_is_one_clear_line():
    assert [cilium_config.parse_mtu(config) for config in ({}, {"mtu": ""}, {"mtu": "0"}, {"mtu": "1400"})] == [None, None, None, 1400]
    for said in ("1500.0", "auto", "-1", "١٤٠٠"):
        with pytest.raises(ParseError, match=r"^cilium-config: the input: 'mtu: .*': expected a number of bytes, or 0 for the devices'"):
            cilium_config.parse_mtu({"mtu": said})


def test_what_is_indexed_is_what_a_look_at_each_would_find():
    routing = sample.routing()
    prefixes = [*(route.destination for route in routing.routes), net("10.42.0.0/15"), net("0.0.0.0/0"), net("203.0.113.0/24")]

    for prefix in prefixes:
        reachable = routing.reachable_routes(prefix.network_address)
        assert routing.routes_for(prefix) == tuple(route for route in reachable if route.destination == prefix)
        assert routing.lookups_in(prefix) == tuple(asked for asked in routing.lookups.items() if asked[0] in prefix)
