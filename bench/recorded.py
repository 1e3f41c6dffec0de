"""A recording of two hundred nodes, made of the shipped one of three: ``python -m bench.recorded OUT`` makes it, the bench replays it.

It is what ``--record=FILE.tar.zst --passive`` keeps on such a cluster with two Services under test, kube-dns and resolver (five ports):
the API's answers and each node's snapshot. worker2 is copied again and again, each copy with a name, an InternalIP, a PodCIDR, routes to
all others and the kernel's answers for them; its client Pod comes with it, its endpoint of resolver does not. What holds on the shipped
recording holds on this one.
"""

from __future__ import annotations

import json
import pathlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fixtures.observe import lookups_of
from servicepath.experiments import api, snapshot
from servicepath.model.addresses import IPAddress
from servicepath.model.chain_names import endpoint_chain
from servicepath.parse.kubernetes import parse_kubernetes
from servicepath.recording import codec, storage
from servicepath.selection import select_services

SHIPPED = pathlib.Path(__file__).resolve().parent.parent / "selftests" / "data" / "recordings" / "healthy.tar.zst"
NODES = 200
_COPIED, _NUMBER = "worker2", 2
_ONCE = "resolver-"  # its endpoint on the copied node is there once
_PEER, _PEER_PORT = "kube-system/hubble-peer:peer-service", 4244  # internalTrafficPolicy Local: to each node its own endpoint
_API = ("api/discover-1/", "api/meanwhile-1/")
_ROUND = "snapshot-1"

Files = Mapping[str, bytes]


def moved(text: str, number: int, once: str) -> str:
    """Text of the copied node as its copy would have printed it, but for the address that is there once.

    Nodes .10 to .12 are the lab's own, .254 is its client.
    """
    text = re.sub(rf"\b(?!{re.escape(once)}\b)10\.42\.{_NUMBER}\.(?=\d)", f"10.42.{number}.", text)
    text = re.sub(r"\b192\.168\.55\.12\b", f"192.168.55.{number + 10}", text)
    text = text.replace(_peer_chain(_NUMBER), _peer_chain(number))
    return text.replace(_COPIED, f"worker{number}")


def _peer_chain(number: int) -> str:
    return endpoint_chain(_PEER, "TCP", f"192.168.55.{number + 10}:{_PEER_PORT}")


def make(files: Files, nodes: int = NODES) -> Iterator[tuple[str, bytes]]:
    """The files of the larger recording."""
    numbers = range(_NUMBER + 1, nodes)  # master, worker1 and worker2 are there
    once = _endpoint(files[f"{_API[0]}endpointslices.out"])
    answers = {name: _listed(name, content, numbers, once) for name, content in files.items() if name.startswith(_API)}
    yield codec.HEAD, _head(files[codec.HEAD], numbers)
    yield from answers.items()
    head = codec.decode({codec.HEAD: files[codec.HEAD]}, "the shipped recording").head
    objects = parse_kubernetes({name: json.loads(answers[f"{_API[0]}{name}.out"]) for name in _documents(answers)})
    services = select_services(objects, head.options, head.inventory)
    for node in objects.nodes:
        number = int(node.name.removeprefix("worker")) if node.name.startswith("worker") else 0
        wanted = tuple(dict.fromkeys(lookups_of(node.name, objects, services)))
        yield from _node(files, node.name, number, wanted, numbers, once)


def _endpoint(slices: bytes) -> str:
    """The address of resolver's endpoint on the copied node."""
    mine = (each for item in json.loads(slices)["items"] if item["metadata"]["name"].startswith(_ONCE) for each in item["endpoints"])
    return next(str(each["addresses"][0]) for each in mine if each["nodeName"] == _COPIED)


def _documents(answers: Files) -> Iterable[str]:
    return (name for name in (*api.PATHS, "cilium-config") if f"{_API[0]}{name}.out" in answers)


