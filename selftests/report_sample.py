"""A run as a three-node cluster gives it, made by hand: every outcome, repeated evidence, and names that try to break the page."""

from __future__ import annotations

from pathlib import Path

from servicepath.model.paths import Hop, PathCell
from servicepath.model.results import Exhibit, RunSummary, Verdict

NODES = ("master", "worker1", "worker2")
NODE_IP = {"master": "192.168.55.10", "worker1": "192.168.55.11", "worker2": "192.168.55.12"}
PORTS = ("kube-dns:dns/UDP", "kube-dns:dns-tcp/TCP", "kube-dns:metrics/TCP", "resolver:dns/UDP", "resolver:dns-tcp/TCP")
HOSTILE = (
    "<script>alert('x')</script>",
    '"><img src=x onerror=alert(1)>',
    "</details></main><h1>gone</h1>",
    "</pre></template></svg>",
    "{{ 7*7 }} {% raw %} &amp; &lt;",
    "a\x1b[31mred\x00\x07",
    "user\u202egnp.exe\u2066",
    "no utf-8: \ufffd\udcff",
    "' onmouseover='alert(1)",
)

_DATA = Path(__file__).parent / "data" / "report"
_TABLE = [line.split("\t") for line in (_DATA / "conclusions.tsv").read_text(encoding="utf-8").splitlines()[1:]]
_RULES = tuple((_DATA / "rules.txt").read_text(encoding="utf-8").splitlines())


def exhibits(node: str, port: str | None) -> tuple[Exhibit, ...]:
    """What most conclusions of a node show: the same rules again and again, and a line of their own."""
    return (
        Exhibit("Rules of the Service", "sudo iptables-nft-save -c -t nat", _RULES * 3, f"{node}/iptables-nft-save.txt"),
        Exhibit("Before", f"sudo conntrack -L  # {port}", ("[1:105] KUBE-SVC-TCOU7JCQXEZGVUNU", "[1:105] KUBE-SEP-L5JRWRCR3OTUNAH5")),
    )


def _verdict(row: list[str], node: str | None, port: str | None) -> Verdict:
    group, conclusion, section, _, sentence = row
    outcome, message, cause = _outcome(conclusion, node, port)
    return Verdict(
        conclusion=conclusion,
        section=section,
        group=group,
        sentence=sentence,
        case=", ".join(part for part in (node, port) if part),
        outcome=outcome,
        message=message,
        exhibits=exhibits(node or "api", port) if outcome != "skipped" else (),
        see=(
            f"ssh {node or 'master'} 'sudo iptables-save -c -t nat | grep 10.43.0.10'",
            "kubectl get endpointslices -n kube-system -o wide",
        ),
        cause=cause,
        duration=0.0123,
        node=node,
        port=port,
    )


def _outcome(conclusion: str, node: str | None, port: str | None) -> tuple[str, str, tuple[str, ...]]:
    match conclusion, node, port:
        case "endpoint-dnat", "worker2", "kube-dns:dns/UDP":
            return (
                "failed",
                "worker2: KUBE-SVC-TCOU7JCQXEZGVUNU of kube-system/kube-dns:dns - DNAT leads to no serving endpoint - "
                "expected: 10.42.1.113:53, actual: 10.42.1.98:53\n"
                "    [3:315] -A KUBE-SEP-EOVD533DIZYTLRLX -p udp -m udp -j DNAT --to-destination 10.42.1.98:53",
                ("Pod kube-system/coredns-6d9f was replaced 94 s ago; kube-proxy on worker2 last synced 312 s ago.",),
            )
        case "mode-as-expected", "worker2", _:
            return "failed", "worker2: proxy mode - not as pinned - expected: iptables, actual: nftables", ()
        case "no-listener", "worker2", _:
            return (
                "error",
                "worker2: ss could not be run\n  command: ssh worker2 'sudo -n ss -Htulnp'\n  | sudo: a password is required\n"
                "  remedy: give the user the sudoers line for ss (README, Rights)",
                (),
            )
        case "packets-skip-the-api", _, _:
            return "skipped", "needs --disruptive: makes the API unreachable for some seconds", ()
        case (("pod-leaves-counters" | "translated-at-the-pod"), "worker1", str(name)) if name.startswith("resolver"):
            return "skipped", "no flow from worker1 reached a remote backend in 32 flows (local: 32)", ()
    return "passed", "", ()


def _verdicts() -> list[Verdict]:
    found = []
    for row in _TABLE:
        nodes: tuple[str | None, ...] = (None,) if row[3] == "once" else NODES
        ports: tuple[str | None, ...] = PORTS if row[3] == "port" else (None,)
        found += [_verdict(row, node, port) for node in nodes for port in ports]
    return found


