"""Routing to a remote PodCIDR."""

import pytest

from servicepath.model import following, judge_size, judge_tunnel
from servicepath.model.difference import explain


@pytest.mark.conclusion(
    section="§5, §10.6",
    see=(
        "{node}$ ip route show table all | grep cilium_host; ip route get {remote}; ip link show type vxlan",
        "kubectl get ciliumnodes -o yaml | grep -E -A 4 '^    name:|podCIDRs|addresses'",
    ),
)
def test_remote_podcidr_route(routing, interfaces, own_cilium_node, remote_cilium_nodes, node, exhibit):
    """Every other node's PodCIDRs are reached through cilium_host, from the node's own CiliumInternalIP."""
    exhibit.show("PodCIDRs by CiliumNode", map(str, remote_cilium_nodes), command="kubectl get ciliumnodes --output yaml")
    exhibit.show("Routes through cilium_host", map(str, routing.through("cilium_host")), command="ip route show table all")
    exhibit.show("The kernel's own answers", map(str, routing.lookups.values()), command="ip route get ADDRESS")

    wrong = (
        *judge_tunnel.judge_remote_routes(node.name, routing, own_cilium_node, remote_cilium_nodes),
        *judge_tunnel.judge_tunnel_device(node.name, interfaces),
    )

    assert not wrong, explain(wrong)


@pytest.mark.conclusion(section="§5", see=("{node}$ ip address show cilium_host", "kubectl get ciliumnode {node} --output yaml"))
def test_cilium_host_address(shown_interfaces, own_cilium_node, node, exhibit):
    """cilium_host holds the CiliumInternalIP that the CiliumNode names."""
    exhibit.show("Every interface and its addresses", map(str, shown_interfaces), command="ip address")
    exhibit.show(
        "The CiliumNode's CiliumInternalIPs", map(str, own_cilium_node.cilium_internal_ips), command="kubectl get ciliumnodes --output yaml"
    )

    wrong = judge_tunnel.judge_cilium_host(node.name, shown_interfaces, own_cilium_node)

    assert not wrong, explain(wrong)


@pytest.mark.conclusion(section="§5", see=("{node}$ ip route | grep cilium_host; ip link",))
def test_tunnel_mtu(routing, interfaces, expected_mtu, remote_cilium_nodes, node, exhibit):
    """Remote routes' MTU is the smallest underlay MTU less the tunnel's overhead; the devices keep the base."""
    exhibit.show(
        "The MTU to expect", str(expected_mtu), command="ip link; kubectl -n kube-system get configmap cilium-config --output yaml"
    )
    exhibit.show("Routes through cilium_host", map(str, routing.through("cilium_host")), command="ip route show table all")
    exhibit.show("The devices", map(str, interfaces), command="ip address")

    wrong = judge_tunnel.judge_tunnel_mtu(node.name, expected_mtu, routing, interfaces, remote_cilium_nodes)

    assert not wrong, explain(wrong)


@pytest.mark.traffic
@pytest.mark.needs("tunnel", "readable")
@pytest.mark.conclusion(
    section="§5",
    see=(
        "{node}# timeout 15 tcpdump -ni any -nn -v udp port 8472 and greater 1300",
        "kubectl -n {podns} exec {pod} -- ping -c 1 -s {size} {backend}  # while tcpdump runs",
        "{node}$ ip route get {backend}; ip link",
    ),
)
def test_full_size_packet(sized_flows, exhibit):
    """A packet as large as the route's MTU crosses whole, its outer packet no larger than the underlay's MTU; one byte more does not."""
    exhibit.show("Both packets on the underlay", judge_size.describe(sized_flows), command="tcpdump -nn -i INTERFACE -w FILE FILTER")

    wrong = judge_size.judge_size(sized_flows)

    assert not wrong, explain(wrong)


@pytest.mark.disruptive
@pytest.mark.needs("beside-kube-proxy")
@pytest.mark.conclusion(section="§5, §10.6", see=("{nodes}$ ip route show table all",))
def test_dnat_adds_no_route(all_followed, pod_and_service_cidrs, exhibit):
    """Creating and deleting a Service with an endpoint changes NAT rules and no route of Pod or Service CIDR."""
    shown = [line for one in all_followed for line in following.lines(one)]
    exhibit.show("NAT rules came and went; routes of these CIDRs", shown, command="iptables-save -c; ip route show table all")

    wrong = tuple(d for one in all_followed for d in following.routes_changed(one, pod_and_service_cidrs))

    assert not wrong, explain(wrong)
