"""One entry for each tool: rules and nft tables in whatever form people keep them, and what shows that they were filtered or cut."""

import re

import pytest
import rule_cases

from servicepath.model.service_rules import walk_from_services
from servicepath.parse.errors import ParseError
from servicepath.parse.iptables import parse_rules
from servicepath.parse.nft import has_kube_proxy, parse_kube_proxy_nft

SAVE = rule_cases.text("04", "nat.save")
NFT = rule_cases.text("06", "nft-list-table-ip-kube-proxy.txt")


def as_dash_s(save):
    """What ``iptables -t nat -S`` prints of the same table."""
    declared = re.findall(r"^:(\S+) (\S+) \[", save, re.M)
    heads = [f"-N {name}" if policy == "-" else f"-P {name} {policy}" for name, policy in declared]
    return "\n".join([*heads, *(line for line in save.splitlines() if line.startswith("-A"))]) + "\n"


def meanings(rules):
    return {key: [rule.meaning for rule in chain.rules] for key, chain in rules.chains.items()}


def test_a_save_and_dash_s_are_the_same_rules():
    saved, listed = parse_rules(SAVE), parse_rules(as_dash_s(SAVE))

    assert meanings(saved) == meanings(listed)
    assert saved.complete
    assert listed.complete


def test_a_listing_is_told_by_its_form_and_is_an_excerpt():
    listed = rule_cases.text("01", "iptables-L-v.txt")
    found = parse_rules(listed[listed.index("# iptables -t nat -L KUBE-SVC") :])

    assert [rule.counter.packets for rule in found.rules("nat", "KUBE-SVC-XS3ZU56555AQFGIC")] == [20, 10, 10]
    assert not found.complete


def test_listings_of_two_times_in_one_text_are_refused_and_not_added_up():
    with pytest.raises(ParseError, match=r"line 5: .*each chain once"):
        parse_rules(rule_cases.text("01", "iptables-L-v.txt"))


def test_a_grep_over_all_tables_keeps_refusals_in_filter():
    full = rule_cases.text("03", "iptables-save-c.txt")
    grepped = parse_rules("".join(line for line in full.splitlines(keepends=True) if "KUBE-S" in line))

    assert not grepped.complete
    assert {rule.target for rule in grepped.rules("filter", "KUBE-SERVICES")} == {"REJECT"}
    assert "REJECT" not in {rule.target for rule in grepped.rules("nat", "KUBE-SERVICES")}


@pytest.mark.parametrize("column", range(60, 140, 10))
def test_lines_cut_at_a_column_are_refused(column):
    with pytest.raises(ParseError, match=f"line .*whole lines: .* end at column {column}"):
        parse_rules("\n".join(line[:column] for line in SAVE.splitlines()))


@pytest.mark.parametrize("left_out", ["KUBE-SEP", "KUBE-SVC", "^:PREROUTING|^:OUTPUT|^-A PREROUTING|^-A OUTPUT", "^:KUBE-EXT|^-A KUBE-EXT"])
def test_what_grep_dash_v_left_is_an_excerpt(left_out):
    left = parse_rules("\n".join(line for line in SAVE.splitlines() if not re.search(left_out, line)))

    assert not left.complete


def test_what_iptables_restore_is_fed_is_an_excerpt_with_the_same_ways():
    fed = parse_rules(rule_cases.text("11", "restore-input.rules"))
    saved = parse_rules(rule_cases.text("11", "same-as-save-c.save"))
    ways = [walk_from_services(rules, rule_cases.ipaddress.ip_address("172.30.0.41"), "TCP", 80).sockets for rules in (fed, saved)]

    assert ways[0] == ways[1] != frozenset()
    assert not fed.complete


def test_an_nft_table_with_handles_or_out_of_a_whole_ruleset_is_the_same():
    whole = 'table ip nat {\n\tchain OUTPUT {\n\t\ttype nat hook output priority -100;\n\t}\n}\n' + NFT + "table ip6 kube-proxy {\n}\n"

    assert parse_kube_proxy_nft(whole) == parse_kube_proxy_nft(NFT)
    handled = re.sub(r"^(\s*(?:table|chain|map|set) .*\{)$", r"\1 # handle 7", NFT, flags=re.M)
    assert parse_kube_proxy_nft(handled) == parse_kube_proxy_nft(NFT)
    assert has_kube_proxy(whole)
    assert not has_kube_proxy(whole[: whole.index("table ip kube-proxy")])


def test_comments_name_the_services_without_endpoints_in_both_forms():
    found = [parse_kube_proxy_nft(text) for text in (NFT, rule_cases.text("06", "nft-list-table-ip-kube-proxy.json"))]

    assert found[0].comments == found[1].comments
    assert set(found[0].comments.values()) == {"lab/otelcol:otlp", "lab/otelcol:otlp-http"}
    assert found[0].node_port_chains == {("tcp", 30000): "external-BHFQAWP5-lab/hello-np-svc/tcp/"}
