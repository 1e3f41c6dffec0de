"""ip itself as the judge: one network namespace, printed as text and as JSON, is read the same.

The namespace ends with the process that made it; nothing of the machine's own network is seen or touched.
"""

from __future__ import annotations

import functools
import os
import subprocess

import pytest

from servicepath.model.host import Interface, Route, RoutingRule
from servicepath.parse import iproute

pytestmark = [pytest.mark.lab, pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace needs root")]

# Each line on its own: what a kernel does not know (a kind of link, a selector) is left out, in both forms.
NETWORK = """
link set lo up
link add eth0 type veth peer name eth0p
link set eth0p up
link set eth0 up
addr add 192.168.55.10/24 dev eth0
addr add fd00:55::10/64 dev eth0 nodad
link add cilium_host type veth peer name cilium_net
link set cilium_host up
addr add 10.42.0.9/32 dev cilium_host
link add cilium_vxlan type vxlan external dstport 8472
link set cilium_vxlan up
link add flannel.1 type vxlan id 1 local 192.168.55.10 dev eth0 dstport 4789 nolearning
link add br0 type bridge
link set br0 up
addr add 10.9.0.1 peer 10.9.0.2/30 dev br0
link set cilium_net master br0
link add mac0 link eth0 type macvlan
link add vlan.eth.5 link eth0 type vlan id 5
link add dummy0 type dummy
link add nk0 type netkit
link add ipip0 type ipip remote 192.168.55.12 local 192.168.55.10
link add vrf7 type vrf table 77
link property add dev eth0 altname enp1s0-alternative
tuntap add dev tap0 mode tap
route add default via 192.168.55.1
route add 10.42.1.0/24 via 192.168.55.11 dev eth0 src 10.42.0.9 mtu 1450
route add 10.92.0.0/24 via inet6 fe80::1 dev eth0
route add 10.93.0.0/24 encap ip id 7 dst 192.168.55.7 dev eth0
route add 10.94.0.0/24 dev eth0 mtu lock 1400 initcwnd 10
route add 10.95.0.0/24 nexthop via 192.168.55.1 dev eth0 weight 2 nexthop via 192.168.55.2 dev eth0 onlink
route add 10.95.1.0/24 metric 5 nexthop via 192.168.55.1 dev eth0 nexthop via inet6 fe80::2 dev eth0
route add throw 10.96.0.0/24 table 77
route add prohibit 10.97.0.0/24
route add blackhole 10.98.0.1
route add unreachable 10.99.0.0/16
route add local 0.0.0.0/0 dev lo table 2004
route add 10.100.0.0/24 dev eth0 table 300 proto 50 realm 5 tos 0x10 mtu 1300 advmss 1200 rto_min 5ms features ecn congctl cubic
nexthop add id 1 via 192.168.55.1 dev eth0
nexthop add id 2 via 192.168.55.2 dev eth0
nexthop add id 10 group 1/2
route add 10.110.0.0/24 nhid 10
-6 route add default via fd00:55::1
-6 route add default metric 7 table 400 nexthop via fd00:55::1 dev eth0 nexthop via fd00:55::2 dev eth0
-6 route add fd00:42:1::/64 via fd00:55::11 mtu 1400 src fd00:55::10
-6 route add unreachable fd00:99::/32
-6 route add blackhole default table 401
-6 route add local ::/0 dev lo table 2004
-6 route add fd00:96::/64 from fd00:1::/64 via fd00:55::1 pref high
-6 route add fd00:97::/64 encap seg6 mode encap segs fd00::5,fd00::6 dev eth0
rule add from 10.1.0.0/16 to 10.2.0.1 iif eth0 lookup 78 pref 200
rule add to 10.77.0.0/16 unreachable pref 202
-6 rule add from fd00::/8 to fd00:5::5 lookup 99 pref 300
"""
RULES = """
fwmark 0x200/0xf00 lookup 2004 pref 9
not fwmark 0x5 lookup 79 pref 201
ipproto tcp dport 80 sport 1000-2000 goto 32766 pref 204
uidrange 100-200 lookup main suppress_prefixlength 0 pref 205
tos 0x10 oif eth0 lookup 81 pref 206
dscp 8 lookup 82 pref 217
nop pref 207
fwmark 0/0x1 lookup 80 pref 208
prohibit iif nowhere0 pref 209
goto 999 pref 210
lookup main suppress_ifgroup 4 pref 211
tun_id 5 lookup 5 pref 212
lookup 80 protocol 99 pref 213
realms 4 lookup 5 pref 214
l3mdev pref 1000
"""
FORMS = {
    "addr": (iproute.parse_ip_addr, "addr"), "addr with kinds": (iproute.parse_ip_addr, "-d addr"),
    "brief": (iproute.parse_ip_addr, "-br addr"),
    "link": (iproute.parse_ip_link, "link"), "link with kinds": (iproute.parse_ip_link, "-d link"),
    "routes": (iproute.parse_ip_route, "route show table all"), "routes with details": (iproute.parse_ip_route, "-d route show table all"),
    "main": (iproute.parse_ip_route, "route"), "IPv6 main": (functools.partial(iproute.parse_ip_route, family=6), "-6 route"),
    "IPv6 routes": (functools.partial(iproute.parse_ip_route, family=6), "-6 route show table all"),
    "rules": (iproute.parse_ip_rule, "rule"), "IPv6 rules": (functools.partial(iproute.parse_ip_rule, family=6), "-6 rule"),
}  # fmt: skip


@pytest.fixture(scope="module")
def printed() -> dict[str, list[str]]:
    """What ip prints of the namespace, as text and as JSON, by the name of the form."""
    made = [line for line in NETWORK.splitlines() if line]
    made += [f"{family} rule add {rule}" for family in ("-4", "-6") for rule in RULES.splitlines() if rule]
    lines = [f"ip {line} 2>/dev/null" for line in made]
    # Addresses and states settle (an IPv6 address is tentative at first), so that both forms show one state.
    lines.append("i=0; while ip -6 addr show tentative | grep -q inet6 && [ $i -lt 50 ]; do i=$((i + 1)); sleep 0.1; done")
    for _, command in FORMS.values():
        lines += [f"echo @@; ip {command}", f"echo @@; ip -j {command}"]
    command = ["unshare", "--net", "sh", "-c", "\n".join(lines)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    outputs = done.stdout.split("@@\n")[1:]
    return {name: outputs[2 * place : 2 * place + 2] for place, name in enumerate(FORMS)}


@pytest.mark.parametrize("name", FORMS)
def test_one_namespace_reads_the_same_from_text_and_json(printed, name):
    parse, _ = FORMS[name]
    text, as_json = (parse(output) for output in printed[name])

    assert text == as_json
    assert len(text) >= 3


def test_what_was_made_is_what_is_read(printed):
    links: dict[str, Interface] = {link.name: link for link in iproute.parse_ip_addr(printed["addr with kinds"][0])}
    routes: dict[tuple[str, str], Route] = {(r.table, str(r.destination)): r for r in iproute.parse_ip_route(printed["routes"][0])}
    rules: dict[int, RoutingRule] = {rule.priority: rule for rule in iproute.parse_ip_rule(printed["rules"][0])}

    assert {name: links[name].kind for name in ("eth0", "flannel.1", "br0")} == {"eth0": "veth", "flannel.1": "vxlan", "br0": "bridge"}
    assert (links["flannel.1"].vxlan_id, links["flannel.1"].vxlan_port, links["cilium_vxlan"].vxlan_id) == (1, 4789, None)
    assert (links["cilium_net"].master, str(links["br0"].addresses[0])) == ("br0", "10.9.0.1/30")
    assert routes["400", "::/0"].metric == 7
    assert [str(hop.via) for hop in routes["main", "10.95.1.0/24"].nexthops] == ["192.168.55.1", "fe80::2"]
    assert (routes["300", "10.100.0.0/24"].mtu, routes["main", "10.94.0.0/24"].mtu) == (1300, 1400)
    assert rules[204].other == ("ipproto tcp", "sport 1000-2000", "dport 80")
    assert (rules[1000].table, rules[1000].other) == (None, ("l3mdev",))
