"""The kernel itself as the judge of what another program's nftables table does with a Service's packet.

Each table is loaded into a network namespace of its own, which ends with its process; one UDP packet is sent there to a ClusterIP.
"""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servicepath.experiments import snapshot
from servicepath.model.other_tables import OtherTable, before_kube_proxy
from servicepath.model.rule_entry import Match, Packet
from servicepath.parse.nft_other_tables import parse_other_tables

pytestmark = [pytest.mark.lab, pytest.mark.skipif(os.geteuid() != 0, reason="loading rules needs root")]

PACKET = Packet(ipaddress.ip_address("10.43.0.10"), "udp", 53, "OUTPUT")
# A made-up rule that contradicts itself (tcp dport … udp dport …) is refused by nft, and the table goes without.
# What comes out behind the table is counted where it still goes to the ClusterIP; by its state, as no namespace tracks what nobody asks.
SCRIPT = """
set -e
ip link set lo up; ip link add d0 type veth peer d1; ip addr add 192.0.2.1/24 dev d0
ip link set d0 up; ip link set d1 up
ip route add default via 192.0.2.2; ip neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 dev d0
while read -r line; do nft "$line" >&2 || [ -n "$REFUSED" ]; done
nft 'table ip behind { chain out { type filter hook output priority 10; ct state new ip daddr 10.43.0.10 udp dport 53 counter; }; }'
"$PYTHON" -c 'import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b"?", ("10.43.0.10", 53))'
nft -j list table ip behind
nft delete table ip behind
"""


def kernel(table: str, *, refused: bool = False) -> tuple[bool, tuple[OtherTable, ...]]:
    """Whether the kernel translated the packet with this table, and what is read of the table as the suite asks for it.

    Args:
        table: nft's commands, one a line.
        refused: whether some may be refused by nft.
    """
    asked = snapshot.commands(lookups=[])
    (command,) = (each for each in asked if each.name == "nft-other-tables")
    script = f'{SCRIPT}\nexec "$@"'
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", script, "sh", *command.argv], input=table, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHON": sys.executable, "REFUSED": "may be" if refused else ""},
    )  # fmt: skip
    assert done.returncode == 0, f"{table}\n{done.stderr}"
    behind, *rest = done.stdout.splitlines()
    (untouched,) = (
        statement["counter"]["packets"] for item in json.loads(behind)["nftables"] for statement in item.get("rule", {}).get("expr", [])
        if "counter" in statement
    )  # fmt: skip
    return untouched == 0, parse_other_tables("\n".join(rest))


# Of each it is known of the packet whether it meets it.
KNOWN = (
    "ip daddr 10.43.0.10", "ip daddr != 10.43.0.10", "ip daddr 10.43.0.0/16", "ip daddr 10.43.0.8-10.43.0.12",
    "ip daddr != { 10.0.0.0/8 }", "ip daddr { 10.43.0.1, 10.43.0.10 }", "ip daddr @vips", "ip daddr != @vips", "udp dport 53",
    "udp dport != 53", "udp dport 50-60", "udp dport { 52, 54-70 }", "tcp dport 53", "tcp dport != 80", "th dport 53", "meta l4proto udp",
    "meta l4proto { tcp, sctp }", "ip protocol udp", "ip protocol != tcp", "fib daddr type local", "fib daddr type != local",
    'iifname "eth0"', 'iifname != "eth0"', 'oifname "lo"', 'oifname != "lo"', "ct state new", "ct state established,related",
    "ct state { new, established }", "ip daddr . udp dport @fronts", "ip daddr . udp dport { 10.43.0.10 . 54 }",
    "meta l4proto . th dport { udp . 53, tcp . 80 }",
)  # fmt: skip
# Of these it is not known: sources, users, marks, interfaces, chance.
UNKNOWN = st.sampled_from([
    "meta skuid 0", "meta skuid 65000", "ip saddr 192.0.2.1", "ip saddr != 192.0.2.0/24", 'oifname "d0"', "meta mark 7",
    "limit rate 3/second", "numgen inc mod 2 1", "ip daddr & 255.255.0.0 == 10.43.0.0",
])  # fmt: skip
TRANSLATION = st.sampled_from([
    "meta l4proto udp dnat to 192.0.2.9:5353", "meta l4proto udp redirect to :5353", "dnat to ip daddr . udp dport map @backends",
    "dnat to ip daddr map { 10.43.0.10 : 192.0.2.9 }", "dnat to udp dport map { 54 : 192.0.2.9 }", "ip daddr set 192.0.2.9",
    "udp dport set 5353",
])  # fmt: skip
VERDICT = st.sampled_from([
    "accept", "return", "counter", "ct mark set 5", "udp dport vmap { 53 : accept, 54 : drop }", "udp dport vmap @verdicts",
])  # fmt: skip
SETS = """
add table ip lb
add set ip lb vips { type ipv4_addr; flags interval; elements = { 10.43.0.0/24, 192.0.2.77 }; }
add set ip lb fronts { type ipv4_addr . inet_service; elements = { 10.43.0.10 . 53 }; }
add map ip lb backends { type ipv4_addr . inet_service : ipv4_addr . inet_service; elements = { 10.43.0.10 . 53 : 192.0.2.9 . 99 }; }
add chain ip lb out { type nat hook output priority -150; }
add chain ip lb first
add chain ip lb second
add map ip lb verdicts { type inet_service : verdict; elements = { 53 : jump second }; }
"""


