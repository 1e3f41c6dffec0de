"""Reads ``cilium-dbg status``: JSON (``-o json``, Cilium 1.8 to 1.20) and text (``--verbose``, 1.7 to 1.20).

JSON has everything but what text alone prints (ClusterIP, LoadBalancer, cluster health); Go leaves ``"enabled": false`` out::

    {"cilium": {"state": "Ok", "msg": "1.19.1 (v1.19.1-d0d0c879)"},
     "kube-proxy-replacement": {"mode": "False", "features": {"socketLB": {}, "nodePort": {}, …},
        "deviceList": [{"name": "enp1s0", "ip": ["", "192.168.55.11"]}]},
     "routing": {"inter-host-routing-mode": "Tunnel", "intra-host-routing-mode": "Legacy", "tunnel-protocol": "vxlan"}}

Text of 1.19; the brackets behind the first line hold devices since 1.9 and features before::

    KubeProxyReplacement:   True   [eth0   192.0.2.31 fe80::1, eth1   10.0.0.1 (Direct Routing)]
    Cilium:                 Ok   1.19.1 (v1.19.1-d0d0c879)
    Routing:                Network: Tunnel [vxlan]   Host: Legacy
    KubeProxyReplacement Details:
      Status:               True
      Socket LB:            Enabled
      Socket LB Coverage:   Hostns-only
      Services:
      - ClusterIP:      Enabled
      - NodePort:       Enabled (Range: 30000-32767)
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Iterable

from ..model.addresses import IPAddress
from ..model.cilium import AgentStatus
from .errors import ParseError
from .fields import Fields, decode
from .lines import numbered

TOOL = "cilium-dbg status"

_TOP = re.compile(r"(?P<key>[A-Z][\w /]*):(?:\s+(?P<value>.*))?")
_DETAIL = re.compile(r"  (?P<key>[A-Z][\w /]*):(?:\s+(?P<value>.*))?")
_SERVICE = re.compile(r"  - (?P<key>\w+):\s+(?P<value>.*)")
_VERSION = re.compile(r"\d+\.\d+\.\S+")
_ROUTING = re.compile(r"Network: (?P<mode>\w+)(?: \[(?P<tunnel>\w+)\])?\s+Host: (?P<host>\w+)")
# The feature names of JSON → the words of the text.
_FEATURES = {"nodePort": "NodePort", "externalIPs": "externalIPs", "hostPort": "HostPort"}
_SOCKET_LB = ("socketLB", "hostReachableServices")  # the second one until 1.11
# The words in the brackets of 1.7 and 1.8 → those of later text.
_OLD_FEATURES = {"NodePort": "NodePort", "ExternalIPs": "externalIPs", "HostPort": "HostPort"}


def parse_status(text: str, verbose_text: str | None = None) -> AgentStatus:
    """Read the agent's status.

    Args:
        text: ``cilium-dbg status -o json``, or the text form.
        verbose_text: ``cilium-dbg status --verbose`` of the same moment, for what JSON does not have. Only gaps are filled.

    Raises:
        ParseError: for text that is no agent status (the banner of the ``cilium`` CLI, ``--brief``), or that contradicts itself.
    """
    first = _parse_one(text)
    if verbose_text is None:
        return first
    second = _parse_one(verbose_text)
    if None not in (first.kube_proxy_replacement, second.kube_proxy_replacement) and (
        first.kube_proxy_replacement != second.kube_proxy_replacement
    ):
        raise ParseError(TOOL, 0, f"{first.kube_proxy_replacement} and {second.kube_proxy_replacement}", "one mode in both forms")
    return _filled(first, second)


def _filled(first: AgentStatus, second: AgentStatus) -> AgentStatus:
    """What ``first`` says, and where it says nothing what ``second`` does."""
    gaps = {
        field.name: getattr(second, field.name)
        for field in dataclasses.fields(AgentStatus)
        if field.name != "services" and getattr(first, field.name) in (None, {})
    }
    raw = f"{first.raw}\n{second.raw}"
    return dataclasses.replace(first, **{**gaps, "services": {**second.services, **first.services}, "raw": raw})


def _parse_one(text: str) -> AgentStatus:
    body = text[text.find("\n") :] if text.startswith("Defaulted container") else text
    return _of_json(body) if body.lstrip().startswith("{") else _of_text(body)


def _of_json(text: str) -> AgentStatus:
    data = Fields(TOOL, decode(TOOL, text))
    if not (data.has("cilium") or data.has("kube-proxy-replacement")):
        raise ParseError(TOOL, 0, text, "the agent's status as JSON, with 'cilium' or 'kube-proxy-replacement'")
    replacement, routing = data.child("kube-proxy-replacement"), data.child("routing")
    features = replacement.child("features")
    version = _version(data.child("cilium").optional_text("msg") or "")
    socket_lb = next((features.child(key).flag("enabled") or False for key in _SOCKET_LB if features.has(key)), None)
    hostns_only = features.flag("bpfSocketLBHostnsOnly")
    # Go leaves a false out; versions before 1.14 do not have the key at all.
    if hostns_only is None and _at_least(version, (1, 14)):
        hostns_only = False
    mode = routing.optional_text("inter-host-routing-mode")
    return AgentStatus(
        version=version,
        kube_proxy_replacement=replacement.optional_text("mode"),
        socket_lb=socket_lb,
        socket_lb_hostns_only=hostns_only if socket_lb else None,
        services={word: features.child(key).flag("enabled") or False for key, word in _FEATURES.items() if features.has(key)},
        routing=_lower(mode),
        tunnel=_lower(routing.optional_text("tunnel-protocol")) if mode == "Tunnel" else None,
        host_routing=routing.optional_text("intra-host-routing-mode") or data.child("host-routing").optional_text("mode"),
        masquerading=_json_masquerading(data.child("masquerading")) if data.has("masquerading") else None,
        # The list of addresses starts with empty strings (pkg/status of 1.19 makes it too long).
        devices={device.text("name"): _ips(device.texts("ip")) for device in replacement.children("deviceList")},
        ipam=(data.child("ipam").optional_text("status") or "").strip(" ,") or None,
        encryption=_lower(data.child("encryption").optional_text("mode")),
        raw=text,
    )


def _json_masquerading(found: Fields) -> str:
    """The words of the text form; of BPF masquerading without its devices and ranges."""
    if not found.has("enabledProtocols"):
        return "Enabled" if found.flag("enabled") else "Disabled"
    protocols, mode = found.child("enabledProtocols"), found.optional_text("mode") or "no mode given"
    enabled = [bool(protocols.flag(key)) for key in ("ipv4", "ipv6")]
    if not any(enabled):
        return "Disabled"
    word = {"iptables": "IPTables", "bpf": "BPF"}.get(mode.lower(), mode)
    four, six = ("Enabled" if each else "Disabled" for each in enabled)
    return f"{word} [IPv4: {four}, IPv6: {six}]"


def _of_text(text: str) -> AgentStatus:
    top, details, services = _sections(text)
    number, line = top.get("KubeProxyReplacement", (0, ""))
    word, _, bracket = line.partition(" ")
    status = details.get("Status", (0, ""))[1]
    if word and status and word != status:
        raise ParseError(TOOL, number, line, f"the mode of the details, {status}")
    devices, features = _bracket(details.get("Devices", (0, ""))[1] or _inside(bracket))
    routing = _ROUTING.match(top.get("Routing", (0, ""))[1])
    enabled = {key: _enabled(value, at) for key, (at, value) in services.items()}
    socket_lb = _text_socket_lb(details, features)
    coverage = details.get("Socket LB Coverage")
    return AgentStatus(
        version=_version(top.get("Cilium", (0, ""))[1]),
        kube_proxy_replacement=word or status or None,
        socket_lb=socket_lb,
        socket_lb_hostns_only=coverage[1].lower() == "hostns-only" if coverage and socket_lb else None,
        services=enabled or {_OLD_FEATURES[name]: True for name in features if name in _OLD_FEATURES},
        routing=_lower(routing["mode"]) if routing else None,
        tunnel=_lower(routing["tunnel"]) if routing else None,
        host_routing=routing["host"] if routing else (top.get("Host Routing", (0, ""))[1].strip() or None),
        masquerading=" ".join(top.get("Masquerading", (0, ""))[1].split()) or None,
        devices=devices,
        cluster_health=(top.get("Cluster health", (0, ""))[1].partition("  ")[0].strip() or None),
        ipam=top.get("IPAM", (0, ""))[1].strip(" ,") or None,
        # "Wireguard       [NodeEncryption: Disabled, cilium_wg0 (Pubkey: …)]"
        encryption=_lower(next(iter(top.get("Encryption", (0, ""))[1].split()), None)),
        raw=text,
    )


_Fields = dict[str, tuple[int, str]]


def _sections(text: str) -> tuple[_Fields, _Fields, _Fields]:
    """The unindented lines, those of the proxy replacement's details and those of its Services, each as key → (line, value)."""
    top: _Fields = {}
    details: _Fields = {}
    services: _Fields = {}
    within = None
    for number, line in numbered(TOOL, text):
        if match := _TOP.match(line):
            within = "details" if match["key"] == "KubeProxyReplacement Details" else None
            top.setdefault(match["key"], (number, (match["value"] or "").rstrip()))
        elif within and (match := _DETAIL.match(line)):
            within = "services" if match["key"] == "Services" else "details"
            details.setdefault(match["key"], (number, (match["value"] or "").rstrip()))
        elif within == "services" and (match := _SERVICE.match(line)):
            services.setdefault(match["key"], (number, match["value"].rstrip()))
    # Every agent prints at least one of these; the banner of the cilium CLI indents its "Cilium:".
    if not top.keys() & {"KubeProxyReplacement", "KubeProxyReplacement Details", "Cilium"}:
        raise ParseError(TOOL, 0, text, "the status of the agent (cilium-dbg status), not of another tool")
    return top, details, services


