"""Another program's nftables tables: what is read of them, and which of their rules are told."""

import ipaddress
import json
import types

import judging
import pytest

from fixtures import rule_facts
from servicepath.model import judge_other_tables, judge_rules
from servicepath.model.addresses import Socket
from servicepath.model.expected_endpoints import Expected
from servicepath.model.rules import Ruleset
from servicepath.model.service_rules import NodeRules
from servicepath.model.services import ServicePort
from servicepath.observation import CouldNotSee, NotRecorded, Observation
from servicepath.parse.errors import ParseError
from servicepath.parse.iptables import parse_save
from servicepath.parse.nft_other_tables import parse_other_tables
from servicepath.redact.mapping import Mapping
from servicepath.redact.ranges import without_ranges
from servicepath.redact.rules import Rules
from servicepath.redact.texts import Texts

PORT = ServicePort("kube-system", "kube-dns", "dns", "UDP", 53, None, None, None)
VIP = ipaddress.ip_address("10.43.0.10")
DNAT = {"dnat": {"addr": "10.42.1.3", "port": 53}}
LOCAL = {"match": {"op": "==", "left": {"fib": {"result": "type", "flags": ["daddr"]}}, "right": "local"}}


def compared(left: tuple[str, str], right: object, op: str = "==") -> dict[str, object]:
    return {"match": {"op": op, "left": {"payload": {"protocol": left[0], "field": left[1]}}, "right": right}}


ONE_USER = {"match": {"op": "==", "left": {"meta": {"key": "skuid"}}, "right": 1000}}
TO_VIP = compared(("ip", "daddr"), "10.43.0.10")


def table(*rules: tuple[str, list[object]], family="ip", name="lb", hook="output", priority=-150, chain="out", kind="nat", **more) -> str:
    """A listing of one table: a base chain, and rules as (chain, expr)."""
    own = {"family": family, "table": name}
    chains = [{"chain": {**own, "name": chain, "type": kind, "hook": hook, "prio": priority, "policy": "accept"}}]
    chains += [{"chain": {**own, "name": other}} for other in dict.fromkeys(rule[0] for rule in rules) if other != chain]
    head = {"table": {"family": family, "name": name, **more.get("table", {})}}
    items = [{"metainfo": {"version": "1.0.6"}}, head, *more.get("sets", [])]
    return json.dumps({"nftables": [*items, *chains, *({"rule": {**own, "chain": rule[0], "expr": rule[1]}} for rule in rules)]})


def told(text: str, ip=VIP, port=PORT) -> tuple[str, ...]:
    before = judge_other_tables.look(port, ip, parse_other_tables(text))
    assert judge_other_tables.unseen(before) is None
    return tuple(map(str, judge_other_tables.judge_other_tables("worker1", port, before)))


def test_a_translation_is_told_with_table_chain_and_priority():
    (said,) = told(table(("out", [TO_VIP, {"counter": {"packets": 0, "bytes": 0}}, DNAT])))

    assert said.splitlines()[0] == (
        "worker1: kube-system/kube-dns:dns/UDP: OUTPUT - can translate the packet before kube-proxy's rules see it - "
        "expected: no translation before, actual: dnat in chain out of nft table ip lb, priority -150"
    )
    assert said.splitlines()[1].startswith("    ip lb out: [{")
    assert '"dnat":{"addr":"10.42.1.3"' in said


