"""What others recorded: which file is what, whose and of when; a folder that cannot be used is one line; variants of the cases' kinds."""

from __future__ import annotations

import io
import json
import pathlib
import re
import tarfile
import zipfile

import pytest
import yaml
from judging import case, judged, laid_out

from servicepath.loose import documents, hints, normal, reader, sysdump
from servicepath.loose.whatis import what_is
from servicepath.parse.kubernetes import parse_kubernetes
from servicepath.recording.model import RecordingError

SYSDUMP = pathlib.Path(__file__).parent / "data" / "others" / "cilium-sysdump-lab.zip"
RULES, CONTROL = "tests/test_2_service_in_iptables.py", "tests/test_1_control_path.py"
HOST, ROUTES = "tests/test_3_clusterip_on_a_host.py", "tests/test_4_routing_to_a_remote_podcidr.py"


KINDS = {
    "iptables-save": ("03/iptables-save-c.txt", "05/iptables-S-nat.txt", "09/iptables-save-grep.txt", "11/restore-input.rules"),
    "iptables-nft-save": ("08/nft-backend-nat.save", "08/nft-backend-prerouting.txt"),
    "iptables-legacy-save": ("08/legacy-backend-nat.save",),
    "nft-kube-proxy": ("06/nft-list-table-ip-kube-proxy.json", "06/nft-list-table-ip-kube-proxy.txt"),
    "ip-addr": ("05/ip-addr.txt", "12/ip-j-addr.json", "22/ip-br-addr.txt", "22/gke-addr.txt"),
    "ip-link": ("19/ip-link.txt", "16/ip-j-d-link-cilium_vxlan.json", "22/ip-link-bond0.txt"),
    "ip-route": ("05/ip-route.txt", "16/ip-j-route.json", "12/ip-route-local.txt", "22/ip-route-table-200.txt"),
    "ip-rule": ("05/ip-rule.txt", "22/ip-rule.txt"),
    "conntrack": ("18/conntrack-L-unreplied.txt",),
    "agent-status": ("14/v1.7-strict.txt", "14/v1.20-false.txt", "01/cilium-status-details.txt"),
    "agent-services": ("13/service-list-node1.txt", "15/v1.0-service-list.txt", "15/v1.6-service-list.json", "15/ipv6-service-list.txt"),
    "agent-lb-list": ("13/bpf-lb-list-node1.json", "15/v1.0-bpf-lb-list.txt", "15/v1.18-bpf-lb-list-local.txt"),
    "capture": ("16/vxlan-8472.pcap",),
    "dmesg": ("17/dmesg-receiver.txt",),
    "api": ("21/services.json", "09/endpoints-v1.json", "16/nodes.json"),
}


@pytest.mark.parametrize(("kind", "source"), [(kind, source) for kind, sources in KINDS.items() for source in sources])
def test_a_file_is_known_by_its_content_whatever_its_name(kind, source):
    path = case(*source.split("/"))
    blind = {"iptables-nft-save": "iptables-save", "iptables-legacy-save": "iptables-save"}.get(kind, kind)

    assert what_is(path.name, path.read_bytes()).kind == kind
    assert what_is("output-17", path.read_bytes()).kind == blind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ip6-route.txt", "ip6-route"), ("ip-6-rule.txt", "ip6-rule"), ("ip_addr.txt", "ip-addr"), ("conntrack -L.txt", "conntrack"),
        ("cilium-dbg-status.txt", "agent-status"), ("bpf-lb-list.json", "agent-lb-list"), ("x.pcapng", "capture"), ("nodes.yaml", "api"),
        ("ip6tables-nft-save", "ip6tables-nft-save"), ("README.md", None), ("case.md", None), ("kubectl-svc.txt", None),
    ],
)  # fmt: skip
def test_a_damaged_or_empty_file_is_known_by_its_name(name, kind):
    assert what_is(name, b"" if kind != "api" else b"{").kind == kind


