"""From an inventory to connections: the API's client, and the way to each node. Nothing here knows pytest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import targets
from .channels.batch import BatchChannel
from .channels.ssh import SocketFolder
from .deadline import Deadline
from .experiments import api, kubeconfig
from .inventory import Inventory
from .inventory import Node as Target
from .model.services import Node


def kube_client(inventory: Inventory, sockets: SocketFolder, deadline: Deadline) -> Any:
    """A client of the API, by a kubeconfig here or by one read from a node.

    Raises:
        CouldNotSee: the kubeconfig cannot be had or used; the API itself is not asked yet.
    """
    source = inventory.kubeconfig_from
    if source is None:
        return api.connect(inventory.kubeconfig, context=inventory.context)
    target = inventory.nodes.get(source.node, Target())
    host = target.host or source.node
    channel = targets.channels({source.node: target.model_copy(update={"host": host})}, targets.login(inventory), sockets)[source.node]
    address = "127.0.0.1" if target.connection == "local" else targets.host_address(host, inventory.ssh.config)
    try:
        content = kubeconfig.read(channel, source.path, server=source.server, address=address, timeout=deadline.limit(30))
    finally:
        channel.close()
    return api.connect(content, context=inventory.context)


def channels(inventory: Inventory, nodes: Sequence[Node], sockets: SocketFolder) -> dict[str, BatchChannel]:
    """The way to each node, and to "lan-client" where there is one; nothing is connected yet.

    Args:
        inventory: its nodes count; where it names none, all of ``nodes`` do.
        nodes: the API's.
        sockets: for multiplexed connections; the caller removes it after ``Fleet.close``.
    """
    chosen = targets.of_nodes(inventory, nodes)
    client = targets.of_lan_client(inventory, nodes)
    if client:
        chosen[targets.LAN_CLIENT] = client
    return targets.channels(chosen, targets.login(inventory), sockets)
