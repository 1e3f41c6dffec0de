"""Loose outputs of a cluster that speaks IPv6: the same conclusions, of addresses in brackets and without."""

from __future__ import annotations

import json
import re

import pytest
from judging import judged, laid_out

from servicepath.model import chain_names, judge_nft
from servicepath.model.services import ServicePort

VIP, ENDS = "fd00:10:96::a", ("fd00:10:244:1::5", "fd00:10:244:2::7")
KEY = "kube-system/kube-dns:dns"
PORT = ServicePort("kube-system", "kube-dns", "dns", "UDP", 53, None, None, None)
RULES = "tests/test_2_service_in_iptables.py"
CONTROL = "tests/test_1_control_path.py"


def sliced(ends=ENDS):
    return json.dumps({
        "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "addressType": "IPv6",
        "metadata": {"namespace": "kube-system", "name": "kube-dns-x", "labels": {"kubernetes.io/service-name": "kube-dns"}},
        "endpoints": [{"addresses": [ip], "conditions": {"ready": True}, "nodeName": "node2"} for ip in ends],
        "ports": [{"name": "dns", "protocol": "UDP", "port": 53}],
    })  # fmt: skip


def saved(ends=ENDS):
    """What ip6tables-save prints of kube-proxy's rules for the Service."""
    service = chain_names.service_chain(KEY, "udp")
    chains = [chain_names.endpoint_chain(KEY, "udp", f"[{ip}]:53") for ip in ends]
    said = f'-m comment --comment "{KEY}'
    lines = ["*nat", ":PREROUTING ACCEPT [0:0]", ":OUTPUT ACCEPT [0:0]", ":KUBE-SERVICES - [0:0]", ":KUBE-MARK-MASQ - [0:0]"]
    lines += [f":{name} - [0:0]" for name in (service, *chains)]
    portals = '-m comment --comment "kubernetes service portals" -j KUBE-SERVICES'
    lines += [f"-A PREROUTING {portals}", f"-A OUTPUT {portals}", "-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000"]
    lines.append(f'-A KUBE-SERVICES -d {VIP}/128 -p udp {said} cluster IP" -m udp --dport 53 -j {service}')
    for number, (name, ip) in enumerate(zip(chains, ends, strict=True)):
        left = len(ends) - number
        chance = f" -m statistic --mode random --probability {1 / left:.11f}" if left > 1 else ""
        lines.append(f'-A {service} {said} -> [{ip}]:53"{chance} -j {name}')
        lines += [f'-A {name} -s {ip}/128 {said}" -j KUBE-MARK-MASQ', f'-A {name} -p udp {said}" -m udp -j DNAT --to-destination [{ip}]:53']
    return "\n".join((*lines, "COMMIT", ""))


def tabled(ends=ENDS):
    """What ``nft list table ip6 kube-proxy`` prints."""
    from servicepath.model.rules import socket_of

    sockets = [socket_of(f"[{ip}]:53") for ip in ends]
    service, names = judge_nft.chain_of(PORT), [judge_nft.chain_of(PORT, socket) for socket in sockets]
    choice = ", ".join(f"{number} : goto {name}" for number, name in enumerate(names))
    lines = ["table ip6 kube-proxy {", "\tset cluster-ips {", "\t\ttype ipv6_addr", f"\t\telements = {{ {VIP} }}", "\t}", ""]
    lines += ["\tmap service-ips {", f"\t\telements = {{ {VIP} . udp . 53 : goto {service} }}", "\t}", ""]
    for hook, where in (("nat-prerouting", "prerouting"), ("nat-output", "output")):
        lines += [f"\tchain {hook} {{", f"\t\ttype nat hook {where} priority dstnat; policy accept;", "\t\tjump services", "\t}", ""]
    lines += ["\tchain services {", "\t\tip6 daddr . meta l4proto . th dport vmap @service-ips", "\t}", ""]
    lines += [f"\tchain {service} {{", f"\t\tnumgen random mod {len(ends)} vmap {{ {choice} }}", "\t}", ""]
    for name, ip in zip(names, ends, strict=True):
        marked = f"\t\tip6 saddr {ip} jump mark-for-masquerade"
        lines += [f"\tchain {name} {{", marked, f"\t\tmeta l4proto udp dnat to [{ip}]:53", "\t}", ""]
    return "\n".join((*lines, "}", ""))


