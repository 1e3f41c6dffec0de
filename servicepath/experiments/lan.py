"""The LAN client: has it Service rules or routes, and does a TCP connection to a ClusterIP come about from there?

Observations: ``iptables-nft-save``, ``iptables-legacy-save``, ``ip-addr``, ``ip-route``, ``ip-rule``, ``tool-versions`` (as in the
snapshot), and ``connect-<address>-<port>`` with one word: ``connected``, ``refused``, ``timed-out`` or ``unreachable``, or the
error's text; the controls are ``control-<address>-<port>``.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..channel import Command
from ..model.addresses import Socket
from . import snapshot

CONNECT_TIMEOUT = 2  # seconds; an answer in a LAN takes milliseconds, a second attempt of TCP comes after one

_OF_SNAPSHOT = frozenset({"iptables-nft-save", "iptables-legacy-save", "ip-addr", "ip-route", "ip-rule", "tool-versions"})

_PYTHON = """
import errno, socket, sys
words = {errno.ECONNREFUSED: "refused", errno.EHOSTUNREACH: "unreachable", errno.ENETUNREACH: "unreachable", errno.ETIMEDOUT: "timed-out"}
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), float(sys.argv[3])).close()
    print("connected")
except TimeoutError:
    print("timed-out")
except OSError as wrong:
    print(words.get(wrong.errno, wrong))
"""
# bash opens the connection itself; its only words for a failure are the C library's.
_CONNECT = f"""
if command -v python3 >/dev/null; then exec python3 -c '{_PYTHON}' "$1" "$2" "$3"; fi
command -v bash >/dev/null || {{ echo "python3: not found" >&2; exit 127; }}
said=$(timeout "$3" bash -c ': </dev/tcp/$0/$1' "$1" "$2" 2>&1); status=$?
case "$status:$said" in
  0:*) echo connected;; 124:*) echo timed-out;; *refused*) echo refused;; *unreachable*|*"No route"*) echo unreachable;; *) echo "$said";;
esac
"""


def commands(targets: Sequence[Socket], controls: Sequence[Socket]) -> tuple[Command, ...]:
    """The batch for the LAN client.

    Args:
        targets: ClusterIPs and TCP ports to try.
        controls: what the same program must be able to connect to: a node's InternalIP with a port that listens there.
    """
    state = [c for c in snapshot.commands(lookups=[]) if c.name in _OF_SNAPSHOT]
    tries = [_try("connect", target) for target in dict.fromkeys(targets)]
    return (*state, *tries, *(_try("control", control) for control in dict.fromkeys(controls)))


def connect_name(target: Socket, kind: str = "connect") -> str:
    """The name of the Observation about a target (``kind`` "control" for a control)."""
    return f"{kind}-{str(target.ip).replace(':', '-')}-{target.port}"


def _try(kind: str, target: Socket) -> Command:
    argv = ("sh", "-c", _CONNECT.strip(), "connect", str(target.ip), str(target.port), str(CONNECT_TIMEOUT))
    return Command(connect_name(target, kind), argv, timeout=CONNECT_TIMEOUT + 3)
