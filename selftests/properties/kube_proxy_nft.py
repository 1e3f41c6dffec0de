"""kube-proxy's nftables table made up at random, as v1.31 to v1.37 write it and as nft 1.0.6 prints it, with the facts in it.

What differs (pkg/proxy/nftables/proxier.go): until v1.35 a chain an endpoint translates, and a jump in the Service's chain marks what is
to be masqueraded (until v1.33 for the port alone); since v1.36 a Service's chain translates by a map, one rule of ``services`` marks for
all of them and the set ``hairpin-connections`` is there; since v1.37 a Service with one endpoint needs no choice. Until v1.32 the
firewall was asked in ``filter-prerouting``. What these releases wrote is in ``data/kubernetes-…/kube-proxy.tar.zst``.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import ipaddress
import json
from typing import Any

from hypothesis import strategies as st

from servicepath.model.addresses import Socket
from servicepath.model.nft_rules import NftService, NftTable

RELEASES = (31, 33, 34, 36, 37)
LABELS = st.from_regex(r"[a-z]([a-z0-9-]{0,12}[a-z0-9])?|[a-z][a-z0-9-]{61}[a-z]", fullmatch=True)
WORD = {4: "ip", 6: "ip6"}
PODS = {4: ("10.42.0.0/16", "10.42.0.0", 16), 6: ("fd00:42::/48", "fd00:42::", 48)}
_META_MARK = {"meta": {"key": "mark"}}
MARK = ("meta mark set meta mark | 0x00004000", [{"mangle": {"key": _META_MARK, "value": {"|": [_META_MARK, 16384]}}}])
LOCAL = ("fib saddr type local", [{"match": {"op": "==", "left": {"fib": {"result": "type", "flags": ["saddr"]}}, "right": "local"}}])
Rule = tuple[str, list[dict[str, Any]], str]


@dataclasses.dataclass(frozen=True)
class Port:
    """A Service's port with all that kube-proxy makes of it; ``local`` are the endpoints on this node."""

    namespace: str
    name: str
    port_name: str
    protocol: str
    port: int
    ip: Any
    endpoints: tuple[Socket, ...]
    local: tuple[Socket, ...]
    node_port: int | None
    external_ips: tuple[Any, ...]
    only_local: bool
    internal_only_local: bool
    affinity: bool

    def chain(self, prefix: str, endpoint: Socket | None = None) -> str:
        """A chain's name, cut where it is longer than the kernel takes."""
        name = f"{self.namespace}/{self.name}/{self.protocol}/{self.port_name}"
        name += f"__{str(endpoint.ip).replace(':', '.')}/{endpoint.port}" if endpoint else ""
        name = base64.b32encode(hashlib.sha256(name.encode()).digest()).decode()[:8] + f"-{name}"
        return f"{prefix}-{name if len(name) <= 240 else name[:237] + '...'}"

    @property
    def comment(self) -> str:
        """As kube-proxy prints a Service port; the kernel takes 128 characters of it."""
        return (f"{self.namespace}/{self.name}" + (f":{self.port_name}" if self.port_name else ""))[:128]


@st.composite
def ports(draw: st.DrawFn, version: int, number: int) -> Port:
    """The port; the number makes its addresses and node port its own."""
    base = ipaddress.ip_address("10.43.0.10" if version == 4 else "fd00:43::10")
    outside = ipaddress.ip_address("192.0.2.1" if version == 4 else "fd00:99::1")
    sockets = st.builds(Socket, st.ip_addresses(v=version), st.integers(1, 65535))
    endpoints = tuple(draw(st.lists(sockets, max_size=3, unique=True)))
    return Port(
        *(draw(LABELS) for _ in range(2)), draw(st.just("") | LABELS), draw(st.sampled_from(["tcp", "udp", "sctp"])),
        draw(st.integers(1, 65535)), base + number, endpoints, endpoints[: draw(st.integers(0, len(endpoints)))],
        draw(st.sampled_from([None, 30000 + number])), (outside + number,) * draw(st.integers(0, 1)),
        draw(st.booleans()), draw(st.booleans()), draw(st.booleans()),
    )  # fmt: skip


