"""The hashes in the names of kube-proxy's chains, made anew of neutral names and addresses.

A hash that is of nothing that is known is replaced by a chance one: it could be found by trying names, and it stays as wrong as it is.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable

from ..model import chain_names

_PROTOCOLS = ("tcp", "udp", "sctp")

Part = tuple[str, str, str]
"""Namespace, Service and port name ("" for a port without one)."""


class Chains:
    """All Service ports and endpoints of a recording.

    Args:
        key: of the hashes of what is not known.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._ports: set[Part] = set()
        self._endpoints: set[tuple[Part, str]] = set()
        self._new: dict[str, str] = {}

    def see(self, part: Part, endpoint: str | None = None) -> None:
        """Know a Service port, and one of its endpoints (``10.42.1.3:53``, ``[fd00::3]:53``)."""
        self._ports.add(part)
        if endpoint:
            self._endpoints.add((part, endpoint))

    def settle(self, name: Callable[[str, str], str], socket: Callable[[str], str]) -> None:
        """End of the first pass: ``name`` and ``socket`` give what names and endpoints become."""
        for part, endpoint in (*((part, "") for part in self._ports), *self._endpoints):
            namespace, service, port = part
            new = name("namespace", namespace), name("service", service), port
            for before, after in zip(_keys(part), _keys(new), strict=True):
                for protocol in _PROTOCOLS:
                    old_hash = _hash(before, protocol, endpoint)
                    self._new[old_hash] = _hash(after, protocol, socket(endpoint) if endpoint else "")

    def __call__(self, found: str) -> str:
        """The hash that stands for this one."""
        if found not in self._new:
            chance = hashlib.blake2b(found.encode(), key=self._key, digest_size=20).digest()
            self._new[found] = base64.b32encode(chance).decode()[: len(found)]
        return self._new[found]

    def of_nft(self, found: str, before: str, after: str) -> str:
        """The eight characters in a name of nft's, where ``before`` stood behind them and ``after`` will."""
        return _of_nft(after) if found == _of_nft(before) else self(found)


def _keys(part: Part) -> tuple[str, str]:
    """What is hashed today, and by kube-proxies up to v1.18, which keep the colon of a port without a name."""
    namespace, service, port = part
    return f"{namespace}/{service}" + (f":{port}" if port else ""), f"{namespace}/{service}:{port}"


def _hash(key: str, protocol: str, endpoint: str) -> str:
    made = chain_names.endpoint_chain(key, protocol, endpoint) if endpoint else chain_names.service_chain(key, protocol)
    return made.rpartition("-")[2]


def _of_nft(text: str) -> str:
    return base64.b32encode(hashlib.sha256(text.encode()).digest()).decode()[:8]
