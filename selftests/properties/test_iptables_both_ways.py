"""The usual rules are read by one regular expression and all others word by word: both ways read the same, whatever the rule."""

from __future__ import annotations

import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from properties.test_iptables import rules, table
from selftests import recordings
from servicepath.model import chain_names
from servicepath.parse import iptables_usual
from servicepath.parse.errors import ParseError
from servicepath.parse.iptables import parse_rules, parse_save
from servicepath.recording import storage

CASES = pathlib.Path(__file__).resolve().parent.parent / "data" / "cases"
KEYS = st.from_regex(r"[a-z]{1,8}/[a-z]{1,8}:[a-z]{0,6}", fullmatch=True)


@st.composite
def usual(draw):
    """A rule of the four kinds of which a large cluster's listing consists, with and without comment and counter."""
    key, protocol = draw(KEYS), draw(st.sampled_from(["tcp", "udp", "sctp"]))
    six = draw(st.booleans())
    ip, port, length = draw(st.ip_addresses(v=6 if six else 4)), draw(st.integers(1, 65535)), 128 if six else 32
    service, endpoint = chain_names.service_chain(key, protocol), chain_names.endpoint_chain(key, protocol, f"{ip}:{port}")
    said = draw(st.sampled_from(["", f' -m comment --comment "{key}"', f' -m comment --comment "{key} cluster IP"']))
    chance = draw(st.floats(0.0001, 0.9999).map(lambda chance: f" -m statistic --mode random --probability {chance:.11f}") | st.just(""))
    line = draw(
        st.sampled_from([
            f"-A KUBE-SERVICES -d {ip}/{length} -p {protocol}{said} -m {protocol} --dport {port} -j {service}",
            f"-A KUBE-SERVICES ! -s 10.42.0.0/16 -d {ip}/{length} -p {protocol}{said} -m {protocol} --dport {port} -j KUBE-MARK-MASQ",
            f"-A KUBE-SERVICES{said}{chance} -j {endpoint}",
            f"-A KUBE-SERVICES -p {protocol}{said} -m {protocol} -j DNAT --to-destination {f'[{ip}]' if six else ip}:{port}",
        ])
    )  # fmt: skip
    return draw(st.sampled_from(["", "[0:0] ", "[17:1020] "])) + line


def both_ways(text, parse):
    """What is read with the short way and without it: an error, or all facts of each rule, its counter included."""
    found = []
    for match in (iptables_usual.match, lambda line: None):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(iptables_usual, "match", match)
            try:
                ruleset = parse(text)
            except ParseError as wrong:
                found.append(str(wrong))
                continue
        told = [(rule, rule.counter, rule.raw) for chain in ruleset.chains.values() for rule in chain.rules]
        found.append((told, ruleset.chains.keys(), ruleset.family, ruleset.complete, ruleset.backend))
    return found


@given(st.lists(usual(), min_size=1, max_size=4))
def test_usual_rules_are_read_the_same_both_ways(lines):
    short, long = both_ways(table(lines), parse_save)

    assert short == long
    assert all(iptables_usual.match(line) for line in lines)  # the control: the short way takes them


@given(st.lists(rules(4), min_size=1, max_size=4) | st.lists(rules(6), min_size=1, max_size=4))
def test_any_rules_are_read_the_same_both_ways(made):
    short, long = both_ways(table([each.line for each in made]), parse_save)

    assert short == long


@given(st.lists(usual(), min_size=1, max_size=3), st.data())
def test_spoilt_rules_are_read_the_same_both_ways(lines, data):
    text = table(lines)
    at = data.draw(st.integers(0, len(text) - 1))
    spoilt = text[:at] + data.draw(st.sampled_from(["", " ", "!", '"', "-j X", "99999999999999999999999", "٣", "\r"])) + text[at + 1 :]

    short, long = both_ways(spoilt, parse_save)

    assert short == long


def saved():
    """Every listing that is kept, of the cases and of the recordings."""
    yield from ((path.relative_to(CASES), path.read_text(encoding="utf-8")) for path in sorted(CASES.glob("*/*.save")))
    for recording in recordings.found():
        listings = (each for each in storage.files_of(recording).items() if each[0].endswith(("tables-nft-save.out", "-nat.out")))
        yield from ((f"{recording.name}/{name}", content.decode()) for name, content in listings)


def test_every_listing_that_is_kept_is_read_the_same_both_ways():
    taken = 0
    for name, text in saved():
        short, long = both_ways(text, parse_rules)
        assert short == long, name
        taken += sum(iptables_usual.match(line) is not None for line in text.splitlines())
    assert taken > 1000
