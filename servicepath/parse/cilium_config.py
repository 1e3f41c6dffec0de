"""The ConfigMap cilium-config: what is used of it as more than text.

Its values are strings, as the chart writes them: ``{"mtu": "0", "routing-mode": "tunnel", "tunnel-protocol": "vxlan", …}``.
"""

from __future__ import annotations

from collections.abc import Mapping

from .errors import ParseError

_TOOL = "cilium-config"


def parse_mtu(config: Mapping[str, str]) -> int | None:
    """The MTU that Cilium was told to take for the underlay's, in bytes; None where it finds it out itself (absent, empty or 0).

    Raises:
        ParseError: the value is no number.
    """
    said = config.get("mtu") or "0"
    if not (said.isascii() and said.isdigit()):
        raise ParseError(_TOOL, 0, f"mtu: {said}", "a number of bytes, or 0 for the devices' own")
    return int(said) or None