def test_objects_of_mixed_lists_and_of_several_yaml_documents_come_together():
    services = json.loads(case("04", "services.json").read_text())["items"]
    slices = json.loads(case("04", "endpointslices.json").read_text())["items"]
    as_yaml = "---\n".join(yaml.safe_dump(item) for item in services)
    mixed = {"kind": "List", "apiVersion": "v1", "items": [*slices, {"kind": "Secret", "metadata": {"name": "s"}}]}
    found = documents.gather([what_is("a.yaml", as_yaml.encode()).document, what_is("b.json", json.dumps(mixed).encode()).document])

    assert {key: len(document["items"]) for key, document in found.items()} == {"services": len(services), "endpointslices": len(slices)}
    assert len(parse_kubernetes(documents.complete(found, None)).services) == len(services)


def test_old_endpoints_stand_in_for_slices():
    objects = documents.gather([json.loads(case("09", "endpoints-v1.json").read_text())])

    assert [len(each["endpoints"]) for each in objects["endpointslices"]["items"]] == [3]
    assert documents.sliced(objects) == {"default/k8s-nginx-affinity"}


def test_nodes_and_times_are_told_by_folder_name_and_hint(tmp_path):
    save = case("01", "nat-after-zero.save")
    laid_out(tmp_path, {
        "nodes/a/nat@1.save": save, "nodes/a/nat@2.save": save, "worker7-nat.save": save, "dump.txt": save,
        "recording.yaml": "files: {dump.txt: {is: iptables-legacy-save, node: c, time: 3}}\nnodes: {worker7:}",
    })  # fmt: skip
    found = {(each.node, each.time, each.what.kind) for each in reader.read(tmp_path).said}

    assert found == {
        ("a", 1, "iptables-save"), ("a", 2, "iptables-save"), ("worker7", 1, "iptables-save"), ("c", 3, "iptables-legacy-save"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "the folder is empty"),
        ({"notes.txt": "hello"}, "no output that is known here"),
        ({"recording.yaml": "between: {host: 20, pod: 3}", "a.save": "x"}, "recording.yaml: between.0: .*host: or pod:"),
        ({"recording.yaml": "files: {gone.txt: ignore}", "a.save": "x"}, r"files: gone\.txt: there is no such file"),
        ({"recording.yaml": "files: {a.save: {is: novel}}", "a.save": "x"}, "expected one of iptables-save"),
        ({"recording.yaml": "files: [", "a.save": "x"}, "expected YAML"),
        ({"recording.yaml": "nods: {}", "a.save": "x"}, "nods: Extra inputs"),
        ({"api/services.json": '{"kind": "List", "items": [{"kind": "Service", "metadata": {"name": 7}}]}'}, "services"),
    ],
)
def test_a_folder_that_cannot_be_used_is_one_line(files, said, tmp_path):
    found = judged(laid_out(tmp_path, files))
    errors = [line for line in found.said.splitlines() if "ERROR" in line]

    assert found.code == 4
    assert len(errors) == 1
    assert re.search(said, errors[0])


@pytest.mark.parametrize("content", [b"PK\x03\x04 not whole", b"no archive at all"])
def test_an_archive_that_cannot_be_used_is_one_line(content, tmp_path):
    (tmp_path / "dump.zip").write_bytes(content)

    with pytest.raises(RecordingError, match=r"dump\.zip: expected a folder, a \.zip or a \.tar"):
        reader.read(tmp_path / "dump.zip")
    with pytest.raises(RecordingError, match="No such file"):
        reader.read(tmp_path / "gone.zip")


def test_a_sysdump_of_the_lab_is_judged():
    found = judged(SYSDUMP, CONTROL, RULES, HOST, ROUTES)

    assert {outcome for outcome, _ in found.found.values()} == {"passed", "skipped"}
    assert found.of("service-rule") == found.of("endpoint-dnat") == found.of("chain-names") == found.of("backend-choice") == {"passed"}
    assert found.of("dataplanes-programmed") == found.of("mode-as-expected") == found.of("rules-equal-on-nodes") == {"passed"}
    assert found.of("no-interface") == found.of("remote-podcidr-route") == found.of("tunnel-mtu") == {"passed"}
    assert len(found.these("mode-as-expected")) == 3
    assert "not in this recording: listeners of worker1" in found.message("no-listener", "worker1")