def test_one_behind_a_jump_is_told_with_both_chains():
    (said,) = told(table(("out", [ONE_USER, {"jump": {"target": "fronts"}}]), ("fronts", [TO_VIP, DNAT])))

    assert [line.partition(": ")[0] for line in said.splitlines()[1:]] == ["    ip lb out", "    ip lb fronts"]
    assert '"skuid"' in said.splitlines()[1]
    assert "dnat in chain fronts of nft table ip lb, from its chain out, priority -150" in said


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(table(("out", [ONE_USER, DNAT])), id="one user's"),
        pytest.param(table(("out", [TO_VIP, DNAT]), hook="prerouting"), id="prerouting only"),
        pytest.param(table(("out", [TO_VIP, DNAT]), family="inet"), id="inet"),
        pytest.param(table(("out", [TO_VIP, DNAT]), priority=-100), id="at the same priority either may come first"),
        pytest.param(table(("out", [TO_VIP, {"redirect": {"port": 5353}}])), id="redirect"),
        pytest.param(table(("out", [{"redirect": None}])), id="redirect to its own port"),
        pytest.param(
            table(("out", [{"mangle": {"key": {"payload": {"protocol": "ip", "field": "daddr"}}, "value": "1.2.3.4"}}]), kind="filter"),
            id="written over",
        ),
        pytest.param(
            table(("out", [{"mangle": {"key": {"payload": {"base": "nh", "offset": 128, "len": 32}}, "value": 1}}]), kind="filter"),
            id="written over by its place",
        ),
        pytest.param(table(("out", [TO_VIP, DNAT]), name="nat"), id="a chain of somebody's in the table of iptables"),
        pytest.param(table(("OUTPUT", [TO_VIP, DNAT]), name="nat", chain="OUTPUT"), id="iptables' name at another priority"),
        pytest.param(table(("OUTPUT", [TO_VIP, DNAT]), name="filter", chain="OUTPUT"), id="iptables' name of another type"),
        pytest.param(table(("out", [TO_VIP, DNAT]), family="inet", name="kube-proxy"), id="a name of kube-proxy's"),
        pytest.param(table(("out", [{"limit": {"rate": 3, "per": "second"}}, DNAT])), id="some of them"),
        pytest.param(table(("out", [compared(("udp", "dport"), "domain"), DNAT])), id="a port by a name, which may be this one"),
        pytest.param(table(("out", [{"xt": {"type": "match", "name": "owner"}}, {"xt": {"type": "target", "name": "DNAT"}}])), id="xt"),
    ],
)
def test_what_can_translate_is_told(text):
    assert len(told(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="no such table"),
        pytest.param(table(("out", [LOCAL, DNAT])), id="local addresses alone (Docker, netavark, portmap)"),
        pytest.param(table(("out", [TO_VIP, DNAT]), priority=-90), id="behind kube-proxy (firewalld, systemd-nspawn)"),
        pytest.param(table(("out", [TO_VIP, DNAT]), hook="postrouting"), id="another hook"),
        pytest.param(table(("out", [TO_VIP, DNAT]), family="ip6"), id="another family"),
        pytest.param(table(("out", [TO_VIP, DNAT]), family="bridge"), id="no IP packets"),
        pytest.param(table(("out", [TO_VIP, DNAT]), table={"flags": ["dormant"]}), id="dormant"),
        pytest.param(table(("out", [TO_VIP, DNAT]), name="kube-proxy"), id="kube-proxy's"),
        pytest.param(table(("OUTPUT", [TO_VIP, DNAT]), name="nat", chain="OUTPUT", priority=-100), id="iptables' own"),
        pytest.param(table(("out", [TO_VIP, {"accept": None}]), ("out", [DNAT])), id="accepted before"),
        pytest.param(table(("out", [TO_VIP, "accept"]), ("out", [DNAT])), id="accepted before, as a word"),
        pytest.param(table(("out", [compared(("tcp", "dport"), 53), DNAT])), id="another protocol"),
        pytest.param(table(("out", [compared(("ip6", "daddr"), "fd00::1", "!="), DNAT]), family="inet"), id="IPv6 alone"),
        pytest.param(table(("out", [{"masquerade": None}])), id="masquerade"),
        pytest.param(table(("in", [compared(("ether", "daddr"), "ff:ff:ff:ff:ff:ff"), {"drop": None}])), id="an address that is no IP's"),
        pytest.param(table(("out", [compared(("tcp", "dport"), 10, ">"), DNAT])), id="another protocol's range"),
        pytest.param(table(("out", [{"dnat": {"family": "ip6", "addr": "fd00::1"}}]), family="inet"), id="to IPv6 alone"),
        pytest.param(table(("out", [DNAT]), table={"flags": "d"}), id="dormant, as nft 1.0.6 prints it"),
        pytest.param(table(("elsewhere", [DNAT])), id="no way to it"),
    ],
)
def test_what_cannot_is_not(text):
    assert told(text) == ()


def test_ipv6_is_judged_alike():
    text = table(("out", [compared(("ip6", "daddr"), {"prefix": {"addr": "fd43::", "len": 64}}), DNAT]), family="ip6")

    assert told(text, ipaddress.ip_address("fd43::a"))
    assert not told(text, ipaddress.ip_address("fd44::a"))


