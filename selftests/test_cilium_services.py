"""``service list`` and ``bpf lb list`` of Cilium 1.0 to 1.19, JSON and text."""

import ipaddress
import pathlib

import pytest

from servicepath.model.addresses import Socket
from servicepath.model.cilium import frontend
from servicepath.parse.cilium_services import parse_lb_list, parse_service_list
from servicepath.parse.errors import ParseError

DATA = pathlib.Path(__file__).parent / "data"
CASES = DATA / "cases"
LISTS = CASES / "15-lb-list-shapes"
REAL = DATA / "cilium-1.19.1"


def at(text):
    ip, _, port = text.rpartition(":")
    return Socket(ipaddress.ip_address(ip.strip("[]")), int(port))


def services(path):
    return parse_service_list((CASES / path).read_text())


def entries(path):
    return parse_lb_list((CASES / path).read_text())


def backends(found, address, protocol="TCP"):
    entry = frontend(found, at(address), protocol)
    return None if entry is None else {str(getattr(b, "socket", b)) for b in entry.backends}


@pytest.mark.parametrize("name", sorted(p.name for p in LISTS.glob("*service-list*")))
def test_every_service_list_is_read(name):
    found = services(f"15-lb-list-shapes/{name}")

    assert found
    assert all(entry.frontend.port for entry in found)


@pytest.mark.parametrize("name", sorted(p.name for p in LISTS.glob("*bpf-lb-list*") if "revnat" not in p.name))
def test_every_lb_list_is_read(name):
    found = entries(f"15-lb-list-shapes/{name}")

    assert found
    assert not any(backend.ip.is_unspecified for entry in found for backend in entry.backends)  # slot 0 is the frontend


def test_another_table_is_refused():
    with pytest.raises(ParseError, match="SERVICE ADDRESS"):
        entries("15-lb-list-shapes/v1.18-bpf-lb-list-revnat.txt")


def test_one_backend_set_from_text_and_json_of_every_version():
    two = {"10.244.0.180:9153", "10.244.0.238:9153"}
    assert backends(entries("15-lb-list-shapes/v1.15-bpf-lb-list.txt"), "10.96.0.10:9153") == two
    assert backends(services("15-lb-list-shapes/v1.15-service-list.txt"), "10.96.0.10:9153") == two
    web = {"172.20.0.158:80", "172.20.1.44:80"}
    assert backends(entries("15-lb-list-shapes/v1.16-bpf-lb-list.txt"), "10.96.48.145:80") == web
    assert backends(entries("15-lb-list-shapes/v1.16-bpf-lb-list.json"), "10.96.48.145:80") == web


def test_backends_stand_in_the_order_of_their_slots():
    entry = frontend(entries("15-lb-list-shapes/v1.15-bpf-lb-list.txt"), at("10.96.0.10:9153"), "TCP")

    assert [str(backend) for backend in entry.backends] == ["10.244.0.238:9153", "10.244.0.180:9153"]


def test_no_protocol_stands_for_every_protocol():
    found = entries("15-lb-list-shapes/v1.15-bpf-lb-list.txt")

    assert frontend(found, at("10.96.0.10:53"), "UDP") is frontend(found, at("10.96.0.10:53"), "TCP") is not None
    assert frontend(found, at("10.96.0.10:53"), "UDP").protocol is None


def test_of_two_scopes_the_cluster_uses_the_internal_one():
    found = services("15-lb-list-shapes/v1.18-service-list.txt")
    scopes = [entry.scope for entry in found if entry.frontend == at("192.0.2.75:80")]

    assert scopes == ["external", "internal"]
    assert backends(found, "192.0.2.75:80") == {"10.244.2.98:80"}


def test_terminating_and_quarantined_are_not_serving():
    entry = frontend(services("15-lb-list-shapes/v1.18-service-list.txt"), at("10.200.7.7:80"), "TCP")

    assert entry.serving == {at("10.100.1.9:80")}
    assert entry.retired == {at("10.100.2.9:80"), at("10.100.1.10:80")}


def test_terminating_ones_serve_when_nothing_else_does():
    text = "ID   Frontend        Service Type   Backend\n1    10.43.0.9:80/TCP   ClusterIP      1 => 10.42.0.5:80/TCP (terminating)\n"
    (entry,) = parse_service_list(text)

    assert entry.serving == {at("10.42.0.5:80")}


