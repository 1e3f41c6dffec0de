"""iptables itself as the judge of what a text says: recorded rules are loaded into a namespace and printed again, and both read the same.

Each load has a network namespace of its own that ends with its process; nothing of the machine's own rules is seen or touched.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.test_iptables import COMMENTS, nets, printed

from servicepath.model.rules import Net, Ruleset
from servicepath.parse.iptables import parse_save

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
SAVES = sorted((*DATA.rglob("*.save"), *DATA.rglob("iptables-save-c.txt")))
pytestmark = [pytest.mark.lab, pytest.mark.skipif(os.geteuid() != 0, reason="loading rules needs root")]
back_ends = pytest.mark.parametrize("backend", ["nft", "legacy"])


def loaded(text: str, backend: str, *, family: int = 4) -> str:
    """What iptables-save -c prints of the text once the kernel holds it."""
    tool = f"ip{'6' if family == 6 else ''}tables-{backend}"
    command = ["unshare", "--net", "sh", "-c", f"{tool}-restore -c && {tool}-save -c"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def agree(first: Ruleset, second: Ruleset, *, counters: bool = True) -> None:
    """Each chain of the first holds the same rules in the second, with the same counters where the first has any."""
    for key, chain in first.chains.items():
        again = second.chain(*key)
        assert again is not None
        assert [_fact(rule) for rule in again.rules] == [_fact(rule) for rule in chain.rules]
        counted = [(old.counter, new.counter) for old, new in zip(chain.rules, again.rules, strict=True) if old.counter and counters]
        assert all(old == new for old, new in counted)


def _fact(rule: Any) -> tuple[object, ...]:
    # The kernel keeps a probability in 31 bits, and old tools print five digits of it.
    chance = None if rule.probability is None else round(rule.probability, 7)
    return (*dataclasses.replace(rule, probability=chance).meaning, rule.comment)


@back_ends
@pytest.mark.parametrize("path", [pytest.param(path, id=str(path.relative_to(DATA))) for path in SAVES])
def test_a_recorded_text_reads_the_same_when_the_kernel_has_held_it(path, backend):
    text = path.read_text()
    first = parse_save(text)
    second = parse_save(loaded(text, backend), backend=backend)

    assert first.chains
    agree(first, second)


@st.composite
def written(draw: st.DrawFn, version: int) -> str:
    """A rule that the kernel takes, as kube-proxy or a person writes it."""
    words = [f"[{draw(st.integers(1, 2**40))}:{draw(st.integers(1, 2**40))}] -A KUBE-SERVICES"]
    for option in ("-s", "-d"):
        net: Net | None = draw(st.none() | nets(version))
        words += [f"{'! ' if net.negated else ''}{option} {net.network}"] if net else []
    protocol = draw(st.sampled_from(["tcp", "udp"]))
    words.append(f"-p {protocol}")
    comment = draw(st.none() | COMMENTS.filter(lambda text: len(text.encode()) < 200))
    words += [f"-m comment --comment {printed(comment)}"] if comment else []
    words += draw(st.sampled_from([[], [f"-m {protocol} --dport {draw(st.integers(0, 65535))}"]]))
    words += draw(st.sampled_from([[], ["-m mark --mark 0x4000/0x4000"], ["-m recent --rcheck --seconds 10800 --reap --name KUBE-SEP-A"]]))
    words += draw(st.sampled_from([[], [f"-m statistic --mode random --probability {draw(st.floats(0, 1)):.11f}"]]))
    words.append(draw(st.sampled_from(["-j KUBE-SVC-A", "-g KUBE-SVC-A", "-j RETURN", "-j MARK --set-xmark 0x4000/0x4000", ""])))
    return " ".join(word for word in words if word)


@back_ends
@pytest.mark.parametrize("version", [4, 6])
@settings(max_examples=15)
@given(data=st.data())
def test_made_up_rules_read_the_same_when_the_kernel_has_held_them(data, version, backend):
    lines = data.draw(st.lists(written(version), min_size=1, max_size=8))
    text = "\n".join(["*nat", ":KUBE-SERVICES - [0:0]", ":KUBE-SVC-A - [0:0]", *lines, "COMMIT", ""])
    tool = "ip6tables" if version == 6 else "iptables"
    first = parse_save(text, tool=tool)
    second = parse_save(loaded(text, backend, family=version), backend=backend, tool=tool)

    agree(first, second, counters=(version, backend) != (6, "nft"))  # ip6tables-nft-restore 1.8.9 sets none
    assert second.family == version
