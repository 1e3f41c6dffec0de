"""The Kubernetes API: raw JSON, read at one time, kept as Observations.

Read-only, and no Secret is ever read. The client library is imported only when it is needed: its import takes most of a second.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import time
from collections.abc import Mapping
from typing import Any

from ..fleet import side_by_side
from ..observation import CouldNotSee, Observation, Trouble

REQUEST_TIMEOUT = 10.0  # seconds; the API server answers in milliseconds, over a busy link in one or two seconds

# Name of the Observation → path. Read by one GET each.
PATHS: Mapping[str, str] = {
    "version": "/version",
    "services": "/api/v1/services",
    "endpointslices": "/apis/discovery.k8s.io/v1/endpointslices",
    "pods": "/api/v1/pods",
    "nodes": "/api/v1/nodes",
    "networkpolicies": "/apis/networking.k8s.io/v1/networkpolicies",
    "ciliumnodes": "/apis/cilium.io/v2/ciliumnodes",
    "ciliumnetworkpolicies": "/apis/cilium.io/v2/ciliumnetworkpolicies",
    "ciliumclusterwidenetworkpolicies": "/apis/cilium.io/v2/ciliumclusterwidenetworkpolicies",
}
AGENT_LABELS = {"k8s-app": "cilium"}


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """One reading of the API.

    Attributes:
        observations: what was asked and what came, name as in ``PATHS``, and ``cilium-config``.
        documents: name → the JSON document (``{"items": […]}`` for the lists); ``cilium-config`` is None where there is none.
    """

    observations: tuple[Observation, ...]
    documents: Mapping[str, Any]


def connect(config: Mapping[str, Any] | pathlib.Path | None, *, context: str | None) -> Any:
    """A client (``kubernetes.client.ApiClient``) from a kubeconfig.

    Args:
        config: the kubeconfig's content or file; None for $KUBECONFIG or ~/.kube/config.
        context: None for the current one.

    Raises:
        CouldNotSee: file absent, unreadable (k3s' own has mode 0600), or not a kubeconfig.
    """
    raise NotImplementedError


def get(client: Any, name: str, path: str, *, timeout: float = REQUEST_TIMEOUT) -> Observation:
    """One GET. ``status`` is 0 for an answer of 2xx, else the HTTP status; standard error is then the body's message.

    Raises:
        CouldNotSee: no connection, TLS trouble or time out.
    """
    raise NotImplementedError


def read_cluster(client: Any, *, timeout: float = REQUEST_TIMEOUT) -> Reading:
    """Read all of ``PATHS`` side by side, then the ConfigMap cilium-config in the agents' namespace.

    A resource type of Cilium's that the cluster does not have is an empty list.

    Raises:
        CouldNotSee: one of the requests failed or was forbidden; the text names each.
    """
    raise NotImplementedError
