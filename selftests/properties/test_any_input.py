"""Every parser, fed what its tool printed and what became of that: cut off anywhere, or edited anywhere.

What is cut is an error, or facts that the whole has, too. What is edited is an error or facts; never another exception, and an edit
changes no fact of a line that it does not touch.
"""

from __future__ import annotations

import dataclasses
import functools
import ipaddress
import json
import pathlib
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from properties.spoiling import cut, outcome, reshaped, spoilt
from servicepath.parse import (
    cilium_ct,
    cilium_metrics,
    cilium_services,
    cilium_status,
    conntrack,
    iproute,
    iptables,
    kubeproxy,
    kubernetes,
    nft,
    nft_other_tables,
    policies,
    sockets,
    sync_mark,
)

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
CASES = DATA / "cases"


@dataclasses.dataclass(frozen=True)
class Sample:
    """A parser and a text for it.

    ``facts`` makes the result a list, in the text's order; ``ends`` says that the format has an end of its own, so that no part of
    the text is taken for all of it; ``independent`` that each fact is of one line, which is its ``raw``.
    """

    name: str
    text: str = dataclasses.field(repr=False)
    parse: Callable[[str], Any] = dataclasses.field(repr=False)
    facts: Callable[[Any], list[Any]] = dataclasses.field(default=list, repr=False)
    ends: bool = False
    independent: bool = False


def _rules(ruleset: Any) -> list[Any]:
    return sorted(((r.line, r.meaning, r.comment, r.counter) for c in ruleset.chains.values() for r in c.rules), key=lambda r: r[0])


def _tables(ruleset: Any) -> list[Any]:
    """Each table with all its rules: of a table there is all or nothing."""
    return [(table, [rule for rule in _rules(ruleset) if rule[1][0] == table]) for table in ruleset.tables]


def _files(parse: Callable[[str], Any], *patterns: str, facts: Callable[[Any], list[Any]] = list, **options: bool) -> list[Sample]:
    paths = [path for pattern in patterns for path in sorted(DATA.glob(pattern))]
    assert paths, patterns
    return [Sample(str(path.relative_to(DATA)), path.read_text(), parse, facts, **options) for path in paths]


_ROUTE_GET = functools.partial(iproute.parse_ip_route_get, destination=ipaddress.ip_address("10.42.1.113"))
_METRICS = '[{"reason":"Policy denied","direction":"ingress","packets":3,"bytes":222,"line":1271,"file":"bpf_lxc.c"}]'
_SS = (
    'udp UNCONN 0 0 192.168.55.10:8472 0.0.0.0:* users:(("cilium-agent",pid=530,fd=5))\n'
    'tcp LISTEN 0 128 [::ffff:10.0.0.1]:10250 *:* users:(("kubelet",pid=19530,fd=6))\ntcp LISTEN 0 128 0.0.0.0%eth0:99 0.0.0.0:*\n'
)
_PROXY = 'kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"} 1.7961e+09\n' + (
    'kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv4"} 17\n'
)
_NAT = functools.partial(iptables.parse_save, table="nat")
SAMPLES = [
    *_files(iptables.parse_save, "cases/*/*.save", "cases/03-*/iptables-save-c.txt", facts=_tables),
    *_files(_NAT, "cases/05-*/iptables-S-nat.txt", "cases/07-*/iptables-S.txt", "cases/0[29]-*/iptables-save-grep.txt", facts=_rules),
    *_files(nft.parse_kube_proxy_nft, "cases/06-*/nft-list*", facts=lambda table: list(table.services), ends=True),
    *_files(nft_other_tables.parse_other_tables, "nft-1.0.6/*.json"),
    *_files(iproute.parse_ip_addr, "iproute-6.1/addr.json", "iproute-6.1/br-addr.json", "cases/*/*ip-j-addr.json", ends=True),
    *_files(iproute.parse_ip_link, "iproute-6.1/link.json", ends=True),
    *_files(iproute.parse_ip_route, "iproute-6.1/route*.json", ends=True),
    *_files(iproute.parse_ip_rule, "iproute-6.1/rule.json", ends=True),
    *_files(_ROUTE_GET, "iproute-6.1/get-10.42.1.113.json", facts=lambda found: [found], ends=True),
    *_files(iproute.parse_ip_addr, "iproute-6.1/*addr.txt", "cases/*/*addr*.txt"),
    *_files(iproute.parse_ip_link, "iproute-6.1/link.txt", "cases/19-*/ip-link.txt"),
    *_files(iproute.parse_ip_route, "iproute-6.1/route-all.txt", "cases/*/ip-route*.txt"),
    *_files(iproute.parse_ip_rule, "iproute-6.1/rule.txt", "cases/*/ip-rule.txt", independent=True),
    *_files(_ROUTE_GET, "iproute-6.1/get-10.42.1.113.txt", facts=lambda found: [found]),
    *_files(conntrack.parse_conntrack, "cases/18-*/conntrack*", facts=lambda table: list(table.entries), independent=True),
    *_files(cilium_ct.parse_ct_list, "cilium-1.19.1/bpf-ct-list.txt", independent=True),
    *_files(cilium_services.parse_service_list, "cilium-1.19.1/service-list.json", "cases/1[35]-*/*service-list*.json", ends=True),
    *_files(cilium_services.parse_service_list, "cilium-1.19.1/service-list.txt", "cases/1[35]-*/*service-list*.txt"),
    *_files(cilium_services.parse_lb_list, "cases/1[35]-*/*lb-list*.json", ends=True),
    *_files(cilium_services.parse_lb_list, "cilium-1.19.1/bpf-lb-list.txt", "cases/1[35]-*/*lb-list*[!t].txt"),
    *_files(cilium_status.parse_status, "cilium-1.19.1/status.json", facts=lambda found: [found], ends=True),
    *_files(cilium_status.parse_status, "cilium-1.19.1/status-verbose.txt", "cases/14-*/v*.txt", facts=lambda found: [found]),
    Sample("cilium-metrics", _METRICS, cilium_metrics.parse_metrics, ends=True),
    Sample("ss", _SS, sockets.parse_ss, independent=True),
    Sample("kube-proxy-metrics", _PROXY, kubeproxy.parse_kubeproxy_metrics, lambda found: [found]),
    Sample("proxy-mode", "iptables", kubeproxy.parse_proxy_mode, lambda found: [found], ends=True),
    Sample("sync-mark", "".join(sorted(_PROXY.splitlines(keepends=True))), sync_mark.parse_sync_mark, lambda mark: mark.value.split()),
]

