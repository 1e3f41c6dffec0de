"""From the inventory's and the API's nodes to channels: what ssh connects to, and which node is this very machine."""

from __future__ import annotations

import functools
import ipaddress
import pathlib
import socket
from collections.abc import Mapping, Sequence

from . import fleet as fleet_module
from .channels import process
from .channels.batch import BatchChannel
from .channels.local import LocalChannel
from .channels.ssh import SocketFolder, SshChannel, SshLogin
from .inventory import Inventory
from .inventory import Node as Target
from .model.addresses import IPAddress
from .model.services import Node

LAN_CLIENT = "lan-client"


def login(inventory: Inventory) -> SshLogin:
    """How to log in, as the inventory says."""
    ssh = inventory.ssh
    return SshLogin(user=ssh.user, config=ssh.config, identity=ssh.identity, port=ssh.port)


def of_nodes(inventory: Inventory, nodes: Sequence[Node]) -> dict[str, Target]:
    """Node → how it is reached: the inventory's nodes, else all of the API's.

    A node of the API is reached by its name where OpenSSH's configuration or a resolver knows it, else by its InternalIP; a node
    whose InternalIP this machine holds is this machine.
    """
    if inventory.nodes:
        return {n: t if t.host else t.model_copy(update={"host": n}) for n, t in inventory.nodes.items()}
    jobs = {node.name: functools.partial(_target, node, inventory.ssh.config) for node in nodes}
    return fleet_module.side_by_side(jobs)


def of_lan_client(inventory: Inventory, nodes: Sequence[Node]) -> Target | None:
    """How the LAN client is reached: the inventory's, else this machine when it is no node; else None."""
    if inventory.lan_client:
        target = inventory.lan_client
        return target if target.host or target.connection == "local" else target.model_copy(update={"host": LAN_CLIENT})
    if any(t.connection == "local" for t in inventory.nodes.values()) or any(_here(ip) for n in nodes for ip in n.internal_ips):
        return None
    return Target(connection="local")


def channels(targets: Mapping[str, Target], how: SshLogin, sockets: SocketFolder) -> dict[str, BatchChannel]:
    """A channel for each target; nothing is connected yet."""
    return {
        name: LocalChannel(name) if target.connection == "local" else SshChannel(name, target.host or name, how, sockets)
        for name, target in targets.items()
    }


def host_address(host: str, config: pathlib.Path | None) -> str:
    """The address or name behind what ssh calls ``host``, by OpenSSH's own configuration."""
    return _ssh_settings(host, config).get("hostname", host)


def _target(node: Node, config: pathlib.Path | None) -> Target:
    if any(_here(ip) for ip in node.internal_ips):
        return Target(connection="local")
    if _known(node.name, config) or not node.internal_ips:
        return Target(host=node.name)
    return Target(host=str(node.internal_ips[0]))


def _known(name: str, config: pathlib.Path | None) -> bool:
    settings = _ssh_settings(name, config)
    behind = any(settings.get(key, "none") != "none" for key in ("proxyjump", "proxycommand"))
    if behind or settings.get("hostname", name) != name:
        return True
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return False
    return True


def _ssh_settings(host: str, config: pathlib.Path | None) -> dict[str, str]:
    options = ("-F", str(config)) if config else ()
    finished = process.run(("ssh", *options, "-G", host), timeout=5)
    # A configuration that ssh does not accept shows itself when the node is connected, with its text; here nothing is known.
    lines = finished.stdout.decode("utf-8", "replace").splitlines()
    return dict(line.split(" ", 1) for line in lines if " " in line)


def _here(ip: IPAddress) -> bool:
    family = socket.AF_INET6 if isinstance(ip, ipaddress.IPv6Address) else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((str(ip), 0))
        except OSError:
            return False
    return True