@st.composite
def tables(draw: st.DrawFn, conditions: st.SearchStrategy[str]) -> str:
    """A table with three chains, of which each leads only to those behind it."""
    chains = ["out", "first", "second"]
    text = [SETS.strip()]
    for number, chain in enumerate(chains):
        behind = st.sampled_from([f"{way} {each}" for way in ("jump", "goto") for each in chains[number + 1 :]] or ["counter"])
        actions = behind | TRANSLATION | (VERDICT if chain != "second" else VERDICT.filter(lambda verdict: "@" not in verdict))
        for rule in draw(st.lists(st.tuples(conditions, conditions, actions), max_size=3, min_size=1)):
            text.append(f"add rule ip lb {chain} {' '.join(filter(None, rule))}")
    return "\n".join(text) + "\n"


def agree(table: str, *, refused: bool = False) -> None:
    """What is found is certain, and is found where the kernel translated."""
    translated, read = kernel(table, refused=refused)
    found = before_kube_proxy(read, PACKET)

    assert bool(found) is translated
    assert all(each.rule.takes(PACKET) is Match.YES for each in found)


@pytest.mark.parametrize("condition", KNOWN)
def test_a_condition_is_met_where_the_kernel_says_so(condition):
    agree(f"{SETS.strip()}\nadd rule ip lb out {condition} counter dnat to 192.0.2.9\n")


@pytest.mark.parametrize(
    ("rules", "translated"),
    [
        (["out goto first", "out dnat to 192.0.2.9", "first counter"], False),
        (["out jump first", "out dnat to 192.0.2.9", "first counter"], True),
        (["out jump first", "out dnat to 192.0.2.9", "first return", "first accept"], True),
        (["out jump first", "out dnat to 192.0.2.9", "first accept"], False),
        (["out udp dport vmap @verdicts", "second dnat to 192.0.2.9"], True),
        (["out ip daddr set 192.0.2.9"], True),
    ],
)
def test_the_way_through_chains_is_the_kernels(rules, translated):
    table = "\n".join([SETS.strip(), *(f"add rule ip lb {rule}" for rule in rules)]) + "\n"

    assert kernel(table)[0] is translated
    agree(table)


