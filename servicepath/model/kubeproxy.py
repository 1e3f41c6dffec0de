"""What kube-proxy says of itself: its mode, and when it last wrote its rules."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True, slots=True)
class ProxySync:
    """kube-proxy's sync metrics; each maps the IP family (``IPv4``, ``IPv6``) to its value.

    Before Kubernetes 1.34 the metrics have no family: the one value stands under ``any``. Empty where a metric is absent (a
    release that has it not, or text that was filtered).

    Attributes:
        last: Unix time, seconds, of the last sync that succeeded (kubeproxy_sync_proxy_rules_last_timestamp_seconds).
        queued: Unix time, seconds, at which a sync was last asked for (…_last_queued_timestamp_seconds).
        count: how many syncs there were (…_duration_seconds_count); full: those that wrote every rule
            (kubeproxy_sync_full_proxy_rules_duration_seconds_count).
        failures: how many times iptables-restore failed (…_iptables_restore_failures_total).
    """

    last: Mapping[str, float]
    queued: Mapping[str, float]
    count: Mapping[str, int]
    full: Mapping[str, int]
    failures: Mapping[str, int]

    def synced_since(self, earlier: ProxySync) -> bool | None:
        """Whether a sync ended between the earlier reading and this one; None when neither reading has what would tell."""
        if not (self.last and earlier.last) and not (self.count and earlier.count):
            return None
        return dict(self.last) != dict(earlier.last) or dict(self.count) != dict(earlier.count)
