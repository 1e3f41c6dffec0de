"""Entries of Cilium's connection tracking as its releases print them, made up at random: each is read back the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from properties.spoiling import outcome
from servicepath.model.addresses import Socket
from servicepath.model.cilium import CtEntry
from servicepath.parse.cilium_ct import parse_ct_list
from servicepath.parse.errors import ParseError

PORTS = st.integers(0, 65535)
COUNTS = st.integers(0, 2**64 - 1)
REST = "RxFlagsSeen=0x1b LastRxReport=40 TxFlagsSeen=0x00 LastTxReport=0 Flags=0x0013 [ RxClosing SeenNonSyn ] RevNAT=2 SourceSecurityID=1"


@st.composite
def entries(draw: st.DrawFn) -> CtEntry:
    """An entry with its line in ``raw``: of 1.16 and later, or of before, when the Service's entry held the tuple of the way back."""
    version = draw(st.sampled_from([4, 6]))
    source, destination = (Socket(draw(st.ip_addresses(v=version)), draw(PORTS)) for _ in range(2))
    protocol = draw(st.sampled_from(["TCP", "UDP", "SCTP", "ICMPv6" if version == 6 else "ICMP"]))
    direction = draw(st.sampled_from(["SVC", "SVC before 1.16", "OUT", "IN", "RELATED"]))
    brackets = version == 6 and draw(st.booleans())
    one, two = (f"[{each.ip}]:{each.port}" if brackets else f"{each.ip}:{each.port}" for each in (source, destination))
    old = direction == "SVC before 1.16"
    one, two = (two, one) if old else (one, two)
    word = {"SVC before 1.16": "OUT", "RELATED": draw(st.sampled_from(["IN", "OUT"]))}.get(direction, direction)
    remark = "service " if old else "related " if direction == "RELATED" else ""
    received, sent, bytes_ = draw(COUNTS), draw(COUNTS), draw(COUNTS)
    counts, packets = draw(
        st.sampled_from([
            (f"RxPackets={received} RxBytes={bytes_} TxPackets={sent} TxBytes={bytes_} ", received + sent),
            (f"Packets={received} Bytes={bytes_} ", received), ("", None),
        ])
    )  # fmt: skip
    age = draw(st.sampled_from(["", "(remaining: -499 sec(s)) ", "(remaining: 7991 sec(s)) "]))
    line = f"{protocol} {word} {one} -> {two} {remark}expires={draw(COUNTS)} {age}{counts}{draw(st.sampled_from(['', REST]))}".strip()
    return CtEntry(protocol, direction.split()[0], source, destination, packets, line)


LISTINGS = st.lists(entries(), min_size=1, max_size=4)


def text(made):
    """The tables of both families, parted by an empty line; each line ends in a space."""
    return "Defaulted container \"cilium-agent\" out of: cilium-agent, config (init)\n" + "".join(f"{each.raw} \n" for each in made) + "\n"


def facts(entry):
    return entry, entry.raw


@given(LISTINGS)
def test_what_is_printed_is_read_back_the_same(made):
    assert [facts(entry) for entry in parse_ct_list(text(made))] == [facts(entry) for entry in made]


@given(LISTINGS, st.sets(PORTS, max_size=3))
def test_of_the_ports_that_are_asked_for_all_entries_are_read_and_no_other(made, ports):
    ports |= {made[0].source.port}
    wanted = [entry for entry in made if {entry.source.port, entry.destination.port} & ports]

    assert list(parse_ct_list(text(made), ports=ports)) == wanted


@given(LISTINGS, st.data())
def test_a_listing_that_is_cut_off_within_a_line_is_an_error(made, data):
    whole = "".join(f"{each.raw}\n" for each in made)
    cut = whole[: data.draw(st.integers(1, len(whole) - 1))]
    found = outcome(parse_ct_list, cut)

    assert (found is None) == (not cut.endswith("\n"))
    assert found is None or list(found) == made[: len(found)]


@given(entries(), st.sampled_from(["source", "destination"]), st.sampled_from(["65536", "", "-1", "x", "53:53:53:53:53:53:53:53:53"]))
def test_a_port_that_is_none_is_an_error(made, which, bad):
    end = getattr(made, which)
    line = made.raw.replace(f"{end.ip}:{end.port} ", f"{end.ip}:{bad} ").replace(f"{end.ip}]:{end.port} ", f"{end.ip}]:{bad} ")

    with pytest.raises(ParseError, match="cilium-dbg bpf ct list global: line 1: "):
        parse_ct_list(f"{line}\n")
