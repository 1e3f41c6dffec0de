"""The path matrix of the notes' §9: who translated and what transported, for each source and frontend, as measured."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Hop:
    """One place at which a packet of the path was seen.

    Attributes:
        place: where, as a person says it ("Pod's lxc7f3a on master", "VXLAN on enp1s0").
        header: the addresses that it carried there (``10.42.0.161:40123 → 10.43.0.10:53/UDP``).
        outer: the outer header where it was encapsulated, else None.
        note: what happened there ("Cilium eBPF: 10.43.0.10:53 → 10.42.1.113:53"), empty when nothing.
    """

    place: str
    header: str
    outer: str | None = None
    note: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class PathCell:
    """One cell: a source and a frontend, and what was measured; ``reason`` says why where nothing was.

    ``source`` is "host", "Pod" or "LAN host"; ``translated_by`` "kube-proxy (iptables)", "Cilium (eBPF)", "Cilium (socket LB)", "nobody"
    or None; ``transported_by`` "Cilium VXLAN", "local delivery", "LAN" or None; None means not tested. ``expected`` is who should
    translate in the node's set-up; None: nobody.
    """

    source: str
    node: str
    frontend: str
    translated_by: str | None
    transported_by: str | None
    verdict: str
    reason: str = ""
    hops: tuple[Hop, ...] = ()
    expected: str | None = None

    def __str__(self) -> str:
        """``Pod on master → kube-dns:dns/UDP: Cilium (eBPF), Cilium VXLAN: as expected``."""
        where = f"{self.source} on {self.node}" if self.node else self.source
        how = f"{self.translated_by or 'nobody seen'}, {self.transported_by or 'nothing seen'}: " if self.translated_by else ""
        return f"{where} → {self.frontend}: {how}{self.verdict}" + (f" ({self.reason})" if self.reason else "")
