"""mode-as-expected: what a node runs, what was expected, what is left of another set-up."""

import dataclasses
import ipaddress
import pathlib

import pytest

from servicepath.model import mode as modes
from servicepath.model.addresses import Socket
from servicepath.model.host import Interface
from servicepath.parse.cilium_services import parse_lb_list
from servicepath.parse.cilium_status import parse_status
from servicepath.parse.iproute import parse_ip_link

DATA = pathlib.Path(__file__).parent / "data"
CASES = DATA / "cases"
SHAPES = CASES / "14-cilium-status-shapes"
LB_MAP = parse_lb_list((DATA / "cilium-1.19.1" / "bpf-lb-list.txt").read_text())
REAL = parse_status((DATA / "cilium-1.19.1" / "status.json").read_text())


def found(status=REAL, lb_map=LB_MAP, proxy_mode="iptables", current=True):
    return modes.found_mode(status, lb_map, proxy_mode=proxy_mode, rules_current=current)


def sockets(*texts):
    return frozenset(Socket(ipaddress.ip_address(text), 53) for text in texts)


def test_the_expected_set_up_holds():
    assert found() == modes.EXPECTED
    assert modes.unseen(found(), modes.EXPECTED) == ()
    assert modes.judge_mode("master", found(), modes.EXPECTED) == ()


@pytest.mark.parametrize(
    ("changes", "subject"),
    [
        ({"proxy_mode": "nftables"}, "kube-proxy's mode"), ({"kpr": "True", "rules_current": None}, "KubeProxyReplacement"),
        ({"socket_lb": True}, "socket LB"), ({"cluster_ip_enabled": False}, "ClusterIP translation by Cilium"),
        ({"routing": "native"}, "routing"), ({"tunnel": "geneve"}, "tunnel"),
        ({"rules_current": None}, "kube-proxy's rules"), ({"rules_current": False}, "kube-proxy's rules"),
    ],
)  # fmt: skip
def test_each_part_that_is_not_as_expected_is_named(changes, subject):
    wrong = modes.judge_mode("master", dataclasses.replace(modes.EXPECTED, **changes), modes.EXPECTED, ("evidence",))

    assert f"master: {subject}" in {difference.subject for difference in wrong}
    assert wrong[0].evidence == ("evidence",)


def test_cluster_ip_is_known_by_the_map_and_not_by_the_status():
    wildcards = tuple(entry for entry in LB_MAP if entry.wildcard)

    assert found(parse_status((SHAPES / "v1.20-false.txt").read_text())).cluster_ip_enabled
    assert not found(lb_map=wildcards).cluster_ip_enabled


def test_case_02_kube_proxy_is_active_beside_the_replacement():
    status = parse_status((CASES / "02-k3s-kpr-wanted-proxy-active" / "cilium-status-short.txt").read_text())
    wanted = modes.expected_mode(kube_proxy_replacement="true", routing="native")
    running = dataclasses.replace(found(status), socket_lb=True)

    (active,) = modes.judge_mode("node1", running, wanted)
    (left,) = modes.judge_mode("node1", dataclasses.replace(running, rules_current=False), wanted)

    assert "active kube-proxy" in active.problem
    assert "left over" in left.problem
    assert modes.judge_mode("node1", dataclasses.replace(running, rules_current=None, proxy_mode=None), wanted) == ()


def test_rules_are_current_when_they_lead_where_the_endpoints_are():
    assert modes.rules_current([]) is None
    assert modes.rules_current([(frozenset(), sockets("10.42.0.5"))]) is None
    assert modes.rules_current([(sockets("10.42.0.5"), sockets("10.42.0.5")), (frozenset(), frozenset())]) is True
    assert modes.rules_current([(sockets("10.42.0.5"), sockets("10.42.0.6"))]) is False


def test_where_the_services_under_test_have_no_endpoint_another_one_tells_whether_the_rules_are_current():
    nothing, five = (frozenset(), frozenset()), sockets("10.0.0.5")
    right, stale = (five, five), (five, sockets("10.0.0.6"))
    assert modes.rules_current([], [right]) is True
    assert modes.rules_current([nothing], [right]) is True
    assert modes.rules_current([nothing], [stale]) is False
    assert modes.rules_current([right], [stale]) is True
    assert modes.rules_current([(frozenset(), sockets("10.42.0.5"))], [right]) is None


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("v1.7-strict.txt", "Strict"), ("v1.8-probe.txt", None), ("v1.8-partial-empty.txt", None),
        ("v1.9-details-no-socketlb-line.txt", None), ("v1.10-probe-dualstack.txt", "True"), ("v1.10-strict.txt", "Strict"),
        ("v1.13-disabled-verbose.txt", "Disabled"), ("v1.20-false.txt", "False"), ("v1.20-true-hostns-only.txt", "True"),
    ],
)  # fmt: skip
def test_partial_and_probe_are_what_is_really_on(name, word):
    assert modes.replacement(parse_status((SHAPES / name).read_text())) == word


