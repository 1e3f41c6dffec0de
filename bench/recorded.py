"""A recording of two hundred nodes, made of the shipped one of three: ``python -m bench.recorded OUT`` makes it, the bench replays it.

worker2 is copied again and again, each copy with a name, an InternalIP and a PodCIDR of its own, in the API's answers, in what the node and
its agent said, in its captures and in all nodes' routes; its Pods come with it, but for those that serve a Service.
"""

from __future__ import annotations

import copy
import ipaddress
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from servicepath.model.addresses import IPAddress
from servicepath.recording import storage
from servicepath.redact.packets import PCAP, Packets

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHIPPED = ROOT / "selftests" / "data" / "recordings" / "healthy.tar.zst"
NODES = 200
_COPIED, _NUMBER = "worker2", 2


class _Moved:
    """Addresses of the copied node → those of its copy; everything else stays."""

    def __init__(self, number: int) -> None:
        self._number = number

    def ip(self, ip: IPAddress) -> IPAddress:
        """The copy's address."""
        return ipaddress.ip_address(moved(str(ip), self._number))

    def mac(self, mac: bytes) -> bytes:
        """MAC addresses may be the same on two nodes."""
        return mac


class _Same:
    def message(self, message: bytes) -> bytes:
        """A DNS message as it is."""
        return message


def moved(text: str, number: int) -> str:
    """Text of the copied node as its copy would have printed it: nodes .10 to .12 are the lab's own, .254 is its client."""
    text = re.sub(r"\b10\.42\.2\.(?=\d)", f"10.42.{number}.", text)
    text = re.sub(r"\b192\.168\.55\.12\b", f"192.168.55.{number + 10}", text)
    return text.replace(_COPIED, f"worker{number}")


def make(files: dict[str, bytes], nodes: int = NODES) -> Iterator[tuple[str, bytes]]:
    """The files of the larger recording."""
    numbers = range(_NUMBER + 1, nodes)  # master, worker1 and worker2 are there
    routes = [_route(number) for number in numbers]
    for name, content in files.items():
        kind, node = ("api", "") if name.startswith("api/") else [*name.split("/"), ""][:2]
        if name == "recording.yaml":
            more = b"".join(b"    worker%d: {}\n" % number for number in numbers)
            yield name, content.replace(b"    worker2: {}\n", b"    worker2: {}\n" + more)
        elif kind == "api" and name.endswith(("/nodes.out", "/ciliumnodes.out", "/pods.out")):
            yield name, _listed(content, numbers)
        else:
            content = _with_routes(content, routes) if name.endswith("/ip-route.out") and node != "lan-client" else content
            yield name, content
            if node == _COPIED:
                yield from ((moved(name, number), _copied(content, number)) for number in numbers)


def _copied(content: bytes, number: int) -> bytes:
    if content[:4] in PCAP:
        return Packets(_Moved(number), _Same()).capture(content)  # type: ignore[arg-type]  # as much of both as captures need
    return moved(content.decode("utf-8", "surrogateescape"), number).encode("utf-8", "surrogateescape")


def _route(number: int) -> dict[str, Any]:
    return {"dst": f"10.42.{number}.0/24", "dev": "cilium_host", "protocol": "kernel", "flags": [], "metrics": [{"mtu": 1450}]}


def _with_routes(content: bytes, routes: list[dict[str, Any]]) -> bytes:
    listed = json.loads(content)
    like = next(route for route in listed if route.get("metrics") and route["dst"].startswith("10.42."))
    more = [route | {"gateway": like["gateway"], "prefsrc": like["prefsrc"]} for route in routes]
    return json.dumps([*listed, *more]).encode()


def _listed(content: bytes, numbers: range) -> bytes:
    document = json.loads(content)
    mine = [item for item in document["items"] if _COPIED in (item["metadata"]["name"], (item.get("spec") or {}).get("nodeName"))]
    mine = [item for item in mine if (item["metadata"].get("labels") or {}).get("app") != "resolver"]
    for number in numbers:
        for item in mine:
            text = moved(json.dumps(copy.deepcopy(item)), number)
            found = json.loads(text)
            if not found["metadata"]["name"].endswith(f"worker{number}"):
                found["metadata"]["name"] += f"-{number}"
            document["items"].append(found)
    return json.dumps(document).encode()


def replay() -> dict[str, float]:
    """Make it, and judge it as a user does; wall seconds, CPU seconds and verdicts."""
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder) / "two-hundred"
        storage.store(make(storage.files_of(SHIPPED)), made)
        size = sum(path.stat().st_size for path in made.rglob("*") if path.is_file()) / 1024**2
        started, before = time.monotonic(), _children()
        command = [sys.executable, "-m", "pytest", f"--replay={made}", f"--reports={folder}/reports", "-q", str(ROOT / "tests")]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            raise SystemExit(f"bench: the replay of {NODES} nodes failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        facts = json.loads((pathlib.Path(folder) / "reports" / "facts.json").read_text(encoding="utf-8"))
        counts = {f"verdicts {outcome}": 0.0 for outcome in ("passed", "failed", "error", "skipped")}
        for verdict in facts["verdicts"]:
            counts[f"verdicts {verdict['outcome']}"] += 1
        return {"wall": time.monotonic() - started, "CPU": _children() - before, "MiB of plain files": size, **counts}


def _children() -> float:
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    if len(sys.argv) > 1:
        storage.store(make(storage.files_of(SHIPPED)), pathlib.Path(sys.argv[1]))
    else:
        print(json.dumps(replay()))
