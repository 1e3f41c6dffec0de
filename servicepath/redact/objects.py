"""The API's answers: of each object what the conclusions read, with neutral names and addresses. All else is left out."""

from __future__ import annotations

import re
from typing import Any

from .mapping import Mapping
from .texts import Texts

# What is kept below an item: {} means whatever stands there, with each text mapped as text for people.
_WHATEVER: dict[str, Any] = {}
_CONDITIONS: dict[str, Any] = {"type": {}, "status": {}, "ready": {}, "serving": {}, "terminating": {}}
_CONTAINERS: dict[str, Any] = {"name": {}, "restartPolicy": {}, "ports": {}}
_SELECTORS = ("podSelector", "endpointSelector", "nodeSelector")
_POLICY: dict[str, Any] = {key: {} for key in (*_SELECTORS, "policyTypes", "egress", "egressDeny", "ingress", "ingressDeny")}
_META: dict[str, Any] = {
    key: {} for key in ("name", "namespace", "uid", "labels", "annotations", "deletionTimestamp", "creationTimestamp", "resourceVersion",
                        "generation", "continue")
} | {"ownerReferences": {"kind": {}, "name": {}, "controller": {}}}  # fmt: skip
_SPEC = {
    # Service
    **{key: {} for key in ("type", "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "ports", "selector", "internalTrafficPolicy",
                           "externalTrafficPolicy", "sessionAffinity", "publishNotReadyAddresses", "trafficDistribution", "externalIPs",
                           "loadBalancerIP", "loadBalancerSourceRanges", "healthCheckNodePort")},
    # Pod
    "nodeName": {}, "hostNetwork": {}, "containers": _CONTAINERS, "initContainers": _CONTAINERS,
    # Node, CiliumNode, ServiceCIDR
    "podCIDR": {}, "podCIDRs": {}, "cidrs": {}, "addresses": {"type": {}, "ip": {}, "address": {}}, "health": {"ipv4": {}, "ipv6": {}},
    "ipam": {"podCIDRs": {}, "pools": {"allocated": {"cidrs": {}}}},
    **_POLICY,
}  # fmt: skip
_STATUS = {
    "loadBalancer": {"ingress": {"ip": {}, "ipMode": {}}}, "phase": {}, "podIP": {}, "podIPs": {}, "hostIP": {}, "hostIPs": {},
    "conditions": _CONDITIONS, "addresses": {"type": {}, "address": {}},
    "nodeInfo": {key: {} for key in ("kubeletVersion", "kernelVersion", "osImage", "containerRuntimeVersion", "architecture")},
}  # fmt: skip
_ITEM = {
    "kind": {}, "apiVersion": {}, "metadata": _META, "spec": _SPEC, "specs": _POLICY, "status": _STATUS, "data": {}, "addressType": {},
    "ports": {}, "endpoints": {
        "addresses": {}, "conditions": _CONDITIONS, "nodeName": {}, "zone": {}, "hints": {"forZones": {"name": {}}},
        "targetRef": {"kind": {}, "name": {}, "namespace": {}},
    },
}  # fmt: skip

# The answers' own names (experiments/api.py), for items and lists that do not say what they are.
_KINDS = {
    "services": "Service", "endpointslices": "EndpointSlice", "pods": "Pod", "nodes": "Node", "ciliumnodes": "CiliumNode",
    "networkpolicies": "NetworkPolicy", "ciliumnetworkpolicies": "CiliumNetworkPolicy", "servicecidrs": "ServiceCIDR",
    "ciliumclusterwidenetworkpolicies": "CiliumClusterwideNetworkPolicy", "kube-system": "Namespace", "cilium-config": "ConfigMap",
}  # fmt: skip
_NAME_OF = {"Service": "service", "Pod": "pod", "Node": "node", "CiliumNode": "node", "Namespace": "namespace"}
_AS_THEY_ARE = ("ConfigMap", "ServiceCIDR")  # theirs are cilium-config and kubernetes
_LABELS = ("labels", "selector", "matchLabels", "annotations")
_OF_LABEL = {
    "kubernetes.io/service-name": "service", "kubernetes.io/hostname": "node", "kubernetes.io/metadata.name": "namespace",
    "io.kubernetes.pod.namespace": "namespace", "k8s:io.kubernetes.pod.namespace": "namespace", "statefulset.kubernetes.io/pod-name": "pod",
}  # fmt: skip
_EVERYBODYS_KEY = re.compile(
    r"^(?:k8s:|any:|reserved:)?(?:(?:[a-z0-9.-]+\.)?(?:kubernetes|k8s|cilium|k3s|k3s\.cattle)\.io/.*|io\.(?:kubernetes|cilium)\..*)$"
)
_PLAIN_KEYS = frozenset({
    "k8s-app", "app", "name", "component", "tier", "role", "pod-template-hash", "controller-revision-hash", "pod-template-generation",
})  # fmt: skip
_PLAIN_VALUES = frozenset({
    "cilium", "cilium-agent", "kube-dns", "coredns", "kube-proxy", "hubble", "amd64", "arm64", "linux", "servicepath",
    "endpointslice-controller.k8s.io",
})  # fmt: skip
_NAMING_CONFIG = re.compile(r"cluster-name|namespace|server|kvstore|etcd|endpoint|url|host-?name|-secret|tls|-dir|-file|-path|domain")
_NO_NAME = re.compile(r"|default|true|false|none|[\d.:/]+|/.*|\d+[hms].*|\(not kept\)|.*\.cilium\.io/.*")
_TELLS_NOTHING = re.compile(r"true|false|[0-9.]*|[A-Z][A-Za-z]*|\d{4}-\d\d-\d\dT[\d:.]+Z")
_HASHED = re.compile(r"(?P<workload>.+)-(?P<hash>[a-z0-9]{5,10})")


