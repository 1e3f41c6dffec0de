"""The lab's LAN: one bridge in a network namespace of its own, a veth into each host's, and this machine's own leg."""

import json
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from lab.errors import LabError
from lab.paths import MACHINE_LEG, NETNS, PREFIX
from lab.process import run
from lab.topology import Host, Topology

SWITCH = f"{PREFIX}lan"
GATEWAY = f"{PREFIX}gateway"
BRIDGE = "br0"
# As on any Kubernetes node: forwarding, and no reverse path filter, which Cilium's own routing does not pass.
NODE_SYSCTLS = (
    "net.ipv4.ip_forward=1",
    "net.ipv6.conf.all.forwarding=1",
    "net.ipv4.conf.all.rp_filter=0",
    "net.ipv4.conf.default.rp_filter=0",
)


def namespace(host: str) -> str:
    """Return the name of a host's network namespace on this machine."""
    return f"{PREFIX}{host}"


def create(topology: Topology) -> None:
    """Make all network namespaces, the bridge, the hosts' interfaces and this machine's leg.

    Raises:
        LabError: ``ip`` failed; the message has its command.
    """
    lan = topology.lan
    run(["ip", "netns", "add", SWITCH])
    run(["ip", "-n", SWITCH, "link", "add", BRIDGE, "type", "bridge"])
    run(["ip", "-n", SWITCH, "link", "set", BRIDGE, "up"])
    _add_host(topology, GATEWAY, "gateway", lan.gateway)
    for host in topology.hosts:
        _add_lan_host(topology, host)
    _plug_in(MACHINE_LEG, None, "machine")
    run(["ip", "addr", "add", f"{lan.machine}/{lan.network.prefixlen}", "dev", MACHINE_LEG])
    run(["ip", "link", "set", MACHINE_LEG, "up"])


def plug_anew(topology: Topology, host: Host) -> None:
    """Replace a host's network namespace by a new one with the same address, MAC address included, as after a reboot.

    Raises:
        LabError: ``ip`` failed; the message has its command.
    """
    name, interface = namespace(host.name), topology.lan.interface
    links = json.loads(run(["ip", "-n", name, "-j", "link", "show", "dev", interface]))
    run(["ip", "-n", SWITCH, "link", "del", "dev", host.name])
    run(["ip", "netns", "del", name])
    _add_lan_host(topology, host, links[0]["address"])


def _add_lan_host(topology: Topology, host: Host, mac: str | None = None) -> None:
    name = namespace(host.name)
    _add_host(topology, name, host.name, host.address)
    if mac is not None:
        run(["ip", "-n", name, "link", "set", "dev", topology.lan.interface, "address", mac])
    run(["ip", "-n", name, "route", "add", "default", "via", str(topology.lan.gateway)])
    if host in topology.nodes:
        run(["ip", "netns", "exec", name, "sysctl", "-qw", *NODE_SYSCTLS])


def _add_host(topology: Topology, name: str, port: str, address: IPv4Address) -> None:
    lan = topology.lan
    run(["ip", "netns", "add", name])
    _plug_in(lan.interface, name, port)
    run(["ip", "-n", name, "addr", "add", f"{address}/{lan.network.prefixlen}", "dev", lan.interface])
    run(["ip", "-n", name, "link", "set", lan.interface, "up"])
    run(["ip", "-n", name, "link", "set", "lo", "up"])


def _plug_in(interface: str, name: str | None, port: str) -> None:
    """Add an interface to a namespace (None: this machine's) with its other end on the bridge."""
    where = ["-n", name] if name else []
    run(["ip", *where, "link", "add", interface, "type", "veth", "peer", "name", port, "netns", SWITCH])
    run(["ip", "-n", SWITCH, "link", "set", "dev", port, "master", BRIDGE, "up"])


def left_over() -> list[str]:
    """Return the names of the lab's network namespaces that exist."""
    return sorted(path.name for path in NETNS.glob(f"{PREFIX}*"))


def remove() -> None:
    """Remove this machine's leg and every network namespace of the lab, whatever is there of them."""
    if any(link["ifname"] == MACHINE_LEG for link in _ip_json("link", "show")):
        run(["ip", "link", "del", MACHINE_LEG])
    for name in left_over():
        run(["ip", "netns", "del", name])


def users_of(network: IPv4Network) -> list[str]:
    """Return what else on this machine uses a range: interfaces and routes, described in a word or two each."""
    found = []
    for link in _ip_json("-4", "addr", "show"):
        for address in link["addr_info"]:
            used = IPv4Network(f"{address['local']}/{address['prefixlen']}", strict=False)
            if link["ifname"] != MACHINE_LEG and used.overlaps(network):
                found.append(f"{address['local']}/{address['prefixlen']} on {link['ifname']}")
    for route in _ip_json("-4", "route", "show", "table", "main"):
        if route["dst"] == "default" or route.get("dev") == MACHINE_LEG:
            continue
        if IPv4Network(route["dst"]).overlaps(network):
            found.append(f"route {route['dst']} dev {route.get('dev', '?')}")
    return found


def _ip_json(*argv: str) -> list[dict[str, Any]]:
    try:
        said = json.loads(run(["ip", "-j", *argv]) or "[]")
    except json.JSONDecodeError as error:
        raise LabError(f"ip -j {' '.join(argv)}: no JSON: {error}") from error
    return list(said)
