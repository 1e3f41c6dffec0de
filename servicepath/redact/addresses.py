"""IPv4, IPv6, networks and MAC addresses → others, by prefixes.

What has a meaning of its own stays: 0.0.0.0/8, 127.0.0.0/8, 169.254.0.0/16, multicast and 255.255.255.255; ::, ::1, multicast. Private
ranges stay private and fe80::/64 link-local; ::ffff:0:0/96 and 64:ff9b::/96 (RFC 6052) hold IPv4 addresses and are mapped by these.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterable

from ..model.addresses import IPAddress, IPNetwork
from .prefixes import PrefixMap, Range

_KEPT4 = ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4")
_APART4 = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
_KEPT6 = ("::/96", "ff00::/8")
_APART6 = ("fe80::/64", "fc00::/8", "fd00::/8", "2000::/3")
_IPV4_INSIDE = tuple(int(ipaddress.ip_network(text).network_address) >> 32 for text in ("::ffff:0:0/96", "64:ff9b::/96"))
_SOLICITED = int(ipaddress.ip_address("ff02::1:ff00:0")) >> 24  # RFC 4291, 2.7.1: 24 bits of an address behind it

_TRIES = 32  # keys that are tried until no address stays as it is by chance


class AddressMap:
    """The map.

    Args:
        key: what it depends on: the same key and networks give the same map.
        subnets: networks of interfaces and of Services, whose first and last addresses stay first and last.
        changed: networks and addresses none of which should stay as it is. With few bits that may change (8 between 192.168.0.0/16 and
            a /24) a key in 256 changes none of them, so that the next one is taken.
    """

    def __init__(self, key: bytes, subnets: Iterable[IPNetwork] = (), changed: Iterable[IPNetwork] = ()) -> None:
        ranges, wanted = frozenset(subnets), list[IPNetwork]()
        best: tuple[int, tuple[PrefixMap, PrefixMap]] | None = None
        for attempt in range(_TRIES):
            self._maps = _maps(_derived(key, b"%d" % attempt), ranges)
            wanted = wanted if attempt else [net for net in changed if self._maps[net.version == 6].may_change(*_range(net))]
            unchanged = sum(self.network(net) == net for net in wanted)
            if best is None or unchanged < best[0]:
                best = unchanged, self._maps
            if not unchanged:
                break
        if best:
            self._maps = best[1]
        self._mac = PrefixMap(_derived(key, b"mac"), 48)
        self._solicited = PrefixMap(_derived(key, b"solicited"), 24)

    def ip(self, ip: IPAddress) -> IPAddress:
        """An address's counterpart."""
        number = int(ip)
        if ip.version == 4:
            return ipaddress.IPv4Address(self._maps[0](number))
        if number >> 32 in _IPV4_INSIDE:
            return ipaddress.IPv6Address(number >> 32 << 32 | self._maps[0](number & 0xFFFFFFFF))
        if number >> 24 == _SOLICITED:
            return ipaddress.IPv6Address(number >> 24 << 24 | self._solicited(number & 0xFFFFFF))
        return ipaddress.IPv6Address(self._maps[1](number))

    def network(self, network: IPNetwork) -> IPNetwork:
        """A network's counterpart: all of its addresses' counterparts and no others."""
        number, length = int(network.network_address), network.prefixlen
        if network.version == 4:
            return ipaddress.IPv4Network((self._maps[0](number, length), length))
        if length >= 96 and number >> 32 in _IPV4_INSIDE:
            return ipaddress.IPv6Network((number >> 32 << 32 | self._maps[0](number & 0xFFFFFFFF, length - 96), length))
        if length >= 104 and number >> 24 == _SOLICITED:
            return ipaddress.IPv6Network((int(self.ip(network.network_address)), length), strict=False)
        return ipaddress.IPv6Network((self._maps[1](number, length), length))

    def mac(self, mac: bytes) -> bytes:
        """A MAC address's counterpart; group addresses and zeros stay, and what says who gave it out (the second lowest bit)."""
        if mac[0] & 1 or not any(mac):
            solicited = mac[:3] == b"\x33\x33\xff"  # RFC 2464, 7: behind it 24 bits of an address, as above
            return mac[:3] + self._solicited(int.from_bytes(mac[3:], "big")).to_bytes(3, "big") if solicited else mac
        found = bytearray(self._mac(int.from_bytes(mac, "big")).to_bytes(6, "big"))
        found[0] = found[0] & 0xFC | mac[0] & 3
        return bytes(found)


def _maps(key: bytes, subnets: frozenset[IPNetwork]) -> tuple[PrefixMap, PrefixMap]:
    def ranges(texts: Iterable[str]) -> tuple[Range, ...]:
        return tuple(_range(ipaddress.ip_network(text)) for text in texts)

    four, six = ([_range(each) for each in subnets if each.version == version] for version in (4, 6))
    # The last 32 bits of the two ranges of IPv6 that hold IPv4 addresses are never asked for; the ranges themselves must stay.
    return (
        PrefixMap(key, 32, apart=ranges(_APART4), kept=ranges(_KEPT4), subnets=four),
        PrefixMap(key, 128, apart=(*ranges(_APART6), *((bits, 96) for bits in _IPV4_INSIDE)), kept=ranges(_KEPT6), subnets=six),
    )


def _range(network: IPNetwork) -> Range:
    return int(network.network_address) >> (network.max_prefixlen - network.prefixlen), network.prefixlen


def _derived(key: bytes, purpose: bytes) -> bytes:
    return hashlib.blake2b(purpose, key=key[:64], digest_size=32).digest()
