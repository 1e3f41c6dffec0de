"""What may be private is taken out of the API's answers before they are kept, shown or recorded.

No Secret is ever asked for. What is left to guard are the places where people put passwords all the same: environments, arguments,
probes' HTTP headers and volumes of Pods, annotations, and the values of a ConfigMap.
"""

from __future__ import annotations

import json
import re
from typing import Any

# What is kept of a container: all else (env, args, command, lifecycle, probes, volumes) may hold anything.
_OF_CONTAINER = frozenset({"name", "image", "ports", "restartPolicy"})
_OF_POD = frozenset({"volumes", "imagePullSecrets"})  # what is not kept of a Pod's spec

# Annotations are everybody's; those that Kubernetes and Cilium read are kept, but for kubectl's copy of the whole object.
_ANNOTATION = re.compile(r"^([a-z0-9.-]+\.)?(kubernetes|k8s|cilium|k3s|k3s\.cattle)\.io/")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

NOT_KEPT = "(not kept)"
_SECRET_KEY = re.compile(r"passw|secret|token|credential|private|api[-_]?key|access[-_]?key|authoriz", re.IGNORECASE)
# A word that names a secret, and what stands behind it; a URL's user and password; a header; a key in PEM.
_SECRET_TEXT = re.compile(
    r"(?P<name>(?:passw(?:or)?d|secret|token|credential|api[-_]?key|access[-_]?key)\w*['\"]?\s*(?:[=:]\s*|\s+)['\"]?)[^\s'\"]+"
    r"|(?P<bearer>\b(?:Bearer|Basic)\s+)[A-Za-z0-9+/=_.~-]+"
    r"|(?P<scheme>\b[a-z][a-z0-9+.-]*://)[^\s/@:]+:[^\s/@]+(?=@)"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.IGNORECASE | re.DOTALL,
)


def without(body: bytes) -> bytes:
    """The answer's JSON without what may be private; what is no JSON object comes back as it is."""
    try:
        document = json.loads(body)
    except ValueError:
        return body
    if not isinstance(document, dict):
        return body
    items = document.get("items") or ()  # Go writes an empty list as null
    for item in items if isinstance(items, list) else ():
        _clean(item)
    _clean(document)
    return json.dumps(document).encode()


def without_credentials(text: str) -> str:
    """A person's text (a shell command of the inventory) with what looks like a credential replaced."""
    return _SECRET_TEXT.sub(lambda m: f"{m['name'] or m['bearer'] or m['scheme'] or ''}{NOT_KEPT}", text)


def _clean(item: Any) -> None:
    """Odd shapes are left for the parser, which says what is wrong with them."""
    metadata, spec, data = (_mapping(item, key) for key in ("metadata", "spec", "data"))
    metadata.pop("managedFields", None)  # it is merely long
    annotations = _mapping(metadata, "annotations")
    for key in [k for k in annotations if k == _LAST_APPLIED or not _ANNOTATION.match(k)]:
        del annotations[key]
    for key in _OF_POD & spec.keys():
        del spec[key]
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        containers = spec.get(kind)
        for container in containers if isinstance(containers, list) else ():
            for key in [k for k in container if k not in _OF_CONTAINER] if isinstance(container, dict) else ():
                del container[key]
    for key, value in data.items():
        if isinstance(value, str):
            named = _SECRET_KEY.search(key) and value not in ("true", "false")  # "enable-…-secrets-sync" holds none
            data[key] = NOT_KEPT if named else without_credentials(value)


def _mapping(parent: Any, key: str) -> dict[str, Any]:
    found = parent.get(key) if isinstance(parent, dict) else None
    return found if isinstance(found, dict) else {}