def test_frontends_that_are_no_cluster_ip_are_told_apart():
    found = entries("15-lb-list-shapes/v1.18-bpf-lb-list-local.txt")
    balanced = frontend(found, at("192.0.2.50:443"), "TCP")

    assert balanced.l7
    assert balanced.backends == ()
    assert [str(entry.frontend) for entry in found if entry.wildcard] == ["192.0.2.50:0"]
    assert {entry.type for entry in found if entry.frontend.ip.is_unspecified} == {"NodePort"}
    assert frontend(found, at("10.0.250.1:443"), "TCP").flags == ("Local", "two-scopes")


def test_ipv6():
    found = services("15-lb-list-shapes/ipv6-service-list.txt")

    assert backends(found, "[fd00:701::2:a]:53", "UDP") == {"[fd00:501::2c9f]:53", "[fd00:501::60b1]:53"}
    text = "SERVICE ADDRESS   BACKEND ADDRESS (REVNAT_ID) (SLOT)\n[fd00::a]:53/UDP/i (0)   [::]:0 (1) (0) [ClusterIP, non-routable]\n"
    (entry,) = parse_lb_list(text + "[fd00::a]:53/UDP/i (1)   [fd00::b]:53/UDP (1) (1)\n")
    assert (entry.scope, entry.type, entry.backends) == ("internal", "ClusterIP", (at("[fd00::b]:53"),))


@pytest.mark.parametrize("form", ["txt", "json"])
def test_a_backend_that_the_map_does_not_hold(form):
    entry = frontend(entries(f"13-bpf-backend-not-found/bpf-lb-list-node1.{form}"), at("10.43.0.10:53"), "UDP")

    assert (entry.backends, entry.missing) == ((), (235,))


def test_json_takes_what_is_realized():
    found = services("15-lb-list-shapes/v1.17-service-list.json")
    entry = frontend(found, at("10.96.0.10:53"), "UDP")

    assert (entry.namespace, entry.name, entry.type) == ("kube-system", "kube-dns", "ClusterIP")
    assert {backend.state for backend in entry.backends} == {"active"}
    assert services("15-lb-list-shapes/v1.6-service-list.json")[0].protocol is None


def test_real_lists_of_1_19_agree():
    text = parse_service_list((REAL / "service-list.txt").read_text())
    as_json = parse_service_list((REAL / "service-list.json").read_text())
    lb_map = parse_lb_list((REAL / "bpf-lb-list.txt").read_text())

    assert {(e.frontend, e.protocol, e.serving) for e in text} == {(e.frontend, e.protocol, e.serving) for e in as_json}
    assert {(e.frontend, e.protocol, frozenset(e.backends)) for e in lb_map if not e.wildcard} == {
        (e.frontend, e.protocol, e.serving) for e in as_json
    }
    assert sum(entry.wildcard for entry in lb_map) == 2
    assert frontend(as_json, at("10.43.0.10:53"), "UDP").backends[0].node == "worker1"


@pytest.mark.parametrize(
    "text", ["", "Error: cannot connect", '[{"spec": {}}]', "[", '[{"status": {"realized": {"frontend-address": {"ip": "x"}}}}]']
)
def test_what_is_no_service_list_is_refused(text):
    with pytest.raises(ParseError):
        parse_service_list(text)


@pytest.mark.parametrize(
    "row", ["10.43.0.1:443/TCP (1)   nonsense", "10.43.0.300:443/TCP (1)   10.0.0.1:1/TCP (1) (1)", "alone", "   10.0.0.1:1 (1) (1)"]
)
def test_a_row_that_cannot_be_read_is_named(row):
    with pytest.raises(ParseError, match="line 2"):
        parse_lb_list(f"SERVICE ADDRESS   BACKEND ADDRESS (REVNAT_ID) (SLOT)\n{row}\n")


def test_empty_lists_are_lists():
    assert parse_lb_list("{}") == ()
    assert parse_service_list("[]") == ()
    assert parse_lb_list("SERVICE ADDRESS   BACKEND ADDRESS (REVNAT_ID) (SLOT)\n") == ()


@pytest.mark.parametrize("text", ['{"10.43.0.1:443/TCP (0)": [{}]}', '{"10.43.0.1:443/TCP (0)": 5}', '["a"]'])
def test_json_of_another_shape_is_an_error_of_the_parser(text):
    with pytest.raises(ParseError):
        parse_lb_list(text)
