"""The LAN client: has it Service rules or routes, and does a TCP connection to a ClusterIP come about from there?

Observations: ``iptables-nft-save``, ``iptables-legacy-save``, ``ip-tables-names``, ``ip-addr``, ``ip-route``, ``ip-rule``,
``tool-versions`` (as in the snapshot), and ``connects``, all attempts side by side, since each that is not answered takes its whole time:

    connect 10.43.0.10 53 timed-out
    control 192.168.55.10 22 connected
    nobody 10.43.0.254 53 timed-out

The last word is ``connected``, ``refused``, ``timed-out`` or ``unreachable``, or the error's text. ``each_attempt`` makes an
Observation of each line.
"""

from __future__ import annotations

import copy
import dataclasses
import ipaddress
from collections.abc import Collection, Sequence

from ..channel import Command
from ..fleet import Answers
from ..model.addresses import IPAddress, Socket
from ..observation import Trouble
from . import snapshot

CONNECT_TIMEOUT = 2  # seconds; an answer in a LAN takes milliseconds, a second attempt of TCP comes after one

_OF_SNAPSHOT = frozenset(
    {"iptables-nft-save", "iptables-legacy-save", "ip-tables-names", "ip-addr", "ip-route", "ip-rule", "tool-versions"}
)

_PYTHON = """
import errno, socket, sys, threading
words = {errno.ECONNREFUSED: "refused", errno.EHOSTUNREACH: "unreachable", errno.ENETUNREACH: "unreachable", errno.ETIMEDOUT: "timed-out"}
def attempt(kind, ip, port):
    try:
        socket.create_connection((ip, int(port)), float(sys.argv[1])).close()
        word = "connected"
    except TimeoutError:
        word = "timed-out"
    except OSError as wrong:
        word = words.get(wrong.errno, wrong)
    print(f"{kind} {ip} {port} {word}\\n", end="")
said = sys.argv[2:]
threads = [threading.Thread(target=attempt, args=said[start:start + 3]) for start in range(0, len(said), 3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
# bash opens the connection itself; its only words for a failure are the C library's.
_CONNECT = f"""
if command -v python3 >/dev/null; then exec python3 -c '{_PYTHON}' "$@"; fi
command -v bash >/dev/null || {{ echo "python3: not found" >&2; exit 127; }}
limit=$1; shift
attempt() {{
  said=$(timeout "$limit" bash -c ': </dev/tcp/$0/$1' "$2" "$3" 2>&1); status=$?
  case "$status:$said" in
    0:*) word=connected;; 124:*) word=timed-out;; *refused*) word=refused;; *unreachable*|*"No route"*) word=unreachable;; *) word=$said;;
  esac
  echo "$1 $2 $3 $word"
}}
while [ $# -gt 0 ]; do attempt "$1" "$2" "$3" & shift 3; done
wait
"""


def commands(targets: Sequence[Socket], controls: Sequence[Socket], nobodys: Sequence[Socket] = ()) -> tuple[Command, ...]:
    """The batch for the LAN client.

    Args:
        targets: ClusterIPs and TCP ports to try.
        controls: what the same program must be able to connect to: a node's InternalIP with a port that listens there.
        nobodys: what nobody can answer at, as ``unassigned`` finds it.
    """
    state = [c for c in snapshot.commands(lookups=[]) if c.name in _OF_SNAPSHOT]
    tries = (("connect", targets), ("control", controls), ("nobody", nobodys))
    words = [w for kind, all_of in tries for s in dict.fromkeys(all_of) for w in (kind, *_words(s))]
    argv = ("sh", "-c", _CONNECT.strip(), "connects", str(CONNECT_TIMEOUT), *words)
    return (*state, Command("connects", argv, timeout=CONNECT_TIMEOUT + 5))


def connect_name(target: Socket, kind: str = "connect") -> str:
    """The name of the Observation about a target (``kind`` "control" for a control)."""
    return f"{kind}-{str(target.ip).replace(':', '-')}-{target.port}"


def each_attempt(answers: Answers) -> Answers:
    """The answers with one Observation an attempt, named by ``connect_name``, whose argv ends in address, port and time limit.

    When the program itself did not run, each attempt has its status and standard error.
    """
    whole = answers["connects"]
    asked = whole.argv[5:]
    said = dict.fromkeys((tuple(asked[start : start + 3]) for start in range(0, len(asked), 3)), "")
    for line in whole.text.splitlines():
        kind, ip, port, word = line.split(" ", 3)
        said[kind, ip, port] = word
    found = copy.copy(answers)
    for (kind, ip, port), word in said.items():
        name = connect_name(Socket(ipaddress.ip_address(ip), int(port)), kind)
        argv = (*whole.argv[:4], kind, ip, port, whole.argv[4])
        found[name] = dataclasses.replace(whole, name=name, argv=argv, stdout=f"{word}\n".encode() if word else b"")
    return found


def unassigned(targets: Sequence[Socket], taken: Collection[IPAddress]) -> tuple[Socket, ...]:
    """For each target the same port at an address near it that is no Service's (the last free one of 256)."""
    found = []
    for target in targets:
        near = ipaddress.ip_network((target.ip, target.ip.max_prefixlen - 8), strict=False)
        free = next((near[number] for number in range(254, 0, -1) if near[number] not in taken), None)
        found += [Socket(free, target.port)] if free else []
    return tuple(found)


def answered_by_no_service(attempts: Answers) -> Trouble | None:
    """Why a connection to a ClusterIP tells nothing: an address beside it that is no Service's took one on the same port.

    A transparent proxy, or a firewall that answers SYNs itself, takes connections to any address.
    """
    taken = [o for name, o in attempts.items() if name.startswith(("connect-", "nobody-")) and o.text.strip() == "connected"]
    ports = {o.argv[-2] for o in taken if o.argv[-4] == "connect"}
    for attempt in taken:
        ip, port = attempt.argv[-3:-1]
        if attempt.argv[-4] == "nobody" and port in ports:
            return Trouble(
                attempt.node,
                f"something on the way takes TCP connections to any address: {ip}:{port}, which is no Service's, was connected too",
                f"nc -vz -w {CONNECT_TIMEOUT} {ip} {port}",
                remedy="name a machine of the nodes' own LAN in the inventory (lan_client:), with no transparent proxy before it",
            )  # fmt: skip
    return None


def _words(target: Socket) -> tuple[str, str]:
    return str(target.ip), str(target.port)
