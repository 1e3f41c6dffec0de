"""All recorded cases through the whole way, as a user gives them: a folder, ``--replay``, a verdict for each conclusion.

The verdicts are those of each case.md: what holds is PASSED, what is violated FAILED with the culprit in its message, what does not
apply SKIPPED with the reason, and what cannot be told ERROR, or SKIPPED with what is not there.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping

import pytest
from judging import case, judged, laid_out

RULES = ("tests/test_2_service_in_iptables.py",)
CONTROL = ("tests/test_1_control_path.py",)
HOST = ("tests/test_3_clusterip_on_a_host.py",)
ROUTES = ("tests/test_4_routing_to_a_remote_podcidr.py",)
COUNTERS = ("tests/test_5_host_traffic.py", "tests/test_6_pod_traffic.py")
TUNNEL = ("tests/test_7_vxlan.py",)
V2 = ("service-rule", "chain-names", "backend-choice", "endpoint-dnat")


@dataclasses.dataclass(frozen=True)
class Scene:
    """What somebody kept, and what the suite must say of it.

    ``verdicts``: conclusion, and parts of the test's id behind blanks → outcome, and behind a colon a pattern of the message.
    """

    id: str
    files: Mapping[str, str]
    tests: tuple[str, ...]
    verdicts: Mapping[str, str]
    hints: str = ""
    extra: Mapping[str, str] = dataclasses.field(default_factory=dict)


def scene(id, files, tests, verdicts, hints="", extra=None):
    return pytest.param(Scene(id, files, tests, verdicts, hints, extra or {}), id=id)


def nodes(number, **files):
    """``nodes/node1/NAME`` ← the case's file of that name."""
    return {f"nodes/node1/{name.replace('__', '@').replace('_', '-')}": f"{number}/{file}" for name, file in files.items()}


def api(number, *names):
    return {f"api/{name}": f"{number}/{name}" for name in names}


def sliced(key, *ports, node="node2"):
    """A slice of a Service, as a file's text: each port as ``name:protocol:number``, then the endpoints' addresses."""
    namespace, name = key.split("/")
    *ports, ips = ports
    numbered = [dict(zip(("name", "protocol", "port"), port.split(":"), strict=True)) for port in ports]
    return json.dumps({
        "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "addressType": "IPv6" if ":" in ips[0] else "IPv4",
        "metadata": {"namespace": namespace, "name": f"{name}-x", "labels": {"kubernetes.io/service-name": name}},
        "endpoints": [{"addresses": [ip], "conditions": {"ready": True}, "nodeName": node} for ip in ips],
        "ports": [port | {"port": int(port["port"])} for port in numbered],
    })  # fmt: skip


DNS_PORTS = ("dns:UDP:53", "dns-tcp:TCP:53", "metrics:TCP:9153")
SLICES = "endpointslices.json"
BOTH = ("services.json", SLICES)

