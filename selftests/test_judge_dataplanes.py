"""dataplanes-programmed: kube-proxy's rules, Cilium's list and map against the EndpointSlices."""

import dataclasses
import ipaddress
import json
import pathlib

import pytest

from servicepath.model import judge_dataplanes as judge
from servicepath.model.addresses import Socket
from servicepath.model.services import ClusterObjects, Endpoint, Service, ServicePort
from servicepath.parse.cilium_services import parse_lb_list, parse_service_list
from servicepath.parse.kubernetes import parse_endpoint_slices, parse_services

CASES = pathlib.Path(__file__).parent / "data" / "cases"


def ip(text):
    return ipaddress.ip_address(text)


def at(text):
    address, _, port = text.rpartition(":")
    return Socket(ip(address.strip("[]")), int(port))


def port_of(name="dns", protocol="UDP", port=53):
    return ServicePort("kube-system", "kube-dns", name, protocol, port, None, None, None)


def service_of(*ports, vips=("10.43.0.10",), **changes):
    plain = Service(
        namespace="kube-system", name="kube-dns", type="ClusterIP", cluster_ips=tuple(map(ip, vips)), ports=ports or (port_of(),),
        selector={}, internal_traffic_policy="Cluster", external_traffic_policy=None, session_affinity="None",
        publish_not_ready=False, traffic_distribution=None, labels={}, annotations={},
    )  # fmt: skip
    return dataclasses.replace(plain, **changes)


def endpoint(address, node="worker1", ports=((("dns", "UDP"), 53),), **changes):
    plain = Endpoint("kube-system", "kube-dns", "kube-dns-x", ip(address), True, True, False, node, None, dict(ports))
    return dataclasses.replace(plain, **changes)


def objects_of(services, endpoints, config=None):
    return ClusterObjects("v1.34.4", tuple(services), tuple(endpoints), (), (), (), (), {}, config)


def listed(*backends, frontend="10.43.0.10:53/UDP"):
    rows = [f"{n} => {backend}" for n, backend in enumerate(backends, 1)] or [""]
    text = f"ID   Frontend   Service Type   Backend\n1   {frontend}   ClusterIP   {rows[0]}\n"
    return parse_service_list(text + "".join(f"          {row}\n" for row in rows[1:]))


def mapped(*backends, frontend="10.43.0.10:53/UDP", flags="ClusterIP, non-routable"):
    rows = {f"{frontend} (0)": [f"0.0.0.0:0 (2) (0) [{flags}]"]}
    rows |= {f"{frontend} ({n})": [b if "not found" in b else f"{b} (2) ({n})"] for n, b in enumerate(backends, 1)}
    return parse_lb_list(json.dumps(rows))


def gathered(objects, service, *, rules=(), agent=(), lb_map=(), port=None, vip="10.43.0.10", node="master"):
    return judge.gather(
        objects, service, port or service.ports[0], ip(vip), node,
        rules=None if rules is None else frozenset(map(at, rules)), rule_lines=("-A KUBE-SEP-X -j DNAT",), agent=agent, lb_map=lb_map,
    )  # fmt: skip


ONE = "10.42.1.113:53"
TWO = "10.42.2.9:53"
LISTED = listed(f"{ONE}/UDP (active)", f"{TWO}/UDP (active)")


def both():
    service = service_of()
    return objects_of([service], [endpoint("10.42.1.113"), endpoint("10.42.2.9", "worker2")]), service


def test_all_equal_holds():
    objects, service = both()
    planes = gathered(objects, service, rules=(TWO, ONE), agent=LISTED, lb_map=mapped(f"{TWO}/UDP", f"{ONE}/UDP"))

    assert judge.differing(planes) == ()
    assert planes.name == "kube-system/kube-dns:dns/UDP (10.43.0.10:53)"


def test_each_source_that_differs_is_named_with_its_backends():
    objects, service = both()
    planes = gathered(objects, service, rules=(ONE,), agent=LISTED, lb_map=mapped(f"{ONE}/UDP", "10.42.7.7:53/UDP"))
    rules, in_map, between = (str(difference) for difference in judge.differing(planes))

    assert "master: kube-proxy's rules, kube-system/kube-dns:dns/UDP (10.43.0.10:53) - 10.42.2.9:53 missing" in rules
    assert "-A KUBE-SEP-X" in rules
    assert "load-balancing map" in in_map
    assert "10.42.7.7:53 too many; 10.42.2.9:53 missing" in in_map
    assert "10.42.7.7:53 too many in the map; 10.42.2.9:53 missing from the map" in between


