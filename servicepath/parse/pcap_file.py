"""Reads the frame around captured packets: pcap (tcpdump's own) and pcapng files, either byte order, micro- and nanoseconds.

A pcap file is 24 bytes of header (magic, version, zone, accuracy, snap length, link type) and then, for each packet, 16 bytes
(seconds, fraction, bytes kept, bytes on the wire) and the bytes kept. A pcapng file is a row of blocks (type, length, body,
length again): a section header, a description of each interface (link type, time resolution) and the packets.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from .errors import ParseError

TOOL = "pcap"

# Magic, as the first four bytes of the file → (byte order, units in a second).
_MAGIC = {
    b"\xd4\xc3\xb2\xa1": ("<", 1_000_000),
    b"\xa1\xb2\xc3\xd4": (">", 1_000_000),
    b"\x4d\x3c\xb2\xa1": ("<", 1_000_000_000),
    b"\xa1\xb2\x3c\x4d": (">", 1_000_000_000),
}
_PCAPNG = b"\x0a\x0d\x0d\x0a"
_SECTION, _INTERFACE, _SIMPLE, _ENHANCED = 0x0A0D0D0A, 1, 3, 6
_TIME_RESOLUTION, _TIME_OFFSET = 9, 14  # options of an interface's description: if_tsresol, if_tsoffset

_YEAR_10000 = 253_402_300_800  # seconds since 1970; an interface's clock may be described as anything


class Record(NamedTuple):
    """A captured frame. ``time`` is Unix time in seconds (0 where the file has none), ``wire_length`` what was on the wire."""

    number: int
    time: float
    linktype: int
    wire_length: int
    frame: bytes


def records(data: bytes) -> Iterator[Record]:
    """The frames of a pcap or pcapng file, counted from 1.

    Raises:
        ParseError: for another format, or a file that ends within a packet: then something may be missing from it.
    """
    if data[:4] in _MAGIC:
        return _pcap(data)
    if data[:4] == _PCAPNG:
        return _pcapng(data)
    raise ParseError(TOOL, 0, repr(data[:16]), "a pcap or pcapng file")


def _pcap(data: bytes) -> Iterator[Record]:
    order, units = _MAGIC[data[:4]]
    if len(data) < 24:
        raise ParseError(TOOL, 0, repr(data), "24 bytes of header")
    # The upper bits of the link type's field carry the length of the frame check sequence.
    linktype = struct.unpack_from(order + "I", data, 20)[0] & 0xFFFF
    header = struct.Struct(order + "4I").unpack_from
    at, number, end = 24, 0, len(data)
    while at < end:
        number += 1
        if at + 16 > end:
            raise ParseError(TOOL, number, repr(data[at:]), "a packet's header: the file is cut off")
        seconds, fraction, kept, wire = header(data, at)
        at += 16 + kept
        if at > end:
            raise ParseError(TOOL, number, f"{kept} bytes", "a whole packet: the file is cut off")
        yield Record(number, seconds + fraction / units, linktype, wire, data[at - kept : at])


def _pcapng(data: bytes) -> Iterator[Record]:
    order = "<"
    interfaces: list[_Interface] = []  # the section's
    at = number = 0
    while at < len(data):
        if at + 12 > len(data):
            raise ParseError(TOOL, number, repr(data[at:]), "a block's header: the file is cut off")
        if data[at : at + 4] == _PCAPNG:
            order = _order(data[at + 8 : at + 12], number)
            interfaces = []
        kind, length = struct.unpack_from(order + "2I", data, at)
        if length < 12 or at + length > len(data):
            raise ParseError(TOOL, number, f"a block of {length} bytes", "a whole block: the file is cut off")
        if struct.unpack_from(order + "I", data, at + length - 4)[0] != length:
            raise ParseError(TOOL, number, f"a block of {length} bytes", "its length again at its end")
        body = data[at + 8 : at + length - 4]
        at += length
        if kind == _INTERFACE:
            interfaces.append(_described(body, order, number))
        elif kind in (_ENHANCED, _SIMPLE):
            number += 1
            yield _block(kind, body, order, interfaces, number)


class _Interface(NamedTuple):
    linktype: int
    snap: int  # bytes kept at most; 0: all
    units: float = 1_000_000.0  # in a second
    offset: int = 0  # seconds to add to each packet's time


def _order(magic: bytes, number: int) -> str:
    orders = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
    if magic not in orders:
        raise ParseError(TOOL, number, repr(magic), "the byte order of a section")
    return orders[magic]


def _described(body: bytes, order: str, number: int) -> _Interface:
    if len(body) < 8:
        raise ParseError(TOOL, number, repr(body), "an interface's link type and snap length")
    linktype, _, snap = struct.unpack_from(order + "2HI", body)
    return _timed(_Interface(linktype, snap), body[8:], order)


def _block(kind: int, body: bytes, order: str, interfaces: list[_Interface], number: int) -> Record:
    """The packet of an enhanced or a simple packet block; the simple one has no time and is of the first interface."""
    try:
        if kind == _SIMPLE:
            (wire,) = struct.unpack_from(order + "I", body)
            time, interface, start = 0.0, interfaces[0], 4
            kept = min(wire, interface.snap or wire)
        else:
            index, high, low, kept, wire = struct.unpack_from(order + "5I", body)
            interface, start = interfaces[index], 20
            time = ((high << 32) + low) / interface.units + interface.offset
    except (IndexError, struct.error) as error:
        raise ParseError(TOOL, number, repr(body[:20]), f"a packet block of a described interface ({error})") from error
    if not 0 <= time < _YEAR_10000:
        raise ParseError(TOOL, number, f"{time:.0f} s since 1970", "a time before the year 10000")
    if start + kept > len(body):
        raise ParseError(TOOL, number, f"{kept} bytes kept, in a block of {len(body)}", "a whole packet in its block")
    return Record(number, time, interface.linktype, wire, body[start : start + kept])


def _timed(interface: _Interface, options: bytes, order: str) -> _Interface:
    """The interface with its clock by the options: units in a second are a power of 10, or of 2 with the top bit set."""
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from(order + "2H", options, at)
        value = options[at + 4 : at + 4 + length]
        if code == 0:
            break
        if code == _TIME_RESOLUTION and len(value) == 1:
            interface = interface._replace(units=float(2 ** (value[0] & 0x7F) if value[0] & 0x80 else 10 ** value[0]))
        if code == _TIME_OFFSET and len(value) == 8:
            interface = interface._replace(offset=struct.unpack(order + "q", value)[0])
        at += 4 + (length + 3) // 4 * 4
    return interface