def test_without_traffic_a_sysdump_is_judged_by_all_that_is_in_it():
    chosen = (CONTROL, RULES, ROUTES)
    passive, all_of_it = judged(SYSDUMP, "--passive", *chosen), judged(SYSDUMP, *chosen)

    held = {name for name, (outcome, _) in all_of_it.found.items() if outcome == "passed"}
    assert {name for name, (outcome, _) in passive.found.items() if outcome == "passed"} == held
    assert passive.of("mode-as-expected") == passive.of("dataplanes-programmed") == {"passed"}


def changed(tmp_path, **changes):
    """The sysdump with some of its files changed: pattern of the path → (old, new)."""
    target = tmp_path / "changed.zip"
    with zipfile.ZipFile(SYSDUMP) as source, zipfile.ZipFile(target, "w") as copy:
        for entry in source.infolist():
            text = source.read(entry).decode()
            for old, new in (pair for part, pair in changes.items() if part in entry.filename):
                assert re.search(old, text)
                text = re.sub(old, new, text)
            copy.writestr(entry.filename, text)
    return target


def test_a_sysdump_with_faults_names_them(tmp_path):
    text = zipfile.ZipFile(SYSDUMP).read(next(n for n in zipfile.ZipFile(SYSDUMP).namelist() if n.endswith("iptables-nft-save--c.md")))
    dns = re.search(r"KUBE-SEP-\w+ .*kube-dns:dns\" -m udp -j DNAT --to-destination (\S+)", text.decode())[1]
    to = "udp -j DNAT --to-destination"
    broken = changed(tmp_path, **{
        "ip--4-r.md": (r"mtu 1450", "mtu 1500"), "bpf-lb-list": (re.escape(f"{dns}/UDP"), "10.42.9.9:53/UDP"),
        "iptables-nft-save": (f"{to} {re.escape(dns)}", f"{to} 10.42.9.9:53"),
    })  # fmt: skip
    found = judged(broken, CONTROL, RULES, ROUTES)

    assert found.of("tunnel-mtu") == {"failed"}
    assert found.of("endpoint-dnat", "kube-dns:dns/UDP") == {"failed"}
    assert "10.42.9.9:53" in found.message("endpoint-dnat", "kube-dns:dns/UDP")
    assert "load-balancing map" in found.message("dataplanes-programmed", "kube-dns:dns/UDP")
    assert found.of("service-rule") == {"passed"}


def test_older_sysdumps_keep_a_nodes_bugtool_in_a_tar(tmp_path):
    pod = "cilium-abcde-20240101-000000"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        data = case("03", "iptables-save-c.txt").read_bytes()
        info = tarfile.TarInfo(f"cilium-bugtool-{pod}/cmd/iptables-save--c.md")
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    names = {f"dump/cilium-bugtool-{pod}.tar.gz": packed.getvalue(), "dump/k8s-services-20240101-000000.yaml": b""}
    with zipfile.ZipFile(tmp_path / "old.zip", "w") as archive:
        for name, content in names.items():
            archive.writestr(name, content)
    said = reader.read(tmp_path / "old.zip").said

    assert sysdump.is_sysdump(names)
    assert [(each.node, each.what.kind) for each in said] == [("cilium-abcde", "iptables-save")]


def test_services_are_derived_with_their_ports_policies_and_marks(tmp_path):
    names = ("nft-list-table-ip-kube-proxy.json", "nft-list-table-ip-kube-proxy.txt", "endpointslices.json")
    known = normal.make(reader.read(laid_out(tmp_path, {name: case("06", name) for name in names})))
    objects = parse_kubernetes(known.documents)

    assert {service.key for service in objects.services} >= {"lab/hello-np-svc", "lab/otelcol", "kube-system/kube-dns"}
    assert objects.service("lab/hello-np-svc").ports[0].node_port == 30000
    assert not known.whole
    assert any(line.startswith("lab/otelcol: from ") for line in known.told(objects))