def case_13(node):
    folder = CASES / "13-bpf-backend-not-found"
    ports = (port_of(), port_of("dns-tcp", "TCP"), port_of("metrics", "TCP", 9153))
    objects = objects_of([service_of(*ports)], parse_endpoint_slices(json.loads((folder / "endpointslices.json").read_text())))
    agent = parse_service_list((folder / "service-list-node1.txt").read_text())
    lb_map = parse_lb_list((folder / f"bpf-lb-list-{node}.txt").read_text())
    common = {"agent": agent, "lb_map": lb_map, "node": node}
    return [gathered(objects, objects.services[0], port=p, rules=(f"10.42.0.46:{p.port}",), **common) for p in ports]


def test_case_13_the_map_is_wrong_on_node1_alone():
    assert [judge.differing(planes) for planes in case_13("node2")] == [(), (), ()]
    for number, planes in zip((235, 236, 237), case_13("node1"), strict=True):
        in_map, between = judge.differing(planes)
        assert "node1: Cilium's load-balancing map" in in_map.subject
        assert f"names backends that it does not hold: {number}" in in_map.problem
        assert f"backend {number} not found" in "\n".join(in_map.evidence)
        assert "missing from the map" in between.problem


def test_a_frontend_that_is_absent_is_named():
    objects, service = both()
    wildcard = parse_lb_list('{"10.43.0.10:0/ANY (0)": ["0.0.0.0:0 (0) (0) [ClusterIP, non-routable]"]}')
    planes = gathered(objects, service, rules=(ONE, TWO), agent=(), lb_map=wildcard)

    assert [difference.problem for difference in judge.differing(planes)] == ["does not have this Service port"] * 2


def test_no_serving_endpoint_is_a_set_up_of_its_own():
    service = service_of()
    objects = objects_of([service], [endpoint("10.42.1.113", ready=False, serving=False)])

    assert judge.differing(gathered(objects, service)) == ()
    assert judge.differing(gathered(objects, service, agent=listed(f"{ONE}/UDP (maintenance)"), lb_map=mapped())) == ()
    assert judge.differing(gathered(objects, service, rules=(ONE,))) != ()


def test_slots_of_terminating_backends_behind_the_active_ones_are_right():
    service = service_of()
    objects = objects_of([service], [endpoint("10.42.1.113"), endpoint("10.42.2.9", ready=False, terminating=True)])
    agent = listed(f"{ONE}/UDP (active)", f"{TWO}/UDP (terminating)")

    assert judge.differing(gathered(objects, service, rules=(ONE,), agent=agent, lb_map=mapped(f"{ONE}/UDP", f"{TWO}/UDP"))) == ()
    last = objects_of([service], [endpoint("10.42.2.9", ready=False, terminating=True)])
    agent = listed(f"{TWO}/UDP (terminating)")
    assert judge.differing(gathered(last, service, rules=(TWO,), agent=agent, lb_map=mapped(f"{TWO}/UDP"))) == ()


def test_internal_traffic_policy_local_counts_the_nodes_own():
    service = service_of(internal_traffic_policy="Local")
    objects = objects_of([service], [endpoint("10.42.1.113", "worker1"), endpoint("10.42.2.9", "worker2")])
    own = {"rules": (TWO,), "agent": listed(f"{TWO}/UDP (active)"), "lb_map": mapped(f"{TWO}/UDP")}

    assert judge.differing(gathered(objects, service, node="worker2", **own)) == ()
    assert len(judge.differing(gathered(objects, service, node="worker1", **own))) == 3
    assert judge.differing(gathered(objects, service, node="master", agent=listed(), lb_map=mapped())) == ()


def test_case_15_local_scope_and_l7_are_not_violated():
    service = service_of(port_of("web", "TCP", 80), vips=("192.0.2.75",))
    objects = objects_of([service], [endpoint("10.244.2.98", ports=((("web", "TCP"), 80),))])
    agent = parse_service_list((CASES / "15-lb-list-shapes" / "v1.18-service-list.txt").read_text())
    web = "192.0.2.75:80/TCP"
    internal = mapped("10.244.2.98:80/TCP", frontend=f"{web}/i", flags="LoadBalancer, Local, two-scopes")
    external = mapped(frontend=web, flags="LoadBalancer, Local, two-scopes")
    common = {"rules": ("10.244.2.98:80",), "agent": agent, "vip": "192.0.2.75"}

    assert judge.differing(gathered(objects, service, lb_map=external + internal, **common)) == ()
    balanced = mapped(frontend=web, flags="LoadBalancer, l7-load-balancer")
    assert judge.differing(gathered(objects, service, lb_map=balanced, **common)) == ()


