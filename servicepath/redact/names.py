"""Names → neutral ones. The first pass sees them all, ``settle`` numbers them in their own order, the second pass asks for them.

The order is kept also among the names that stay, so that what is sorted by name comes in the same order as before.
"""

from __future__ import annotations

from collections.abc import Mapping

# What is found in every cluster and tells nothing of one; docs/recordings.md lists it.
KEPT: Mapping[str, frozenset[str]] = {
    "namespace": frozenset({"default", "kube-system", "kube-public", "kube-node-lease", "servicepath-test"}),
    "service": frozenset({"kubernetes", "kube-dns"}),
    "workload": frozenset({"coredns", "cilium", "cilium-operator", "cilium-envoy", "kube-proxy"}),
    "node": frozenset({"lan-client"}),
}
OWN = "servicepath-"  # what this project itself makes

# The words that neutral names begin with. The first one that sorts into the gap between two names that stay is taken.
_STEMS: Mapping[str, tuple[str, ...]] = {
    "namespace": ("app", "group", "place", "space"),
    "service": ("app", "front", "service"),
    "workload": ("app", "set", "workload"),
}

# Of a word that may be several things: which it is taken for.
_ORDER = ("node", "service", "pod", "namespace", "workload")


class Names:
    """All names of a recording, by kind: node, pod, namespace, service, workload and whatever else asks for a kind of its own."""

    def __init__(self) -> None:
        self._seen: dict[str, set[str]] = {}
        self._neutral: dict[str, dict[str, str]] = {}
        self.settled = False

    def __call__(self, kind: str, name: str) -> str:
        """The neutral name; in the first pass the name itself, which is then known."""
        if not name or name.startswith(OWN) or name in KEPT.get(kind, ()):
            return name
        if not self.settled:
            self._seen.setdefault(kind, set()).add(name)
            return name
        return self._neutral[kind][name]

    def knows(self, kind: str, name: str) -> bool:
        """Whether the first pass has seen this name, or it stays."""
        return name in self._seen.get(kind, ()) or name in KEPT.get(kind, ())

    def seen(self, kind: str) -> frozenset[str]:
        """What the first pass has seen of a kind, without what stays."""
        return frozenset(self._seen.get(kind, ()))

    def any(self, name: str) -> str | None:
        """The neutral name of a word that may be of any kind; None of a word that is no name."""
        return next((self(kind, name) for kind in _ORDER if name in self._seen.get(kind, ())), None)

    def settle(self) -> None:
        """End of the first pass."""
        for kind, names in self._seen.items():
            self._neutral[kind] = _numbered(sorted(names), sorted(KEPT.get(kind, ())), _STEMS.get(kind, (kind,)))
        self.settled = True


def _numbered(names: list[str], kept: list[str], stems: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for low, high in zip(["", *kept], [*kept, "\x7f"], strict=True):
        between = [name for name in names if low < name < high]
        stem = next((f"{stem}-" for stem in stems if low < stem and f"{stem}-:" < high), f"{low}-x-")
        width = len(str(len(between)))
        found |= {name: f"{stem}{number:0{width}}" for number, name in enumerate(between, 1)}
    return found
