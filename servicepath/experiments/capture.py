"""Captures on a node: tcpdump into files, started before the probes and fetched after them, all within one round trip.

Nothing stays behind: the folder is removed by the last command, or by a timer on the node if that one never runs; every
tcpdump ends by itself after LONGEST seconds or MOST_PACKETS packets.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Sequence

from ..channel import Command
from ..model.addresses import IPAddress

# Seconds after which a tcpdump that nobody stopped ends, and after which the folder goes even if the connection broke.
LONGEST, FOLDER_LIVES = 110, 140

# A capture that holds more than this is not whole, and its test says so instead of judging a part.
MOST_PACKETS = 20000

# Seconds for all tcpdumps of a node to read what had come when the probes were over.
PATIENCE = 6

# Bytes kept of each packet: outer headers (50), VXLAN (8), inner Ethernet, IP and UDP (42), and a DNS message's question.
SNAPLEN = 384

# Offsets of the inner IPv4 source and destination from the start of the outer UDP header:
# 8 (UDP) + 8 (VXLAN, RFC 7348) + 14 (inner Ethernet) + 12 and 16 (IPv4).
INNER_SOURCE, INNER_DESTINATION = 42, 46

# The same of an inner IPv6 header, whose addresses begin 8 and 24 bytes into it; a filter compares four bytes at a time.
INNER6_SOURCE, INNER6_DESTINATION = 38, 54

# tcpdump -Z root and a name in .pcap: under Debian's and Ubuntu's AppArmor profile nothing else may be written.
_START = """
set -eu
command -v tcpdump >/dev/null || {{ echo "tcpdump: not found" >&2; exit 127; }}
umask 077
mkdir {folder}
setsid sh -c 'sleep {lives}; rm -rf {folder}' </dev/null >/dev/null 2>&1 &
echo $! > {folder}/timer.pid
start() {{
  timeout {longest} tcpdump -Z root -nn -p -U --immediate-mode -s {snaplen} -c {most} -i "$2" -w {folder}/"$1".pcap "$3" \
    </dev/null >/dev/null 2>>{folder}/"$1".err &
  echo $! > {folder}/"$1".pid
}}
ready() {{
  n=0
  until grep -q 'listening on' {folder}/"$1".err; do
    if ! kill -0 "$(cat {folder}/"$1".pid)" 2>/dev/null || [ $n -ge 100 ]; then
      echo "tcpdump on $2 did not start:" >&2; cat {folder}/"$1".err >&2; exit 1
    fi
    n=$((n + 1)); sleep 0.05
  done
}}
"""

# What is printed with the counts of a tcpdump that had ended by itself, after LONGEST or MOST_PACKETS: what came later is not in it.
ENDED_EARLY = "ended before it was stopped"

# What is printed with the counts of a tcpdump that did not get to read in time what the kernel had kept for it: on a busy node it may
# not run for a while, and what it has not read when it is ended is lost without being counted as dropped.
UNREAD = "had not read all that the kernel kept for it when it was stopped"

# USR1 lets tcpdump print its counts in one line and go on (tcpdump(8)): it is ended once it has read all that had been received when
# the probes were over; or when it has answered several times and is short of the same number, as the kernel has counted packets that
# came before the filter was in place: what is read is read in order, so that a number that stays is no backlog. TERM lets it print three
# closing counts; with the notes above they tell whether the capture is whole.
# The process that was started is timeout; tcpdump is its child.
_STOP = """
set -u
child() {{ cat "/proc/$1/task/$1/children" 2>/dev/null || ps -o pid= --ppid "$1"; }}
count() {{ sed -n "s/^tcpdump: \\([0-9]*\\) packets* captured, \\([0-9]*\\) packets* received.*/\\\\$2/p" {folder}/"$1".err; }}
ask() {{ for role in $running; do kill -USR1 $(child "$(cat {folder}/$role.pid)") 2>/dev/null; done; sleep 0.05; }}
time_left() {{ [ "$(date +%s)" -lt "$end" ]; }}
uncounted() {{ for role in $running; do [ -n "$(count $role 2)" ] || return 0; done; return 1; }}
short() {{ count "$1" '1 \\2' | while read -r got came; do echo $((came - got)); done; }}
settled() {{ [ "$(short "$1" | wc -l)" -ge 8 ] && [ "$(short "$1" | tail -n 8 | uniq | wc -l)" = 1 ]; }}
behind() {{ [ "$(count "$1" 1 | tail -n 1)" -lt "$(count "$1" 2 | head -n 1)" ] 2>/dev/null && ! settled "$1"; }}
unread() {{ for role in $running; do if behind $role; then return 0; fi; done; return 1; }}
running=
for role in {roles}; do
  if grep -q '^[0-9].* dropped by kernel' {folder}/$role.err; then echo '{early}' >>{folder}/$role.err
  elif [ -n "$(child "$(cat {folder}/$role.pid)")" ]; then running="$running $role"; fi
