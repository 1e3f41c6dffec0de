"""What tools print → the same with neutral names and addresses. One regular expression a kind of text, so that nothing is mapped twice.

Addresses, MAC addresses and identifiers are mapped wherever they stand. Names are where names can stand: a Pod called "default" must not
make another route of every default route. So the output of ip, conntrack and the like holds none, rules hold them in comments and chains
(rules.py), and only in text for people, and in the agent's status, does each whole word count.
"""

from __future__ import annotations

import ipaddress
import re

from .mapping import Mapping

_UUID = r"(?P<uuid>\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b)"
_HEX = r"(?P<hex>(?<![\w.])(?=[0-9a-f]*[a-f])(?:[0-9a-f]{64}|[0-9a-f]{32})(?!\w))"
_MAC = r"(?P<mac>(?<![\w:.])[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}(?![\w:]))"
_ENX = r"(?P<enx>(?<!\w)enx[0-9a-f]{12}(?!\w))"  # systemd's name of an interface: its MAC address
_GROUPS = r"(?:[0-9A-Fa-f]{0,4}:)+(?:\d+(?:\.\d+){3}|[0-9A-Fa-f]{1,4}|:)(?!\w|:\w|::)"
_V6 = rf"(?P<v6>(?<![\w:.])(?=[0-9A-Fa-f]*:[0-9A-Fa-f]*:){_GROUPS})(?:/(?P<v6len>\d{{1,3}})\b)?"
_V4 = r"(?P<v4>(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\d))(?:/(?P<v4len>\d{1,2})(?![\w.]))?"
# A condition of a capture's filter on an address inside VXLAN: one word of IPv4, or four of IPv6 (experiments/capture.py).
_WORD = r"udp\[\d+:4\]=0x[0-9a-f]{8}"
_FILTER6 = rf"(?P<filter6>{_WORD}(?: and {_WORD}){{3}})"
_FILTER4 = r"(?<=:4\]=)(?P<filter4>0x[0-9a-f]{1,8})(?!\w)"
EVERYWHERE = "|".join((_UUID, _HEX, _MAC, _ENX, _FILTER6, _FILTER4, _V6, _V4))

# Whose name a key of JSON gives.
_KEYED = r'"(?P<key>namespace|nodeName|node|self|name)":\s*"(?P<keyed>[^"\\]+)"'
_PAIR = r"(?P<pair>(?<![\w./@-])(?P<ns>[a-z0-9][-a-z0-9]*)/(?P<of>[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?)(?![\w/-]))"
_WORD_ALONE = r"(?P<token>(?<![\w.-])[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?(?![\w-]))"
_PLAIN = re.compile(EVERYWHERE)
_FREE = re.compile("|".join((EVERYWHERE, _KEYED, _PAIR, _WORD_ALONE)))
_KINDS = {"namespace": "namespace", "nodeName": "node", "node": "node", "self": "node"}

# Of what an interface was called by a person, and of processes that are not everybody's.
_ALIAS = re.compile(r'("ifalias":\s*")[^"]*(")')
_PROCESS = re.compile(r'(?<=\(\(")[^"]+(?=",pid=)|(?<=,\(")[^"]+(?=",pid=)')
_PROCESSES = frozenset({
    "kube-proxy", "kubelet", "cilium-agent", "cilium-operator", "cilium-envoy", "envoy", "k3s", "k3s-server", "k3s-agent", "rke2",
    "containerd", "dockerd", "crio", "sshd", "systemd", "systemd-resolve", "systemd-network", "etcd", "kube-apiserver",
    "kube-controller", "kube-scheduler", "coredns", "haproxy", "nginx", "chronyd", "rpcbind", "flanneld", "dnsmasq", "named", "unbound",
    "speaker", "keepalived", "python3", "nc",
})  # fmt: skip

# Words of the tools themselves: one that is also a name is taken for it only where a name must stand.
_ORDINARY = frozenset({
    "default", "local", "main", "all", "none", "any", "tcp", "udp", "sctp", "icmp", "host", "router", "health", "veth", "vxlan",
    "geneve", "tunnel", "native", "legacy", "iptables", "nftables", "ipvs", "bpf", "strict", "probe", "true", "false", "kernel",
    "static", "active", "dns", "ip", "get", "show", "list", "route", "addr", "link", "dev", "via", "src", "dst", "table", "sh", "cat",
    "ss", "nft", "conntrack", "tcpdump", "cilium", "kube-proxy", "no", "not", "in", "is", "of", "on", "or", "to", "for", "and", "a",
    "an", "the",
})  # fmt: skip


