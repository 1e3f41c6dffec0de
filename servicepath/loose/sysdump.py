"""Which file of a ``cilium sysdump`` is what (cilium-cli 0.10 to 0.18, cilium-bugtool of Cilium 1.10 to 1.20).

    k8s-services-TIME.yaml                                       API objects, cluster-wide
    ciliumnodes-TIME.yaml, cilium-configmap-TIME.yaml
    cilium-bugtool-POD-TIME/cmd/iptables-nft-save--c.md          one command's output in the agent's Pod, which has the node's network
    cilium-bugtool-POD-TIME/cmd/cilium-dbg-status---verbose.md   before 1.15 without -dbg

Everything may stand in a folder of the archive, and a node's bugtool may be a tar in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

# Time stamps are 20261130-033210.
_BUGTOOL = re.compile(
    r"(?:^|/)cilium-bugtool-(?P<pod>[a-z0-9.-]+?)-\d{8}-\d{6}"
    r"(?:/(?:cilium-bugtool-[^/]+/)?cmd/(?P<name>[^/]+)|\.tar(?:\.gz)?|\.tgz)$"
)
_INNER = re.compile(r"(?:^|/)cmd/(?P<name>[^/]+)$")
_OBJECTS = re.compile(
    r"(?:^|/)(?:k8s-(?:services|endpointslices|endpoints|nodes|pods|networkpolicies|version)|ciliumnodes|cilium-configmap"
    r"|ciliumnetworkpolicies|ciliumclusterwidenetworkpolicies)-\d{8}-\d{6}\.(?:ya?ml|json|txt)$"
)

# Name of a bugtool command's file → what it is; of several that say the same the first counts.
_COMMANDS: Mapping[str, tuple[str, ...]] = {
    "iptables-nft-save": ("iptables-nft-save--c",),
    "iptables-legacy-save": ("iptables-legacy-save--c",),
    "iptables-save": ("iptables-save--c",),
    "ip6tables-nft-save": ("ip6tables-nft-save--c",),
    "ip6tables-legacy-save": ("ip6tables-legacy-save--c",),
    "ip6tables-save": ("ip6tables-save--c",),
    "ip-addr": ("ip--j--d-a", "ip--d-a", "ip-a"),
    "ip-link": ("ip--d--s--s-l", "ip--d-l", "ip-l"),
    "ip-route": ("ip--4-route-show-table-all", "ip--4-r", "ip-r"),
    "ip6-route": ("ip--6-route-show-table-all", "ip--6-r"),
    "ip-rule": ("ip--d-rule", "ip-rule"),
    "agent-services": ("cilium-dbg-service-list--o-json", "cilium-service-list--o-json", "cilium-dbg-service-list", "cilium-service-list"),
    "agent-lb-list": ("cilium-dbg-bpf-lb-list--o-json", "cilium-dbg-bpf-lb-list", "cilium-bpf-lb-list"),
    "agent-status": ("cilium-dbg-status---verbose", "cilium-status---verbose", "cilium-dbg-status--o-json"),
    "hostname": ("hostname",),
}


def is_sysdump(paths: Mapping[str, object]) -> bool:
    """Whether these are the files of a sysdump."""
    return any(_BUGTOOL.search(path) or _OBJECTS.search(path) for path in paths)


def objects(paths: Mapping[str, object]) -> Iterator[str]:
    """The files with API objects."""
    return (path for path in paths if _OBJECTS.search(path))


def bugtools(paths: Mapping[str, object]) -> Mapping[str, Mapping[str, str]]:
    """Agent's Pod → command's file name without ending → path; a bugtool that is a tar has the name ``""``."""
    found: dict[str, dict[str, str]] = {}
    for path in paths:
        match = _BUGTOOL.search(path)
        if match:
            found.setdefault(match["pod"], {})[_plain(match["name"] or "")] = path
    return found


def inner(paths: Mapping[str, object]) -> Mapping[str, str]:
    """The same of the files of one bugtool's tar: command's file name → path."""
    return {_plain(match["name"]): path for path in paths if (match := _INNER.search(path))}


def commands(names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(what it is, path) for the commands that are there; plain iptables-save repeats one of the two back ends where these are there."""
    for kind, known in _COMMANDS.items():
        path = next((names[name] for name in known if name in names), None)
        repeated = kind in ("iptables-save", "ip6tables-save") and _COMMANDS[kind.replace("save", "nft-save")][0] in names
        if path is not None and not repeated:
            yield kind, path


def _plain(name: str) -> str:
    return re.sub(r"\.(?:md|txt|json)$", "", name)
