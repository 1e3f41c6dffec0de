"""Rules as iptables-save, -S and -L print them, made up at random: what is printed is read back the same."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from properties.spoiling import outcome
from servicepath.model.rules import Counter, Net
from servicepath.parse.iptables import parse_save

CHAINS = st.from_regex(r"KUBE-(SVC|SVL|SEP|EXT|FW)-[A-Z2-7]{16}|KUBE-[A-Z-]{3,20}|DOCKER|cali-[a-z:_-]{1,20}", fullmatch=True)
DEVICES = st.from_regex(r"[a-z][a-z0-9_.:ł]{0,12}\+?", fullmatch=True)
# A comment holds anything but what the kernel takes for its end; iptables cuts it at 255 bytes.
COMMENTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=60)
MASKS = {4: "255.255.255.255", 6: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}
# Matches and targets that are kept as words, as they are printed.
UNKNOWN_MATCHES = [
    "-m mark --mark 0x4000/0x4000", "-m mark ! --mark 0x4000/0x4000", "-m conntrack --ctstate NEW,RELATED",
    "-m conntrack ! --ctstate INVALID", "-m set --match-set KUBE-LOOP-BACK dst,dst,src", "-m set ! --match-set x src",
    "-m multiport --dports 80,443,8000:9000", "-m physdev --physdev-is-bridged", "-m limit --limit 5/sec", "-m owner ! --uid-owner 0-99",
    "-m statistic --mode nth --every 3 --packet 0", "! -p icmp", "-m addrtype ! --dst-type LOCAL", "-m addrtype --src-type LOCAL",
    "-m newfangled --flag --value x,y --other 1 2 3",
]  # fmt: skip
UNKNOWN_TARGETS = [
    "-j MARK --set-xmark 0x4000/0x4000", "-j SNAT --to-source 10.0.0.1 --random-fully", "-j MASQUERADE --random-fully",
    "-j REJECT --reject-with icmp-port-unreachable", "-j CT --notrack", "-j TPROXY --on-port 1 --on-ip 127.0.0.1 --tproxy-mark 0x1/0x1",
    '-j LOG --log-prefix "a b: "', "-j CONNMARK --save-mark --nfmask 0xf00 --ctmask 0xf00", "-j DNAT [unsupported revision]",
]  # fmt: skip


def printed(comment: str) -> str:
    """As xtables_save_string prints it: bare where it is a plain word, else in quotes, with quotes and backslashes escaped."""
    if re.fullmatch(r"[A-Za-z0-9_-]+", comment):
        return comment
    return '"' + re.sub(r"""([\\"'])""", r"\\\1", comment) + '"'


@dataclasses.dataclass(frozen=True)
class Made:
    """A rule's text and the facts that it stands for; what is not among these is not modelled."""

    line: str
    facts: dict[str, Any]
    words: tuple[str, ...]


@st.composite
def nets(draw: st.DrawFn, version: int) -> Net:
    bits = 32 if version == 4 else 128
    length = draw(st.sampled_from([bits, bits, bits, 8, 16, 24]))
    network = ipaddress.ip_network((draw(st.ip_addresses(v=version)), length), strict=False)
    return Net(network, draw(st.booleans()))


@st.composite
def rules(draw: st.DrawFn, version: int = 4) -> Made:
    """A rule of any kind that kube-proxy or others on a node write, in the order in which iptables-save prints its parts."""
    facts: dict[str, Any] = {}
    words: list[str] = []
    other: list[str] = []

    def known(field: str, value: Any, text: str) -> None:
        if value is not None:
            facts[field] = value
            words.append(text)

    for option, field in (("-s", "source"), ("-d", "destination")):
        net = draw(st.none() | nets(version))
        known(field, net, f"{'! ' if net and net.negated else ''}{option} {net and net.network}")
    for option, field in (("-i", "in_interface"), ("-o", "out_interface")):
        known(field, device := draw(st.none() | DEVICES), f"{option} {device}")
    known("protocol", protocol := draw(st.sampled_from([None, "tcp", "udp", "sctp"])), f"-p {protocol}")
    known("comment", comment := draw(st.none() | COMMENTS), f"-m comment --comment {printed(comment or '')}")
    if protocol:
        known("dport", port := draw(st.none() | st.integers(0, 65535)), f"-m {protocol} --dport {port}")
    for match in draw(st.lists(st.sampled_from(UNKNOWN_MATCHES), max_size=2, unique=True)):
        words.append(match)
        other.append(re.sub(r"^-m (statistic|addrtype) ", "", match))  # these say nothing beyond the options behind them
    if draw(st.booleans()):
        name, kind = draw(CHAINS), draw(st.sampled_from(["set", "rcheck"]))
        seconds = draw(st.integers(1, 86400)) if kind == "rcheck" else None
        facts.update(affinity=kind, affinity_name=name, **({"affinity_seconds": seconds} if seconds else {}))
        more = f" --seconds {seconds} --reap" if seconds else ""
        words.append(f"-m recent --{kind}{more} --name {name} --mask {MASKS[version]} --rsource")
        other += ["--reap"] if seconds else []
    chance = draw(st.none() | st.integers(0, 2**31).map(lambda n: float(f"{n / 2**31:.11f}")))
    known("probability", chance, f"-m statistic --mode random --probability {chance or 0:.11f}")
    known("dst_type_local", draw(st.sampled_from([None, True])), "-m addrtype --dst-type LOCAL")
    _target(draw, facts, words, other, version)
    counter = draw(st.none() | st.builds(Counter, st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)))
    facts["counter"] = counter
    return Made(f"{f'{counter} ' if counter else ''}-A KUBE-SERVICES {' '.join(words)}", facts, tuple(" ".join(other).split()))


