"""Helm's values of Cilium's release: what is read of them, and what is kept."""

import json
import pathlib
import subprocess
import sys

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from servicepath.model import meaning
from servicepath.parse.errors import ParseError
from servicepath.parse.helm_values import parse_helm_values
from servicepath.recording import storage

DATA = pathlib.Path(__file__).resolve().parent / "data"

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
        ("Error: release: not found", "helm get values: line 1: 'Error: release: not found': expected YAML"),
        ("a: 1\nplanted: [1\n", "helm get values: line 3: '': expected YAML"),
        ("password: @planted", "helm get values: line 1: '': expected YAML"),
        ("- planted\n", "helm get values: the input: '': expected keys with values"),
        ("just planted words", "helm get values: the input: '': expected keys with values"),
        ("", "helm get values: the input: '': expected values, or null where there are none"),
        ("USER-SUPPLIED VALUES:\n", "helm get values: the input: '': expected values, or null where there are none"),
        ("x: " + "[" * 2000, "helm get values: "),
        ("a: &x {b: *x}", "helm get values: line 1: '': expected YAML (an alias, of which Helm prints none)"),
        ("? [a]\n: planted", "helm get values: "),
        ("a: \0", "helm get values: "),
    ],
)
def test_what_is_no_list_of_values_is_an_error_with_its_place_and_without_its_text(text, says):
    with pytest.raises(ParseError) as found:
        parse_helm_values(text)

    assert str(found.value).startswith(says)
    assert "\n" not in str(found.value)
    assert "planted" not in str(found.value)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2026-99-99", "2026-99-99"), ("!!bool foo", "foo"), ("!!timestamp foo", "foo"), ('!!int ""', ""), ("1e999", "1e999"), ("~", "~"),
        ("0x" + "f" * 5000, "0x" + "f" * 5000),
    ],
)  # fmt: skip
def test_a_value_is_the_text_that_it_is_written_in(written, read):
    assert parse_helm_values(f"\ufeffUSER-SUPPLIED VALUES:\r\na: {written}\r\n") == {"a": read}


WORDS = st.text(st.characters(categories=["L", "Nd"]), min_size=1, max_size=5)
SCALARS = st.none() | st.booleans() | st.integers() | WORDS
VALUES = st.recursive(SCALARS, lambda part: st.dictionaries(WORDS, part, min_size=1, max_size=3), max_leaves=8)


@given(st.dictionaries(WORDS, VALUES, min_size=1, max_size=4))
def test_every_value_is_kept(values):
    def count(value):
        return sum(map(count, value.values())) if isinstance(value, dict) else 1

    assert len(parse_helm_values(yaml.safe_dump(values, allow_unicode=True))) == count(values)


SECRETS = """\
hubble: {tls: {server: {key: LS0tLS1CRUdJTiplanted, cert: LS0tLS1planted}}}
bgp: {password: 12345678}
tls: {caKey: planted, serverKey: planted, ca: MIIplantedMIIplantedMIIplantedMIIplantedMIIplanted}
etcd: {endpoints: ["https://user:planted@10.0.0.1:2379"], sslKey: /planted}
extraEnv:
- {name: HTTPS_PROXY, value: "http://me:planted@proxy"}
- {name: PIN, value: "424242"}
- {name: PATH, value: "/planted"}
extraArgs: ["--kvstore-opt=etcd.password=planted", "--token=planted"]
args: ["-u", "me:planted"]
nodeinit: {prestop: {postScript: "curl -H 'Authorization: Bearer planted'"}}
ingress: {annotations: {x: planted}, passphrase: planted, pwd: planted, AWS_ACCESS_KEY_ID: planted}
extraConfig: {kvstore-opt: '{"p":"planted"}'}
proxy: {url: "https://planted@host", other: "me:planted@registry/x", third: "host?sig=planted"}
jwtish: eyJplantedplantedplantedplanted.eyJplantedplantedplanted
"""
TOLD = """\
operator: {replicas: 2, unmanagedPodWatcher: {intervalSeconds: 15}}
image: {repository: quay.io/cilium/cilium, tag: v1.19.1, useDigest: true}
digest: "sha256:41f1f74a9000de8656f1de4088ea00c8f2d49d6edea579034c73c5fd5fe01792"
override: "quay.io/cilium/cilium:v1.19.1"
ipam: {mode: cluster-pool, operator: {clusterPoolIPv4PodCIDRList: [10.42.0.0/16, 10.44.0.0/16]}}
k8sServiceHost: 192.168.55.10
ipv6NativeRoutingCIDR: "fd00::/8"
encryption: {ipsec: {interface: ""}}
cgroup: {hostRoot: /sys/fs/cgroup}
bpf: {mapDynamicSizeRatio: 0.0025}
resources: {limits: {memory: 256Mi}}
kubeProxyReplacement: "false"
authentication: {enabled: false}
"""


def test_what_may_be_a_secret_is_left_out():
    facts = {fact.name: fact.value for fact in meaning.helm_values(parse_helm_values(SECRETS))}

    names = {"Helm value extraEnv.0.name", "Helm value extraEnv.1.name", "Helm value extraEnv.2.name"}
    assert {name for name, value in facts.items() if value != (meaning.LEFT_OUT,)} <= names
    assert "planted" not in str(facts.values())


def test_what_can_be_none_is_told():
    values = parse_helm_values(TOLD)
    facts = {fact.name: fact.value for fact in meaning.helm_values(values)}

    assert facts == {f"Helm value {name}": tuple(value.splitlines()) for name, value in values.items()}


def test_a_recording_that_names_a_file_of_this_machine_is_not_given_it(tmp_path):
    files = dict(storage.files_of(DATA / "recordings" / "healthy.tar.zst"))
    files["recording.yaml"] = files["recording.yaml"].replace(
        b"inventory:\n", f"inventory:\n  upgrade: {{helm_values: {tmp_path / 'local.yaml'}}}\n".encode()
    )
    storage.store(files.items(), tmp_path / "theirs")
    (tmp_path / "local.yaml").write_text("mine: 1450\n")
    kept = tmp_path / "kept.json"
    said = [f"--replay={tmp_path / 'theirs'}", f"--reports={tmp_path / 'reports'}", f"--baseline-out={kept}", "-k", "no_interface"]

    subprocess.run([sys.executable, "-m", "pytest", "-q", *said], cwd=DATA.parents[1], check=True, capture_output=True, timeout=120)

    assert '"no-interface"' in kept.read_text()
    assert "Helm value" not in kept.read_text()