class Texts:
    """Rewrites text by a Mapping; in the first pass it comes back as it is."""

    def __init__(self, mapping: Mapping) -> None:
        self._mapping = mapping

    def plain(self, text: str) -> str:
        """What ip, conntrack, ss and the agent's tables print: no name stands there."""
        text = _ALIAS.sub(r"\1an interface\2", text)
        text = _PROCESS.sub(lambda found: found[0] if found[0] in _PROCESSES else "process", text)
        return _PLAIN.sub(self.everywhere, text)

    def free(self, text: str) -> str:
        """Text for people, and JSON and text of the Cilium agent."""
        return _FREE.sub(self._word, text)

    def everywhere(self, found: re.Match[str]) -> str:
        """What stands for a match of EVERYWHERE."""
        mapping, kind = self._mapping, found.lastgroup
        if kind in ("v4", "v6", "v4len", "v6len"):
            address, length = found["v4"] or found["v6"], found["v4len"] or found["v6len"]
            new = mapping.network(address, length) if length else None
            alone = mapping.ip(address) if new is None else None
            return new or (found[0] if alone is None else found[0].replace(address, alone, 1))
        if not mapping.settled:
            return found[0]
        if kind == "mac":
            return mapping.mac(found[0])
        if kind == "enx":
            return f"enx{mapping.mac(bytes.fromhex(found[0][3:]).hex(':')).replace(':', '')}"
        return self._filter(found) if kind in ("filter4", "filter6") else mapping.id(found[0])

    def _filter(self, found: re.Match[str]) -> str:
        if found["filter4"]:
            return f"{int(self._mapping.addresses.ip(ipaddress.IPv4Address(int(found['filter4'], 16)))):#x}"
        words = re.findall(r"0x([0-9a-f]{8})", found["filter6"])
        packed = self._mapping.addresses.ip(ipaddress.IPv6Address(int("".join(words), 16))).packed.hex()
        new = iter(packed[n : n + 8] for n in range(0, 32, 8))
        return re.sub(r"(?<=0x)[0-9a-f]{8}", lambda _: next(new), found["filter6"])

    def _word(self, found: re.Match[str]) -> str:
        if found["keyed"] is not None:
            new = self._keyed(found["key"], found["keyed"])
            start, end = found.start("keyed") - found.start(), found.end("keyed") - found.start()
            return found[0][:start] + new + found[0][end:]
        if found["pair"] is not None:
            return self._pair(found["ns"], found["of"])
        return self._token(found["token"]) if found["token"] is not None else self.everywhere(found)

    def _keyed(self, key: str, name: str) -> str:
        names, kind = self._mapping.names, _KINDS.get(key)
        if kind and names.knows(kind, name):
            return names(kind, name)
        return names.any(name) or self.free(name)

    def _pair(self, namespace: str, name: str) -> str:
        names = self._mapping.names
        if not names.knows("namespace", namespace):
            return f"{self._token(namespace)}/{self._token(name)}"
        kept = names.knows("service", name) and name not in names.seen("service")
        return f"{names('namespace', namespace)}/{name if kept else self.object(name)}"

    def object(self, name: str) -> str:
        """What is in a namespace: a Service, a Pod, or a workload."""
        names = self._mapping.names
        kind = next((kind for kind in ("service", "pod", "workload") if names.knows(kind, name)), None)
        return names(kind, name) if kind else self._token(name)

    def _token(self, word: str) -> str:
        """A whole word: a name, a name of the cluster's DNS (``web.shop.svc…``), or a path of names with dots."""
        if word in _ORDINARY:
            return word
        found = self._mapping.names.any(word)
        if found:
            return found
        inside = _PLAIN.sub(self.everywhere, word)
        if inside != word or "." not in word:
            return inside
        return ".".join(self._token(label) for label in word.split("."))
