"""Take entries out of Cilium's load-balancing map on this node, and put them back: lbmap.py delete|has ADDRESS PORT UDP|TCP, restore.

The map's key (struct lb4_key, Cilium 1.19): address (4 bytes), port (2, network order), slot (2), protocol (1), scope (1), 2 unused.
"""

import ipaddress
import json
import os
import pathlib
import struct
import subprocess
import sys

MAP = "/sys/fs/bpf/tc/globals/cilium_lb4_services_v2"
KEPT = pathlib.Path(os.environ["KEEP"]) / "entries.json"
Entry = tuple[list[int], list[int]]


def bpftool(*words: str) -> str:
    """Run bpftool on the map."""
    return subprocess.run(["bpftool", *words], check=True, capture_output=True, text=True).stdout


def entries(address: str, port: int, protocol: str) -> list[Entry]:
    """The entries of a frontend, all its slots; each a pair of key and value in bytes."""
    start = ipaddress.ip_address(address).packed + struct.pack("!H", port)
    number = {"UDP": 17, "TCP": 6}[protocol]
    found: list[Entry] = []
    for entry in json.loads(bpftool("-j", "map", "dump", "pinned", MAP)):
        key, value = ([int(byte, 16) for byte in entry[part]] for part in ("key", "value"))
        if bytes(key[:6]) == start and key[8] == number:
            found.append((key, value))
    return found


def shown(numbers: list[int]) -> list[str]:
    """Bytes as bpftool wants them."""
    return [str(number) for number in numbers]


def main(what: str, *frontend: str) -> int:
    """Do what the command line says; the exit status of "has" is the answer."""
    if what == "restore":
        for key, value in json.loads(KEPT.read_text()) if KEPT.exists() else []:
            bpftool("map", "update", "pinned", MAP, "key", *shown(key), "value", *shown(value))
        return 0
    found = entries(frontend[0], int(frontend[1]), frontend[2])
    if what == "has":
        return 0 if found else 1
    KEPT.write_text(json.dumps(found))
    for key, _ in found:
        bpftool("map", "delete", "pinned", MAP, "key", *shown(key))
    return 0


sys.exit(main(*sys.argv[1:]))
