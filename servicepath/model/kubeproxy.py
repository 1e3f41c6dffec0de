"""What kube-proxy says of itself: when it last wrote its rules, and when it was last told to."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

# Seconds for which a sync counts as one of just now: what else follows the same change (Cilium's agent) may not have done so yet.
JUST_NOW = 3.0


@dataclasses.dataclass(frozen=True, slots=True)
class ProxySync:
    """kube-proxy's sync metrics; each maps the IP family (``IPv4``, ``IPv6``) to Unix time on the node, in seconds.

    Before Kubernetes 1.34 the metrics have no family: the one value stands under ``any``. Empty where a metric is absent.

    Attributes:
        last: of the last sync that succeeded (kubeproxy_sync_proxy_rules_last_timestamp_seconds).
        queued: when a sync was last asked for (…_last_queued_timestamp_seconds): at every change of a Service or its endpoints.
    """

    last: Mapping[str, float]
    queued: Mapping[str, float]

    def unsettled(self, read_at: float) -> str | None:
        """Why rules read at this time (Unix time on the node) may not be those of the API; None when kube-proxy was at rest.

        A kube-proxy that does not hear of a change at all, or is stopped, is at rest, too.
        """
        for family, queued in self.queued.items():
            if queued > self.last.get(family, 0.0):
                return "kube-proxy has yet to write rules that it was asked for"
        newest = max(self.last.values(), default=0.0)
        if newest > read_at - JUST_NOW:
            when = f"{read_at - newest:.1f} s before" if newest <= read_at else "after"
            return f"kube-proxy wrote its rules {when} they were read"
        return None