def others(tmp_path, files, *tests):
    return judged(laid_out(tmp_path, files), *tests)


@pytest.mark.parametrize(("name", "text"), [("ip6tables-save", saved), ("nft-kube-proxy.txt", tabled)])
def test_rules_of_ipv6_hold_and_a_missing_endpoint_is_named(tmp_path, name, text):
    whole = others(tmp_path / "whole", {f"nodes/node1/{name}": text(), "api/slices.json": sliced()}, RULES)
    less = others(tmp_path / "less", {f"nodes/node1/{name}": text(ENDS[:1]), "api/slices.json": sliced()}, RULES)

    for conclusion in ("service-rule", "chain-names", "backend-choice", "endpoint-dnat"):
        assert whole.of(conclusion) == {"passed"}, whole.these(conclusion)
    assert less.of("backend-choice") == {"failed"}
    assert ENDS[1] in less.message("backend-choice")


def test_lists_and_conntrack_of_ipv6_are_judged(tmp_path):
    listed = f"ID   Frontend   Service Type   Backend\n1    [{VIP}]:53/UDP   ClusterIP   1 => [{ENDS[0]}]:53/UDP (active)\n"
    entries = ((4000, ENDS[0]), (4001, "fd00:10:244:9::9"))
    entry = "".join(
        f"udp      17 29 src=fd00:192::11 dst={VIP} sport={port} dport=53 src={end} dst=fd00:192::11 sport=53 dport={port} mark=0 use=1\n"
        for port, end in entries
    )
    files = {"nodes/node1/service-list.txt": listed, "nodes/node1/conntrack.txt": entry, "api/slices.json": sliced()}

    found = others(tmp_path, files, CONTROL, "tests/test_5_host_traffic.py")

    assert found.of("dataplanes-programmed") == {"failed"}
    assert ENDS[1] in found.message("dataplanes-programmed")
    assert found.of("host-translated-by-conntrack") == {"failed"}
    assert "fd00:10:244:9::9" in found.message("host-translated-by-conntrack")


def test_interfaces_and_routes_of_ipv6_are_judged(tmp_path):
    addresses = (
        "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000\n    inet6 ::1/128 scope host\n"
        "2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default\n"
        "    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n    inet6 fd00:192::11/64 scope global\n"
    )
    node = {"kind": "Node", "metadata": {"name": "node1"}, "status": {"addresses": [{"type": "InternalIP", "address": "fd00:192::11"}]}}
    routes = "fd00:192::/64 dev eth0 proto kernel metric 256 pref medium\ndefault via fd00:192::1 dev eth0 metric 1024 pref medium\n"
    listed = json.dumps({"kind": "List", "items": [node]})
    rest = {"api/slices.json": sliced(), "api/nodes.json": listed, "nodes/node1/ip6-route.txt": routes}
    hints = {"recording.yaml": f"services: {{kube-system/kube-dns: '{VIP}'}}\n"}
    held = addresses.replace("    inet6 fd00:192::11/64", f"    inet6 {VIP}/128 scope global\n    inet6 fd00:192::11/64")
    host = "tests/test_3_clusterip_on_a_host.py"

    clean = others(tmp_path / "clean", {"nodes/node1/ip-addr.txt": addresses, **rest, **hints}, host)
    taken = others(tmp_path / "taken", {"nodes/node1/ip-addr.txt": held, **rest, **hints}, host)

    assert clean.of("no-interface") == {"passed"}, clean.these("no-interface")
    assert taken.of("no-interface") == {"failed"}
    assert re.search(rf"eth0.*{VIP}|{VIP}.*eth0", taken.message("no-interface"), re.DOTALL)
