"""The names that kube-proxy gives to a Service port's and an endpoint's chains.

Kubernetes v1.34, pkg/proxy/iptables/proxier.go: a prefix and the first 16 characters of base32(sha256(``namespace/service:port``
+ lower-case protocol)); for an endpoint ``ip:port`` is appended to the hashed text. kube-proxy up to v1.18 kept the colon of a
port without a name (``namespace/service:``); dumps of those years are told by it.
"""

from __future__ import annotations

import functools
import hashlib
import itertools

from .addresses import Socket
from .services import ServicePort

CLUSTER = "KUBE-SVC-"
LOCAL = "KUBE-SVL-"
EXTERNAL = "KUBE-EXT-"
FIREWALL = "KUBE-FW-"
ENDPOINT = "KUBE-SEP-"
OLD_EXTERNAL = "KUBE-XLB-"  # until v1.23, where KUBE-EXT and KUBE-SVL stand now

# The prefixes of chains that belong to one Service port or endpoint.
PREFIXES = (CLUSTER, LOCAL, EXTERNAL, FIREWALL, ENDPOINT, OLD_EXTERNAL)


# Ten bits → two digits of base32 (RFC 4648): the standard library's own takes four times as long for a short text.
_PAIRS = tuple(one + other for one, other in itertools.product("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", repeat=2))


@functools.lru_cache(maxsize=1 << 16)  # all names of a large cluster are asked for again on each node
def _hash(text: str) -> str:
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:10], "big")
    pair = _PAIRS
    return "".join([
        pair[number >> 70], pair[number >> 60 & 1023], pair[number >> 50 & 1023], pair[number >> 40 & 1023],
        pair[number >> 30 & 1023], pair[number >> 20 & 1023], pair[number >> 10 & 1023], pair[number & 1023],
    ])  # fmt: skip


def keys(port: ServicePort) -> tuple[str, ...]:
    """What is hashed for a Service port: today's form first, then the old one with a trailing colon where it differs."""
    return (port.chain_key,) if port.name else (port.chain_key, f"{port.chain_key}:")


def service_chain(key: str, protocol: str, prefix: str = CLUSTER) -> str:
    """The chain of a Service port.

    Args:
        key: ``namespace/service:port`` (``ServicePort.chain_key``).
        protocol: in any case.
        prefix: CLUSTER for KUBE-SVC, LOCAL for KUBE-SVL, EXTERNAL, FIREWALL.
    """
    return prefix + _hash(key + protocol.lower())


def endpoint_chain(key: str, protocol: str, endpoint: Socket | str) -> str:
    """The KUBE-SEP chain of one endpoint (a socket, or its text) of a Service port; IPv6 endpoints are hashed in brackets."""
    return ENDPOINT + _hash(f"{key}{protocol.lower()}{endpoint}")


def service_hashes(port: ServicePort) -> tuple[str, ...]:
    """What stands behind the prefix in the names of the Service port's chains: today's, then that of old kube-proxies."""
    return tuple(_hash(key + port.protocol.lower()) for key in keys(port))


def service_chains(port: ServicePort, prefix: str = CLUSTER) -> tuple[str, ...]:
    """The names that the Service port's chain may have: today's, then that of old kube-proxies."""
    return tuple(prefix + found for found in service_hashes(port))


def endpoint_chains(port: ServicePort, endpoint: Socket | str) -> tuple[str, ...]:
    """The names that the endpoint's chain may have: today's, then that of old kube-proxies."""
    return tuple(endpoint_chain(key, port.protocol, endpoint) for key in keys(port))


def is_service_chain(name: str) -> bool:
    """True for a chain that belongs to one Service port or endpoint."""
    return name.startswith(PREFIXES)
