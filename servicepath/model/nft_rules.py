"""kube-proxy's own nftables table, as it is in nftables mode (Kubernetes v1.34, pkg/proxy/nftables).

Its rules have no counters, so nothing can be told from it about which packets took them; its chain names are no interface of
kube-proxy's (README there) and are kept only to be shown.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from .addresses import IPAddress, Socket


@dataclasses.dataclass(frozen=True, slots=True)
class NftService:
    """One frontend of the map ``service-ips``: a ClusterIP, external or load balancer IP and a port.

    ``chain`` is what the map goes to; ``endpoints`` are those that the chain, or the chain behind it, chooses from.
    """

    frontend: Socket
    protocol: str
    chain: str
    endpoints: tuple[Socket, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class NftTable:
    """The table ``kube-proxy`` of one address family.

    Attributes:
        services: the frontends with endpoints.
        node_ports: (protocol, port) → the endpoints behind it.
        refused: (frontend, protocol) without endpoints → ``reject`` or ``drop``.
        cluster_ips: all ClusterIPs that kube-proxy knows, with and without endpoints.
        version: of the nft tool, None where the text does not tell.
        comments: (frontend, protocol) without endpoints → kube-proxy's comment, ``namespace/name:port``.
        node_port_chains: (protocol, port) → the chain that the node port goes to.
        refused_node_ports: (protocol, port) without endpoints, or without one on this node → ``reject`` or ``drop``.
        lines: chain → its rules, as the tool printed them (JSON: as JSON).
        family: 4 or 6.
    """

    services: tuple[NftService, ...]
    node_ports: Mapping[tuple[str, int], tuple[Socket, ...]]
    refused: Mapping[tuple[Socket, str], str]
    cluster_ips: frozenset[IPAddress]
    version: str | None = None
    comments: Mapping[tuple[Socket, str], str] = dataclasses.field(default_factory=dict)
    node_port_chains: Mapping[tuple[str, int], str] = dataclasses.field(default_factory=dict)
    refused_node_ports: Mapping[tuple[str, int], str] = dataclasses.field(default_factory=dict)
    lines: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict, compare=False, repr=False)
    family: int = 4

    def service(self, ip: IPAddress, protocol: str, port: int) -> NftService | None:
        """The frontend, or None; the protocol in any case."""
        wanted = (Socket(ip, port), protocol.lower())
        return next((s for s in self.services if (s.frontend, s.protocol) == wanted), None)