def test_without_protocols_one_entry_stands_for_all_ports_of_a_number():
    ports = (port_of(), port_of("dns-tcp", "TCP"))
    service = service_of(*ports)
    objects = objects_of([service], [endpoint("10.42.1.113", ports=((("dns", "UDP"), 1053), (("dns-tcp", "TCP"), 2053)))])
    old = {
        "agent": listed("10.42.1.113:1053 (active)", "10.42.1.113:2053 (active)", frontend="10.43.0.10:53"),
        "lb_map": mapped("10.42.1.113:1053", "10.42.1.113:2053", frontend="10.43.0.10:53"),
    }

    assert judge.differing(gathered(objects, service, port=ports[0], rules=("10.42.1.113:1053",), **old)) == ()
    assert judge.differing(gathered(objects, service, port=ports[1], rules=("10.42.1.113:2053",), **old)) == ()


def test_topology_hints_may_narrow_but_not_widen():
    service = service_of(traffic_distribution="PreferClose")
    objects = objects_of([service], [endpoint("10.42.1.113"), endpoint("10.42.2.9", "worker2")])
    full = {"agent": LISTED, "lb_map": mapped(f"{ONE}/UDP", f"{TWO}/UDP")}

    assert judge.differing(gathered(objects, service, rules=(ONE,), **full)) == ()
    assert len(judge.differing(gathered(objects, service, rules=(), **full))) == 1
    assert len(judge.differing(gathered(objects, service, rules=("10.42.7.7:53",), **full))) == 1


def test_each_address_family_has_its_own_endpoints():
    service = service_of(vips=("10.43.0.10", "fd00:43::a"))
    objects = objects_of([service], [endpoint("10.42.1.113"), endpoint("fd00:42::113")])
    six = {
        "rules": ("[fd00:42::113]:53",),
        "agent": listed("[fd00:42::113]:53/UDP (active)", frontend="[fd00:43::a]:53/UDP"),
        "lb_map": mapped("[fd00:42::113]:53/UDP", frontend="[fd00:43::a]:53/UDP"),
    }

    assert judge.differing(gathered(objects, service, vip="fd00:43::a", **six)) == ()


def case_21():
    folder = CASES / "21-headless-and-no-selector"
    services = parse_services(json.loads((folder / "services.json").read_text()))
    endpoints = parse_endpoint_slices(json.loads((folder / "endpointslices.json").read_text()))
    return objects_of(services, endpoints), parse_service_list((folder / "cilium-service-list.txt").read_text())


def test_case_21_says_what_is_not_judged():
    objects, _ = case_21()
    reasons = {s.key: judge.not_judged(objects, s, s.ports[0] if s.ports else port_of()) for s in objects.services}

    assert "headless" in reasons["db/pg-headless"]
    assert "ExternalName" in reasons["web/shop-ext"]
    assert "service-proxy-name" in reasons["web/proxied-by-other"]
    assert reasons["db/ext-api"] is None


def test_case_21_hand_made_endpoints_hold():
    objects, agent = case_21()
    service = objects.service("db/ext-api")
    lb_map = mapped("192.168.77.5:8443/TCP", frontend=f"{service.cluster_ips[0]}:443/TCP")
    planes = gathered(objects, service, vip=str(service.cluster_ips[0]), rules=("192.168.77.5:8443",), agent=agent, lb_map=lb_map)

    assert judge.differing(planes) == ()


@pytest.mark.parametrize(("config", "judged"), [(None, False), ({"enable-sctp": "false"}, False), ({"enable-sctp": "true"}, True)])
def test_sctp_needs_ciliums_consent(config, judged):
    service = service_of(port_of("x", "SCTP", 7))

    assert (judge.not_judged(objects_of([service], [], config), service, service.ports[0]) is None) is judged


def test_the_control_names_sources_that_hold_nothing():
    objects, service = both()
    seen = {"rules": (ONE, TWO), "agent": listed(f"{ONE}/UDP (active)"), "lb_map": mapped(f"{ONE}/UDP")}

    assert judge.silent(gathered(objects, service, **seen)) == ()
    assert judge.silent(gathered(objects, service)) == (judge.RULES, judge.AGENT, judge.MAP)
    assert judge.silent(gathered(objects, service, **{**seen, "lb_map": ()})) == (judge.MAP,)
