"""Which set-up a node runs, whether it is the expected one, and whether anything of another one is left.

The suite's other conclusions hold for kube-proxy in iptables mode beside Cilium with its proxy replacement off, so that this one
tells first when a node is something else. What counts is what runs: /proxyMode, rules that follow the endpoints, the agent's
status; a ConfigMap says only what will be after a restart.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from .addresses import Socket
from .cilium import AgentStatus, MapService
from .difference import Difference
from .host import Interface
from .rules import SERVICES
from .service_rules import NodeRules

REPLACING = ("True", "Strict")
NOT_REPLACING = ("False", "Disabled")


@dataclasses.dataclass(frozen=True, slots=True)
class Mode:
    """A set-up, found on a node or expected there.

    Attributes:
        proxy_mode: what kube-proxy says of itself (iptables, ipvs, nftables); None: it did not answer.
        rules_current: True: KUBE-SVC rules lead to the current endpoints, so that a kube-proxy is at work, in a Pod or in k3s;
            False: they lead elsewhere, left over; None: there are none.
        kpr: the word of the agent's status (False, True; Disabled, Strict, Partial, Probe before 1.16).
        socket_lb: whether socket LB is on.
        cluster_ip_enabled: whether Cilium translates ClusterIPs.
        routing: tunnel or native.
        tunnel: vxlan or geneve; None under native routing.
        hostns_only: whether socket LB leaves Pods' sockets alone (``socketLB.hostNamespaceOnly``), so that theirs are translated packet
            by packet; never expected, only found.
        encryption: of packets between nodes (disabled, ipsec, wireguard); never expected, only found.
        astray: rules that do not lead to the current endpoints, beside these; never expected, only found.
    """

    proxy_mode: str | None
    rules_current: bool | None
    kpr: str | None
    socket_lb: bool | None
    cluster_ip_enabled: bool | None
    routing: str | None
    tunnel: str | None
    hostns_only: bool | None = None
    encryption: str | None = None
    astray: tuple[str, ...] = dataclasses.field(default=(), compare=False)


EXPECTED = Mode("iptables", True, "False", False, True, "tunnel", "vxlan")
"""What this suite's expectations are written for."""

EXPECTED_REPLACED = Mode(None, None, "True", True, True, "tunnel", "vxlan")
"""With Cilium in kube-proxy's place: no kube-proxy, and none of its rules."""

_MOST = 12  # lines of rules in a message
_LABELS = {
    "proxy_mode": "kube-proxy's mode",
    "rules_current": "kube-proxy's rules",
    "kpr": "KubeProxyReplacement",
    "socket_lb": "socket LB",
    "cluster_ip_enabled": "ClusterIP translation by Cilium",
    "routing": "routing",
    "tunnel": "tunnel",
}

def replacement(status: AgentStatus) -> str | None:
    """The agent's word for its proxy replacement; Partial and Probe (before 1.14) are resolved by what is really on.

    Returns:
        True, False (or Strict, Disabled), Partial or Probe when some features are on and some off, None when it does not say.
    """
    word = status.kube_proxy_replacement
    if word not in ("Partial", "Probe"):
        return word
    # ClusterIP is printed as enabled in every mode and decides nothing.
    parts = {status.socket_lb, *(status.services.get(name) for name in ("NodePort", "externalIPs", "HostPort"))}
    if None in parts:
        return None
    return word if len(parts) > 1 else str(parts.pop())


def found_mode(
    status: AgentStatus, lb_map: Iterable[MapService], *, proxy_mode: str | None, rules_current: bool | None
) -> Mode:
    """The mode that runs on a node.

    Cilium prints ``ClusterIP: Enabled`` in every mode; what shows that it translates ClusterIPs is its map.
    """
    cluster_ip = any(entry.type == "ClusterIP" and not entry.wildcard for entry in lb_map)
    return Mode(proxy_mode, rules_current, replacement(status), status.socket_lb, cluster_ip, status.routing, status.tunnel)


def rules_current(
    reached: Iterable[tuple[frozenset[Socket], frozenset[Socket]]], control: Iterable[tuple[frozenset[Socket], frozenset[Socket]]] = ()
) -> bool | None:
    """Whether kube-proxy's rules follow the endpoints, by pairs of (where a Service's rules lead, what should serve).

    Args:
        reached: of the Services under test.
        control: of a Service that is sure to have endpoints (default/kubernetes), which tells where those under test cannot: they
            are headless, or nothing serves them.

    Returns:
        None when no Service has rules that lead anywhere; False when one leads elsewhere.
    """
    pairs = tuple(reached)
    if not any(sockets or serving for sockets, serving in pairs):
        pairs = tuple(control)
    if not any(sockets for sockets, _ in pairs):
        return None
    return all(sockets == serving for sockets, serving in pairs)


