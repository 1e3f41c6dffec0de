"""What kube-proxy's nftables table says, whichever form it was read from (module nft): frontends, what they lead to, what is refused."""

from __future__ import annotations

import dataclasses
import ipaddress

from ..model.addresses import IPAddress, Socket
from ..model.nft_rules import NftService, NftTable
from .errors import ParseError
from .lines import port

TOOL = "nft list table kube-proxy"
VERDICTS = {"reject-chain": "reject", "drop": "drop", "reject": "reject"}

# The maps and sets that are read; the others (nodeport-ips, firewall-ips, hairpin-connections, affinity-…) may hold anything.
READ = ("service-ips", "service-nodeports", "no-endpoint-services", "no-endpoint-nodeports", "cluster-ips")


@dataclasses.dataclass(frozen=True, slots=True)
class Element:
    """An element of a map or set: the parts of its key, what it goes to ("" in a set), and kube-proxy's comment or ""."""

    key: tuple[str, ...]
    target: str
    comment: str


class Table:
    """The table while it is read.

    Attributes:
        elements: map or set → its elements.
        targets: chain → the chains that its rules lead to.
        translated: chain → the sockets that its own rules translate to.
        lines: chain → its rules.
        version: of the nft tool.
    """

    def __init__(self) -> None:
        self.elements: dict[str, list[Element]] = {}
        self.targets: dict[str, list[str]] = {}
        self.translated: dict[str, list[Socket]] = {}
        self.lines: dict[str, tuple[str, ...]] = {}
        self.version: str | None = None

    def build(self, family: int) -> NftTable:
        """The facts; ParseError for an element that is none of kube-proxy's, or that leads to a chain that is not there."""
        services = tuple(NftService(*_frontend(e), e.target, self._endpoints(e.target)) for e in self._of("service-ips"))
        refused = {_frontend(e): _refusal(e) for e in self._of("no-endpoint-services")}
        return NftTable(
            services=services,
            node_ports={_node_port(e): self._endpoints(e.target) for e in self._of("service-nodeports")},
            refused=refused,
            cluster_ips=frozenset(ip(e.key[0]) for e in self._of("cluster-ips")),
            version=self.version,
            comments={_frontend(e): e.comment for e in self._of("no-endpoint-services") if e.comment},
            node_port_chains={_node_port(e): e.target for e in self._of("service-nodeports")},
            refused_node_ports={_node_port(e): _refusal(e) for e in self._of("no-endpoint-nodeports")},
            lines=self.lines,
            family=family,
        )

    def _of(self, name: str) -> list[Element]:
        return self.elements.get(name, [])

    def _endpoints(self, chain: str, through: tuple[str, ...] = ()) -> tuple[Socket, ...]:
        """What the chain or those behind it (external-… → service-… → endpoint-…) translate to, in order."""
        if chain not in self.targets:
            raise ParseError(TOOL, 0, chain, "a chain of this name in the table")
        found = list(self.translated.get(chain, []))
        for target in self.targets[chain]:
            if target != "mark-for-masquerade" and target not in through:
                found.extend(self._endpoints(target, (*through, chain)))
        return tuple(dict.fromkeys(found))


def ip(text: str) -> IPAddress:
    """The address that the text is."""
    try:
        return ipaddress.ip_address(text)
    except ValueError as error:
        raise ParseError(TOOL, 0, text, "an address") from error


def number(text: str) -> int:
    """The port number that the text is."""
    try:
        return port(text)
    except ValueError as error:
        raise ParseError(TOOL, 0, text, "a port number") from error


def _frontend(element: Element) -> tuple[Socket, str]:
    if len(element.key) != 3:
        raise ParseError(TOOL, 0, " . ".join(element.key), "address . protocol . port")
    return Socket(ip(element.key[0]), number(element.key[2])), element.key[1]


def _node_port(element: Element) -> tuple[str, int]:
    if len(element.key) != 2:
        raise ParseError(TOOL, 0, " . ".join(element.key), "protocol . port")
    return element.key[0], number(element.key[1])


def _refusal(element: Element) -> str:
    if element.target not in VERDICTS:
        raise ParseError(TOOL, 0, f"{' . '.join(element.key)} : {element.target}", "goto reject-chain, or drop")
    return VERDICTS[element.target]
