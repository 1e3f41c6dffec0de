"""kube-proxy's nftables table of every release since v1.31, in text, with handles, and in JSON, is read as what it was made of."""

from __future__ import annotations

import dataclasses
import json

from hypothesis import given
from hypothesis import strategies as st

from properties.kube_proxy_nft import WORD, tables
from properties.spoiling import cut, outcome, reshaped, spoilt
from servicepath.model import judge_nft
from servicepath.model.addresses import Socket
from servicepath.model.expected_endpoints import Expected
from servicepath.model.services import ServicePort
from servicepath.parse.nft import parse_kube_proxy_nft

NODE = "worker1"
FORMS = {"text": lambda table: table.text(), "handles": lambda table: table.text(handles=True), "json": lambda table: table.json()}


@given(tables())
def test_what_is_printed_is_read_back_the_same(table):
    found = {name: parse_kube_proxy_nft(form(table)) for name, form in FORMS.items()}

    assert {name: dataclasses.replace(each, version=None) for name, each in found.items()} == dict.fromkeys(FORMS, table.facts)
    assert found["json"].version == "1.0.6"
    assert all(each.lines.keys() >= {name for name, rules in table.chains.items() if rules} for each in found.values())


@given(tables(), tables())
def test_the_other_familys_table_and_other_tables_change_nothing(one, other):
    theirs = 'table inet other {\n\tmap service-ips {\n\t\telements = { 10.0.0.1 . tcp . 1 : drop }\n\t}\n}\n'
    listing = theirs + one.text() + (other.text() if other.version != one.version else "") + theirs.replace("other", "last")

    assert parse_kube_proxy_nft(listing, family=WORD[one.version]) == one.facts


@given(tables(), st.sampled_from(list(FORMS)), st.data())
def test_no_part_of_a_table_is_taken_for_all_of_it(table, form, data):
    assert outcome(parse_kube_proxy_nft, data.draw(cut(FORMS[form](table)))) is None


@given(tables(), st.sampled_from(list(FORMS)), st.data())
def test_a_spoilt_table_is_an_error_or_a_table(table, form, data):
    outcome(parse_kube_proxy_nft, data.draw(spoilt(FORMS[form](table))))


@given(tables(), st.data())
def test_a_reshaped_table_is_an_error_or_a_table(table, data):
    outcome(parse_kube_proxy_nft, json.dumps(data.draw(reshaped(json.loads(table.json())))))


def expected(made, *, sockets=None):
    """What the API would say of the port."""
    here = made.local if made.internal_only_local else made.endpoints
    elsewhere = made.internal_only_local and bool(made.endpoints) and not here
    sockets = frozenset(here) if sockets is None else sockets
    return Expected(sockets, elsewhere, made.internal_only_local, True, frozenset(made.endpoints), bool(made.endpoints), False, False)


def differences(read, made, wanted):
    port = ServicePort(made.namespace, made.name, made.port_name or None, made.protocol.upper(), made.port, None, made.node_port, None)
    return [
        *judge_nft.service_rule(NODE, port, made.ip, read, wanted),
        *(judge_nft.backend_choice(NODE, port, made.ip, read, wanted) if wanted.sockets else ()),
    ]


@given(tables(), st.sampled_from(list(FORMS)))
def test_every_releases_table_is_judged_the_same(table, form):
    read = parse_kube_proxy_nft(FORMS[form](table))

    for made in table.made:
        assert differences(read, made, expected(made)) == []
        # The control: one endpoint more than there is, and one that serves no longer.
        more = expected(made).sockets | {Socket(made.ip, 1)}
        assert differences(read, made, expected(made, sockets=more))
        assert not expected(made).sockets or differences(read, made, expected(made, sockets=frozenset({Socket(made.ip, 1)})))


@given(tables())
def test_chains_are_named_as_the_model_names_them(table):
    for made in table.made:
        port = ServicePort(made.namespace, made.name, made.port_name or None, made.protocol.upper(), made.port, None, made.node_port, None)
        names = [judge_nft.chain_of(port), *(judge_nft.chain_of(port, endpoint) for endpoint in made.endpoints)]
        assert names == [made.chain("service"), *(made.chain("endpoint", endpoint) for endpoint in made.endpoints)]