def _text_socket_lb(details: _Fields, features: Iterable[str]) -> bool | None:
    """By its own line, by the protocols' line (1.10 to 1.12), or by the features of 1.7 and 1.8; None without any."""
    if "Socket LB" in details:
        number, value = details["Socket LB"]
        return _enabled(value, number)
    if "Socket LB Protocols" in details:
        return details["Socket LB Protocols"][1] not in ("", "Disabled")
    return True if any(name.startswith("HostReachableServices") for name in features) else None


def _bracket(inside: str) -> tuple[dict[str, tuple[IPAddress, ...]], tuple[str, ...]]:
    """Devices with their addresses, or feature names: whichever the comma-separated list holds."""
    devices: dict[str, tuple[IPAddress, ...]] = {}
    features = []
    for item in re.sub(r"\([^)]*\)", "", inside).split(","):
        words = item.split()
        if len(words) > 1:
            devices[words[0]] = _ips(words[1:])
        elif words:
            features.append(words[0])
    return devices, tuple(features)


def _inside(text: str) -> str:
    match = re.search(r"\[(.*)\]", text)
    return match[1] if match else ""


def _enabled(value: str, number: int) -> bool:
    word = value.split(" ")[0]
    if word not in ("Enabled", "Disabled"):
        raise ParseError(TOOL, number, value, "Enabled or Disabled")
    return word == "Enabled"


def _ips(words: Iterable[str]) -> tuple[IPAddress, ...]:
    try:
        return tuple(ipaddress.ip_address(word) for word in words if word)
    except ValueError as error:
        raise ParseError(TOOL, 0, str(error), "a device and its IP addresses") from error


def _version(text: str) -> str | None:
    match = _VERSION.search(text.partition("(")[0])
    return match[0] if match else None


def _at_least(version: str | None, wanted: tuple[int, int]) -> bool:
    numbers = re.match(r"(\d+)\.(\d+)", version or "")
    return numbers is not None and (int(numbers[1]), int(numbers[2])) >= wanted


def _lower(word: str | None) -> str | None:
    return word.lower() if word else None
