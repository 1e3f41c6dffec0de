"""A kubeconfig that lies on a node, where only root may read it, and names the node's own loopback."""

from __future__ import annotations

import urllib.parse
from typing import Any

import yaml

from .. import troubles
from ..channel import Channel, Command
from ..observation import CouldNotSee, Trouble

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1", "0.0.0.0"})  # noqa: S104 - read, not bound


def read(channel: Channel, path: str, *, server: str | None, address: str, timeout: float) -> dict[str, Any]:
    """Read it as root over a channel and put a reachable address in; it is kept nowhere.

    Args:
        channel: to the node.
        path: of the file on the node.
        server: the URL to put in for a loopback one; None for the same port at ``address``.
        address: the node's, as seen from this machine.
        timeout: seconds.

    Raises:
        CouldNotSee: the node cannot be reached, or the file is absent or no kubeconfig.
    """
    answer = channel.run([Command("kubeconfig", ("cat", path))], timeout=timeout, phase="connect")["kubeconfig"]
    trouble = troubles.of_command(answer)
    if trouble:
        raise CouldNotSee(trouble)
    try:
        content = yaml.safe_load(answer.stdout)
        for cluster in content["clusters"]:
            cluster["cluster"]["server"] = _reachable(cluster["cluster"]["server"], server, address)
    except (yaml.YAMLError, KeyError, TypeError, ValueError) as wrong:
        # The text may hold keys, so it is not shown, and neither is yaml's excerpt of it.
        problem = f"{path} is no kubeconfig ({type(wrong).__name__})"
        raise CouldNotSee(Trouble(node=channel.node, problem=problem, command=answer.command)) from None
    return dict(content)


def _reachable(named: str, server: str | None, address: str) -> str:
    url = urllib.parse.urlsplit(named)
    if url.hostname not in _LOOPBACK:
        return named
    if server:
        return server
    host = f"[{address}]" if ":" in address else address
    return url._replace(netloc=f"{host}:{url.port or 443}").geturl()
