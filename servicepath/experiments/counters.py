"""Cuts: the moments between two groups of probes at which counters and flow tables are read, on the node, back to back.

A cut is conntrack, iptables counters with kube-proxy's sync mark, conntrack again, so that foreign flows are known to have
begun before or after the counters were read.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..channel import Command
from ..model.addresses import IPAddress

# What tells that kube-proxy has synced, and so that KUBE-SERVICES and its like count from zero again: the metric, else the
# handles of the rules, which every rewrite changes. Fetched by whatever the node has.
_SYNC_MARK = (
    "url=http://127.0.0.1:10249/metrics; "
    "{ curl -sf --max-time 2 $url || wget -qO- -T 2 $url || "
    "python3 -c \"import urllib.request as u; print(u.urlopen('$url', timeout=2).read().decode())\"; } 2>/dev/null "
    "| grep -E '^kubeproxy_sync_proxy_rules_(last_timestamp_seconds|duration_seconds_count)' "
    "|| nft -a list chain ip nat KUBE-SERVICES"
)

# /proc/net/nf_conntrack is as good where the conntrack program is missing and the kernel has the file.
_CONNTRACK = "if command -v conntrack >/dev/null; then conntrack -L 2>/dev/null; else cat /proc/net/nf_conntrack; fi"


def conntrack(name: str) -> Command:
    """List the host's conntrack entries."""
    return Command(name, ("sh", "-c", _CONNTRACK))


def cut(number: int, save_tool: str, vips: Sequence[IPAddress]) -> tuple[Command, ...]:
    """The commands of one cut, named ``cut-N-…``.

    Args:
        number: of the cut, from 0.
        save_tool: the iptables-save program of the back end that holds KUBE-SERVICES (``iptables-nft-save``).
        vips: the ClusterIPs under test; conntrack is listed whole, since a filter by address needs its own program.
    """
    return (
        conntrack(f"cut-{number}-conntrack-1"),
        Command(f"cut-{number}-sync-1", ("sh", "-c", _SYNC_MARK)),
        Command(f"cut-{number}-nat", (save_tool, "-c", "-t", "nat")),
        Command(f"cut-{number}-sync-2", ("sh", "-c", _SYNC_MARK)),
        conntrack(f"cut-{number}-conntrack-2"),
    )