def _head(content: bytes, numbers: range) -> bytes:
    more = "".join(f"    worker{number}: {{}}\n" for number in numbers)
    text = content.decode().replace("    worker2: {}\n", f"    worker2: {{}}\n{more}").replace("  lan_client: {}\n", "")
    return text.replace("passive: false", "passive: true").replace("disruptive: true", "disruptive: false").encode()


def _node(
    files: Files, name: str, number: int, wanted: Iterable[IPAddress], numbers: range, once: str
) -> Iterator[tuple[str, bytes]]:  # fmt: skip
    """One node's snapshot; the kernel's answer for what it was not asked is like that for another node's address."""
    source = _COPIED if number in numbers else name
    place = f"nodes/{source}/{_ROUND}/"
    said = {file.removeprefix(place): content for file, content in files.items() if file.startswith(place)}
    if number in numbers:
        said = {file: moved(content.decode(), number, once).encode() for file, content in said.items()}
        said["pod-namespaces.out"] = b"".join(
            line for line in said["pod-namespaces.out"].splitlines(keepends=True) if not line.startswith(once.encode())
        )
    others = [other for other in (_NUMBER, *numbers) if other != number]
    said["ip-route.out"] = _with_routes(said["ip-route.out"], others)
    # Each address of Pods that was asked for is of another node.
    like = min(file for file in said if file.startswith("route-get-10.42.") and file.endswith(".out"))[len("route-get-") : -len(".out")]
    asked = json.loads(said["_round.json"])
    for ip in wanted:
        file = snapshot.lookup_name(ip)
        if f"{file}.out" not in said:
            for end in (".out", ".json"):
                said[f"{file}{end}"] = said[f"route-get-{like}{end}"].replace(like.encode(), str(ip).encode())
            asked["commands"].append(file)
    said["_round.json"] = json.dumps(asked).encode()
    yield from ((f"nodes/{name}/{_ROUND}/{file}", content) for file, content in said.items())


def _with_routes(content: bytes, others: Iterable[int]) -> bytes:
    """The node's listing with a route to each other node's PodCIDR, where it has none."""
    listed: list[dict[str, Any]] = json.loads(content)
    like = next(route for route in listed if route.get("metrics") and route["dst"].startswith("10.42."))
    there = {route["dst"] for route in listed}
    more = [like | {"dst": f"10.42.{other}.0/24"} for other in others if f"10.42.{other}.0/24" not in there]
    return json.dumps([*listed, *more]).encode()


def _listed(name: str, content: bytes, numbers: range, once: str) -> bytes:
    """An answer of the API, with the copies' objects."""
    kind = name.rpartition("/")[2]
    if kind in ("nodes.out", "ciliumnodes.out", "pods.out"):
        document = json.loads(content)
        mine = [item for item in document["items"] if _COPIED in (item["metadata"]["name"], (item.get("spec") or {}).get("nodeName"))]
        mine = [item for item in mine if (item["metadata"].get("labels") or {}).get("app") != "resolver"]
        document["items"] += [_copied(item, item["metadata"], number, once) for number in numbers for item in mine]
    elif kind == "endpointslices.out":
        document = json.loads(content)
        peers = next(item["endpoints"] for item in document["items"] if item["metadata"]["name"].startswith("hubble-peer-"))
        mine = [endpoint for endpoint in peers if endpoint["nodeName"] == _COPIED]
        peers += [_copied(endpoint, endpoint["targetRef"], number, once) for number in numbers for endpoint in mine]
    else:
        return content
    return json.dumps(document).encode()


def _copied(item: dict[str, Any], named: Mapping[str, str], number: int, once: str) -> dict[str, Any]:
    """An object of the copied node as that of a copy; a name that does not end with the node's gets the copy's number."""
    old = named["name"]
    new = old if old.endswith(_COPIED) else f"{old}-{number}"
    copy: dict[str, Any] = json.loads(moved(json.dumps(item).replace(f'"name": "{old}"', f'"name": "{new}"'), number, once))
    return copy


def write(path: pathlib.Path, nodes: int = NODES) -> None:
    """Make it, in a folder or packed."""
    storage.store(make(storage.files_of(SHIPPED), nodes), path)


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:]))
