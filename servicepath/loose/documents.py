"""API objects as people save them (``kubectl get … -o json`` or ``yaml``) → the documents that parse_kubernetes takes.

A list of one kind, a ``List`` of several, single objects, and several documents in one YAML file are all taken apart into objects,
and put together again by resource. The old v1 Endpoints stand in where no EndpointSlice is there.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

RESOURCES: Mapping[str, str] = {
    "Service": "services", "EndpointSlice": "endpointslices", "Endpoints": "endpoints", "Node": "nodes", "Pod": "pods",
    "CiliumNode": "ciliumnodes", "NetworkPolicy": "networkpolicies", "CiliumNetworkPolicy": "ciliumnetworkpolicies",
    "CiliumClusterwideNetworkPolicy": "ciliumclusterwidenetworkpolicies", "ServiceCIDR": "servicecidrs",
}  # fmt: skip
"""Kind → the resource whose document holds it. No Secret is ever read."""

_AGENT_CONFIG = "cilium-config"
_NEEDED = ("services", "endpointslices", "pods", "nodes")
_SERVICE_NAME = "kubernetes.io/service-name"


def gather(documents: Iterable[Any]) -> dict[str, Any]:
    """Put the objects of all documents together by resource, as the API would answer; what is in none of them is absent."""
    found: dict[str, Any] = {}
    seen: set[tuple[str, str, str]] = set()
    for kind, item in (pair for document in documents for pair in _objects(document)):
        metadata: dict[str, Any] = item["metadata"] if isinstance(item.get("metadata"), dict) else {}
        if kind == "Version":
            found.setdefault("version", item)
        elif kind == "ConfigMap" and metadata.get("name") == _AGENT_CONFIG:
            found.setdefault(_AGENT_CONFIG, item)
        elif kind in RESOURCES:
            listed = found.setdefault(RESOURCES[kind], {"items": []})["items"]
            key = (kind, str(metadata.get("namespace")), str(metadata.get("name")))
            if key not in seen:
                listed.append(item)
            seen.add(key)
    endpoints = found.pop("endpoints", None)
    if endpoints and "endpointslices" not in found:
        found["endpointslices"] = {"items": [piece for item in endpoints["items"] for piece in _slices_of(item)]}
    return found


def complete(documents: Mapping[str, Any], version: str | None) -> dict[str, Any]:
    """The documents with an empty list for each resource that parse_kubernetes needs and that is not there."""
    empty: dict[str, Any] = {name: {"items": []} for name in _NEEDED if name not in documents}
    return {"version": {"gitVersion": version or _version(documents)}, **{k: v for k, v in documents.items() if k != "version"}, **empty}


def _version(documents: Mapping[str, Any]) -> str:
    """The API server's version; where it is not there a node's kubelet tells the minor version that kube-proxy may have."""
    said = (documents.get("version") or {}).get("gitVersion")
    kubelets = (
        ((node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion") for node in (documents.get("nodes") or {}).get("items", ())
    )
    return str(said or next((word for word in kubelets if word), "unknown"))


def _objects(document: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if not isinstance(document, dict):
        return
    kind = str(document.get("kind") or "")
    if isinstance(document.get("items"), list):
        for item in document["items"]:
            if isinstance(item, dict):
                yield from _objects(item if item.get("kind") else {**item, "kind": kind.removesuffix("List")})
    elif not kind.endswith("List"):
        yield kind, document


def _slices_of(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The EndpointSlices that a v1 Endpoints object stands for, one a subset; at least one, which may be empty."""
    metadata = item.get("metadata") or {}
    subsets = item.get("subsets") or [{}]
    for number, subset in enumerate(subsets, 1):
        ready = [(address, True) for address in subset.get("addresses") or ()]
        waiting = [(address, False) for address in subset.get("notReadyAddresses") or ()]
        first = next((str(address.get("ip")) for address, _ in (*ready, *waiting)), "0.0.0.0")  # noqa: S104 - no socket is bound
        yield {
            "kind": "EndpointSlice",
            "metadata": {
                "namespace": metadata.get("namespace", "default"), "name": f"{metadata.get('name')}-{number}",
                "labels": {_SERVICE_NAME: metadata.get("name")},
            },
            "addressType": "IPv6" if _is_ipv6(first) else "IPv4",
            "endpoints": [
                {
                    "addresses": [address.get("ip")], "conditions": {"ready": is_ready}, "nodeName": address.get("nodeName"),
                    "targetRef": address.get("targetRef"),
                }
                for address, is_ready in (*ready, *waiting)
            ],
            "ports": subset.get("ports") or [],
        }  # fmt: skip


def _is_ipv6(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).version == 6
    except ValueError:
        return False


def sliced(documents: Mapping[str, Any]) -> frozenset[str]:
    """The Services (``namespace/name``) of which an EndpointSlice is there, with endpoints or without."""
    found = set()
    for item in (documents.get("endpointslices") or {}).get("items", ()):
        metadata = item.get("metadata") or {}
        name = (metadata.get("labels") or {}).get(_SERVICE_NAME)
        if name:
            found.add(f"{metadata.get('namespace')}/{name}")
    return frozenset(found)
