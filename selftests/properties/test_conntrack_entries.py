"""Entries of connection tracking as the kernel and conntrack-tools print them, made up at random: each is read back the same."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from properties.spoiling import outcome
from servicepath.model.addresses import Socket
from servicepath.model.host import ConntrackEntry
from servicepath.model.rules import Counter
from servicepath.parse.conntrack import parse_conntrack
from servicepath.parse.errors import ParseError

PORTS = st.integers(0, 65535)
WORDS = st.integers(0, 2**32 - 1)
COUNTERS = st.builds(Counter, st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
NUMBERS = {"tcp": 6, "udp": 17, "sctp": 132, "dccp": 33, "udplite": 136}
STATES = {
    "tcp": ["NONE", "SYN_SENT", "SYN_RECV", "ESTABLISHED", "FIN_WAIT", "CLOSE_WAIT", "LAST_ACK", "TIME_WAIT", "CLOSE", "SYN_SENT2"],
    "sctp": ["CLOSED", "COOKIE_WAIT", "ESTABLISHED", "SHUTDOWN_ACK_SENT", "HEARTBEAT_SENT"],
    "dccp": ["REQUEST", "PARTOPEN", "OPEN", "TIMEWAIT"],
}
# conntrack -L prints the protocol alone, with ``-o extended`` the family before it; the kernel's own file always does, and an IPv6
# address whole.
FORMS = st.sampled_from(["plain", "extended", "kernel"])
SUMMARY = "conntrack v1.4.7 (conntrack-tools): 3 flow entries have been shown.\n"


@dataclasses.dataclass(frozen=True)
class Made:
    """An entry's line, and what it says; None for a protocol without ports."""

    line: str
    protocol: str
    entry: ConntrackEntry | None


@st.composite
def entries(draw: st.DrawFn, form: str) -> Made:
    version = draw(st.sampled_from([4, 6]))
    ips = st.ip_addresses(v=version)
    protocol = draw(st.sampled_from([*NUMBERS, "icmp", "gre", "unknown"]))
    flows = [(Socket(draw(ips), draw(PORTS)), Socket(draw(ips), draw(PORTS))) for _ in range(2)]
    counts = draw(st.none() | st.tuples(COUNTERS, COUNTERS))
    seen = draw(st.sampled_from(["", "[UNREPLIED] "]))
    status = draw(st.sampled_from(["", "[ASSURED] ", "[OFFLOAD] ", "[HW_OFFLOAD] "]))
    # The kernel's file shows no seconds for a flow that is offloaded.
    timeout = None if "OFFLOAD" in status and form == "kernel" else draw(st.integers(0, 2**31))
    state = draw(st.sampled_from(STATES.get(protocol, [None])))
    mark, zone = draw(st.none() | WORDS), draw(st.none() | st.integers(1, 65535))
    split = draw(st.booleans()) and zone is not None  # a zone of one direction alone stands behind that tuple
    head = f"{protocol:8} {NUMBERS.get(protocol, 47)} " + (f"{timeout} " if timeout is not None else "") + (f"{state} " if state else "")
    line = "" if form == "plain" else f"{f'ipv{version}':8} {2 if version == 4 else 10} "
    line += head
    for number, (source, destination) in enumerate(flows):
        line += _tuple(source, destination, protocol, form)
        line += f"zone-{['orig', 'reply'][number]}={zone} " if split else ""
        line += f"packets={counts[number].packets} bytes={counts[number].bytes} " if counts else ""
        line += [seen, status][number]
    line += "" if mark is None else f"mark={mark} "
    line += draw(st.sampled_from(["", "secctx=system_u:object_r:unlabeled_t:s0 ", "secmark=7 ", "secctx= "]))
    line += f"zone={zone} " if zone is not None and not split else ""
    line += draw(st.sampled_from(["", "delta-time=5 ", "helper=ftp ", "newfangled=x "]))
    line += f"use={draw(st.integers(1, 9))}"
    line += "" if form == "kernel" else draw(st.sampled_from(["", " id=3735928559", " id=1 labels=x,y"]))
    if protocol not in NUMBERS:
        return Made(line, protocol, None)
    entry = ConntrackEntry(
        protocol.upper(), flows[0], flows[1], state, bool(seen), "ASSURED" in status, timeout, mark, None if split else zone, counts, line
    )
    return Made(line, protocol, entry)


def _tuple(source: Socket, destination: Socket, protocol: str, form: str) -> str:
    src, dst = ((ip.exploded if form == "kernel" else str(ip)) for ip in (source.ip, destination.ip))
    ports = {"icmp": "type=8 code=0 id=77 ", "gre": "srckey=0x0 dstkey=0x7b ", "unknown": ""}
    return f"src={src} dst={dst} " + ports.get(protocol, f"sport={source.port} dport={destination.port} ")


LISTINGS = FORMS.flatmap(lambda form: st.lists(entries(form), min_size=1, max_size=4))


def facts(entry: ConntrackEntry) -> tuple[Any, ...]:
    """All of them: two of them play no part when entries are compared."""
    return entry, entry.counts, entry.raw


@given(LISTINGS, st.booleans())
def test_what_is_printed_is_read_back_the_same(made, summed):
    table = parse_conntrack("".join(f"{each.line}\n" for each in made) + SUMMARY * summed)

    assert [facts(entry) for entry in table.entries] == [facts(each.entry) for each in made if each.entry]
    others = [each.protocol.upper() for each in made if each.entry is None]
    assert table.without_ports == {name: others.count(name) for name in others}


@given(LISTINGS, st.data())
def test_a_listing_that_is_cut_off_within_an_entry_is_an_error_or_the_whole_entry(made, data):
    whole = "\n".join(each.line for each in made)
    cut = whole[: data.draw(st.integers(1, len(whole) - 1))]
    expected = [each.entry for each in made if each.entry]
    found = outcome(parse_conntrack, cut)

    if found is None:
        assert "use=" not in cut.rsplit("\n", 1)[-1] or cut.endswith("=")
    else:
        read = [(entry, entry.counts) for entry in found.entries]
        assert read == [(entry, entry.counts) for entry in expected[: len(read)]]


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("sport=1 ", ""), ("sport=1 ", "sport=65536 "), ("sport=1 ", "sport=-1 "), ("src=10.0.0.1", "src=10.0.0.256"), ("use=1", ""),
        ("packets=3", "packets=x"), ("bytes=4 ", ""), ("dst=10.0.0.2 ", ""), ("[UNREPLIED] src=", "[UNREPLIED] "), ("mark=0", "mark=0x0"),
    ],
)  # fmt: skip
def test_what_is_used_of_an_entry_must_be_right(good, bad):
    line = (
        "udp      17 27 src=10.0.0.1 dst=10.0.0.2 sport=1 dport=53 packets=3 bytes=4 "
        "[UNREPLIED] src=10.0.0.2 dst=10.0.0.1 sport=53 dport=1 packets=0 bytes=0 mark=0 use=1"
    )
    assert parse_conntrack(line).entries
    with pytest.raises(ParseError, match="conntrack: line 1: "):
        parse_conntrack(line.replace(good, bad, 1))
