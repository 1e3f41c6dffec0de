"""Which lock the cluster has for us: a Lease where that is allowed, else a file on its first node."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator

from .. import connection
from ..channels.ssh import SocketFolder
from ..deadline import Deadline
from ..experiments import api
from ..inventory import Inventory
from ..model.services import Node
from ..observation import CouldNotSee, Trouble
from ..parse.kubernetes import parse_nodes
from ..targets import LAN_CLIENT
from . import locks
from .lease import LeaseLock, NoRight
from .locks import ClusterLock
from .node_lock import NodeLock

_DEADLINE = 60.0  # seconds for getting at the API and the node


@contextlib.contextmanager
def held(inventory: Inventory, wait: float) -> Iterator[ClusterLock]:
    """Hold the cluster's lock; it is given.

    Raises:
        HeldByAnother: somebody else had it for all of ``wait`` seconds.
        CouldNotSee: neither kind is to be had.
    """
    sockets = SocketFolder()
    with contextlib.ExitStack() as both:
        both.callback(sockets.remove)
        try:
            client = connection.kube_client(inventory, sockets, Deadline.starting_now(_DEADLINE))
            lock: ClusterLock = LeaseLock(client, locks.holder())
            both.enter_context(locks.on_the_cluster(lock, wait))
        except CouldNotSee as unseen:
            if not isinstance(unseen, NoRight):  # which every run finds alike; what else goes wrong may do so for us alone
                print(f"no Lease, locking a node instead: {unseen.trouble.problem}", file=sys.stderr, flush=True)
            lock = both.enter_context(_on_a_node(inventory, sockets, wait))
        yield lock


def _nodes(inventory: Inventory, sockets: SocketFolder) -> tuple[Node, ...]:
    client = connection.kube_client(inventory, sockets, Deadline.starting_now(_DEADLINE))
    answer = api.get(client, "nodes", api.PATHS["nodes"])
    try:
        return () if answer.status else parse_nodes(json.loads(answer.stdout))
    except ValueError as wrong:  # no JSON, or a ParseError
        raise CouldNotSee(Trouble("api", f"the API's answer cannot be read: {wrong}")) from wrong


@contextlib.contextmanager
def _on_a_node(inventory: Inventory, sockets: SocketFolder, wait: float) -> Iterator[ClusterLock]:
    channels = connection.channels(inventory, () if inventory.nodes else _nodes(inventory, sockets), sockets)
    names = [name for name in channels if name != LAN_CLIENT]
    if not names:
        raise CouldNotSee(Trouble("api", "no node is known, and so none to lock"))
    first = channels[min(names)]
    try:
        lock = NodeLock(first, locks.holder())
        with locks.on_the_cluster(lock, wait):
            yield lock
    finally:
        for channel in channels.values():
            channel.close()
