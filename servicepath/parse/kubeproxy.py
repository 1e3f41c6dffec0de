"""kube-proxy's own answers on 127.0.0.1:10249: ``/proxyMode`` and ``/metrics``.

Samples:

    iptables

    # TYPE kubeproxy_sync_proxy_rules_last_timestamp_seconds gauge
    kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"} 1.7961e+09
    kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv4"} 1.7961e+09
"""

from __future__ import annotations

import math
import re

from ..model.kubeproxy import ProxySync
from .errors import ParseError

_MODES = ("iptables", "ipvs", "nftables", "userspace", "kernelspace")
_SAMPLE = re.compile(r'(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>(?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?\s+(?P<value>\S+)(?:\s+-?\d+)?')
_FAMILY = re.compile(r'(?:^|,)\s*ip_family="([^"]*)"')


def parse_proxy_mode(text: str) -> str:
    """Read ``/proxyMode``: iptables, ipvs, nftables, userspace or kernelspace.

    Raises:
        ParseError: anything else, such as the page of another server on that port.
    """
    if text.strip() not in _MODES:
        raise ParseError("kube-proxy /proxyMode", 1, text, f"one of {', '.join(_MODES)}")
    return text.strip()


def parse_kubeproxy_metrics(text: str) -> ProxySync:
    """Read ``/metrics``, or the lines of it that were filtered out on the node.

    Raises:
        ParseError: no line of the text is a metric of kube-proxy, a line is none of the Prometheus text format, or the last line
            has no line feed, without which the format takes it for cut off.
    """
    if text and not text.endswith("\n"):
        raise ParseError("kube-proxy /metrics", text.count("\n") + 1, text.splitlines()[-1], "a line feed at the end of the last line")
    samples: dict[str, dict[str, float]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _SAMPLE.fullmatch(line.strip())
        if match is None:
            raise ParseError("kube-proxy /metrics", number, line, "a metric and its value")
        if match["name"].startswith("kubeproxy_sync"):
            family = _FAMILY.search(match["labels"] or "")
            samples.setdefault(match["name"], {})[family[1] if family else "any"] = _value(number, line, match["value"])
    if not samples:
        raise ParseError("kube-proxy /metrics", 0, text, "metrics that begin with kubeproxy_sync")
    prefix = "kubeproxy_sync_proxy_rules"
    return ProxySync(
        last=samples.get(f"{prefix}_last_timestamp_seconds", {}),
        queued=samples.get(f"{prefix}_last_queued_timestamp_seconds", {}),
    )


def _value(number: int, line: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ParseError("kube-proxy /metrics", number, line, "a number") from None
    if not math.isfinite(value):
        raise ParseError("kube-proxy /metrics", number, line, "a number")
    return value
