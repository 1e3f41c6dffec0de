"""A recording with neutral names and addresses: nothing of the cluster's own is left in any file, and every verdict is the same."""

from __future__ import annotations

import dataclasses
import ipaddress
import json
import re
import struct
import subprocess
import sys

import pytest
from scapy.layers import dns, inet, inet6, l2, vxlan
from scapy.packet import Raw

from selftests import recordings
from servicepath.model import chain_names
from servicepath.observation import Observation, Trouble
from servicepath.parse.pcap import parse_pcap
from servicepath.recording import codec, storage
from servicepath.recording.model import Recording, RecordingError
from servicepath.redact.addresses import AddressMap
from servicepath.redact.dns import DnsMap
from servicepath.redact.mapping import Mapping
from servicepath.redact.packets import Packets
from servicepath.redact.recording import redact
from servicepath.redact.rules import Rules
from servicepath.redact.texts import Texts

KEY = b"the same in every run"
HEALTHY = recordings.FOLDER / "healthy.tar.zst"

# What the lab's recording itself has of names, and what is planted. Roles of captures ("client-lxc") are no names.
NAMES = (
    "(?<![a-z])master(?![a-z])", "worker1", "worker2", "client-(?:master|worker)", "resolver", "acme", "falcon", "blocklist", "alice",
    "enx0250", "ACME", "vault",
)  # fmt: skip
ADDRESSES = ("203.0.113.77", "fd12:3456:789a::42", "10.43.77.78", "10.42.1.77", "100.64.3.9", "2001:db8:5::9")
MACS = ("02:50:56:aa:bb:cc",)


def _changed(observation: Observation, change) -> Observation:
    return dataclasses.replace(observation, stdout=change(observation.text).encode())


def _api(recording: Recording, name: str, *items) -> None:
    for answers in recording.api.values():
        if name in answers and isinstance(answers[name], Observation):
            told = json.loads(answers[name].stdout)
            told["items"] += items
            answers[name] = dataclasses.replace(answers[name], stdout=json.dumps(told).encode())


def _planted_rules(text: str) -> str:
    """A Service's rules as kube-proxy writes them, and rules of the node's owner."""
    service = chain_names.service_chain("acme-corp/acme-billing:http", "tcp")
    endpoint = chain_names.endpoint_chain("acme-corp/acme-billing:http", "tcp", "10.42.1.77:8080")
    said = '-m comment --comment "acme-corp/acme-billing:http'
    lines = (
        f'-A KUBE-SERVICES -d 10.43.77.78/32 -p tcp {said} cluster IP" -m tcp --dport 80 -j {service}',
        f'-A {service} {said} -> 10.42.1.77:8080" -j {endpoint}',
        f'-A {endpoint} -s 10.42.1.77/32 {said}" -j KUBE-MARK-MASQ',
        f'-A {endpoint} -p tcp {said}" -m tcp -j DNAT --to-destination 10.42.1.77:8080',
        '-A PREROUTING -s 203.0.113.77/32 -m comment --comment "the vpn of acme" -m set --match-set blocklist src -j RETURN',
        '-A OUTPUT -m owner --uid-owner alice -j LOG --log-prefix "ACME out: "',
    )
    head, nat, rest = text.partition("*nat\n")
    chains = f":{service} - [0:0]\n:{endpoint} - [0:0]\n"
    start = rest.index("\n[") + 1
    end = rest.index("COMMIT")
    return head + nat + chains + rest[:start] + rest[start:end] + "".join(f"[0:0] {line}\n" for line in lines) + rest[end:]


def _planted_packets() -> bytes:
    """Frames as a pcap file's records: a foreign question, a page asked for, both also in the tunnel, a neighbour."""
    question = dns.DNS(id=7, rd=1, qd=dns.DNSQR(qname="Vault.ACME-corp.example"))
    asks = inet.IP(src="100.64.3.9", dst="10.43.0.10") / inet.UDP(sport=4000, dport=53) / question
    page = inet.IP(src="10.42.1.77", dst="203.0.113.77") / inet.TCP(dport=80, flags="PA") / Raw(b"GET / HTTP/1.1\r\nHost: acme.example\r\n")
    inner = l2.Ether(src=MACS[0], dst="02:00:00:00:00:09") / asks
    outer = inet.IP(src="192.168.55.10", dst="192.168.55.11") / inet.UDP(dport=8472) / vxlan.VXLAN(vni=7) / inner
    six = inet6.IPv6(src="fd12:3456:789a::42", dst="2001:db8:5::9") / inet.UDP(dport=53) / question
    refused = inet.IP(src="203.0.113.77", dst="100.64.3.9") / inet.ICMP(type=3, code=3) / asks
    arp = l2.ARP(hwsrc=MACS[0], psrc="203.0.113.77", hwdst="02:00:00:00:00:09", pdst="100.64.3.9")
    frames = [bytes(l2.Ether(src=MACS[0], dst="02:00:00:00:00:09") / each) for each in (asks, page, outer, six, refused, arp)]
    return b"".join(struct.pack("<4I", 1, 1, len(frame), len(frame)) + frame for frame in frames)