def test_a_mixture_stays_partial():
    status = parse_status((SHAPES / "v1.10-probe-dualstack.txt").read_text())

    assert modes.replacement(dataclasses.replace(status, socket_lb=False)) == "Probe"


def test_disabled_and_strict_are_older_words():
    old = dataclasses.replace(modes.EXPECTED, kpr="Disabled")

    assert modes.judge_mode("n", old, modes.EXPECTED) == ()
    replaced = dataclasses.replace(modes.EXPECTED_REPLACED, kpr="Strict")
    assert modes.judge_mode("n", replaced, modes.EXPECTED_REPLACED) == ()


def test_what_could_not_be_seen_is_not_judged():
    status = parse_status((SHAPES / "v1.9-details-no-socketlb-line.txt").read_text())

    assert modes.unseen(found(status), modes.EXPECTED) == ("KubeProxyReplacement", "socket LB", "routing")
    assert modes.unseen(found(proxy_mode=None), modes.EXPECTED) == ("kube-proxy's mode",)
    assert modes.judge_mode("n", found(status), modes.EXPECTED) == ()
    assert modes.judge_mode("n", found(proxy_mode=None), modes.EXPECTED) == ()


def test_what_was_seen_and_is_otherwise_is_told_though_another_part_was_not_seen():
    replaced = dataclasses.replace(modes.EXPECTED, proxy_mode=None, rules_current=None, kpr="True", socket_lb=True)

    wrong = modes.judge_mode("n", replaced, modes.EXPECTED)

    assert [each.subject for each in wrong] == ["n: KubeProxyReplacement", "n: socket LB"]


def test_pins_of_the_inventory():
    assert modes.expected_mode() == modes.EXPECTED
    assert modes.expected_mode(socket_lb=True).socket_lb is True
    assert modes.expected_mode(kube_proxy_replacement="True") == modes.EXPECTED_REPLACED
    assert modes.expected_mode(routing="native").tunnel is None
    assert modes.expected_mode(proxy_mode="nftables").rules_current is None


def test_running_status_against_the_config_map():
    same = {"kube-proxy-replacement": "false", "bpf-lb-sock": "false", "routing-mode": "tunnel", "tunnel-protocol": "vxlan"}
    (kpr, sock) = modes.config_differences("master", REAL, {**same, "kube-proxy-replacement": "true", "bpf-lb-sock": "true"})

    assert modes.config_differences("master", REAL, same) == ()
    assert modes.config_differences("master", REAL, {}) == ()
    assert (kpr.expected, kpr.actual) == ("kube-proxy-replacement: true", "False")
    assert "restart the agent" in sock.problem


def test_helms_socket_lb_has_no_effect_beside_the_replacement():
    status = parse_status((SHAPES / "v1.14-true-socketlb-though-helm-off.txt").read_text())

    assert modes.config_differences("n", status, {"kube-proxy-replacement": "strict", "bpf-lb-sock": "false"}) == ()


def links(name):
    text = (CASES / "19-vxlan-port-taken" / name).read_text()
    return parse_ip_link(text)


@pytest.mark.parametrize("name", ["ip-j-d-link-type-vxlan.json", "ip-link.txt"])
def test_case_19_flannel_still_has_the_port(name):
    wrong = modes.leftovers("node1", found(), links(name), ())
    named = {difference.subject: difference.problem for difference in wrong}

    assert named.keys() == {"node1: interface cilium_vxlan", "node1: interface flannel.1"}
    assert "down" in named["node1: interface cilium_vxlan"]
    expected = "UDP port 8472" if name.endswith("json") else "another network plugin"  # plain text has no port
    assert expected in named["node1: interface flannel.1"]


def interface(name, kind=None, port=None):
    return Interface(name, 1, 1500, True, None, (), kind=kind, vxlan_port=port)


def test_nothing_of_another_mode_is_left():
    clean = (interface("enp1s0"), interface("cilium_vxlan", "vxlan", 8472), interface("mine", "vxlan", 4789))

    assert modes.leftovers("n", found(), clean, ("ip filter", "inet firewalld")) == ()


def test_nothing_is_called_left_over_by_a_kube_proxy_that_was_not_heard():
    devices = (interface("kube-ipvs0", "dummy"),)
    assert modes.leftovers("n", found(proxy_mode=None), devices, ("ip kube-proxy",)) == ()
    replaced = dataclasses.replace(found(proxy_mode=None), kpr="True")
    assert len(modes.leftovers("n", replaced, devices, ("ip kube-proxy",))) == 2, "with Cilium in its place there is none"


def test_leftovers_are_named():
    both = (interface("kube-ipvs0", "dummy"), interface("vxlan.calico", "vxlan", 4789))
    wrong = {difference.subject for difference in modes.leftovers("n", found(), both, ("ip kube-proxy",))}

    assert wrong == {"n: interface kube-ipvs0", "n: nft table ip kube-proxy", "n: interface vxlan.calico"}
    assert modes.leftovers("n", found(proxy_mode="nftables"), (), ("ip kube-proxy",)) == ()
    assert modes.leftovers("n", found(proxy_mode="ipvs"), (interface("kube-ipvs0", "dummy"),), ()) == ()
