"""Listening sockets as ss prints them, made up at random: each is read back the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from properties.spoiling import outcome
from servicepath.model.host import Listener
from servicepath.parse.sockets import parse_ss

HEADINGS = "Netid State  Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n"
NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_.:/ ()@-]{0,14}", fullmatch=True)
DEVICES = st.from_regex(r"[a-z][a-z0-9_.-]{0,13}", fullmatch=True)


@st.composite
def listeners(draw: st.DrawFn) -> Listener:
    """A socket with its line in ``raw``; IPv6 in brackets, a device behind ``%``, a wildcard as ``*``, ``0.0.0.0`` or ``[::]``."""
    protocol, port = draw(st.sampled_from(["udp", "tcp"])), draw(st.integers(1, 65535))
    device, process = draw(st.none() | DEVICES), draw(st.none() | NAMES)
    address = draw(st.none() | st.ip_addresses())
    mapped = address is not None and address.version == 4 and draw(st.booleans())
    shown = draw(st.sampled_from(["*", "0.0.0.0", "[::]"])) if address is None else f"[::ffff:{address}]" if mapped else str(address)
    shown = f"[{address}]" if address is not None and address.version == 6 else shown
    users = "" if process is None else f' users:(("{process}",pid={draw(st.integers(1, 2**22))},fd=5),("other",pid=1,fd=6))'
    more = draw(st.sampled_from(["", " uid:101 ino:50159 sk:6 cgroup:/ v6only:0 <->", " newfangled:1"]))
    state = "UNCONN" if protocol == "udp" else "LISTEN"
    scope = "" if device is None else f"%{device}"
    peer = draw(st.sampled_from(["*:*", "[::]:*"]))
    line = f"{protocol}   {state} 0      {draw(st.integers(0, 65535)):<6} {shown}{scope}:{port}   {peer}{users}{more}"
    if address is not None and address.version == 6 and address.ipv4_mapped:
        address = address.ipv4_mapped
    told = None if address is None or address.is_unspecified else address
    return Listener(protocol.upper(), told, port, process, device, line)


@given(st.lists(listeners(), max_size=4), st.booleans())
def test_what_is_printed_is_read_back_the_same(made, headed):
    found = parse_ss(HEADINGS * headed + "".join(f"{each.raw}\n" for each in made))

    assert [(each, each.raw) for each in found] == [(each, each.raw) for each in made]


@given(st.lists(listeners(), min_size=1, max_size=3), st.data())
def test_a_listing_that_is_cut_off_within_a_line_is_an_error(made, data):
    whole = "".join(f"{each.raw}\n" for each in made)
    cut = whole[: data.draw(st.integers(1, len(whole) - 1))]
    found = outcome(parse_ss, cut)

    assert (found is None) == (not cut.endswith("\n"))
    assert found is None or list(found) == made[: len(found)]
