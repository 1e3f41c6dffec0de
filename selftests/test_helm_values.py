"""Helm's values of Cilium's release: what is read of them, and what is kept."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from servicepath.model import meaning
from servicepath.parse.errors import ParseError
from servicepath.parse.helm_values import parse_helm_values

PRINTED = """\
USER-SUPPLIED VALUES:
kubeProxyReplacement: false
ipam:
  operator:
    clusterPoolIPv4PodCIDRList:
    - 10.42.0.0/16
    - 10.44.0.0/16
MTU: 1450
socketLB: {}
extraArgs: []
note: |
  two
  lines
affinity: null
tolerations:
- operator: Exists
"""
READ = {
    "kubeProxyReplacement": "false",
    "ipam.operator.clusterPoolIPv4PodCIDRList": "10.42.0.0/16\n10.44.0.0/16",
    "MTU": "1450",
    "socketLB": "{}",
    "extraArgs": "",
    "note": "two\nlines\n",
    "affinity": "null",
    "tolerations.0.operator": "Exists",
}


def test_values_are_read_by_their_path():
    assert parse_helm_values(PRINTED) == READ


def test_json_and_another_heading_are_the_same():
    whole = yaml.safe_load(PRINTED)
    del whole["USER-SUPPLIED VALUES"]

    assert parse_helm_values(json.dumps(whole)) == READ
    assert parse_helm_values(PRINTED.replace("USER-SUPPLIED", "COMPUTED")) == READ
    assert parse_helm_values("null\n") == parse_helm_values("USER-SUPPLIED VALUES:\nnull\n") == {}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Error: release: not found", "helm get values: line 1: "),
        ("a: 1\nb: [1\n", "helm get values: line 3: "),
        ("- a\n", "helm get values: the input: "),
        ("just words", "helm get values: the input: "),
        ("a: 2026-99-99", "helm get values: the input: "),
        ("x: " + "[" * 2000, "helm get values: "),
    ],
)
def test_what_is_no_list_of_values_is_an_error_with_its_place(text, says):
    with pytest.raises(ParseError, match=says) as found:
        parse_helm_values(text)

    assert "\n" not in str(found.value)


WORDS = st.text(st.characters(categories=["L", "Nd"]), min_size=1, max_size=5)
SCALARS = st.none() | st.booleans() | st.integers() | WORDS
VALUES = st.recursive(SCALARS, lambda part: st.dictionaries(WORDS, part, min_size=1, max_size=3), max_leaves=8)


@given(st.dictionaries(WORDS, VALUES, max_size=4))
def test_every_value_is_kept(values):
    def count(value):
        return sum(map(count, value.values())) if isinstance(value, dict) else 1

    assert len(parse_helm_values(yaml.safe_dump(values, allow_unicode=True))) == count(values)


def test_what_may_be_a_secret_is_left_out():
    text = """\
hubble: {tls: {server: {key: LS0tLS1CRUdJTi, cert: LS0tLS1CRUdJTi}}}
extraEnv:
- {name: HTTPS_PROXY, value: "http://planted:hunter2@proxy"}
- {name: LICENSE, value: planted-license}
etcd: {endpoints: ["https://user:planted@10.0.0.1:2379"]}
encryption: {ipsec: {keyFile: /etc/ipsec/keys}}
operator: {replicas: 2}
"""
    facts = {fact.name: fact.value for fact in meaning.configuration("Helm value", parse_helm_values(text))}

    assert "planted" not in str(facts)
    assert facts["Helm value hubble.tls.server.key"] == (meaning.LEFT_OUT,)
    assert facts["Helm value operator.replicas"] == ("2",)
    assert facts["Helm value encryption.ipsec.keyFile"] == ("/etc/ipsec/keys",)