def test_hints_may_be_left_out_and_bare_words_say_what_a_file_is():
    assert hints.load(None, "x") == hints.Hints()
    assert hints.load(b"files: {a: conntrack}\nbetween: {host: 3}", "x").files["a"].is_ == "conntrack"


def test_two_files_of_one_kind_are_an_error_that_names_both(tmp_path):
    save = case("04", "nat.save")
    folder = laid_out(tmp_path, {"nodes/n/a.save": save, "nodes/n/b.save": save, "api/s.json": case("04", "services.json"),
                                 "api/e.json": case("04", "endpointslices.json")})  # fmt: skip
    found = judged(folder, RULES)

    assert found.of("service-rule") == {"error"}
    assert "nodes/n/a.save, nodes/n/b.save" in found.message("service-rule")


@pytest.mark.parametrize("column", [80, 120])
def test_rules_cut_at_a_column_are_an_error_with_file_and_line(column, tmp_path):
    cut = "\n".join(line[:column] for line in case("04", "nat.save").read_text().splitlines())
    folder = laid_out(tmp_path, {"nodes/n/nat.save": cut, "api/s.json": case("04", "services.json"),
                                 "api/e.json": case("04", "endpointslices.json")})  # fmt: skip
    found = judged(folder, RULES)

    assert found.of("service-rule") == {"error"}
    assert re.search(rf"line \d+.*end at column {column}.*\n.*cat nodes/n/nat.save", found.message("service-rule"))


def test_a_table_and_the_rest_in_files_of_their_own_are_read_together(tmp_path):
    text = case("03", "iptables-save-c.txt").read_text()
    tables = {name: f"*{name}\n{body}COMMIT\n" for name, body in re.findall(r"^\*(\w+)\n(.*?)^COMMIT$", text, re.M | re.S)}
    folder = laid_out(tmp_path, {**{f"nodes/n/iptables-save-{name}.txt": body for name, body in tables.items()},
                                 "api/e.json": case("03", "endpointslices.json")})  # fmt: skip
    found = judged(folder, RULES)

    assert found.of("service-rule", "kube-dns") == {"passed"}
    assert found.of("service-rule", "kubernetes") == {"passed"}
    assert found.of("chain-names") == {"passed"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"kind": "EndpointSliceList", "apiVersion": "v1",\n "items": [{"metadata": {', "line 2: expected complete JSON"),
        ("kind: List\nitems:\n- {metadata: [", r"line \d: expected complete YAML"),
        ('{"a": 1}', "line 1: expected API objects"),
        ("", "line 1: expected API objects"),
    ],
    ids=["JSON", "YAML", "another tool's", "empty"],
)
def test_a_damaged_api_list_is_an_error_and_not_an_absence(text, why, tmp_path):
    found = judged(laid_out(tmp_path, {"nodes/n/nat.save": case("04", "nat.save"), "api/endpointslices.json": text}), RULES)

    assert found.of("endpoint-dnat") == {"error"}
    assert re.search(f"api/endpointslices.json: {why}", found.message("endpoint-dnat"))
    assert found.of("service-rule") == {"passed"}  # of the Services that the rules name


def test_an_object_without_apiversion_is_one(tmp_path):
    items = json.loads(case("04", "services.json").read_text())["items"]
    alone = {f"api/{number}.json": json.dumps({"kind": "Service", **item} | {"apiVersion": None}) for number, item in enumerate(items)}

    known = normal.make(reader.read(laid_out(tmp_path, {"nodes/n/nat.save": case("04", "nat.save"), **alone})))

    assert len(known.loose.api["services"]["items"]) == len(items)
