"""How the dataplanes followed a Service that was created and deleted: what each node held before, in between and after."""

from __future__ import annotations

import dataclasses

from .addresses import IPAddress, IPNetwork
from .difference import Difference
from .host import Route


@dataclasses.dataclass(frozen=True, slots=True)
class Presence:
    """Whether one node's dataplanes hold the temporary Service with its backend, at one time.

    Attributes:
        rules: kube-proxy's; None where Cilium takes its place.
        agent: the agent's Service list.
        map: the load-balancing map.
        proxy: kube-proxy's mode, iptables or nftables.
    """

    rules: bool | None
    agent: bool
    map: bool
    proxy: str = "iptables"

    @property
    def everywhere(self) -> bool:
        """In all that there are."""
        return self.rules is not False and self.agent and self.map

    @property
    def nowhere(self) -> bool:
        """In none of them."""
        return not (self.rules or self.agent or self.map)

    def __str__(self) -> str:
        """``iptables: yes, agent's Service list: yes, load-balancing map: no``."""
        words = {True: "yes", False: "no"}
        rules = "" if self.rules is None else f"{self.proxy}: {words[self.rules]}, "
        return f"{rules}agent's Service list: {words[self.agent]}, load-balancing map: {words[self.map]}"


@dataclasses.dataclass(frozen=True, slots=True)
class Following:
    """One node's answer.

    Attributes:
        node: the node.
        vip: the temporary Service's ClusterIP.
        before, created, deleted: what was held before, after creation and after deletion (each when it was so, or time was up);
            when it was there, with its backend; before and after, anything at all for its address and port.
        routes: the node's routes before, while the Service was there, and after.
        waited: seconds until creation and deletion had arrived.
        backend: the address of the Service's endpoint.
    """

    node: str
    vip: IPAddress
    before: Presence
    created: Presence
    deleted: Presence
    routes: tuple[frozenset[Route], frozenset[Route], frozenset[Route]]
    waited: tuple[float, float]
    backend: IPAddress


def lines(following: Following) -> tuple[str, ...]:
    """What was seen of one node, for the report."""
    counts = " / ".join(str(len(routes)) for routes in following.routes)
    return (
        f"{following.node}: {following.vip} before: {following.before}",
        f"{following.node}: {following.waited[0]:.1f} s after its creation: {following.created}",
        f"{following.node}: {following.waited[1]:.1f} s after its deletion: {following.deleted}",
        f"{following.node}: routes in all tables before / meanwhile / after: {counts}",
    )


def not_followed(following: Following) -> tuple[Difference, ...]:
    """Dataplanes that the Service did not reach, or did not leave."""
    wrong = []
    subject = f"{following.node}: the temporary Service {following.vip}"
    if not following.created.everywhere:
        problem = f"not everywhere {following.waited[0]:.1f} s after its creation"
        wanted = "in both dataplanes" if following.created.rules is None else "in all three dataplanes"
        wrong.append(Difference(subject, problem, wanted, str(following.created)))
    if not following.deleted.nowhere:
        problem = f"still there {following.waited[1]:.1f} s after its deletion"
        wrong.append(Difference(subject, problem, "in none of the dataplanes", str(following.deleted)))
    return tuple(wrong)


def routes_changed(following: Following, cidrs: tuple[IPNetwork, ...]) -> tuple[Difference, ...]:
    """Routes of the Pod or Service CIDRs that came or went with the Service.

    With endpoint routes (Cilium's ``enable-endpoint-routes``) each local Pod has a route of its own through its lxc device, which comes
    and goes with the Pod; such a one counts only when it leads to the Service's address or to its endpoint.
    """
    own = {following.vip, following.backend}
    before, during, after = (
        frozenset(r for r in routes if _inside(r, cidrs) and (not _of_one_pod(r) or r.destination.network_address in own))
        for routes in following.routes
    )
    wrong = []
    for label, other in (("its creation", during), ("its deletion", after)):
        changed = before ^ other
        if changed:
            subject = f"{following.node}: routes around {label}"
            lines = tuple(("+ " if r in other else "- ") + (r.raw or str(r.destination)) for r in sorted(changed, key=str))
            wrong.append(Difference(subject, "routes changed with a Service", "no route comes or goes", f"{len(changed)} did", lines))
    return tuple(wrong)


def _of_one_pod(route: Route) -> bool:
    return route.destination.prefixlen == route.destination.max_prefixlen and (route.device or "").startswith("lxc")


def _inside(route: Route, cidrs: tuple[IPNetwork, ...]) -> bool:
    """The route's destination overlaps one of the CIDRs and is no wider: a default route is nobody's own."""
    return any(
        route.destination.version == cidr.version and route.destination.overlaps(cidr) and route.destination.prefixlen >= cidr.prefixlen
        for cidr in cidrs
    )
