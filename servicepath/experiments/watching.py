"""Asking a Service for minutes from a node, without a connection that has to last as long.

The asking program runs in the background on the node and writes to a file in a folder of its own; the file is read piece by piece,
by whatever connection there is. Nothing stays behind: the program ends when its time is up, and a while later the folder goes, also
when nobody comes back for it. After a reboot of the node both are gone, and are begun anew for the time that is left.
"""

from __future__ import annotations

import dataclasses
import importlib.resources
import json
import secrets
from collections.abc import Sequence

from ..channel import Command
from ..model.addresses import IPAddress, Socket
from .probe import query

TIMEOUT = 2.0  # seconds to wait for one answer; a healthy one takes milliseconds, and a resolver asks again after five
PATIENCE = 5.0  # seconds without an answer after which a standing connection counts as broken
HELD_EVERY = 0.5  # seconds between two questions on a standing connection; CoreDNS closes one that is idle for eight
KEPT = 180  # seconds that a finished record waits to be fetched

NOT_THERE = 9  # exit status: there is no record; it was never begun, or the node was rebooted
NO_NAMESPACE = 8  # exit status: no network namespace of the node has the Pod's address

# The program comes by standard input. In the Pod's network it needs nothing inside the Pod.
_START = """
set -eu
umask 077
net=
if [ -n "{ip}" ]; then
  for each in /run/netns/* /var/run/docker/netns/*; do
    if nsenter --net="$each" ip -o addr show 2>/dev/null | grep -qF " {ip}/"; then net="nsenter --net=$each"; break; fi
  done
  [ -n "$net" ] || {{ echo "no network namespace of this node has the address {ip}" >&2; exit {no_namespace}; }}
fi
mkdir {folder}
cat > {folder}/program
: > {folder}/record
setsid sh -c 'f={folder}; '"$net"' python3 $f/program "$1" $f/record >>$f/said 2>&1; sleep {kept}; rm -rf $f' sh '{plan}' \
  </dev/null >/dev/null 2>&1 &
echo $! > {folder}/pid
"""
_READ = 'if [ -e {folder}/record ]; then tail -c +{next} {folder}/record; else exit {not_there}; fi'
_STOP = 'if [ -e {folder}/pid ]; then kill -TERM -"$(cat {folder}/pid)" 2>/dev/null; rm -rf {folder}; fi; true'


@dataclasses.dataclass(frozen=True, slots=True)
class Series:
    """Questions of one kind to one Service port.

    Attributes:
        subject: what it is called: "host on master → kube-dns:dns/UDP".
        kind: "udp": DNS queries, each from a port of its own; "connect": TCP connects; "held": DNS over one standing connection.
        target: ClusterIP and port.
        every: seconds between two.
    """

    subject: str
    kind: str
    target: Socket
    every: float


@dataclasses.dataclass(frozen=True, slots=True)
class Post:
    """One place that asks: a node's host, or a Pod on it (``pod_ip``). ``folder`` is its own on the node."""

    node: str
    pod_ip: IPAddress | None
    series: tuple[Series, ...]
    folder: str


def fresh_folder() -> str:
    """A folder name on the node that no other run uses."""
    return f"/tmp/servicepath-watch-{secrets.token_hex(8)}"  # noqa: S108 - random, made with mkdir and mode 700


def start(post: Post, name: str, seconds: float) -> Command:
    """The command that begins to ask, for so many seconds; it fails when the folder is there, since it was begun already."""
    payload = query(name).payload.hex()
    series = [
        {"kind": each.kind, "ip": str(each.target.ip), "port": each.target.port, "every": each.every, "timeout": TIMEOUT,
         "patience": PATIENCE, "payload": payload}
        for each in post.series
    ]  # fmt: skip
    plan = json.dumps({"seconds": seconds, "series": series})
    program = importlib.resources.files(__package__).joinpath("node_watcher.py").read_bytes()
    ip = "" if post.pod_ip is None else str(post.pod_ip)
    text = _START.format(folder=post.folder, ip=ip, plan=plan, kept=KEPT, no_namespace=NO_NAMESPACE)
    return Command("watch-start", ("sh", "-c", text), stdin=program, timeout=10)


def read(post: Post, position: int) -> Command:
    """The command that prints the record from a position in bytes on."""
    text = _READ.format(folder=post.folder, next=position + 1, not_there=NOT_THERE)
    return Command("watch-read", ("sh", "-c", text), timeout=10)


def stop(posts: Sequence[Post]) -> Command:
    """The command that ends what runs and removes the folders; it may be given again."""
    return Command("watch-stop", ("sh", "-c", "\n".join(_STOP.format(folder=post.folder) for post in posts)), timeout=10)