class Table:
    """The table of these ports in a release: its facts, and its text and JSON."""

    def __init__(self, version: int, release: int, made: list[Port]) -> None:
        self.version, self.release, self.made = version, release, made
        self.maps: dict[str, list[tuple[tuple[Any, ...], str | None, str]]] = {
            name: [] for name in ("service-ips", "service-nodeports", "no-endpoint-services", "no-endpoint-nodeports", "cluster-ips")
        }
        self.affinity: list[str] = []
        self.chains: dict[str, list[Rule]] = {}
        services, node_ports, node_chains, refused, comments, refused_ports = [], {}, {}, {}, {}, {}
        self._frame()
        for port in made:
            self.maps["cluster-ips"].append(((port.ip,), None, ""))
            self._chains(port)
            inside = port.local if port.internal_only_local else port.endpoints
            outside = port.local if port.only_local else port.endpoints
            verdict = "drop" if port.endpoints else "goto reject-chain"
            inner, outer = port.chain("local" if port.internal_only_local else "service"), port.chain("external")
            fronts = [(port.ip, inner, bool(inside), inside, bool(inside))]
            fronts += [(ip, outer, bool(port.endpoints), port.endpoints, bool(outside)) for ip in port.external_ips]
            for ip, chain, leads, behind, served in fronts:
                key, front = (ip, port.protocol, port.port), (Socket(ip, port.port), port.protocol)
                if leads:
                    self.maps["service-ips"].append((key, f"goto {chain}", ""))
                    services.append(NftService(*front, chain, behind))
                if not served:
                    self.maps["no-endpoint-services"].append((key, verdict, port.comment))
                    refused[front], comments[front] = "drop" if port.endpoints else "reject", port.comment
            if port.node_port and port.endpoints:
                self.maps["service-nodeports"].append(((port.protocol, port.node_port), f"goto {outer}", ""))
                node_ports[port.protocol, port.node_port] = port.endpoints
                node_chains[port.protocol, port.node_port] = outer
            if port.node_port and not outside:
                self.maps["no-endpoint-nodeports"].append(((port.protocol, port.node_port), verdict, port.comment))
                refused_ports[port.protocol, port.node_port] = "drop" if port.endpoints else "reject"
        ips = frozenset(port.ip for port in made)
        self.facts = NftTable(tuple(services), node_ports, refused, ips, None, comments, node_chains, refused_ports, family=version)

    def _frame(self) -> None:
        after = ["prerouting-pre-dnat", "output-pre-dnat"] if self.release >= 33 else ["prerouting", "output"]
        for hook in ("nat-prerouting", "nat-output"):
            self.chains[hook] = [_to("jump", "services")]
        self.chains |= {f"filter-{name}": [_to("jump", "firewall-check")] for name in after}
        key = {"concat": [{"payload": {"protocol": WORD[self.version], "field": "daddr"}}, {"meta": {"key": "l4proto"}}]}
        text = f"{WORD[self.version]} daddr . meta l4proto . th dport vmap @service-ips"
        word, foreign = WORD[self.version], _foreign(self.version)
        ours = (f"{word} daddr @cluster-ips", [{"match": {"op": "==", "left": key["concat"][0], "right": "@cluster-ips"}}])
        masquerade = [self._mark(ours, foreign, comment="masquerade clusterIP traffic from outside cluster")] if self.release >= 36 else []
        self.chains["services"] = [*masquerade, (text, [{"vmap": {"key": key, "data": "@service-ips"}}], "")]
        self.chains["firewall-check"] = []
        self.chains["reject-chain"] = [("reject", [{"reject": {"type": "icmp", "expr": "port-unreachable"}}], "")]
        if self.release < 36:
            self.chains["mark-for-masquerade"] = [(*MARK, "")]

    def _mark(self, *before: tuple[str, list[Any]], comment: str = "") -> Rule:
        """What marks a packet: a jump, or since v1.36 the mark in place."""
        last = MARK if self.release >= 36 else _to("jump", "mark-for-masquerade")[:2]
        return " ".join(part[0] for part in (*before, last)), [each for part in (*before, last) for each in part[1]], comment

    def _chains(self, port: Port) -> None:
        word, (cidr, address, length) = WORD[self.version], PODS[self.version]
        source = {"payload": {"protocol": word, "field": "saddr"}}
        pods = {"prefix": {"addr": address, "len": length}}
        daddr = {"payload": {"protocol": word, "field": "daddr"}}
        vip = (f"{word} daddr {port.ip}", [{"match": {"op": "==", "left": daddr, "right": str(port.ip)}}])
        own = (f"{word} saddr {cidr}", [{"match": {"op": "==", "left": source, "right": pods}}])
        named = (f"{port.protocol} dport {port.port}", [{"match": {"op": "==", "left": "…", "right": port.port}}])
        sets = [(prefix, chosen) for prefix, chosen in (("service", port.endpoints), ("local", port.local)) if chosen]
        for prefix, chosen in sets:
            rules = [self._mark(vip, *([named] if self.release < 34 else []), _foreign(self.version))] if self.release < 36 else []
            self.chains[port.chain(prefix)] = rules + self._choice(port, chosen, source, word)
        if port.endpoints and (port.node_port or port.external_ips):
            rules = [self._mark(comment="masquerade"), _to("goto", port.chain("service"))]
            if port.only_local:
                rules = [
                    _to("goto", port.chain("service"), own, comment="short-circuit pod traffic"),
                    self._mark(LOCAL, comment="masquerade local traffic, jump nowhere"),
                    _to("goto", port.chain("service"), LOCAL, comment="short-circuit local traffic"),
                ]
                rules += [_to("goto", port.chain("local"))] if port.local else []
            self.chains[port.chain("external")] = rules
        for endpoint in port.endpoints if self.release < 36 or port.affinity else ():
            same = (f"{word} saddr {endpoint.ip}", [{"match": {"op": "==", "left": source, "right": str(endpoint.ip)}}])
            rules = [self._mark(same)] if self.release < 36 else []
            rules += [self._remembered(port, endpoint, source, word)] if port.affinity else []
            self.chains[port.chain("endpoint", endpoint)] = [*rules, _translates(port, endpoint)]

    def _choice(self, port: Port, chosen: tuple[Socket, ...], source: Any, word: str) -> list[Rule]:
        numgen = {"numgen": {"mode": "random", "mod": len(chosen), "offset": 0}}
        if self.release >= 36 and not port.affinity:
            if len(chosen) == 1 and self.release >= 37:
                return [_translates(port, chosen[0])]
            pairs = [[place, {"concat": [str(each.ip), each.port]}] for place, each in enumerate(chosen)]
            dnat = {"dnat": {"family": word, "addr": {"map": {"key": numgen, "data": {"set": pairs}}}}}
            several = ", ".join(f"{place} : {each.ip} . {each.port}" for place, each in enumerate(chosen))
            text = f"meta l4proto {port.protocol} dnat {word} to numgen random mod {len(chosen)} map {{ {several} }}"
            return [(text, [_protocol(port), dnat], "")]
        names = [port.chain("endpoint", each) for each in chosen]
        remembered = [port.chain("affinity", each) for each in chosen] if port.affinity else []
        rules = [
            _to("goto", name, (f"{word} saddr @{kept}", [{"match": {"op": "==", "left": source, "right": f"@{kept}"}}]))
            for name, kept in zip(names, remembered, strict=False)
        ]
        several = ", ".join(f"{place} : goto {name}" for place, name in enumerate(names))
        data = {"set": [[place, {"goto": {"target": name}}] for place, name in enumerate(names)]}
        return [*rules, (f"numgen random mod {len(names)} vmap {{ {several} }}", [{"vmap": {"key": numgen, "data": data}}], "")]

    def _remembered(self, port: Port, endpoint: Socket, source: Any, word: str) -> Rule:
        name = port.chain("affinity", endpoint)
        self.affinity.append(name)
        return f"update @{name} {{ {word} saddr }}", [{"set": {"op": "update", "elem": source, "set": f"@{name}"}}], ""

    def text(self, *, handles: bool = False) -> str:
        """As ``nft list table`` prints it, or with ``-a``."""
        handle = " # handle 7" if handles else ""
        lines = [f"table {WORD[self.version]} kube-proxy {{{handle}", '\tcomment "rules for kube-proxy"', ""]
        for name in self.affinity:
            lines += [f"\tset {name} {{{handle}", f"\t\ttype ipv{self.version}_addr", "\t\tflags dynamic,timeout"]
            lines += ["\t\ttimeout 3h", "\t}", ""]
        for name, elements in self.maps.items():
            kind = " . ".join(self._types(name)) + ("" if name == "cluster-ips" else " : verdict")
            lines += [f"\t{'set' if name == 'cluster-ips' else 'map'} {name} {{{handle}", f"\t\ttype {kind}", '\t\tcomment "x, y : z"']
            shown = [_element(*element) for element in elements]
            lines += ["\t\telements = { " + ",\n\t\t\t     ".join(shown) + " }"] if shown else []
            lines += ["\t}", ""]
        for name, rules in self.chains.items():
            lines += [f"\tchain {name} {{{handle}", *(f"\t\ttype {kind}" for kind in _base(name))]
            lines += [f"\t\t{text}" + (f' comment "{comment}"' if comment else "") + handle for text, _, comment in rules]
            lines += ["\t}", ""]
        return "\n".join([*lines[:-1], "}", ""])

    def json(self) -> str:
        """As ``nft -j list table`` prints it."""
        own = {"family": WORD[self.version], "table": "kube-proxy"}
        items: list[Any] = [{"metainfo": {"version": "1.0.6"}}, {"table": {"family": own["family"], "name": "kube-proxy", "handle": 1}}]
        items += [{"set": {**own, "name": name, "type": f"ipv{self.version}_addr", "flags": ["timeout"]}} for name in self.affinity]
        for name, elements in self.maps.items():
            kind = self._types(name)
            value = {**own, "name": name, "type": kind[0] if len(kind) == 1 else kind, "handle": 7}
            value |= {"elem": [_json_element(*element) for element in elements]} if elements else {}
            items.append({"set": value} if name == "cluster-ips" else {"map": {**value, "map": "verdict"}})
        items += [{"chain": {**own, "name": name, "handle": 8}} for name in self.chains]
        for name, rules in self.chains.items():
            items += [
                {"rule": {**own, "chain": name, "handle": 9, **({"comment": comment} if comment else {}), "expr": expr}}
                for _, expr, comment in rules
            ]
        return json.dumps({"nftables": items})

    def _types(self, name: str) -> list[str]:
        address = f"ipv{self.version}_addr"
        return [address] if name == "cluster-ips" else [*([] if "nodeports" in name else [address]), "inet_proto", "inet_service"]