class Objects:
    """Rewrites decoded answers by a Mapping; in the first pass what comes back is as it was."""

    def __init__(self, mapping: Mapping, texts: Texts) -> None:
        self._names = mapping.names
        self._mapping = mapping
        self._texts = texts

    def answer(self, name: str, document: Any) -> Any:
        """A list, or a single object (a ConfigMap, the Namespace kube-system, the version), by the answer's name."""
        if not isinstance(document, dict):
            return document
        if "gitVersion" in document:
            return document
        if "items" not in document:
            return self._item(document, _KINDS.get(name, ""))
        items, kind = document["items"] or [], str(document.get("kind") or _KINDS.get(name, "")).removesuffix("List")
        kept = {key: document[key] for key in ("kind", "apiVersion") if key in document}
        meta = document.get("metadata")
        kept |= {"metadata": {key: meta[key] for key in ("resourceVersion", "continue") if key in meta}} if isinstance(meta, dict) else {}
        return kept | {"items": [self._item(each, kind) if isinstance(each, dict) else each for each in items]}

    def _item(self, item: dict[str, Any], listed: str) -> dict[str, Any]:
        kind = str(item.get("kind") or listed)
        kept = _only(item, _ITEM)
        meta, spec = kept.get("metadata"), kept.get("spec")
        if isinstance(meta, dict):
            self._metadata(meta, kind)
        if kind == "Service" and isinstance(spec, dict):
            self._see_ports(meta or {}, spec.get("ports"), ())
        if kind == "ServiceCIDR" and isinstance(spec, dict):
            for cidr in spec.get("cidrs") or ():
                self._mapping.see_subnet(cidr)
        if kind == "EndpointSlice":
            self._see_slice(item)
        if kind == "ConfigMap" and isinstance(kept.get("data"), dict):
            kept["data"] = {key: self._config(key, value) for key, value in kept["data"].items()}
        return {key: value if key in ("metadata", "data") else self._value(key, value, kind) for key, value in kept.items()}

    def _metadata(self, meta: dict[str, Any], kind: str) -> None:
        """Map the object's own names, in place."""
        labels = meta.get("labels") if isinstance(meta.get("labels"), dict) else {}
        service = (labels or {}).get("kubernetes.io/service-name")
        if isinstance(meta.get("namespace"), str):
            meta["namespace"] = self._names("namespace", meta["namespace"])
        name = meta.get("name")
        if isinstance(name, str) and kind not in _AS_THEY_ARE:
            suffix = name.removeprefix(f"{service}-")
            slice_of = kind == "EndpointSlice" and (suffix != name or name == service)
            meta["name"] = self._slice(str(service), name) if slice_of else self._names(_NAME_OF.get(kind, kind.lower() or "object"), name)
        for owner in meta.get("ownerReferences") or ():
            owner["name"] = self._owner(str(owner.get("kind")), str(owner.get("name")))
        for key in ("labels", "annotations"):
            if isinstance(meta.get(key), dict):
                meta[key] = self._labels(meta[key])
        meta |= {"uid": self._mapping.id(meta["uid"])} if isinstance(meta.get("uid"), str) and self._mapping.settled else {}

    def _slice(self, service: str, name: str) -> str:
        return self._names("service", service) + name[len(service) :]

    def _owner(self, kind: str, name: str) -> str:
        if kind in _NAME_OF:
            return self._names(_NAME_OF[kind], name)
        hashed = _HASHED.fullmatch(name) if kind == "ReplicaSet" else None
        return f"{self._names('workload', hashed['workload'])}-{hashed['hash']}" if hashed else self._names("workload", name)

    def _see_slice(self, item: dict[str, Any]) -> None:
        meta = item["metadata"]
        service = {"namespace": meta.get("namespace"), "name": (meta.get("labels") or {}).get("kubernetes.io/service-name")}
        addresses = [ip for each in item.get("endpoints") or () for ip in each.get("addresses") or ()]
        self._see_ports(service, item.get("ports"), addresses)

    def _see_ports(self, service: dict[str, Any], ports: Any, addresses: Any) -> None:
        """Know the Service's chains. The names may be mapped already, which in the first pass changes nothing."""
        if self._mapping.settled or not service.get("name"):
            return
        for port in ports or ():
            part = str(service.get("namespace")), str(service["name"]), str(port.get("name") or "")
            self._mapping.chains.see(part)
            for ip in addresses:
                self._mapping.chains.see(part, f"[{ip}]:{port.get('port')}" if ":" in ip else f"{ip}:{port.get('port')}")

    def _value(self, key: str, value: Any, kind: str) -> Any:
        if isinstance(value, dict):
            if key in _LABELS:
                return self._labels(value)
            if key == "nodeSelector":  # of a policy, where it decides by being there
                return {}
            if key == "targetRef":
                return self._reference(value)
            return {name: self._value(name, each, kind) for name, each in value.items()}
        if isinstance(value, list):
            if key in ("egress", "ingress", "egressDeny", "ingressDeny"):
                return []  # that they are there decides, and not what they say
            if key == "matchExpressions":
                return [{} for _ in value]
            if key in ("containers", "initContainers"):
                return [each | {"name": self._container(each.get("name"))} for each in value]
            if key == "forZones":
                return [each | {"name": self._label_value(str(each.get("name") or ""))} for each in value]
            return [self._value(key, each, kind) for each in value]
        return self._text(key, value, kind) if isinstance(value, str) else value

    def _reference(self, target: dict[str, Any]) -> dict[str, Any]:
        kind = str(target.get("kind"))
        mapped = {key: self._names("namespace", value) if key == "namespace" else value for key, value in target.items()}
        return mapped | ({"name": self._names(_NAME_OF.get(kind, kind.lower()), target["name"])} if target.get("name") else {})

    def _container(self, name: Any) -> Any:
        return name if name in _PLAIN_VALUES or not isinstance(name, str) else self._names("container", name)

    def _text(self, key: str, text: str, kind: str) -> str:
        if key == "nodeName":
            return self._names("node", text)
        if key == "namespace":
            return self._names("namespace", text)
        if key == "zone":
            return self._label_value(text)
        if key == "address" and kind == "Node" and not self._mapping.ip(text):
            return self._names("node", text)
        return text if key in ("kind", "apiVersion", "targetPort") else self._texts.plain(text)

    def _labels(self, labels: dict[str, Any]) -> dict[str, Any]:
        return {self._label_key(key): self._label(key, value) for key, value in labels.items()}

    def _label_key(self, key: str) -> str:
        bare = key.rpartition(":")[2]
        return key if _EVERYBODYS_KEY.match(key) or bare in _PLAIN_KEYS else key[: -len(bare)] + self._names("label", bare)

    def _label(self, key: str, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if key in _OF_LABEL:
            return self._names(_OF_LABEL[key], value)
        return value if key.endswith("-hash") else self._label_value(value)

    def _label_value(self, value: str) -> str:
        if value in _PLAIN_VALUES or _TELLS_NOTHING.fullmatch(value):
            return value if not self._mapping.ip(value) else self._texts.plain(value)
        mapped = self._texts.plain(value)
        return mapped if mapped != value else self._names("value", value)

    def _config(self, key: str, value: Any) -> Any:
        """A value of cilium-config: words of Cilium's own, numbers and addresses; names where the key says that it is one."""
        if not isinstance(value, str):
            return value
        if _NAMING_CONFIG.search(key) and not _NO_NAME.fullmatch(value):
            return self._names("value", value)
        return self._texts.free(value)


def _only(value: Any, kept: dict[str, Any]) -> Any:
    """Of objects, and of those in lists, the keys that are kept."""
    if isinstance(value, list):
        return [_only(each, kept) for each in value]
    if not isinstance(value, dict) or not kept:
        return value
    return {key: _only(each, kept[key]) for key, each in value.items() if key in kept}