def test_elements_of_named_sets_and_maps_are_looked_up():
    own = {"family": "ip", "table": "lb"}
    fronts = {"set": {**own, "name": "fronts", "elem": [{"elem": {"val": "10.43.0.10", "comment": "dns"}}, "10.0.0.1"]}}
    concat = {"concat": [{"payload": {"protocol": "ip", "field": "daddr"}}, {"payload": {"protocol": "udp", "field": "dport"}}]}
    pairs = {"map": {**own, "name": "to", "elem": [[{"concat": ["10.43.0.10", 53]}, {"concat": ["10.42.1.3", 53]}]]}}
    by_map = {"dnat": {"family": "ip", "addr": {"map": {"key": concat, "data": "@to"}}}}

    assert told(table(("out", [compared(("ip", "daddr"), "@fronts"), DNAT]), sets=[fronts]))
    assert not told(table(("out", [compared(("ip", "daddr"), "@fronts", "!="), DNAT]), sets=[fronts]))
    assert told(table(("out", [by_map]), sets=[pairs]))
    assert not told(table(("out", [by_map]), sets=[pairs]), ipaddress.ip_address("10.43.0.11"))


def test_what_stands_for_all_others_may_be_any():
    verdicts = {"set": [["10.0.0.1", {"accept": None}], ["*", {"goto": {"target": "rest"}}]]}
    text = table(("out", [{"vmap": {"key": {"payload": {"protocol": "ip", "field": "daddr"}}, "data": verdicts}}]), ("rest", [DNAT]))

    assert told(text)


def test_several_tables_and_a_whole_ruleset_are_read():
    first, second = (table(("out", [TO_VIP, DNAT]), name=name) for name in ("lb", "other"))
    both = json.dumps({"nftables": json.loads(first)["nftables"] + json.loads(second)["nftables"]})

    for text in (f"{first}\n{second}\n", both):
        assert judge_other_tables.describe(judge_other_tables.look(PORT, VIP, parse_other_tables(text))) == (
            "table ip lb: chain out at OUTPUT, priority -150", "table ip other: chain out at OUTPUT, priority -150"
        )  # fmt: skip
    assert judge_other_tables.describe(judge_other_tables.look(PORT, VIP, ())) == ("there is none",)
    assert "not in this recording" in judge_other_tables.describe(judge_other_tables.look(PORT, VIP, None))[0]


@pytest.mark.parametrize("statement", [{"xt": None}, {"somethingnew": {}}, "dnat to 192.0.2.9"])
def test_a_rule_that_nobody_can_read_is_no_absence(statement):
    tables = parse_other_tables(table(("out", [TO_VIP, statement])))
    other, sure = ipaddress.ip_address("10.43.0.11"), parse_other_tables(table(("out", [TO_VIP, statement]), ("out", [TO_VIP, DNAT])))

    said = judge_other_tables.unseen(judge_other_tables.look(PORT, VIP, tables))
    assert said is not None
    assert said.startswith("a rule of chain out of nft table ip lb cannot be read, and may translate: [{")
    assert judge_other_tables.unseen(judge_other_tables.look(PORT, other, tables)) is None
    assert judge_other_tables.unseen(judge_other_tables.look(PORT, VIP, sure)) is None
    assert judge_other_tables.look(PORT, VIP, sure).translating["OUTPUT"]


@pytest.mark.parametrize(
    "text",
    [
        "Error: syntax error", "[]", '{"nftables": []}', table(("out", [TO_VIP, DNAT]))[:-40],
        '{"nftables": [{"chain": {"family": "ip", "table": "lb", "name": "out"}}]}',
        table(("out", [compared(("ip", "daddr"), "@gone"), DNAT])), table(("out", [compared(("ip", "daddr"), "10.43.0.10.1"), DNAT])),
        table(("out", [{"match": {"op": "=="}}])),
    ],
)  # fmt: skip
def test_what_is_no_listing_is_no_table(text):
    with pytest.raises(ParseError, match="nft -j list table"):
        parse_other_tables(text)


def test_beside_nftables_mode_a_dnat_of_iptables_counts():
    save = "*nat\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n{rule}COMMIT\n"
    rule = "-A OUTPUT -d 10.43.0.10/32 -p udp -m udp --dport 53 -j DNAT --to-destination 10.42.1.3:53\n"
    own = "-A OUTPUT -m addrtype --dst-type LOCAL -j DNAT --to-destination 10.42.1.3:53\n"
    ruled, other = (NodeRules(parse_save(save.format(rule=each)), None) for each in (rule, own))

    (wrong,) = judge_other_tables.judge_iptables("worker1", PORT, VIP, ruled)
    assert "(nft): OUTPUT - can translate the packet before kube-proxy's rules see it" in str(wrong)
    assert judge_other_tables.judge_iptables("worker1", PORT, VIP, other) == ()


