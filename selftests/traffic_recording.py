"""A recorded traffic experiment of the lab (Kubernetes v1.34.4, Cilium 1.19.1, kube-dns alone), and how it was recorded.

    data/traffic/api/*.json             what the API said, as far as it is read here
    data/traffic/NODE/plan.json         the probes that were sent
    data/traffic/NODE/NAME.out          what each command of the batch said; capture-ROLE.out is a pcap

``python -m pytest -p selftests.traffic_recording --service kube-system/kube-dns --node master --node worker1 -k path_matrix`` makes
it anew while the lab is up, with PYTHONPATH=. and RECORD_TRAFFIC=1 in the environment.
"""

import ipaddress
import json
import os
import pathlib

from fixtures import traffic_facts
from servicepath.experiments.capture import Tap
from servicepath.experiments.traffic import NodePlan
from servicepath.model.addresses import Socket
from servicepath.model.flows import Probe, Query, Source
from servicepath.observation import Observation
from servicepath.parse.kubernetes import parse_kubernetes

DATA = pathlib.Path(__file__).parent / "data" / "traffic"
API = ("version", "services", "endpointslices", "pods", "nodes", "networkpolicies", "ciliumnodes")
KEPT = {
    "pods": ("metadata.name", "metadata.namespace", "metadata.labels", "spec.nodeName", "spec.hostNetwork", "status.phase", "status.podIPs",
             "status.podIP", "status.conditions"),
}  # fmt: skip


def objects():
    """What the API said."""
    return parse_kubernetes({name: json.loads((DATA / "api" / f"{name}.json").read_text(encoding="utf-8")) for name in API})


def answers(node):
    """Name → Observation, as the node's batch gave them."""
    found = {}
    for path in sorted((DATA / node).glob("*.out")):
        found[path.stem] = Observation(node, path.stem, (path.stem,), 0, path.read_bytes(), b"", 0.0, 0.0)
    return found


def plan(node, known):
    """The plan that the node's flows were sent by."""
    told = json.loads((DATA / node / "plan.json").read_text(encoding="utf-8"))
    ports = {port.id: port for service in known.services for port in service.ports}
    ip = ipaddress.ip_address
    probes = tuple(
        Probe(
            p["id"], p["window"], Source(p["source"]), ports[p["port"]], Socket(ip(p["ip"]), p["dport"]), p["sport"],
            tuple(Query(q["id"], q["question"], bytes.fromhex(q["payload"])) for q in p["queries"]), p["timeout"], p["df"],
        )
        for p in told["probes"]
    )  # fmt: skip
    taps = tuple(Tap(*tap) for tap in told["taps"])
    addresses = tuple(map(ip, told["addresses"]))
    return NodePlan(node, ("iptables-save",), addresses, probes, taps, told["netns"], (ip(told["client"]),), told["route_mtu"])


def read(node, known=None, **changed):
    """The node's experiment as facts; ``changed`` replaces or adds what a command said (its bytes), by name with _ for -."""
    known = known or objects()
    said = answers(node)
    for name, text in changed.items():
        name = name.replace("_", "-")
        argv, status = (said[name].argv, said[name].status) if name in said else ((name,), 0)
        said[name] = Observation(node, name, argv, status, text, b"", 0.0, 0.0)
    return traffic_facts.read(plan(node, known), said, said["bpf-ct"], known, 8472)


def _dump(one, said, ct):
    folder = DATA / one.node
    folder.mkdir(parents=True, exist_ok=True)
    probes = [
        {
            "id": p.id, "window": p.window, "source": p.source.value, "port": p.port.id, "ip": str(p.target.ip), "dport": p.target.port,
            "sport": p.sport, "timeout": p.timeout, "df": p.dont_fragment,
            "queries": [{"id": q.dns_id, "question": q.question, "payload": q.payload.hex()} for q in p.queries],
        }
        for p in one.probes
    ]  # fmt: skip
    told = {
        "addresses": list(map(str, one.addresses)), "netns": one.client_netns, "client": str(one.client), "route_mtu": one.route_mtu,
        "taps": [[t.role, t.interface, t.filter] for t in one.taps], "probes": probes,
    }  # fmt: skip
    (folder / "plan.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    for name, observation in {**said, "bpf-ct": ct}.items():
        text = observation.stdout
        if name == "bpf-ct":
            ours = {str(p.sport).encode() for p in one.probes}
            text = b"".join(line for line in text.splitlines(keepends=True) if any(b":" + port + b" " in line for port in ours))
        (folder / f"{name}.out").write_bytes(text)


def _only(item, paths):
    """The item with nothing but these fields."""
    kept = {}
    for path in paths:
        source, target = item, kept
        *parents, last = path.split(".")
        for parent in parents:
            source, target = source.get(parent, {}), target.setdefault(parent, {})
        if last in source:
            target[last] = source[last]
    return kept


def pytest_unconfigure(config):
    """Copy what the API said, trimmed."""
    if "RECORD_TRAFFIC" not in os.environ:
        return
    (DATA / "api").mkdir(parents=True, exist_ok=True)
    for name in API:
        told = json.loads((config.rootpath / "reports" / "raw" / "api" / f"{name}.out").read_text(encoding="utf-8"))
        if name in KEPT:
            told["items"] = [_only(item, KEPT[name]) for item in told["items"]]
        for item in told.get("items", ()):
            item.get("metadata", {}).pop("managedFields", None)
        (DATA / "api" / f"{name}.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if "RECORD_TRAFFIC" in os.environ:
    _read = traffic_facts.read

    def _recording(one, said, ct, *rest):
        _dump(one, said, ct)
        return _read(one, said, ct, *rest)

    traffic_facts.read = _recording