_ANSWERS = json.loads((DATA / "kubernetes-1.34.4" / "answers.json").read_text())
DOCUMENTS = [
    (_ANSWERS, kubernetes.parse_kubernetes),
    *((_ANSWERS[name], policies.parse_policies) for name in ("networkpolicies", "ciliumnetworkpolicies")),
    *((json.loads(s.text), lambda document, s=s: s.parse(json.dumps(document))) for s in SAMPLES if s.text[:1] in ("[", "{")),
]


def _is_beginning(found: list[Any], whole: list[Any]) -> bool:
    """Whether these are the whole's first facts; the last one may lack what stood on lines of its own (addresses, backends)."""
    if found[:-1] != whole[: max(len(found) - 1, 0)]:
        return False
    return not found or found[-1] == whole[len(found) - 1] or _is_part(found[-1], whole[len(found) - 1])


def _is_part(found: Any, whole: Any) -> bool:
    """Whether every field is the whole's, the beginning of it, or absent."""
    if not dataclasses.is_dataclass(found) or type(found) is not type(whole):
        return False
    pairs = [(getattr(found, f.name), getattr(whole, f.name)) for f in dataclasses.fields(found) if f.compare]
    return all(mine in (theirs, None) or _begins(mine, theirs) for mine, theirs in pairs)


def _begins(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, dict):
        return mine.items() <= theirs.items()
    return isinstance(mine, tuple) and mine == theirs[: len(mine)]


@settings(max_examples=settings().max_examples * 20)
@given(st.sampled_from(SAMPLES), st.data())
def test_a_cut_text_is_an_error_or_facts_of_the_whole(sample, data):
    found = outcome(sample.parse, data.draw(cut(sample.text)))

    if found is not None:
        assert not sample.ends
        assert _is_beginning(sample.facts(found), sample.facts(sample.parse(sample.text)))


@settings(max_examples=settings().max_examples * 20)
@given(st.sampled_from(SAMPLES), st.data())
def test_a_spoilt_text_is_an_error_or_facts_and_lines_that_were_not_touched_say_what_they_said(sample, data):
    text = data.draw(spoilt(sample.text))
    found = outcome(sample.parse, text)

    if found is not None and sample.independent:
        untouched = set(sample.text.split("\n")) & set(text.split("\n"))
        said = {fact.raw: fact for fact in sample.facts(sample.parse(sample.text))}
        assert all(fact == said[fact.raw] for fact in sample.facts(found) if fact.raw in untouched and fact.raw in said)


@given(st.sampled_from(range(len(DOCUMENTS))).map(DOCUMENTS.__getitem__), st.data())
@settings(max_examples=settings().max_examples * 10)
def test_a_reshaped_document_is_an_error_or_facts(document, data):
    value, parse = document
    outcome(parse, data.draw(reshaped(value)))