done
end=$(($(date +%s) + {patience}))
while uncounted && time_left; do ask; done
while unread && time_left; do ask; done
for role in $running; do if behind $role; then echo '{unread}' >>{folder}/$role.err; fi; done
for role in {roles}; do kill -TERM "$(cat {folder}/$role.pid)" 2>/dev/null; done
n=0
for role in {roles}; do
  until grep -q '^[0-9].* dropped by kernel' {folder}/$role.err || [ $n -ge 100 ]; do n=$((n + 1)); sleep 0.02; done
  echo "== $role"; cat {folder}/$role.err
done
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Tap:
    """Where to capture: a role ("underlay", "tunnel", "client-lxc", "backend-lxc-1"), an interface and a pcap filter."""

    role: str
    interface: str
    filter: str


def fresh_folder() -> str:
    """A folder name on the node that no other run uses."""
    return f"/tmp/servicepath-{secrets.token_hex(8)}"  # noqa: S108 - random, made with mkdir and mode 700, so never another's


def start(taps: Sequence[Tap], folder: str) -> Command:
    """The command that starts all captures and comes back when every one of them is listening."""
    text = _START.format(folder=folder, lives=FOLDER_LIVES, longest=LONGEST, snaplen=SNAPLEN, most=MOST_PACKETS)
    lines = [f"start {tap.role} {tap.interface} '{tap.filter}'" for tap in taps]
    lines += [f"ready {tap.role} {tap.interface}" for tap in taps]
    return Command("captures-start", ("sh", "-c", text + "\n".join(lines)), timeout=15)


def stop(taps: Sequence[Tap], folder: str) -> tuple[Command, ...]:
    """The commands that end the captures, print them (one command a capture, binary), and remove the folder."""
    roles = " ".join(tap.role for tap in taps)
    text = _STOP.format(folder=folder, roles=roles, early=ENDED_EARLY, unread=UNREAD, patience=PATIENCE)
    return (
        Command("captures-stop", ("sh", "-c", text), timeout=20),
        *(Command(f"capture-{tap.role}", ("cat", f"{folder}/{tap.role}.pcap")) for tap in taps),
        Command("captures-remove", ("sh", "-c", f"kill -TERM -$(cat {folder}/timer.pid); rm -rf {folder}")),
    )


def underlay_filter(
    addresses: Sequence[IPAddress], vips: Sequence[IPAddress], bare: Sequence[IPAddress], tunnel_port: int
) -> str:  # fmt: skip
    """Let through what could be ours on the underlay: VXLAN with one of the addresses inside, and packets to or from ``bare`` ones.

    Both are let through on purpose: a ClusterIP that leaks is then seen, in the tunnel or beside it, and so is a Pod's packet that
    should be in the tunnel and is not. The outer header may be IPv4 alone here; the offsets of an IPv6 underlay differ.
    """
    inner = " or ".join(_inside(address, source) for address in (*addresses, *vips) for source in (True, False))
    plain = " or ".join(f"host {ip}" for ip in bare)
    tunnelled = f"(udp port {tunnel_port} and ({inner}))" if inner else ""
    return " or ".join(part for part in (tunnelled, plain) if part)


def _inside(address: IPAddress, source: bool) -> str:
    """The condition that the inner header has the address as its source (else as its destination)."""
    if address.version == 4:
        return f"udp[{INNER_SOURCE if source else INNER_DESTINATION}:4]={int(address):#x}"
    start = INNER6_SOURCE if source else INNER6_DESTINATION
    words = (f"udp[{start + n}:4]=0x{address.packed[n : n + 4].hex()}" for n in range(0, 16, 4))
    return f"({' and '.join(words)})"


def host_filter(addresses: Sequence[IPAddress]) -> str:
    """Let through packets from or to any of the addresses."""
    return " or ".join(f"host {address}" for address in addresses)
