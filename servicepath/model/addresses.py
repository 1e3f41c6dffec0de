"""Names for the address types used everywhere; IPv4 and IPv6 alike."""

from __future__ import annotations

import dataclasses
import ipaddress

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network
IPInterface = ipaddress.IPv4Interface | ipaddress.IPv6Interface


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Socket:
    """An address and a port, printed as the tools do (``10.43.0.10:53``, ``[fd00::a]:53``)."""

    ip: IPAddress
    port: int

    def __eq__(self, other: object) -> bool:
        """The port first: it tells most of two sockets apart at once."""
        return isinstance(other, Socket) and self.port == other.port and self.ip == other.ip

    def __hash__(self) -> int:
        """Of the number; ipaddress makes text of an address for its own hash, and large clusters have ten thousands."""
        return hash((int(self.ip), self.port))

    def __str__(self) -> str:
        """The socket as tools print it."""
        return f"[{self.ip!s}]:{self.port}" if self.ip.version == 6 else f"{self.ip!s}:{self.port}"
