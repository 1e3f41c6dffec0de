"""Two files for one thing, of others' outputs: an ERROR that names both, whatever they are, and never a verdict without them."""

from __future__ import annotations

import pytest
from judging import ROOT, case, judged, laid_out

from fixtures.loose import LooseAnswers
from servicepath.loose import normal, reader
from servicepath.loose.whatis import API, CAPTURE, KINDS
from servicepath.observation import CouldNotSee, Observation, Trouble

READ = {
    **dict.fromkeys(("iptables-save", "iptables-nft-save", "iptables-legacy-save", "nft-kube-proxy"), "service-rule"),
    **dict.fromkeys(("ip6tables-save", "ip6tables-nft-save", "ip6tables-legacy-save"), "chain-names"),
    **dict.fromkeys(("agent-services", "agent-lb-list"), "dataplanes-programmed"),
    **dict.fromkeys(("agent-status", "kube-proxy-mode", "ip-link"), "mode-as-expected"),
    **dict.fromkeys(("ip-route", "ip-rule", "ip6-route", "ip6-rule"), "no-route"),
    "ip-addr": "no-interface", "listeners": "no-listener", "conntrack": "host-translated-by-conntrack", "dmesg": "answer-comes-back",
}  # fmt: skip
"""What can be there twice → a conclusion that reads it. Captures stand side by side; Cilium's flow tables are read by none."""

BASE = {"nodes/n/service-list.txt": case("13", "service-list-node1.txt"), "api/slices.json": case("13", "endpointslices.json")}


def twice(kind):
    """Two files of one kind that do not say the same."""
    hints = f"files: {{nodes/n/one.txt: {kind}, nodes/n/two.txt: {kind}}}"
    return {"nodes/n/one.txt": "the one\n", "nodes/n/two.txt": "the other\n", "recording.yaml": hints}


def test_every_word_for_what_a_file_is_is_looked_at():
    assert set(READ) == set(KINDS) - {API, CAPTURE, "agent-ct"}


@pytest.mark.parametrize(("kind", "conclusion"), READ.items())
def test_two_files_of_any_kind_are_an_error_of_what_reads_them(kind, conclusion, tmp_path):
    base = {path: said for path, said in BASE.items() if not (kind == "agent-services" and "service-list" in path)}
    other = {"nodes/n/bpf-lb-list.txt": case("13", "bpf-lb-list-node2.txt")} if kind == "agent-services" else {}
    found = judged(laid_out(tmp_path, {**base, **other, **twice(kind)}), "-k", conclusion.replace("-", "_"), str(ROOT / "tests"))

    assert found.of(conclusion) == {"error"}
    assert f"2 files say the {kind} of n: nodes/n/one.txt, nodes/n/two.txt" in found.message(conclusion)


@pytest.mark.parametrize("kind", sorted({*KINDS} - {API, CAPTURE}))
def test_asking_whether_it_is_there_raises_what_keeps_it_from_being_told(kind):
    trouble = Trouble("n", "2 files say it")
    seen = Observation("n", "x", ("cat", "x"), 0, b"", b"", 0.0, 0.0)
    for name in normal.names_of(kind):
        answers = LooseAnswers("n", {name: seen, "another": seen}, {("n", kind): trouble, ("m", "another"): trouble})

        assert "another" in answers
        assert name in list(answers)
        for ask in (answers.__contains__, answers.__getitem__):
            with pytest.raises(CouldNotSee, match="2 files say it"):
                ask(name)


def test_maps_of_two_unnamed_nodes_are_no_passed_by_the_list_alone(tmp_path):
    flat = {
        "bpf-lb-list-left.txt": case("13", "bpf-lb-list-node1.txt"), "bpf-lb-list-right.txt": case("13", "bpf-lb-list-node2.txt"),
        "service-list.txt": case("13", "service-list-node1.txt"), "eps.json": case("13", "endpointslices.json"),
    }  # fmt: skip
    found = judged(laid_out(tmp_path, flat))

    assert found.of("dataplanes-programmed") == {"error"}
    assert "2 files say the agent-lb-list of node: bpf-lb-list-left.txt, bpf-lb-list-right.txt" in found.message("dataplanes-programmed")
    assert "passed" not in {outcome for outcome, _ in found.found.values()}


@pytest.mark.parametrize(("json", "taken"), [("lb-list.json", True), ("lb-list-left.json", False)])
def test_a_json_of_another_name_does_not_stand_for_a_text(json, taken, tmp_path):
    flat = {"lb-list.txt": case("13", "bpf-lb-list-node2.txt"), json: case("13", "bpf-lb-list-node1.json")}
    found = reader.read(laid_out(tmp_path, flat))

    both = f"2 files say the agent-lb-list of node: {json}, lb-list.txt"
    assert [each.path for each in found.said] == ([json] if taken else [])
    assert [*found.unread.values()] == ([f"says what {json} says"] if taken else [both, both])


def test_what_is_there_twice_goes_with_the_node_whose_address_another_file_shows(tmp_path):
    nodes = "kind: Node\napiVersion: v1\nmetadata: {name: w}\nstatus: {addresses: [{type: InternalIP, address: 10.9.8.7}]}\n"
    address = "eth0             UP             10.9.8.7/24\n"
    lists = {f"{name}-bpf-lb-list.txt": case("13", "bpf-lb-list-node2.txt") for name in "ab"}
    known = normal.make(reader.read(laid_out(tmp_path, {"node.yaml": nodes, "ip-addr.txt": address, **lists})))

    assert list(known.loose.doubled) == [("w", "agent-lb-list")]


def test_counters_of_which_one_reading_is_there_twice_are_not_compared(tmp_path):
    save = case("01", "nat-after-zero.save")
    found = judged(laid_out(tmp_path, {
        "nodes/n/nat@1.save": save, "nodes/n/a@2.save": save, "nodes/n/b@2.save": save, "nodes/n/nat@3.save": save,
        "recording.yaml": "between: [{pod: 20}, {host: 20}]",
    }))  # fmt: skip

    assert found.of("pod-leaves-counters") == {"error"}


FLAT = {
    "bpf-lb-list-gke-pool-a.txt": case("13", "bpf-lb-list-node1.txt"), "bpf-lb-list-gke-pool-b.txt": case("13", "bpf-lb-list-node2.txt"),
    "service-list-gke-pool-a.txt": case("13", "service-list-node1.txt"), "eps.json": case("13", "endpointslices.json"),
}  # fmt: skip


def test_a_run_says_that_no_file_names_a_node_and_one_line_names_them(tmp_path):
    chosen = ("-v", "-k", "dataplanes_programmed", str(ROOT / "tests"))
    alone = judged(laid_out(tmp_path, FLAT), *chosen)
    told = judged(laid_out(tmp_path, {"recording.yaml": "nodes: {gke-pool-a: {}, gke-pool-b: {}}"}), *chosen)

    assert "no file says which node: all taken as of one" in alone.said.splitlines()
    assert alone.of("dataplanes-programmed") == {"error"}
    assert "no file says which node" not in told.said
    assert told.of("dataplanes-programmed", "gke-pool-a") == {"failed"}
    assert told.of("dataplanes-programmed", "gke-pool-b") == {"passed"}


def test_only_some_files_of_no_known_node_are_named(tmp_path):
    files = {"nodes/n/service-list.txt": FLAT["service-list-gke-pool-a.txt"], "lb-list.txt": FLAT["bpf-lb-list-gke-pool-b.txt"]}
    found = judged(laid_out(tmp_path, files), "-v", "--collect-only", str(ROOT / "tests"))

    assert "no file says which node some outputs are of, taken as of one: lb-list.txt" in found.said
