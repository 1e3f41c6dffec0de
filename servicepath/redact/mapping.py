"""All maps together, in two passes: the first one sees what there is, ``settle`` decides what it becomes."""

from __future__ import annotations

import hashlib
import ipaddress
import uuid

from ..model.addresses import IPAddress, IPNetwork
from .addresses import AddressMap
from .chains import Chains
from .dns import DnsMap
from .names import Names


class Mapping:
    """What stands for what.

    Args:
        key: a secret of this one redaction, 32 bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.names = Names()
        self.chains = Chains(key)
        self.addresses = AddressMap(key)
        self.dns = DnsMap(key, self.addresses)
        self._subnets: set[IPNetwork] = set()
        self._found: set[IPNetwork] = set()

    @property
    def settled(self) -> bool:
        """Whether this is the second pass."""
        return self.names.settled

    def see_subnet(self, network: str) -> None:
        """Know an interface's network (``192.168.55.11/24``), or that of the Services."""
        try:
            self._subnets.add(ipaddress.ip_network(network, strict=False))
        except ValueError:
            return  # whoever reads it says so

    def settle(self) -> None:
        """End of the first pass."""
        self.addresses = AddressMap(self._key, (net for net in self._subnets if net.prefixlen < net.max_prefixlen - 1), self._found)
        self.dns = DnsMap(self._key, self.addresses)
        self.names.settle()
        self.chains.settle(self.names, self.socket)

    def ip(self, text: str) -> str | None:
        """An address as text; None for what is none."""
        try:
            ip = ipaddress.ip_address(text)
        except ValueError:
            return None
        return self._spelt(ip, text)

    def _spelt(self, ip: IPAddress, text: str) -> str:
        if not self.settled:
            self._found.add(ipaddress.ip_network(ip))
            return text
        found = self.addresses.ip(ip)
        if found == ip:
            return text
        inside = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) and "." in text else None
        return f"::ffff:{inside}" if inside else str(found)

    def network(self, address: str, length: str) -> str | None:
        """``address/length``: a network, or an interface's address with the length of its network; None for what is neither."""
        try:
            interface = ipaddress.ip_interface(f"{address}/{length}")
        except ValueError:
            return None
        if interface.ip == interface.network.network_address:
            self._found.add(interface.network)
            new: IPAddress = self.addresses.network(interface.network).network_address
            return f"{address if new == interface.ip else new}/{length}"
        return f"{self._spelt(interface.ip, address)}/{length}"

    def socket(self, text: str) -> str:
        """``10.42.1.3:53`` or ``[fd00::3]:53``."""
        address, colon, port = text.rpartition(":")
        bare = address.strip("[]")
        new = self.ip(bare) or bare
        return (f"[{new}]" if address.startswith("[") else new) + colon + port

    def mac(self, text: str) -> str:
        """``62:5f:3d:40:74:eb``."""
        return self.addresses.mac(bytes.fromhex(text.replace(":", ""))).hex(":")

    def id(self, text: str) -> str:
        """A UUID, or another identifier in hexadecimal digits: another one of the same form."""
        length = len(text.replace("-", ""))
        found = hashlib.shake_128(self._key + text.lower().encode()).hexdigest((length + 1) // 2)[:length]
        return str(uuid.UUID(found)) if "-" in text else found