def _hops(source: str, node: str) -> tuple[Hop, ...]:
    client = {"Pod": "10.42.0.161", "host": "10.43.0.10"}.get(source, "")
    outer = f"{NODE_IP[node]} → 192.168.55.11:8472/UDP"
    if source == "Pod":
        return (
            Hop(f"Pod's lxc7f3a on {node}", f"{client}:40123 → 10.43.0.10:53/UDP", note="Cilium eBPF: 10.43.0.10:53 → 10.42.1.113:53"),
            Hop(f"cilium_vxlan on {node}", f"{client}:40123 → 10.42.1.113:53/UDP"),
            Hop(f"VXLAN on enp1s0 of {node}", f"{client}:40123 → 10.42.1.113:53/UDP", outer),
            Hop(
                "backend's lxc19ab on worker1", f"{client}:40123 → 10.42.1.113:53/UDP", note="CoreDNS answers; back the same way, reversed"
            ),
        )
    return (
        Hop(f"socket of a process on {node}", f"{NODE_IP[node]}:51515 → 10.43.0.10:53/UDP",
            note="kube-proxy (iptables): DNAT to 10.42.1.113:53, masqueraded to the CiliumInternalIP"),
        Hop(f"cilium_host on {node}", "10.42.0.9:51515 → 10.42.1.113:53/UDP"),
        Hop(f"VXLAN on enp1s0 of {node}", "10.42.0.9:51515 → 10.42.1.113:53/UDP", outer),
        Hop("backend's lxc19ab on worker1", "10.42.0.9:51515 → 10.42.1.113:53/UDP"),
    )  # fmt: skip


def _paths() -> list[PathCell]:
    cells = []
    for port in PORTS:
        for node in NODES:
            local = node == "worker1"
            way = "local delivery" if local else "Cilium VXLAN"
            hops = () if local or not port.endswith("UDP") else _hops("host", node)
            cells.append(PathCell("host", node, port, "kube-proxy (iptables)", way, "as expected", hops=hops))
            if port == "kube-dns:metrics/TCP":
                cells.append(PathCell("Pod", node, port, None, None, "not tested", "a TCP connect shows no answer to follow"))
                continue
            hops = () if local or not port.endswith("UDP") else _hops("Pod", node)
            cells.append(PathCell("Pod", node, port, "Cilium (eBPF)", way, "as expected", hops=hops))
        cells.append(PathCell("LAN host", "lan-client", port, "nobody", None if "UDP" in port else "LAN", "as expected"))
    cells.append(PathCell("host", "worker2", PORTS[0], None, None, "unanswered", "none of 12 flows was answered"))
    cells.append(PathCell("Pod", "worker2", PORTS[0], "nobody", "plain on the underlay", "not as expected"))
    return cells


def facts() -> dict[str, dict[str, str]]:
    """Facts of the nodes: some differ, one could not be seen."""
    return {
        node: {
            "Node IP": NODE_IP[node],
            "PodCIDRs (CiliumNode)": f"10.42.{number}.0/24",
            "kernel": "6.12.9-amd64" if node != "worker2" else "6.1.0-18-amd64",
            "kubelet": "v1.34.4+k3s1",
            "Cilium agent": "1.19.1",
            "iptables": "1.8.9 (nf_tables)",
            "proxy mode": "iptables" if node != "worker2" else "nftables",
            "KubeProxyReplacement": "False",
            "socket LB": "Disabled",
            "tunnel": "VXLAN, port 8472",
            "MTU (device / route)": "1500 / 1450",
            "conntrack": "1.4.7" if node != "worker2" else "could not be seen: no conntrack on PATH (package conntrack)",
        }
        for number, node in enumerate(NODES)
    }


def summary(hostile: bool = False) -> RunSummary:
    """Return the run; a hostile one has the strings of HOSTILE wherever a node or the API may put text."""
    verdicts, paths, nodes = _verdicts(), _paths(), facts()
    cluster = {
        "API server": "v1.34.4+k3s1",
        "Cilium": "1.19.1",
        "Services under test": "kube-system/kube-dns 10.43.0.10\nresolver/resolver 10.43.7.7",
        "Cluster CIDR": "10.42.0.0/16",
        "Service CIDR": "10.43.0.0/16",
        "routing": "tunnel (VXLAN)",
    }
    if hostile:
        text = "\n".join(HOSTILE)
        nodes["worker2"]["kernel"] = text
        nodes[HOSTILE[1]] = {HOSTILE[0]: text}
        cluster[HOSTILE[2]] = text
        for outcome in ("failed", "passed", "skipped", "error"):
            verdicts.append(_hostile(outcome, text))
        paths.append(PathCell(HOSTILE[0], HOSTILE[1], HOSTILE[2], text, text, HOSTILE[8], text, (Hop(text, text, text, text),) * 2))
    return RunSummary(
        started="2026-09-09 21:04:11 CEST",
        took=7.31,
        cluster=cluster,
        nodes=nodes,
        paths=tuple(paths),
        verdicts=tuple(verdicts),
        attempts=("worker2: counter window 1 of 3 repeated: kube-proxy synced at 21:04:14.202", *(HOSTILE if hostile else ())),
        phases={phase: {node: (trips, 0.31) for node in nodes} for phase, trips in (("snapshot", 1), ("probe", 2), ("capture", 2))},
        unfinished=HOSTILE[0] if hostile else None,
    )


def _hostile(outcome: str, text: str) -> Verdict:
    return Verdict(
        conclusion=HOSTILE[4], section=HOSTILE[1], group=HOSTILE[2], sentence=text, case=f"{HOSTILE[0]} {outcome}", outcome=outcome,
        message="" if outcome == "passed" else text, exhibits=(Exhibit(text, text, HOSTILE, HOSTILE[1]),) * 2, see=HOSTILE, cause=HOSTILE,
        node=HOSTILE[8], port=HOSTILE[1],
    )  # fmt: skip
