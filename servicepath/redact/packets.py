"""Captures with neutral addresses, packet for packet of the same length; what was sent is DNS, a tunnel's packet, or becomes zeros.

A checksum is brought forward by what changed under it (RFC 1624), and so is as right, or as wrong, as it was: one that a network card was
to put in, and one over bytes that were not captured. Whatever is not known to be harmless is zeros behind its header.
"""

from __future__ import annotations

import ipaddress
import struct

from ..parse.dns_question import read_dns
from ..parse.errors import ParseError
from ..parse.pcap_file import TOOL
from .addresses import AddressMap
from .dns import DnsMap

PCAP = (b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d")
PCAPNG = b"\x0a\x0d\x0d\x0a"

_IPV4, _IPV6, _ARP, _VLAN = 0x0800, 0x86DD, 0x0806, (0x8100, 0x88A8, 0x9100)
_ETHERNET, _RAW, _NULL, _SLL, _SLL2 = 1, (12, 14, 101, 228, 229), (0, 108), 113, 276
_ICMP, _TCP, _UDP, _ICMP6 = 1, 6, 17, 58
_EXTENSIONS, _FRAGMENT = (0, 43, 60), 44
_DNS_PORTS = (53, 5353)
_GENEVE = 6081
_CHECKSUM_AT = {_ICMP: 2, _TCP: 16, _UDP: 6, _ICMP6: 2}


class Packets:
    """Rewrites captures.

    Args:
        tunnel_ports: UDP destination ports that carry VXLAN.
    """

    def __init__(self, addresses: AddressMap, names: DnsMap, tunnel_ports: frozenset[int] = frozenset({8472, 4789})) -> None:
        self._addresses = addresses
        self._names = names
        self._tunnel_ports = tunnel_ports

    def capture(self, data: bytes) -> bytes:
        """A pcap file; what is cut off at its end is left as it is cut, without its bytes.

        Raises:
            ParseError: it is no pcap file (a pcapng file holds names of machines and more, and tcpdump writes none).
        """
        if data[:4] not in PCAP or len(data) < 24:
            raise ParseError(TOOL, 0, repr(data[:16]), "a pcap file: nothing else can be redacted")
        order = "<" if data[0] in (0xD4, 0x4D) else ">"
        linktype = struct.unpack_from(order + "I", data, 20)[0] & 0xFFFF
        found, at = bytearray(data[:24]), 24
        while at + 16 <= len(data):
            kept = struct.unpack_from(order + "I", data, at + 8)[0]
            frame = data[at + 16 : at + 16 + kept]
            found += data[at : at + 16]
            found += self._frame(frame, linktype) if len(frame) == kept else bytes(len(frame))
            at += 16 + kept
        return bytes(found) + bytes(max(len(data) - len(found), 0))

    def _frame(self, frame: bytes, linktype: int) -> bytes:
        if linktype == _ETHERNET:
            return self._ethernet(frame)
        if linktype in _RAW:
            return self._ip(frame)
        if linktype in _NULL:
            return frame[:4] + self._ip(frame[4:])
        if linktype == _SLL and len(frame) >= 16:
            return frame[:6] + self._mac(frame[6:12]) + frame[12:16] + self._carried(frame[14:16], frame[16:])
        if linktype == _SLL2 and len(frame) >= 20:
            return frame[:12] + self._mac(frame[12:18]) + frame[18:20] + self._carried(frame[:2], frame[20:])
        return bytes(len(frame))

    def _mac(self, mac: bytes) -> bytes:
        return self._addresses.mac(mac)

    def _ethernet(self, frame: bytes) -> bytes:
        if len(frame) < 14:
            return bytes(len(frame))
        return self._mac(frame[:6]) + self._mac(frame[6:12]) + frame[12:14] + self._carried(frame[12:14], frame[14:])

    def _carried(self, ethertype: bytes, payload: bytes) -> bytes:
        (kind,) = struct.unpack("!H", ethertype)
        if kind in _VLAN and len(payload) >= 4:
            return payload[:4] + self._carried(payload[2:4], payload[4:])
        if kind in (_IPV4, _IPV6):
            return self._ip(payload)
        return self._arp(payload) if kind == _ARP and len(payload) >= 28 else bytes(len(payload))

    def _arp(self, packet: bytes) -> bytes:
        """ARP for IPv4 over Ethernet (RFC 826)."""
        mac, ip = self._mac, self._packed
        new = packet[:8] + mac(packet[8:14]) + ip(packet[14:18]) + mac(packet[18:24]) + ip(packet[24:28])
        return new + bytes(len(packet) - 28)

    def _packed(self, packed: bytes) -> bytes:
        return self._addresses.ip(ipaddress.ip_address(packed)).packed

    def _ip(self, packet: bytes) -> bytes:
        version = packet[0] >> 4 if packet else 0
        if version == 4 and len(packet) >= 20 and len(packet) >= (packet[0] & 15) * 4 >= 20:
            return self._ip4(packet)
        return self._ip6(packet) if version == 6 and len(packet) >= 40 else bytes(len(packet))

    def _ip4(self, packet: bytes) -> bytes:
        size = (packet[0] & 15) * 4
        total, fragment, protocol = (*struct.unpack_from("!H2xH", packet, 2), packet[9])
        new = packet[:12] + self._packed(packet[12:16]) + self._packed(packet[16:20]) + bytes(size - 20)  # options may hold addresses
        new = _forward(new, 10, packet[:size], new)
        end = max(size, min(total or len(packet), len(packet)))
        body = self._body(protocol, packet[size:end], packet[12:20], new[12:20]) if not fragment & 0x1FFF else bytes(end - size)
        return new + body + bytes(len(packet) - end)

    def _ip6(self, packet: bytes) -> bytes:
        new = packet[:8] + self._packed(packet[8:24]) + self._packed(packet[24:40])
        (length,) = struct.unpack_from("!H", packet, 4)
        end = min(40 + length, len(packet)) if length else len(packet)
        protocol, at, later = packet[6], 40, False
        while at + 8 <= end and protocol in (*_EXTENSIONS, _FRAGMENT) and not later:
            size = 8 if protocol == _FRAGMENT else (packet[at + 1] + 1) * 8
            later = protocol == _FRAGMENT and struct.unpack_from("!H", packet, at + 2)[0] & 0xFFF8 != 0
            # A routing header holds addresses; of the others nothing but padding is of use here.
            new += packet[at : at + 8] if protocol == _FRAGMENT else packet[at : at + 2] + bytes(min(size, end - at) - 2)
            protocol, at = packet[at], at + size
        at = min(at, end)
        body = bytes(end - at) if later else self._body(protocol, packet[at:end], packet[8:40], new[8:40])
        return new + body + bytes(len(packet) - end)

    def _body(self, protocol: int, body: bytes, old: bytes, new: bytes) -> bytes:
        """What stands behind an IP header; ``old`` and ``new`` are its addresses, which count in the checksum."""
        at = _CHECKSUM_AT.get(protocol)
        if at is None or len(body) < at + 2:
            return body[:4] + bytes(len(body) - 4) if protocol in _CHECKSUM_AT and len(body) >= 4 else bytes(len(body))
        if protocol == _UDP:
            found = body[:8] + self._udp(body)
            if body[6:8] == b"\0\0":  # no checksum (RFC 768)
                return found
        elif protocol == _TCP:
            size = min(max(body[12] >> 4, 5) * 4, len(body))
            found = body[:20] + _options(body[20:size]) + self._tcp(body[size:])
        else:
            found = self._icmp(body) if protocol == _ICMP else self._icmp6(body)
        pseudo = (b"", b"") if protocol == _ICMP else (old, new)
        return _forward(found, at, pseudo[0] + body, pseudo[1] + found, never_zero=protocol == _UDP)

    def _udp(self, body: bytes) -> bytes:
        sport, dport = struct.unpack_from("!2H", body)
        payload = body[8:]
        if dport in self._tunnel_ports and len(payload) >= 8 and payload[0] & 8:
            return payload[:8] + self._ethernet(payload[8:])
        if dport == _GENEVE and len(payload) >= 8 and payload[2:4] == b"\x65\x58":
            at = min(8 + (payload[0] & 0x3F) * 4, len(payload))
            return payload[:8] + bytes(at - 8) + self._ethernet(payload[at:])
        certain = sport in _DNS_PORTS or dport in _DNS_PORTS
        return self._names.message(payload) if read_dns(payload, certain=certain) else bytes(len(payload))

    def _tcp(self, payload: bytes) -> bytes:
        """DNS messages, each behind its length (RFC 1035, 4.2.2); anything else becomes zeros."""
        found, at = bytearray(len(payload)), 0
        while at + 2 <= len(payload):
            (length,) = struct.unpack_from("!H", payload, at)
            message = payload[at + 2 : at + 2 + length]
            if not read_dns(message, certain=False):
                break
            found[at : at + 2 + len(message)] = payload[at : at + 2] + self._names.message(message)
            at += 2 + length
        return bytes(found)

    def _icmp(self, body: bytes) -> bytes:
        """An error quotes the packet that it is about (RFC 792); whatever else there is becomes zeros."""
        quotes = body[0] in (3, 4, 5, 11, 12)
        head = self._packed(body[4:8]) if body[0] == 5 and len(body) >= 8 else body[4:8]
        return body[:4] + head + (self._ip(body[8:]) if quotes else bytes(max(len(body) - 8, 0)))

    def _icmp6(self, body: bytes) -> bytes:
        """The same of IPv6 (RFC 4443), and neighbours' addresses (RFC 4861, 4.3 to 4.6)."""
        if body[0] < 128:
            return body[:8] + self._ip(body[8:])
        if body[0] not in (135, 136) or len(body) < 24:
            return body[:8] + bytes(max(len(body) - 8, 0))
        new = body[:8] + self._packed(body[8:24])
        option = body[24:32]
        if len(option) == 8 and option[0] in (1, 2) and option[1] == 1:
            new += option[:2] + self._mac(option[2:])
        return new + bytes(len(body) - len(new))


def _options(options: bytes) -> bytes:
    """TCP's are numbers; what an experiment or a middlebox may have put in becomes padding."""
    found, at = bytearray(options), 0
    while at < len(options) and options[at]:
        size = 1 if options[at] == 1 else max(options[at + 1], 2) if at + 1 < len(options) else 1
        if options[at] not in (1, 2, 3, 4, 5, 8):
            found[at : at + size] = b"\1" * len(found[at : at + size])
        at += size
    return bytes(found)


def _forward(packet: bytes, at: int, old: bytes, new: bytes, *, never_zero: bool = False) -> bytes:
    """The packet with its checksum at ``at`` brought from the ``old`` bytes under it to the ``new`` ones (RFC 1624, equation 3)."""
    (checksum,) = struct.unpack_from("!H", packet, at)
    total = (checksum ^ 0xFFFF) + (_sum(old) ^ 0xFFFF) + _sum(new)
    made = _folded(total) ^ 0xFFFF
    return packet[:at] + struct.pack("!H", made or (0xFFFF if never_zero else 0)) + packet[at + 2 :]


def _sum(data: bytes) -> int:
    data += b"\0" * (len(data) % 2)
    return _folded(sum(struct.unpack(f"!{len(data) // 2}H", data)))


def _folded(total: int) -> int:
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total