def expected_mode(
    *,
    proxy_mode: str | None = None,
    kube_proxy_replacement: str | None = None,
    socket_lb: bool | None = None,
    routing: str | None = None,
    tunnel: str | None = None,
) -> Mode:
    """The expected mode: the suite's own, with what the inventory's ``expect:`` pins; None is not pinned."""
    base = EXPECTED_REPLACED if _plain(kube_proxy_replacement) == "True" else EXPECTED
    return dataclasses.replace(
        base,
        proxy_mode=proxy_mode or base.proxy_mode,
        rules_current=base.rules_current if proxy_mode in (None, "iptables") else None,
        kpr=kube_proxy_replacement or base.kpr,
        socket_lb=base.socket_lb if socket_lb is None else socket_lb,
        routing=routing or base.routing,
        tunnel=tunnel or (None if routing == "native" else base.tunnel),
    )


def unseen(found: Mode, expected: Mode) -> tuple[str, ...]:
    """What the expectation names and the node does not say: it could not be seen, which is neither right nor wrong."""
    names = [name for name in ("proxy_mode", "kpr", "socket_lb", "cluster_ip_enabled", "routing") if getattr(expected, name) is not None]
    if found.routing == "tunnel" and expected.tunnel is not None:
        names.append("tunnel")
    return tuple(_LABELS[name] for name in names if getattr(found, name) is None)


def judge_mode(node: str, found: Mode, expected: Mode, lines: tuple[str, ...] = ()) -> tuple[Difference, ...]:
    """Compare the mode that runs, as far as it was seen, with the expected one; ``unseen`` tells what was not.

    Args:
        node: its node.
        found: what runs.
        expected: what should.
        lines: the evidence: what /proxyMode and the agent's status said.
    """
    wrong = []
    blind = unseen(found, expected)
    for name, label in _LABELS.items():
        want, got = getattr(expected, name), getattr(found, name)
        if label in blind or (name == "tunnel" and found.routing is None):
            continue
        if name != "rules_current" and _plain(want) != _plain(got) and not (name == "proxy_mode" and want is None):
            wrong.append(Difference(f"{node}: {label}", "is not as expected", _said(want), _said(got), lines))
    rules = _rules_wrong(node, found, expected, lines)
    return tuple([*wrong, rules] if rules else wrong)


def mode_lines(mode: Mode) -> tuple[str, ...]:
    """A mode as the report shows it, a line a part."""
    rules = {True: "lead to the current endpoints", False: "lead elsewhere", None: "none"}[mode.rules_current]
    named = ((label, rules if name == "rules_current" else _said(getattr(mode, name))) for name, label in _LABELS.items())
    return tuple(f"{label}: {said}" for label, said in named)


def _rules_wrong(node: str, found: Mode, expected: Mode, lines: tuple[str, ...]) -> Difference | None:
    subject = f"{node}: kube-proxy's rules"
    if found.kpr in REPLACING and found.rules_current is not None:
        if found.rules_current:
            problem, actual = "active kube-proxy beside Cilium's replacement of it", "KUBE-SVC rules follow the current endpoints"
        else:
            problem, actual = "left over from a kube-proxy that is gone", "KUBE-SVC rules do not follow the endpoints"
        lines = (*lines, *found.astray[:_MOST])
        return Difference(subject, problem, "no KUBE-SVC rules while KubeProxyReplacement is True", actual, lines)
    if found.rules_current == expected.rules_current or found.kpr in REPLACING:
        return None
    actual = {True: "current", False: "they do not follow the current endpoints", None: "no KUBE-SVC rules"}[found.rules_current]
    wanted = {True: "rules that follow the current endpoints", False: "stale rules", None: "no KUBE-SVC rules"}[expected.rules_current]
    return Difference(subject, "are not as expected", wanted, actual, (*lines, *found.astray[:_MOST]))