NAT, EARLY, RAW = (
    "{ type nat hook output priority -150; }", "{ type filter hook output priority -150; }", "{ type filter hook output priority -300; }"
)  # fmt: skip
LB, ONE = "table ip lb", "meta l4proto udp dnat to 192.0.2.9"


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["table ip nat", f"chain ip nat OUTPUT {NAT}", f"rule ip nat OUTPUT {ONE}"], id="iptables' name, another priority"),
        pytest.param(["table ip filter", f"chain ip filter OUTPUT {NAT}", f"rule ip filter OUTPUT {ONE}"], id="iptables' name, other type"),
        pytest.param(
            ["table ip mangle", "chain ip mangle OUTPUT { type route hook output priority -150; }",
             "rule ip mangle OUTPUT udp dport 53 ip daddr set 192.0.2.9"],
            id="in iptables' own chain, what it cannot print",
        ),
        *(
            pytest.param(
                ["table ip nat", "chain ip nat X", "chain ip nat OUTPUT { type nat hook output priority -100; }",
                 f"rule ip nat OUTPUT {rule}", f"rule ip nat X {ONE}"], id=f"in iptables' own chain: {rule}",
            )
            for rule in ("ip daddr 10.43.0.10 ip daddr set 192.0.2.9", "udp dport set 5353", "ip daddr vmap { 10.43.0.10 : jump X }")
        ),
        pytest.param(
            ["table ip nat", "chain ip nat PREROUTING { type nat hook prerouting priority -100; }",
             "chain ip nat OUTPUT { type nat hook output priority -100; }",
             'chain ip nat mine { type nat hook output priority -150; comment "x"; }', f"rule ip nat mine {ONE}"],
            id="a chain with a comment beside iptables' own",
        ),
        pytest.param(["table inet kube-proxy", f"chain inet kube-proxy out {NAT}",
                      "rule inet kube-proxy out udp dport 53 dnat ip to 192.0.2.9"], id="a name of kube-proxy's"),
        *(
            pytest.param([LB, "chain ip lb x", f"chain ip lb out {NAT}", f"rule ip lb out {asked}", f"rule ip lb x {ONE}"], id=asked)
            for asked in (
                "meta l4proto vmap { tcp : accept, * : jump x }", 'iifname vmap { "eth0" : accept, * : jump x }',
                "ct state vmap { established : accept, * : jump x }", "udp dport vmap { 53 : accept, * : jump x }",
                "udp dport vmap { 53 : continue, * : jump x }",
            )
        ),
        pytest.param(
            [LB, f"chain ip lb out {NAT}", "rule ip lb out dnat to meta l4proto map { tcp : 192.0.2.8, * : 192.0.2.9 }"], id="a map's rest"
        ),
        *(
            pytest.param([LB, f"chain ip lb out {NAT}", *before, f"rule ip lb out {ONE}"], id=before[-1])
            for before in (
                ["set ip lb m { type ipv4_addr; flags dynamic; timeout 1m; }",
                 "rule ip lb out update @m { ip saddr limit rate over 10/minute burst 5 packets } accept"],
                ["rule ip lb out meta mark set ip saddr map { 203.0.113.1 : 1 } accept"],
                ["counter ip lb c1", 'rule ip lb out counter name ip saddr map { 203.0.113.1 : "c1" } accept'],
                ["rule ip lb out meta mark set 7 accept"],
                ["rule ip lb out log accept"],
            )
        ),
        *(
            pytest.param([LB, f"chain ip lb out {RAW}", before, "rule ip lb out udp dport 53 ip daddr set 192.0.2.9"], id=before)
            for before in ("rule ip lb out ct state new accept", "rule ip lb out meta mark set ct mark accept")
        ),
        pytest.param([LB, f"chain ip lb out {RAW}", "rule ip lb out ct state invalid udp dport 53 ip daddr set 192.0.2.9"],
                     id="no state before it is tracked"),
        pytest.param(["table inet lb", f"chain inet lb out {EARLY}", "rule inet lb out udp dport 53 @nh,128,32 set 0xc0000209"],
                     id="written over by its place"),
        pytest.param([LB, f"chain ip lb out {EARLY}",
                      "rule ip lb out ip daddr set ip daddr map { 203.0.113.5 : 192.0.2.9 }"], id="a map without this address"),
        pytest.param([LB, f"chain ip lb out {EARLY}", "rule ip lb out tcp dport set 5353"], id="a field of another protocol"),
        pytest.param(["table ip lb { flags dormant; }", f"chain ip lb out {NAT}", f"rule ip lb out {ONE}"], id="dormant"),
        pytest.param([LB, "chain ip lb f", f"chain ip lb out {NAT}", "rule ip lb f udp dport 53 accept", f"rule ip lb f {ONE}",
                      "rule ip lb out meta skuid 65000 jump f"], id="accepted where only some come"),
    ],
)  # fmt: skip
def test_what_others_write_is_told_where_the_kernel_translates(lines):
    translated, read = kernel("".join(f"add {line}\n" for line in lines))

    assert bool(before_kube_proxy(read, PACKET)) is translated


@settings(max_examples=30)
@given(table=tables(st.just("") | st.sampled_from(KNOWN)))
def test_a_table_translates_where_the_kernel_does(table):
    agree(table, refused=True)


@settings(max_examples=30)
@given(table=tables(st.sampled_from(KNOWN) | UNKNOWN))
def test_no_translation_of_the_kernels_goes_unseen(table):
    translated, read = kernel(table, refused=True)

    assert before_kube_proxy(read, PACKET) or not translated