def planted() -> Recording:
    """The lab's recording, with more of the kind that people would not give away, in every place where it can stand."""
    recording = storage.read(HEALTHY)
    meta = {"namespace": "acme-corp", "name": "acme-billing", "labels": {"acme.example/team": "falcon"}, "uid": "1b"}
    port = {"name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080}
    _api(recording, "services", {"metadata": meta, "spec": {"type": "ClusterIP", "clusterIP": "10.43.77.78", "ports": [port]}})
    labels = {"kubernetes.io/service-name": "acme-billing"}
    ready = {"ready": True, "serving": True, "terminating": False}
    endpoint = {"addresses": ["10.42.1.77"], "conditions": ready, "nodeName": "worker1", "targetRef": {"kind": "Pod", "name": "dns"}}
    ports = [{"name": "http", "protocol": "TCP", "port": 8080}]
    slice_ = {"metadata": meta | {"name": "acme-billing-x1x2x", "labels": labels}, "addressType": "IPv4", "ports": ports}
    _api(recording, "endpointslices", slice_ | {"endpoints": [endpoint]})
    container = {"name": "falcon", "image": "registry.acme.example/falcon:1"}
    spec = {"nodeName": "worker1", "containers": [container], "nodeSelector": {"acme": "falcon"}}
    status = {"podIP": "10.42.1.77", "phase": "Running"}
    for name in ("dns", "default", "acme-billing-6d89-x2x"):  # two are words of the tools themselves
        owner = {"kind": "ReplicaSet", "name": "acme-billing-6d895df77d", "controller": True}
        _api(recording, "pods", {"metadata": meta | {"name": name, "ownerReferences": [owner]}, "spec": spec, "status": status})
    egress = [{"to": [{"ipBlock": {"cidr": "203.0.113.77/32"}}]}]
    policy = {"podSelector": {"matchLabels": {"acme.example/team": "falcon"}}, "egress": egress}
    _api(recording, "networkpolicies", {"metadata": meta, "spec": policy})

    snapshot = recording.nodes["worker1"]["snapshot-1"]
    conntrack = "udp 17 9 src=203.0.113.77 dst=10.43.0.10 sport=9 dport=53 src=10.42.1.77 dst=203.0.113.77 sport=53 dport=9 mark=0 use=1\n"
    snapshot["conntrack"] = _changed(snapshot["conntrack"], lambda text: text + conntrack)
    snapshot["iptables-nft-save"] = _changed(snapshot["iptables-nft-save"], _planted_rules)
    named = '"ifname":"enp1s0","ifalias":"uplink of acme","altnames":["enx025056aabbcc"],'
    snapshot["ip-addr"] = _changed(snapshot["ip-addr"], lambda text: text.replace('"ifname":"enp1s0",', named, 1))
    process = 'tcp LISTEN 0 4096 203.0.113.77:80 0.0.0.0:* users:(("acme-httpd",pid=9,fd=3))\n'
    snapshot["listeners"] = _changed(snapshot["listeners"], lambda text: text + process)
    state = recording.agents["worker1"]["state-1"]
    state["agent-status-verbose"] = _changed(
        state["agent-status-verbose"], lambda text: text.replace("(router)", "(router)\n  10.42.1.77 (acme-corp/acme-billing-6d89-x2x)")
    )
    traffic = recording.nodes["worker1"]["traffic-1"]
    taken = traffic["capture-underlay"]
    traffic["capture-underlay"] = dataclasses.replace(taken, stdout=taken.stdout + _planted_packets())
    recording.nodes["worker2"]["lan-1"] = Trouble(
        "worker2", "worker2: acme-corp/acme-billing at 203.0.113.77 did not answer", "ssh worker2", "fd12:3456:789a::42: no route"
    )
    return recording


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The planted recording and the redacted one, in folders."""
    folder = tmp_path_factory.mktemp("redacted")
    storage.write(planted(), folder / "own")
    storage.write(redact(storage.read(folder / "own"), KEY), folder / "neutral")
    return folder


def _files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _originals(files) -> tuple[set[str], set[str]]:
    """All addresses and MAC addresses in the files that mean nothing by themselves."""
    text = b"\n".join(content for content in files.values() if content[:4] != b"\xd4\xc3\xb2\xa1").decode("utf-8", "replace")
    kept = [ipaddress.ip_network(net) for net in ("0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/4", "240.0.0.0/4")]
    found = {ipaddress.ip_address(ip) for ip in re.findall(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])", text)}
    ips = {str(ip) for ip in found if not any(ip in net for net in kept)} - {"4.18.0.0"}
    macs = {mac for mac in re.findall(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", text) if mac not in ("00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff")}
    return ips | set(ADDRESSES), macs | set(MACS)


def _needles(files) -> re.Pattern[bytes]:
    """Each original in each form in which it may stand: as text, packed, in hexadecimal digits."""
    ips, macs = _originals(files)
    packed = [ipaddress.ip_address(ip).packed for ip in ips] + [bytes.fromhex(mac.replace(":", "")) for mac in macs]
    texts = [rf"(?<![\d.]){re.escape(ip)}(?![\d])" for ip in ips] + [re.escape(mac) for mac in macs] + list(NAMES)
    uuids = set(re.findall(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", b"\n".join(files.values())))
    forms = [*(text.encode() for text in texts), *map(re.escape, packed), *(each.hex().encode() for each in packed), *uuids]
    assert (len(ips) > 30, len(macs) > 20, len(uuids) > 50) == (True, True, True)  # the control: there is something to find
    return re.compile(b"|".join(forms))


def test_nothing_of_the_clusters_own_is_left_in_any_file(both):
    own, neutral = _files(both / "own"), _files(both / "neutral")
    needles = _needles(own)

    def left(content):
        return needles.findall(content.lower() if content[:4] == b"\xd4\xc3\xb2\xa1" else content)[:5]

    found = {name: left(content) for name, content in neutral.items()}
    assert {name: hits for name, hits in found.items() if hits} == {}
    assert [name for name in neutral if needles.search(name.encode())] == []
    assert sum(bool(needles.search(content)) for content in own.values()) > 100


def test_every_verdict_is_the_same(both, tmp_path_factory):
    roots = [tmp_path_factory.mktemp(name) for name in ("own", "neutral")]
    for root in roots:
        recordings.replay(both / root.name.rstrip("0123456789"), root)
    own, neutral = (recordings.facts(root)["verdicts"] for root in roots)

    assert [(v["outcome"], v["conclusion"]) for v in neutral] == [(v["outcome"], v["conclusion"]) for v in own]
    assert {v["outcome"] for v in own} >= {"passed", "failed", "skipped"}  # what was planted is wrong on one node
    assert [_alike(v["message"]) for v in neutral] == [_alike(v["message"]) for v in own]
    assert "with neutral names and addresses" in recordings.facts(roots[1])["cluster"]["Replay of a recording"]


def _alike(message: str) -> list[str]:
    """The words of a message, those that are names, addresses and hashes replaced; sorted, for addresses change their order."""
    text = re.sub(r"(?:\d{1,3}\.){3}\d{1,3}", "ADDRESS", message)
    text = re.sub(r"(KUBE-[A-Z]{2,3}-)[A-Z2-7]{16}", r"\1HASH", text)
    own = r"acme-corp|acme-billing[-\w]*|client-\w+|worker\d|master|resolver[-\w]*"
    return sorted(re.sub(rf"{own}|\b(?:node|pod|service|app|group|front|set)-\d+", "NAME", text).split())


def test_a_name_that_is_also_a_word_of_the_tools_is_replaced_only_where_a_name_stands(both):
    routes = json.loads((both / "neutral" / "nodes" / "node-2" / "snapshot-1" / "ip-route.out").read_text())
    pods = json.loads((both / "neutral" / "api" / "discover-1" / "pods.out").read_text())["items"]

    assert any(route["dst"] == "default" for route in routes)
    assert {"dns", "default"}.isdisjoint(pod["metadata"]["name"] for pod in pods)


def test_the_hashes_of_chains_are_those_of_the_new_names(both):
    text = (both / "neutral" / "nodes" / "node-2" / "snapshot-1" / "iptables-nft-save.out").read_text()

    (rule,) = re.findall(r'-d (\S+)/32 -p tcp -m comment --comment "(\S+):http cluster IP" -m tcp --dport 80 -j (\S+)', text)
    assert rule[2] == chain_names.service_chain(f"{rule[1]}:http", "tcp")
    (target,) = re.findall(rf'-A (\S+) -p tcp -m comment --comment "{rule[1]}:http" -m tcp -j DNAT --to-destination (\S+)', text)
    assert target[0] == chain_names.endpoint_chain(f"{rule[1]}:http", "tcp", target[1])


def test_packets_stay_packets_and_checksums_as_right_as_they_were(both):
    own, neutral = (
        parse_pcap((both / side / "nodes" / node / "traffic-1" / "capture-underlay.out").read_bytes(), interface="x")
        for side, node in (("own", "worker1"), ("neutral", "node-2"))
    )

    def shape(packet):
        return packet.vni, packet.dns_id, packet.dns_response, packet.payload_length, packet.truncated, packet.outer_checksum_ok

    assert [shape(packet) for packet in neutral] == [shape(packet) for packet in own]
    assert {packet.outer_checksum_ok for packet in own} >= {True, None}
    assert len({(a.question, b.question) for a, b in zip(own, neutral, strict=True)}) > 10
    assert all(len(a.question) == len(b.question) for a, b in zip(own, neutral, strict=True) if a.question)


def test_a_wrong_checksum_stays_wrong():
    packet = l2.Ether() / inet.IP(src="10.1.2.3", dst="10.4.5.6") / inet.UDP(dport=8472, chksum=0x1234) / vxlan.VXLAN() / l2.Ether()
    frame = bytes(packet / inet.IP(src="10.42.1.2", dst="10.42.2.3") / inet.UDP(dport=53) / dns.DNS(qd=dns.DNSQR(qname="a.b")))
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    addresses = AddressMap(KEY)

    made = Packets(addresses, DnsMap(KEY, addresses)).capture(head + struct.pack("<4I", 1, 1, len(frame), len(frame)) + frame)

    (found,) = parse_pcap(made, interface="x")
    assert found.outer_checksum_ok is False
    assert found.outer.source == addresses.ip(ipaddress.ip_address("10.1.2.3"))
    assert found.inner.destination == addresses.ip(ipaddress.ip_address("10.42.2.3"))


def test_nft_names_and_large_clusters_without_comments():
    mapping = Mapping(KEY)
    rules = Rules(mapping, Texts(mapping))
    nft = 'endpoint-{}-acme/shop/tcp/http__10.42.0.171/8080 # comment "acme/shop:http"\n'
    text = nft.format("AAAAAAAA") + "-A KUBE-SVC-ABCDEFGHIJKLMNOP -j KUBE-SEP-ABCDEFGHIJKLMNOQ\n"
    rules.rules(text)
    mapping.settle()

    found = rules.rules(text)

    assert not re.search(r"acme|shop|10\.42\.0\.171|AAAAAAAA|ABCDEFGHIJKLMNO", found)
    assert found == rules.rules(text)
    assert re.match(r"endpoint-[A-Z2-7]{8}-(app-1)/(service-1)/tcp/http__10\.\d+\.\d+\.\d+/8080 # comment \"\1/\2:http\"\n", found)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda r: dataclasses.replace(r, head=dataclasses.replace(r.head, redacted=True)), "found one that is redacted already"),
        (lambda r: _with(r, b"\x0a\x0d\x0d\x0a rest"), "expected a pcap file"),
        (lambda r: _with_answer(r, b'{"kind": "ServiceList", "items": [{"metadata": 3, "spec": {"ports": [1]}}]}'), "found another shape"),
    ],
)
def test_what_cannot_be_redacted_is_refused_in_one_line(spoil, says):
    said = Observation("a", "capture-x", ("x",), 0, b"", b"", 0.0, 0.0)
    recording = Recording(nodes={"a": {"traffic-1": {"capture-x": said}}}, api={"discover-1": {}})

    with pytest.raises(RecordingError) as refused:
        redact(spoil(recording))
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def _with(recording, content):
    recording.nodes["a"]["traffic-1"]["capture-x"] = Observation("a", "capture-x", ("x",), 0, content, b"", 0.0, 0.0)
    return recording


def _with_answer(recording, content):
    recording.api["discover-1"]["services"] = Observation("api", "services", ("GET",), 0, content, b"", 0.0, 0.0)
    return recording


def test_the_command_packs_and_refuses_in_one_line(tmp_path):
    said = Observation("worker1", "ip-route", ("ip",), 0, b"10.42.1.0/24 via 10.42.0.7", b"", 0.0, 0.0)
    storage.write(Recording(nodes={"worker1": {"snapshot-1": {"ip-route": said}}}, api={}), tmp_path / "in")

    def command(*arguments):
        return subprocess.run([sys.executable, "-m", "servicepath.redact", *arguments], cwd=recordings.ROOT, capture_output=True, text=True)

    done = command(str(tmp_path / "in"), str(tmp_path / "out.tar.zst"))
    again = command(str(tmp_path / "out.tar.zst"), str(tmp_path / "more"))
    taken = command(str(tmp_path / "in"), str(tmp_path / "in"))

    assert done.returncode == 0, done.stderr
    (path,) = (name for name in storage.files_of(tmp_path / "out.tar.zst") if name.endswith("ip-route.out"))
    assert path == "nodes/node-1/snapshot-1/ip-route.out"
    assert storage.read(tmp_path / "out.tar.zst").head.redacted
    assert [(each.returncode, each.stderr.count("\n")) for each in (again, taken)] == [(2, 1), (2, 1)]
    assert "redacted already" in again.stderr
    assert dict(codec.encode(storage.read(tmp_path / "in")))  # it is untouched