def _to(how: str, target: str, *before: tuple[str, list[Any]], comment: str = "") -> Rule:
    text = " ".join([*(part[0] for part in before), f"{how} {target}"])
    return text, [*(each for part in before for each in part[1]), {how: {"target": target}}], comment


def _foreign(version: int) -> tuple[str, list[dict[str, Any]]]:
    """The match of what does not come from a Pod."""
    word, (cidr, address, length) = WORD[version], PODS[version]
    source = {"payload": {"protocol": word, "field": "saddr"}}
    return f"{word} saddr != {cidr}", [{"match": {"op": "!=", "left": source, "right": {"prefix": {"addr": address, "len": length}}}}]


def _protocol(port: Port) -> dict[str, Any]:
    return {"match": {"op": "==", "left": {"meta": {"key": "l4proto"}}, "right": port.protocol}}


def _translates(port: Port, endpoint: Socket) -> Rule:
    dnat = {"dnat": {"addr": str(endpoint.ip), "port": endpoint.port}}
    return f"meta l4proto {port.protocol} dnat to {endpoint}", [_protocol(port), dnat], ""


def _element(key: tuple[Any, ...], verdict: str | None, comment: str) -> str:
    return " . ".join(map(str, key)) + (f' comment "{comment}"' if comment else "") + (f" : {verdict}" if verdict else "")


def _json_element(key: tuple[Any, ...], verdict: str | None, comment: str) -> Any:
    parts = [part if isinstance(part, int) else str(part) for part in key]
    value: Any = {"concat": parts} if len(parts) > 1 else parts[0]
    value = {"elem": {"val": value, "comment": comment}} if comment else value
    goto = (verdict or "").removeprefix("goto ")
    return value if verdict is None else [value, {"drop": None} if verdict == "drop" else {"goto": {"target": goto}}]


def _base(name: str) -> list[str]:
    kind, _, hook = name.partition("-")
    if kind not in ("nat", "filter"):
        return []
    hook = hook.removesuffix("-pre-dnat").removesuffix("-post-dnat")
    return [f"{kind} hook {hook} priority {'-100' if kind == 'nat' else '-110'}; policy accept;"]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """A table of up to three Services' ports."""
    version, release = draw(st.sampled_from([4, 6])), draw(st.sampled_from(RELEASES))
    made = [draw(ports(version, number)) for number in range(draw(st.integers(0, 3)))]
    # No API server has two Services of one name, and no Service two ports of one name and protocol.
    return Table(version, release, list({(one.namespace, one.name, one.port_name, one.protocol): one for one in made}.values()))
