"""One process that reads and judges the rules of ``bench.kubeproxy``, or a capture, and prints its CPU seconds and memory as JSON.

A process of its own, so that its memory is its own; CPU seconds, since the machine may have other work.
"""

from __future__ import annotations

import json
import pathlib
import resource
import struct
import sys
import time
from collections.abc import Callable
from ipaddress import ip_address
from typing import TypeVar

from servicepath.model import (
    expected_endpoints,
    judge_backends,
    judge_chain_names,
    judge_dataplanes,
    judge_equal_rules,
    judge_rules,
    service_rules,
)
from servicepath.model.service_rules import NodeRules
from servicepath.parse.iptables import parse_save
from servicepath.parse.kubernetes import parse_kubernetes
from servicepath.parse.pcap import mentions, parse_pcap

T = TypeVar("T")
NODE, OTHER = "master", "worker1"
PACKETS, OURS = 1_000_000, 20


def rules(folder: pathlib.Path) -> dict[str, float]:
    """Read one node's rules and judge all Services by every conclusion on them, and the first hundred as Services under test."""
    took: dict[str, float] = {}
    names = ("version", "services", "endpointslices", "nodes", "pods")
    objects = parse_kubernetes({name: json.loads((folder / f"{name}.json").read_text()) for name in names})
    before = _memory()
    text = _timed(took, "floor: reading the bytes", lambda: (folder / "iptables-legacy-save").read_text())
    legacy = _timed(took, "parse", lambda: parse_save(text, backend="legacy"))
    nat = NodeRules(parse_save("", backend="nft"), legacy)
    wrong = list(_timed(took, "chain-names, all Services", lambda: judge_chain_names.judge_chain_names(NODE, nat, objects)))
    endpoints = expected_endpoints.by_service(objects)

    def under_test(count: int) -> None:
        for service in objects.services[:count]:
            mine, ip = endpoints.get((service.namespace, service.name), ()), service.cluster_ips[0]
            for port in service.ports:
                expected = expected_endpoints.expect(mine, service, port, NODE, 4)
                wrong.extend(judge_rules.judge_service_rule(NODE, port, ip, nat, expected))
                wrong.extend(judge_backends.judge_backend_choice(NODE, service, port, ip, nat, expected))
                seen = judge_backends.translations(port, ip, nat, expected)
                wrong.extend(judge_backends.judge_endpoint_dnat(NODE, port, seen, expected))
                walk = service_rules.walk(legacy, ip, port.protocol, port.port)
                held = judge_dataplanes.gather(
                    objects, service, port, ip, NODE, rules=walk.sockets, rule_lines=walk.lines, agent=(), lb_map=()
                )
                wrong.extend(each for each in judge_dataplanes.differing(held) if judge_dataplanes.RULES in each.subject)

    _timed(took, "service-rule, backend-choice, endpoint-dnat, dataplanes-programmed (rules), 100 Services", lambda: under_test(100))
    both = {NODE: nat, OTHER: nat}
    wrong += _timed(took, "rules-equal-on-nodes, all Services, two nodes", lambda: judge_equal_rules.judge_equal_rules(both, objects))
    took["all of these"] = sum(took.values())
    _timed(took, "besides: the same of all Services", lambda: under_test(len(objects.services)))
    if wrong:
        raise SystemExit(f"bench: healthy rules were found wrong: {wrong[0]}")
    return {**took, "MiB beyond the API's objects": _memory() - before}


def capture() -> dict[str, float]:
    """Read a capture of a million packets with twenty of ours in it."""
    took: dict[str, float] = {}
    data = _made_capture()
    _timed(took, "floor: going over the bytes", lambda: sum(data))
    wanted = mentions([ip_address("10.42.1.113")], [40123])
    parse_pcap(data[: 24 + 16 + 101], interface="warm")  # scapy's layers are loaded at the first packet
    found = _timed(took, "a million packets, twenty of ours", lambda: parse_pcap(data, interface="x", wanted=wanted))
    if len(found) != OURS:
        raise SystemExit(f"bench: {len(found)} of our {OURS} packets were found")
    return took


def _made_capture() -> bytes:
    """A pcap of UDP packets between Pods in VXLAN's size; every so often one of ours."""
    payload = bytes(59)

    def frame(ip: str, port: int) -> bytes:
        udp = struct.pack("!4H", port, 53, 8 + len(payload), 0) + payload
        head = struct.pack("!2B3H2BH", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0) + ip_address("10.42.0.9").packed + ip_address(ip).packed
        return bytes(12) + b"\x08\x00" + head + udp

    def record(number: int) -> bytes:
        ours = number % (PACKETS // OURS) == 0
        data = frame("10.42.1.113", 40123) if ours else frame("10.42.1.7", 20000)
        return struct.pack("<4I", number // 1000, number % 1000, len(data), len(data)) + data

    run = b"".join(record(number) for number in range(1, PACKETS // OURS + 1))
    return struct.pack("<I2H4I", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + run * OURS


def _timed(took: dict[str, float], name: str, call: Callable[[], T]) -> T:
    started = time.process_time()
    result = call()
    took[name] = time.process_time() - started
    return result


def _memory() -> float:
    """MiB of this process at their highest so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    print(json.dumps(capture() if sys.argv[1] == "capture" else rules(pathlib.Path(sys.argv[1]))))
