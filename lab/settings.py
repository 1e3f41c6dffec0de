"""What of the running lab can be changed: kube-proxy's mode, Cilium's replacement of it, socket LB, Cilium's version."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lab.errors import RefusedError

PROXY_MODES = ("iptables", "nftables")
_TRUTH = {"true": True, "false": False, "on": True, "off": False}


@dataclass(frozen=True, slots=True)
class Settings:
    """A set-up of the lab; what it comes up with is the notes' own.

    Attributes:
        cilium: Cilium's version, without its v.
        proxy_mode: kube-proxy's mode, iptables or nftables; with ``kpr`` what it would run in.
        kpr: whether Cilium stands in kube-proxy's place; there is no kube-proxy then.
        socket_lb: whether a socket's own connect translates a ClusterIP; with ``kpr`` it always does.
    """

    cilium: str
    proxy_mode: str = "iptables"
    kpr: bool = False
    socket_lb: bool = False

    def pins(self) -> dict[str, Any]:
        """Return what the suite must find, as the inventory's ``expect:`` writes it."""
        proxy = {} if self.kpr else {"proxy_mode": self.proxy_mode}
        return {**proxy, "kube_proxy_replacement": str(self.kpr), "socket_lb": self.socket_lb, "cilium": self.cilium}


def changed(settings: Settings, words: Sequence[str]) -> Settings:
    """Return the set-up after words such as ``kpr=true`` and ``proxy-mode=nftables``.

    Raises:
        RefusedError: a word is none of those, its value is not known, or the words contradict each other.
    """
    wanted = settings
    for word in words:
        name, equals, value = word.partition("=")
        if name not in _READ or not equals:
            raise RefusedError(f"set: {word!r} is none of {', '.join(f'{known}={values}' for known, (values, _) in _READ.items())}")
        wanted = replace(wanted, **_READ[name][1](word, value))
    names = {word.partition("=")[0] for word in words}
    if wanted.kpr and not wanted.socket_lb and "socket-lb" in names:
        raise RefusedError("set: socket-lb=off is not to be had with kpr=true: Cilium's replacement of kube-proxy brings it along")
    if "kpr" in names and "socket-lb" not in names:
        wanted = replace(wanted, socket_lb=wanted.kpr)
    return wanted


def _truth(field: str) -> Callable[[str, str], Mapping[str, Any]]:
    def read(word: str, value: str) -> Mapping[str, Any]:
        if value not in _TRUTH:
            raise RefusedError(f"set: {word!r}: {value!r} is neither true nor false, on nor off")
        return {field: _TRUTH[value]}

    return read


def _mode(word: str, value: str) -> Mapping[str, Any]:
    if value not in PROXY_MODES:
        raise RefusedError(f"set: {word!r}: {value!r} is none of {', '.join(PROXY_MODES)}")
    return {"proxy_mode": value}


_READ: Mapping[str, tuple[str, Callable[[str, str], Mapping[str, Any]]]] = {
    "kpr": ("true|false", _truth("kpr")),
    "socket-lb": ("on|off", _truth("socket_lb")),
    "proxy-mode": ("|".join(PROXY_MODES), _mode),
}