def config_differences(node: str, status: AgentStatus, config: Mapping[str, str] | None) -> tuple[Difference, ...]:
    """Where the running agent differs from the cilium-config ConfigMap: it was changed, and the agent not restarted since.

    A key that is absent means a default and is not compared; None is a ConfigMap that was not found. With the replacement on,
    socket LB is on whatever ``bpf-lb-sock`` says (Cilium 1.14 and later, cilium/cilium#26758; the chart always writes "false"),
    so that the key is compared only with it off.
    """
    pairs = [("kube-proxy-replacement", "KubeProxyReplacement", status.kube_proxy_replacement)]
    if status.kube_proxy_replacement not in REPLACING:
        pairs.append(("bpf-lb-sock", "Socket LB", None if status.socket_lb is None else str(status.socket_lb)))
    pairs.append(("routing-mode", "Routing", status.routing))
    if status.routing == "tunnel":
        pairs.append(("tunnel-protocol", "Tunnel", status.tunnel))
    return tuple(
        Difference(
            f"{node}: {label} of the running agent", "is not what cilium-config says: restart the agent, or undo the change",
            f"{key}: {config[key]}", running, (f"cilium-config: {key}: {config[key]}", f"cilium-dbg status: {label}: {running}"),
        )
        for key, label, running in pairs
        if config and running is not None and config.get(key) and _plain(config[key]) != _plain(running)
    )  # fmt: skip


def leftovers(
    node: str, found: Mode, interfaces: Iterable[Interface], nft_tables: Iterable[str], tunnel_port: int = 8472
) -> tuple[Difference, ...]:
    """What is left of another set-up, or stands in the tunnel's way.

    Args:
        node: the node.
        found: what runs there.
        interfaces: ``ip -d link`` of the host, with kinds and VXLAN ports.
        nft_tables: ``nft list tables`` as "family name" (``ip kube-proxy``).
        tunnel_port: UDP port of Cilium's VXLAN.
    """
    interfaces = tuple(interfaces)
    wrong = []
    # A kube-proxy that is there and was not heard may be in any mode.
    known = found.proxy_mode is not None or found.kpr in REPLACING
    if known and found.proxy_mode != "ipvs":
        wrong += [
            Difference(f"{node}: interface {i.name}", "left of kube-proxy in ipvs mode", "no such interface", str(i), (i.raw or str(i),))
            for i in interfaces
            if i.name == "kube-ipvs0"
        ]
    if known and found.proxy_mode != "nftables":
        wrong += [
            Difference(f"{node}: nft table {table}", "left of kube-proxy in nftables mode", "no such table", table)
            for table in nft_tables
            if table.split()[-1:] == ["kube-proxy"]
        ]
    return (*wrong, *_tunnels(node, found, interfaces, tunnel_port))


def in_both_back_ends(node: str, nat: NodeRules | None) -> tuple[Difference, ...]:
    """Two copies of the Service rules, one in each iptables back end: one is left of a kube-proxy that used the other.

    Args:
        node: the node.
        nat: its rules; None where kube-proxy has none in iptables.
    """
    if nat is None or len(nat.holders) < 2:
        return ()
    lines = tuple(f"{name}: {rule.raw}" for name, ruleset in nat.holding for rule in ruleset.rules("nat", SERVICES)[:2])
    problem = "are in both iptables back ends, and the kernel obeys both: one copy is left over"
    return (Difference(f"{node}: kube-proxy's rules", problem, "KUBE-SERVICES in one", " and ".join(nat.holders), lines),)


def _tunnels(node: str, found: Mode, interfaces: tuple[Interface, ...], port: int) -> Iterable[Difference]:
    mine = next((i for i in interfaces if i.name == f"cilium_{found.tunnel}"), None)
    if found.tunnel and mine and not mine.up:
        yield Difference(
            f"{node}: interface {mine.name}", "the tunnel device is down", "UP", str(mine), (mine.raw or str(mine),)
        )
    for other in interfaces:
        foreign = other.kind == "vxlan" and not other.name.startswith("cilium_")
        if foreign and found.tunnel == "vxlan" and other.vxlan_port == port:
            problem = f"has the tunnel's own UDP port {port}: cilium_vxlan cannot be up beside it"
        elif other.name.startswith("flannel.") or other.name == "vxlan.calico":
            problem = "left of another network plugin"
        else:
            continue
        lines = (other.raw or str(other),)
        yield Difference(f"{node}: interface {other.name}", problem, "no tunnel device but Cilium's", str(other), lines)


def _plain(value: object) -> object:
    """Words that say the same made equal: Disabled was False before 1.14, Strict was True; ConfigMaps write lower case."""
    word = str(value).capitalize()
    same = {**dict.fromkeys(REPLACING, "True"), **dict.fromkeys(NOT_REPLACING, "False")}
    return same.get(word, word)


def _said(value: object) -> str:
    return "none" if value is None else str(value)
