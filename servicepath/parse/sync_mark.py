"""Read what tells one kube-proxy sync from the next.

Either lines of kube-proxy's metrics::

    kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv4"} 42
    kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"} 1.7643e+09

or, where they cannot be had, ``nft -a list chain ip nat KUBE-SERVICES``, whose handles every rewrite changes::

    ip daddr 10.43.0.10 udp dport 53 counter packets 7 bytes 539 jump KUBE-SVC-TCOU7JCQXEZGVUNU # handle 211
"""

from __future__ import annotations

import re

from ..model.windows import SyncMark
from .lines import numbered

_TOOL = "kube-proxy's sync"

_METRIC = re.compile(r"^kubeproxy_sync_proxy_rules_\S+ \S+$", re.MULTILINE)
_HANDLE = re.compile(r"# handle (\d+)$", re.MULTILINE)


def parse_sync_mark(text: str) -> SyncMark | None:
    """The mark, or None when the text holds neither kind: nothing then tells whether kube-proxy has synced.

    Raises:
        ParseError: the last line was cut off: half a number would look like another sync.
    """
    numbered(_TOOL, text)
    metrics = _METRIC.findall(text)
    if metrics:
        return SyncMark("kube-proxy's metrics", " ".join(sorted(metrics)))
    handles = _HANDLE.findall(text)
    return SyncMark("rule handles", " ".join(handles)) if handles else None
