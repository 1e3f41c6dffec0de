"""The ClusterIP on a host."""

import pytest

from servicepath.model import judge_host, lan
from servicepath.model.difference import explain


@pytest.mark.conclusion(section="§2, §4, §10.2", see=("{node}$ ip address | grep -w {vip}",))
def test_no_interface(shown_interfaces, vips, node, exhibit):
    """No interface holds the ClusterIP."""
    exhibit.show("Every interface and its addresses", map(str, shown_interfaces), command="ip address")

    wrong = judge_host.judge_no_interface(node.name, shown_interfaces, vips)

    assert not wrong, explain(wrong)


@pytest.mark.conclusion(section="§2, §4", see=("{node}# ss -tulnp | grep -w {vip}",))
def test_no_listener(shown_listeners, vips, node, exhibit):
    """No socket listens on the ClusterIP: a Service is not a process."""
    exhibit.show("Every listening socket", map(str, shown_listeners), command="ss -tulnp")

    wrong = judge_host.judge_no_listener(node.name, shown_listeners, vips)

    assert not wrong, explain(wrong)


@pytest.mark.conclusion(section="§4, §10.2", see=("{node}$ ip rule; ip route show table all; ip route get {vip}",))
def test_no_route(shown_routing, service_cidr, vips, node, exhibit):
    """No table that an unmarked packet reaches has a route inside the Service CIDR; the lookup ends at a prefix wider than it."""
    exhibit.show("The rules", map(str, shown_routing.rules), command="ip rule")
    met = judge_host.reachable_routes(shown_routing, vips)
    exhibit.show("The routes that an unmarked packet may meet", map(str, met), command="ip route show table all")
    exhibit.show("The kernel's own answers", map(str, map(shown_routing.lookups.get, vips)), command="ip route get CLUSTERIP")

    wrong = judge_host.judge_no_route(node.name, shown_routing, vips, service_cidr)

    assert not wrong, explain(wrong)


@pytest.mark.traffic
@pytest.mark.conclusion(
    section="§4",
    see=(
        "{lan}# iptables-save | grep -E \"KUBE|{vip}\"",
        "{lan}$ ip route show table all; ip route get {vip}",
        "{lan}$ timeout 2 bash -c \": </dev/tcp/{vip}/{port}\"; echo $?  # 0: connected; 124: no answer",
    ),
)
def test_lan_host_has_neither(shown_lan_host, service_cidr, exhibit):
    """A LAN host has no Service rules and no route to the Service CIDR, and gets no TCP connection to the ClusterIP."""
    exhibit.show("Its routes", map(str, shown_lan_host.routing.routes), command="ip route show table all")
    exhibit.show("To the ClusterIP", str(shown_lan_host.connect_to_vip), command=shown_lan_host.connect_to_vip.command)
    exhibit.show("To a node", str(shown_lan_host.connect_to_node), command=shown_lan_host.connect_to_node.command)

    wrong = lan.judge_lan_host(shown_lan_host, shown_lan_host.connect_to_vip.target.ip, service_cidr)

    assert not wrong, explain(wrong)