RANGED = {"range": ["10.43.0.8", "10.43.0.200"]}
RANGED_KEY = {"concat": [RANGED, {"range": [50, 60]}]}
CONCAT = {"concat": [{"payload": {"protocol": "ip", "field": "daddr"}}, {"payload": {"protocol": "udp", "field": "dport"}}]}
SET = {"set": {"family": "ip", "table": "lb", "name": "s", "elem": [RANGED, {"elem": {"val": RANGED, "comment": "of acme"}}]}}


@pytest.mark.parametrize(
    "text",
    [
        table(("out", [TO_VIP, {"log": {"prefix": "acme "}}, DNAT])),
        table(("out", [compared(("ip", "daddr"), RANGED), DNAT])),
        table(("out", [compared(("ip", "daddr"), {"set": ["10.43.1.1", RANGED]}), DNAT])),
        table(("out", [compared(("ip", "daddr"), {"prefix": {"addr": "10.43.0.0", "len": 25}}), DNAT])),
        table(("out", [compared(("ip", "daddr"), "@s"), DNAT]), sets=[SET]),
        table(("out", [{"vmap": {"key": CONCAT, "data": {"set": [[RANGED_KEY, {"jump": {"target": "x"}}]]}}}]), ("x", [DNAT])),
    ],
)  # fmt: skip
@pytest.mark.parametrize("key", [b"one", b"two", b"three", b"four", b"five"])
def test_a_redacted_table_is_judged_alike_and_says_nothing_of_its_own(text, key):
    mapping = Mapping(key)
    rules = Rules(mapping, Texts(mapping))
    inside, outside = "-A X -d 10.43.0.10/32", "-A X -d 10.43.0.201/32"
    for each in (text, inside, outside):
        rules.rules(without_ranges(each))
    mapping.settle()
    vip, other = (ipaddress.ip_address(rules.rules(rule).split()[-1].partition("/")[0]) for rule in (inside, outside))
    redacted = rules.rules(without_ranges(text))

    assert "acme" not in redacted
    assert vip != VIP
    assert told(redacted, vip)
    assert not told(redacted, other)
    assert told(text)
    assert not told(text, ipaddress.ip_address("10.43.0.201"))


RULES = "*nat\n:OUTPUT ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]\nCOMMIT\n"
SERVED = Expected(frozenset({Socket(VIP, 53)}), False, False, True, frozenset(), True, False, False)


def test_a_nat_table_that_iptables_cannot_print_is_no_absence():
    kept = parse_save("# Table `nat' is incompatible, use 'nft' tool.\n", backend="nft")
    beside = parse_save("# Table `nat' contains incompatible base-chains, use 'nft' tool to list them.\n" + RULES, backend="nft")

    said = judge_rules.unseen(NodeRules(kept, parse_save(RULES, backend="legacy")), SERVED)
    assert said == "iptables-save cannot print all of the kernel's rules: Table `nat' is incompatible, use 'nft' tool."
    assert judge_rules.unseen(NodeRules(beside, Ruleset("legacy", {})), SERVED) is None  # nft lists those chains


@pytest.fixture
def asked(monkeypatch):
    """What the fixture makes of a node's answers, where kube-proxy's own rules are right or wrong."""

    def fact(answers, *wrong):
        request = types.SimpleNamespace(fixturenames=("both_nat",), getfixturevalue=lambda name: name)
        monkeypatch.setattr(judge_rules, "judge_service_rule", lambda *_: wrong)
        return judging.fact(rule_facts.other_tables, request, types.SimpleNamespace(name="worker1"), PORT, VIP, answers, SERVED)

    return fact


def observed(text: str, status: int = 0, error: str = "") -> dict[str, Observation]:
    name = "nft-other-tables"
    return {name: Observation("worker1", name, ("sh", "-c", "…"), status, text.encode(), error.encode(), 0.0, 0.0)}


def test_what_was_not_asked_for_is_not_in_the_recording_and_hides_nothing_that_is_wrong(asked):
    with pytest.raises(NotRecorded, match="not in this recording: the nftables tables of other programs on worker1"):
        asked({})

    assert asked({}, "wrong").tables is None


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (observed("", 127, "sh: 1: nft: not found"), "nft is not on the node"),
        (observed("", 1, "Error: cache initialization failed"), "exit status 1"),
        (observed(table(("out", [DNAT]))[:-20]), "complete JSON"),
        (observed(table(("out", [{"xt": None}]))), "cannot be read, and may translate"),
    ],
)
def test_what_could_not_be_seen_is_an_error(asked, answers, said):
    with pytest.raises(CouldNotSee, match=said):
        asked(answers)


def test_tables_that_were_read_are_the_fact(asked):
    assert asked(observed("")).tables == ()
    assert asked(observed(table(("out", [DNAT])))).translating["OUTPUT"]
