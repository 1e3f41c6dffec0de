"""Cuts: the moments between two groups of probes at which counters and flow tables are read, on the node, back to back.

A cut is, between two readings of kube-proxy's sync mark, conntrack, iptables counters, conntrack again: foreign flows are then
known to have begun before or after the counters were read, and a sync that falls into a window is seen. Where others begin flows
all the time, counters and conntrack are read several times in turn: that reading counts during which nobody began one.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..channel import Command
from ..model.addresses import IPAddress

# What tells that kube-proxy has synced, and so that KUBE-SERVICES and its like count from zero again: the metric, else the
# handles of the rules, which every rewrite changes. Fetched by whatever the node has, by one program and once: a kube-proxy that
# hangs answers none of them, and each mark of the experiment would wait for all.
_SYNC_MARK = """
url=http://127.0.0.1:10249/metrics
{ if command -v curl >/dev/null; then curl -sf --max-time 1 $url
elif command -v wget >/dev/null; then wget -qO- -t 1 -T 1 $url
else python3 -c "import urllib.request as u; print(u.urlopen('$url', timeout=1).read().decode())"; fi; } 2>/dev/null |
grep -E '^kubeproxy_sync_proxy_rules_(last_timestamp_seconds|duration_seconds_count)' || nft -a list chain ip nat KUBE-SERVICES
""".strip()

# /proc/net/nf_conntrack is as good where the conntrack program is missing and the kernel has the file; it holds both families, and
# IPv6 addresses in full. The program lists one family at a time (conntrack(8): IPv4 unless -f says another). grep's status 1 only
# says that no entry matches.
_CONNTRACK = """
if command -v conntrack >/dev/null; then all=$({listed}) || exit
elif [ -r /proc/net/nf_conntrack ]; then all=$(cat /proc/net/nf_conntrack) || exit
else echo "conntrack: not found" >&2; exit 127; fi
printf '%s\\n' "$all" | grep -wF{patterns} || [ $? = 1 ]
"""


def conntrack(name: str, addresses: Sequence[IPAddress]) -> Command:
    """List the host's conntrack entries that name one of the addresses, in whatever place; of each family that is among them."""
    # The empty file keeps grep from a usage error where no Service under test has an address: nothing then matches.
    spelt = dict.fromkeys(text for address in addresses for text in (str(address), address.exploded))
    patterns = " -f /dev/null" + "".join(f" -e {text}" for text in spelt)
    families = sorted({address.version for address in addresses}) or [4]
    listed = " && ".join(f"conntrack -L -f ipv{family}" for family in families)
    return Command(name, ("sh", "-c", _CONNTRACK.format(patterns=patterns, listed=listed).strip()))


def cut(number: int, save_tool: tuple[str, ...], addresses: Sequence[IPAddress], readings: int = 1) -> tuple[Command, ...]:
    """The commands of one cut, named ``cut-N-…``: conntrack-1, nat, conntrack-2, nat-2, conntrack-3, and so on between the marks.

    Args:
        number: of the cut, from 0.
        save_tool: the command that prints the nat table of the back end that holds KUBE-SERVICES, with counters.
        addresses: the ClusterIPs under test and the client Pod's address.
        readings: how often the counters are read.
    """
    found = [Command(f"cut-{number}-sync-1", ("sh", "-c", _SYNC_MARK)), conntrack(f"cut-{number}-conntrack-1", addresses)]
    for reading in range(1, readings + 1):
        found.append(Command(nat_name(number, reading), save_tool))
        found.append(conntrack(f"cut-{number}-conntrack-{reading + 1}", addresses))
    return (*found, Command(f"cut-{number}-sync-2", ("sh", "-c", _SYNC_MARK)))


def nat_name(number: int, reading: int) -> str:
    """The name of the Observation with a cut's counters; readings count from 1."""
    return f"cut-{number}-nat" if reading == 1 else f"cut-{number}-nat-{reading}"