SCENES = [
    scene(
        "01-counters-of-host-and-pod",
        {**nodes("01", nat__1="nat-after-zero.save", nat__2="nat-after-20-from-pod.save", nat__3="nat-after-20-from-host.save"),
         **api("01", *BOTH)},
        (*RULES, *COUNTERS),
        {
            "service-rule svc-backend": "passed", "chain-names": "passed", "backend-choice svc-backend": "passed",
            "endpoint-dnat svc-backend": "passed", "host-counted-by-iptables svc-backend": "passed",
            "host-marked-for-masquerade svc-backend": "passed", "pod-leaves-counters svc-backend": "passed",
            "counters-count-flows": "skipped: not in this recording", "pod-answers": "skipped: not in this recording",
        },
        "between: [{pod: 20, to: netlab/svc-backend}, {host: 20, to: netlab/svc-backend}]",
    ),
    scene(
        "01-fewer-counted-than-sent",
        {**nodes("01", nat__1="nat-after-zero.save", nat__2="nat-after-20-from-host.save"), **api("01", *BOTH)},
        COUNTERS,
        {"host-counted-by-iptables svc-backend": r"failed: counted other than the new flows.*\+25 packets.*\+20 packets",
         "host-marked-for-masquerade svc-backend": "failed"},
        "between: {host: 25, to: netlab/svc-backend}",
    ),
    scene(
        "01-more-counted-than-sent",
        {**nodes("01", nat__1="nat-after-zero.save", nat__2="nat-after-20-from-host.save"), **api("01", *BOTH)},
        COUNTERS,
        {"host-counted-by-iptables svc-backend": "error: cannot be told apart"},
        "between: {host: 15, to: netlab/svc-backend}",
    ),
    scene(
        "01-a-pod-that-is-counted",
        {**nodes("01", nat__1="nat-after-zero.save", nat__2="nat-after-20-from-host.save"), **api("01", *BOTH)},
        COUNTERS,
        {"pod-leaves-counters svc-backend": "error: the control is silent"},
        "between: {pod: 20, to: netlab/svc-backend}",
    ),
    scene(
        "01-counters-that-fall",
        {**nodes("01", nat__1="nat-after-20-from-host.save", nat__2="nat-after-20-from-pod.save"), **api("01", *BOTH)},
        COUNTERS,
        {"host-counted-by-iptables svc-backend": "error: cannot be compared: .*counts less than before"},
        "between: {host: 20, to: netlab/svc-backend}",
    ),
    scene(
        "01-a-pods-own-table",
        {**nodes("01", nat="in-pod-netns.save"), **api("01", *BOTH)},
        RULES,
        {"service-rule": "error: KUBE-SERVICES is in neither", "chain-names": "error", "endpoint-dnat": "error", "backend-choice": "error"},
    ),
    scene(
        "01-two-listings-in-one-file",
        {**nodes("01", iptables_L_v="iptables-L-v.txt"), **api("01", *BOTH)},
        RULES,
        {"service-rule": r"error: iptables -L: line 5: .*each chain once.*\n.*cat nodes/node1/iptables-L-v"},
    ),
    scene(
        "02-replacement-wanted-and-kube-proxy-active",
        nodes("02", rules="iptables-save-grep.txt", status="cilium-status-short.txt"),
        (*CONTROL, *RULES),
        {
            "mode-as-expected": "failed: active kube-proxy beside Cilium's replacement",
            "chain-names": "passed", "backend-choice traefik": "passed", "service-rule traefik": "skipped: excerpt",
            "endpoint-dnat traefik": "skipped: not in this recording: EndpointSlices",
        },
        "expect: {kube_proxy_replacement: 'True', routing: native}",
    ),
    scene(
        "03-no-endpoints-are-refused",
        {**nodes("03", iptables_save_c="iptables-save-c.txt"), **api("03", SLICES)},
        (*RULES, *COUNTERS),
        {
            "service-rule": "passed", "chain-names": "passed", "endpoint-dnat kubernetes": "passed",
            "endpoint-dnat kube-dns": "skipped: no endpoint serves", "backend-choice": "skipped",
            "host-counted-by-iptables": "skipped: two readings",
        },
    ),
    scene(
        "04-node-ports-and-host-network",
        {**nodes("04", nat="nat.save"), **api("04", *BOTH)},
        RULES,
        {
            "service-rule": "passed|skipped", "chain-names": "passed", "service-rule traefik": "passed", "endpoint-dnat traefik": "passed",
            "service-rule media": "passed", "endpoint-dnat media": "skipped: EndpointSlices of default/media",
        },
    ),
    scene(
        "04-grep-with-a-hole",
        {**nodes("04", nat_grep="nat-grep-A20.txt"), **api("04", *BOTH)},
        RULES,
        {"endpoint-dnat traefik": "passed", "chain-names": "passed"},
    ),
    scene(
        "05-dash-s-without-cluster-cidr",
        {**nodes("05", iptables_S_nat="iptables-S-nat.txt", ip_addr="ip-addr.txt", ip_route="ip-route.txt", ip_rule="ip-rule.txt"),
         **api("05", SLICES)},
        (*RULES, *HOST, *ROUTES),
        {
            "service-rule my-app": "passed", "chain-names": "passed", "backend-choice my-app": "passed", "endpoint-dnat my-app": "passed",
            "no-interface my-app": "passed", "no-interface kubernetes": "passed", "no-interface kube-dns": "passed",
            "remote-podcidr-route": "skipped: no interface of Cilium's", "tunnel-mtu": "skipped: no interface of Cilium's",
            "no-route": "skipped: routes of table",
        },
    ),
    *(
        scene(
            f"06-nftables-{number}",
            {**nodes("06", **{f"nft{ending}": file}), **api("06", SLICES)},
            RULES,
            {
                "service-rule hello": "passed", "backend-choice hello": "passed", "endpoint-dnat hello": "passed",
                "service-rule otelcol": "passed", "endpoint-dnat otelcol": "skipped: no endpoint serves", "chain-names": "passed",
            },
        )
        for number, ending, file in (
            (1, ".json", "nft-list-table-ip-kube-proxy.json"), (2, ".txt", "nft-list-table-ip-kube-proxy.txt"),
            (3, ".txt", "nft-list-retyped-by-1.0.6.txt"),
        )
    ),
    scene(
        "06-nftables-has-no-counters",
        {**nodes("06", nft__1="nft-list-table-ip-kube-proxy.txt", nft__2="nft-list-retyped-by-1.0.6.txt"), **api("06", SLICES)},
        (*CONTROL, *COUNTERS),
        {
            "host-counted-by-iptables hello": "skipped: nftables rules have no counters",
            "pod-leaves-counters hello": "skipped: nftables rules have no counters",
            "mode-as-expected": "failed: expected: iptables.*nftables",
        },
        "between: [{host: 20, to: lab/hello-np-svc}]",
    ),
    scene(
        "07-unsupported-revision",
        {**nodes("07", iptables_S="iptables-S.txt"), **api("07", SLICES)},
        RULES,
        {"endpoint-dnat test1": "passed", "backend-choice test1": "passed", "chain-names": "passed"},
    ),
    scene(
        "08-one-back-end-that-warns-of-the-other",
        {**nodes("08", nft="nft-backend-nat.save"), **api("08", SLICES)},
        RULES,
        {"service-rule": "skipped", "chain-names": "error"},
    ),
    scene(
        "08-both-back-ends",
        {**nodes("08", iptables_nft_save="nft-backend-nat.save", iptables_legacy_save="legacy-backend-nat.save"), **api("08", SLICES)},
        RULES,
        {"service-rule web": "passed", "chain-names": "passed", "backend-choice web": "passed", "endpoint-dnat web": "passed"},
    ),
    scene(
        "08-a-stale-copy-in-legacy",
        {**nodes("08", nft="both-current-nft.save", legacy="both-stale-legacy.save"), **api("08", SLICES)},
        (*RULES, *CONTROL),
        {
            "service-rule web": "failed: both iptables back ends", "endpoint-dnat web": r"failed: 10\.244\.1\.7:8080",
            "chain-names": "failed: both iptables back ends", "backend-choice": r"failed: 10\.244\.1\.7",
            "mode-as-expected": "failed: both iptables back ends.*left over",
        },
    ),
    scene(
        "08-an-endpoint-missing",
        {**nodes("08", xtables="xtables-save-order.txt"), **api("08", SLICES)},
        RULES,
        {"service-rule web": "passed", "backend-choice web": r"failed: 10\.244\.2\.16:8080"},
    ),
    *(
        scene(
            f"09-affinity-{file.partition('.')[0]}",
            {**nodes("09", **{name: file}), **api("09", "endpoints-v1.json")},
            RULES,
            {"backend-choice affinity": "passed", "endpoint-dnat affinity": "passed", "chain-names": "passed",
             "service-rule affinity": whole},
        )
        for name, file, whole in (("nat", "nat.save", "passed"), ("grep", "iptables-save-grep.txt", "skipped: excerpt"))
    ),
    scene(
        "10-external-traffic-policy-local-on-another-node",
        {**nodes("10", iptables_save="old-xlb.save"), **api("10", SLICES)},
        RULES,
        {"service-rule nginx": "passed", "chain-names": "passed", "endpoint-dnat nginx": "passed"},
    ),
    scene(
        "10-external-traffic-policy-local-on-the-endpoints-node",
        {"nodes/node2/iptables-save": "10/old-xlb.save", **api("10", SLICES)},
        RULES,
        {"service-rule nginx": r"failed: want of a local endpoint.*expected: 10\.44\.0\.56:80", "chain-names": "passed|failed",
         "endpoint-dnat nginx": "passed", "backend-choice nginx": "skipped|passed"},
    ),
    *(
        scene(
            f"10-filter-alone-on-{node}",
            {f"nodes/{node}/filter.save": "10/new-filter-drop.save", **api("10", SLICES)},
            RULES,
            {"service-rule ingress-controller:http": verdict, "service-rule ingress-controller:https": verdict,
             "chain-names": "skipped: nat table", "endpoint-dnat ingress-controller": "skipped: ClusterIP"},
        )
        for node, verdict in (
            ("node1", "skipped: not in this recording: the ClusterIP"), ("node3", r"failed: want of a local endpoint.*10\.244\.3\.9"),
        )
    ),
    scene(
        "10-filter-alone",
        {**nodes("10", filter="new-filter-drop.save"), **api("10", SLICES)},
        RULES,
        {"service-rule": "skipped|error", "chain-names": "skipped|error"},
    ),
    *(
        scene(
            f"11-source-ranges-{file.partition('.')[0]}",
            {**nodes("11", **{name: file}), **api("11", *BOTH)},
            (*RULES, *HOST),
            {"chain-names": "passed", "endpoint-dnat svc1": "passed", "service-rule svc1": whole, "no-interface svc1": "skipped"},
        )
        for name, file, whole in (("fed", "restore-input.rules", "skipped: excerpt"), ("save", "same-as-save-c.save", "passed"))
    ),
    *(
        scene(
            f"12-ipvs-{form}",
            {**nodes("12", **{form: file}), "nodes/node1/ip-route-local.txt": "12/ip-route-local.txt"},
            (*HOST, *RULES, *CONTROL),
            {
                "no-interface 10.43.0.10": "failed: kube-ipvs0.*IPVS mode", "no-interface 10.43.0.1]": "failed: kube-ipvs0.*IPVS mode",
                "no-interface 10.43.157.93": "failed: kube-ipvs0.*IPVS mode", "chain-names": "skipped: ipvs mode",
                "mode-as-expected": "failed: ipvs", "no-route": "failed: kube-ipvs0",
            },
        )
        for form, file in (("ip_addr", "ip-addr.txt"), ("ip_j_addr", "ip-j-addr.json"))
    ),
    scene(
        "13-the-map-without-backends",
        {
            "nodes/node1/service-list.txt": "13/service-list-node1.txt", "nodes/node1/bpf-lb-list.txt": "13/bpf-lb-list-node1.txt",
            "nodes/node2/bpf-lb-list.txt": "13/bpf-lb-list-node2.txt", **api("13", SLICES),
        },
        CONTROL,
        {
            "dataplanes-programmed node1 kube-dns:dns/UDP": "failed: load-balancing map.*235",
            "dataplanes-programmed node1 kube-dns:dns-tcp": "failed: load-balancing map.*236",
            "dataplanes-programmed node1 kube-dns:metrics": "failed: load-balancing map.*237",
            "dataplanes-programmed node2 kube-dns": "passed", "mode-as-expected": "skipped",
        },
    ),
    scene(
        "13-the-map-as-json",
        {"nodes/node1/service-list.txt": "13/service-list-node1.txt", "nodes/node1/bpf-lb-list.json": "13/bpf-lb-list-node1.json",
         **api("13", SLICES)},
        CONTROL,
        {"dataplanes-programmed node1 kube-dns:dns/UDP": "failed: load-balancing map.*235"},
    ),
    *(
        scene(f"14-status-{name}", nodes("14", **{"cilium_status": f"{name}.txt"}), CONTROL, {"mode-as-expected": verdict})
        for name, verdict in (
            ("v1.20-false", "skipped: what is there is as expected"), ("v1.20-true-hostns-only", "failed: KubeProxyReplacement"),
            ("v1.18-true-annotations", "failed: KubeProxyReplacement"), ("v1.15-true-dsr-native", "failed: KubeProxyReplacement"),
            ("v1.14-true-socketlb-though-helm-off", "failed: KubeProxyReplacement"), ("v1.7-strict", "failed: KubeProxyReplacement"),
            ("v1.10-strict", "failed: KubeProxyReplacement"), ("v1.13-disabled-verbose", "skipped: what is there is as expected"),
            ("v1.10-probe-dualstack", "failed"), ("v1.8-probe", "failed"), ("v1.8-partial-empty", "skipped"),
            ("v1.9-details-no-socketlb-line", "skipped"),
        )
    ),
    scene(
        "14-the-status-of-another-tool",
        nodes("14", **{"cilium_status": "short-status-of-cilium-cli.txt"}),
        CONTROL,
        {"mode-as-expected": "error: not of another tool"},
    ),
    *(
        scene(
            f"15-lists-{name}",
            {f"nodes/node1/{kind}.{file.rpartition('.')[2]}": f"15/{file}" for kind, file in files.items()},
            CONTROL,
            verdicts,
            extra={f"api/{number}.json": text for number, text in enumerate(slices)},
        )
        for name, files, slices, verdicts in (
            (
                "1.15-text", {"service-list": "v1.15-service-list.txt", "bpf-lb-list": "v1.15-bpf-lb-list.txt"},
                (sliced("kube-system/kube-dns", *DNS_PORTS, ["10.244.0.180", "10.244.0.238"]),
                 sliced("default/kubernetes", "https:TCP:6443", ["172.20.0.5"]), sliced("default/web", ":TCP:8081", ["10.244.2.79"])),
                {"dataplanes-programmed kube-dns:dns/UDP": "passed", "dataplanes-programmed kube-dns:metrics": "passed",
                 "dataplanes-programmed kubernetes": "passed", "dataplanes-programmed web": "passed"},
            ),
            (
                "1.15-json", {"bpf-lb-list": "v1.15-bpf-lb-list.json"},
                (sliced("kube-system/kube-dns", *DNS_PORTS[:2], ["10.244.0.180", "10.244.0.238"]),
                 sliced("default/web", ":TCP:8081", ["10.244.2.79", "10.244.2.80"])),
                {"dataplanes-programmed kube-dns": "passed",
                 "dataplanes-programmed web": r"failed: load-balancing map.*10\.244\.2\.80:8081"},
            ),
            *(
                (
                    f"1.16-{form}", {"bpf-lb-list": f"v1.16-bpf-lb-list.{form}"},
                    (sliced("default/web", "http:TCP:80", ["172.20.0.158", "172.20.1.44"]),), {"dataplanes-programmed web": "passed"},
                )
                for form in ("txt", "json")
            ),
            (
                "1.0", {"service-list": "v1.0-service-list.txt", "bpf-lb-list": "v1.0-bpf-lb-list.txt"},
                (sliced("kube-system/kube-dns", *DNS_PORTS[:2], ["10.217.0.57", "10.217.0.12"]),),
                {"dataplanes-programmed kube-dns": "passed"},
            ),
            *(
                (f"1.{minor}-external", {"bpf-lb-list": f"v1.{minor}-bpf-lb-list.txt"}, (sliced("default/web", port, ips),),
                 {"dataplanes-programmed web": "passed"})
                for minor, port, ips in ((7, "http:TCP:80", ["10.217.0.149", "10.217.0.181"]), (9, "http:TCP:8080", ["10.42.1.187"]))
            ),
            (
                "1.6-json", {"service-list": "v1.6-service-list.json"}, (sliced("default/kubernetes", "https:TCP:6443", ["10.0.2.15"]),),
                {"dataplanes-programmed kubernetes": "passed"},
            ),
            (
                "1.17-json", {"service-list": "v1.17-service-list.json"},
                (sliced("default/kubernetes", "https:TCP:6443", ["203.0.113.189"]),), {"dataplanes-programmed kubernetes": "passed"},
            ),
            (
                "1.18-states", {"service-list": "v1.18-service-list.txt"}, (sliced("default/web", "http:TCP:80", ["10.100.1.9"]),),
                {"dataplanes-programmed web": "passed"},
            ),
            (
                "1.18-scopes", {"bpf-lb-list": "v1.18-bpf-lb-list-local.txt"},
                (sliced("kube-system/kube-dns", "dns:UDP:53", ["10.100.1.209"]), sliced("default/web", "http:TCP:8081", ["10.100.1.91"])),
                {"dataplanes-programmed kube-dns": "passed", "dataplanes-programmed web": "passed"},
            ),
            (
                "1.18-another-table", {"bpf-lb-list": "v1.18-bpf-lb-list-revnat.txt"},
                (sliced("kube-system/kube-dns", "dns:UDP:53", ["10.100.1.209"]),),
                {"dataplanes-programmed": "error: cilium-dbg bpf lb list: line 1"},
            ),
            (
                "ipv6", {"service-list": "ipv6-service-list.txt"},
                (sliced("kube-system/kube-dns", *DNS_PORTS[:2], ["fd00:501::2c9f", "fd00:501::60b1"]),
                 sliced("default/web", "http:TCP:8080", ["fd00:501::77d2", "fd00:501::77d3"])),
                {"dataplanes-programmed kube-dns": "passed", "dataplanes-programmed web": r"failed: fd00:501::77d3"},
            ),
        )
    ),
    scene(
        "16-a-tunnel-of-pings",
        {"nodes/node2/ip-route.txt": "16/ip-route.txt", "nodes/node2/ip-addr.json": "16/ip-j-addr.json", **api("16", "nodes.json"),
         "nodes/node2/ip-d-link.json": "16/ip-j-d-link-cilium_vxlan.json", "nodes/node2/vxlan-8472.pcap": "16/vxlan-8472.pcap"},
        (*TUNNEL, *ROUTES),
        {
            "tunnel-endpoints": "passed", "inner-is-the-pod": "passed", "answer-comes-back": "passed",
            "no-clusterip-inside": "skipped: a Service", "same-way-for-aaaa": "skipped: questions for A",
            "remote-podcidr-route": "passed", "tunnel-mtu": "passed", "cilium-host-address": "skipped: CiliumNode",
        },
    ),
    scene(
        "16-laid-out-flat",
        {"ip-route.json": "16/ip-j-route.json", "ip-addr.json": "16/ip-j-addr.json", "nodes.json": "16/nodes.json",
         "ip-d-link.txt": "16/ip-d-link-cilium_vxlan.txt", "vxlan-8472.pcap": "16/vxlan-8472.pcap"},
        (*TUNNEL, *ROUTES),
        {"tunnel-endpoints node2": "passed", "inner-is-the-pod node2": "passed", "answer-comes-back node2": "passed",
         "remote-podcidr-route node2": "passed", "tunnel-mtu node2": "passed"},
    ),
    scene(
        "17-wrong-checksums-at-the-receiver",
        {"nodes/node2/receiver-8472.pcap": "17/receiver-8472.pcap", "nodes/node2/dmesg.txt": "17/dmesg-receiver.txt"},
        TUNNEL,
        {"answer-comes-back": "failed: wrong outer UDP checksum.*kernel drops", "tunnel-endpoints": "skipped: nodes' addresses"},
    ),
    scene(
        "17-wrong-checksums-by-the-nodes-own-address",
        {"nodes/node2/receiver-8472.pcap": "17/receiver-8472.pcap"},
        TUNNEL,
        {"answer-comes-back": "failed: wrong outer UDP checksum", "tunnel-endpoints": "passed"},
        "nodes: {node1: {internal_ips: 172.16.9.99}, node2: {internal_ips: 172.16.80.252}}",
    ),
    scene(
        "17-the-same-at-the-sender",
        {"nodes/node1/receiver-8472.pcap": "17/receiver-8472.pcap"},
        TUNNEL,
        {"answer-comes-back": "skipped: one direction only"},
        "nodes: {node1: {internal_ips: 172.16.9.99}, node2: {internal_ips: 172.16.80.252}}",
    ),
    scene(
        "18-a-stale-entry",
        {**nodes("18", conntrack="conntrack-L-unreplied.txt"), **api("18", SLICES)},
        COUNTERS,
        {"host-translated-by-conntrack": r"failed: entry .*10\.103\.83\.53:21667.*leads to no serving endpoint.*10\.103\.78\.37"},
    ),
    scene(
        "18-an-entry-never-translated",
        {**nodes("18", conntrack="conntrack-L-not-dnated.txt"), **api("18", SLICES)},
        COUNTERS,
        {"host-translated-by-conntrack dns/UDP": r"failed: was never translated.*10\.15\.240\.10"},
        "services: {kube-system/kube-dns: 10.15.240.10}",
    ),
    scene(
        "19-the-port-is-taken",
        nodes("19", ip_link="ip-link.txt"),
        (*TUNNEL, *ROUTES, *CONTROL),
        {
            "tunnel-endpoints": "failed: cilium_vxlan - is down", "remote-podcidr-route": "failed: cilium_vxlan - is down",
            "mode-as-expected": r"failed: flannel\.1", "inner-is-the-pod": "skipped: a capture",
        },
    ),
    scene(
        "19-the-port-is-taken-with-details",
        nodes("19", ip_link="ip-j-d-link-type-vxlan.json"),
        (*TUNNEL, *ROUTES),
        {"remote-podcidr-route": r"failed: flannel\.1 holds UDP port 8472", "tunnel-endpoints": r"failed: flannel\.1 holds UDP port 8472"},
    ),
    scene(
        "20-svclb-on-the-host",
        {**nodes("20", host="host.save"), **api("20", SLICES)},
        RULES,
        {"service-rule traefik": "passed", "chain-names": "passed", "endpoint-dnat traefik": "passed"},
    ),
    scene(
        "20-a-pods-namespace-given-for-the-hosts",
        {**nodes("20", nat="svclb-pod-netns.save", ip_addr="svclb-pod-ip-j-addr.json"), **api("20", SLICES)},
        (*RULES, *HOST),
        {
            "service-rule": "error: KUBE-SERVICES is in neither", "chain-names": "error: KUBE-SERVICES is in neither",
            "no-interface": "error: a Pod's",
        },
        "services: {kube-system/traefik: 10.43.190.44}",
    ),
    scene(
        "21-headless-and-others",
        {**nodes("21", nat="nat.save", service_list="cilium-service-list.txt"), **api("21", *BOTH)},
        (*RULES, *CONTROL),
        {
            "service-rule ext-api": "passed", "endpoint-dnat ext-api": "passed", "chain-names": "passed",
            "dataplanes-programmed ext-api": "passed", "service-rule pg-headless": "skipped: has no ClusterIP",
            "dataplanes-programmed pg-headless": "skipped", "service-rule proxied": "skipped: left to another proxy",
        },
    ),
    scene(
        "22-routes-with-encryption",
        nodes("22", ip_route="ip-route-tunnel-8874.txt", ip_link="ip-link-bond0.txt", ip_rule="ip-rule.txt",
              ip_route_table_200="ip-route-table-200.txt"),
        ROUTES,
        {"tunnel-mtu": "passed", "remote-podcidr-route": "skipped"},
    ),
    scene("22-gke-names", nodes("22", ip_addr="gke-addr.txt"), ROUTES, {"tunnel-mtu": "skipped", "remote-podcidr-route": "skipped"}),
    scene(
        "22-an-mtu-that-is-too-big",
        nodes("22", ip_route="mtu-too-big-route.txt", ip_addr="mtu-too-big-addr.txt"),
        ROUTES,
        {"tunnel-mtu": r"failed: 10\.244\.0\.0/24.*1400.*do not fit into the tunnel"},
    ),
]  # fmt: skip


@pytest.mark.parametrize("told", SCENES)
def test_a_case_gets_its_verdicts(told, tmp_path):
    laid_out(tmp_path, {name: case(*source.split("/", 1)) for name, source in told.files.items()})
    laid_out(tmp_path, {**told.extra, **({"recording.yaml": told.hints} if told.hints else {})})
    found = judged(tmp_path, *told.tests)
    wanted = {}

    for what, verdict in told.verdicts.items():
        conclusion, *parts = what.split()
        outcome, _, pattern = verdict.partition(": ")
        these = found.these(conclusion, *parts)
        assert these, f"{what}: no such test among {sorted(found.found)}\n{found.said}"
        said = found.message(conclusion, *parts)
        assert found.of(conclusion, *parts) <= set(outcome.split("|")), f"{what}: {these}"
        assert re.search(pattern, said, re.DOTALL), f"{what}: {said}"
        wanted |= dict.fromkeys(these)
    unasked = {name: told for name, told in found.found.items() if told[0] == "failed" and name not in wanted}
    assert not unasked