def _target(draw: st.DrawFn, facts: dict[str, Any], words: list[str], other: list[str], version: int) -> None:
    kind = draw(st.sampled_from(["jump", "goto", "dnat", "unknown", "none"]))
    if kind == "unknown":
        text = draw(st.sampled_from(UNKNOWN_TARGETS))
        facts["target"] = text.split()[1]
        words.append(text)
        other.append(text.split(" ", 2)[2].replace('"a b: "', "a b:"))
    elif kind == "dnat":
        ip, port = draw(st.ip_addresses(v=version)), draw(st.integers(1, 65535))
        facts.update(target="DNAT", to_destination=f"[{ip}]:{port}" if version == 6 else f"{ip}:{port}")
        words.append(f"-j DNAT --to-destination {facts['to_destination']}")
    elif kind != "none":
        facts.update(target=draw(CHAINS), goto=kind == "goto")
        words.append(f"{'-g' if kind == 'goto' else '-j'} {facts['target']}")


def table(lines: list[str]) -> str:
    return "\n".join(["*nat", ":KUBE-SERVICES - [0:0]", *lines, "COMMIT", ""])


def agrees(rule: Any, made: Made) -> bool:
    fields = {f.name: f.default for f in dataclasses.fields(rule) if f.name not in ("table", "chain", "position", "line", "raw", "other")}
    expected = {**fields, **made.facts}
    if expected["source"] and not expected["source"].network.prefixlen and not expected["source"].negated:
        expected["source"] = None
    found = {name: getattr(rule, name) for name in expected}
    assert found == expected
    assert tuple(" ".join(rule.other).replace("a b: ", "a b:").split()) == made.words
    return bool(rule.raw == made.line)


@given(st.lists(rules(4), max_size=4) | st.lists(rules(6), max_size=4))
def test_what_iptables_save_prints_is_read_back_the_same(made):
    read = parse_save(table([each.line for each in made])).rules("nat", "KUBE-SERVICES")

    assert [rule.position for rule in read] == list(range(1, len(made) + 1))
    assert all(agrees(rule, each) for rule, each in zip(read, made, strict=True))


@given(st.lists(rules(4), min_size=1, max_size=4), st.data())
def test_an_excerpt_that_is_cut_within_a_rule_is_an_error(made, data):
    text = "".join(f"{each.line}\n" for each in made)
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    found = outcome(lambda text: parse_save(text, table="nat"), cut)
    if found is None:
        assert not cut.endswith("\n")
    else:
        assert [rule.raw for chain in found.chains.values() for rule in chain.rules] == cut.splitlines()
