"""Reads what ``helm get values RELEASE`` prints (Helm 3 and 4): the values of a release, as YAML or JSON.

With ``--all`` those of the chart too. Without ``-o`` a heading stands above them::

    USER-SUPPLIED VALUES:
    kubeProxyReplacement: false
    ipam:
      operator:
        clusterPoolIPv4PodCIDRList: [10.42.0.0/16]

A release without values of its own is ``null``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from .errors import ParseError

TOOL = "helm get values"

_HEADING = re.compile(r"\A(?:USER-SUPPLIED|COMPUTED) VALUES:(?=\r?\n)")
_FAILED = "Error:"  # how helm's own message begins


class _Loader(yaml.BaseLoader):
    """Takes every value as the text that it is written in, and no alias: eight of eight of eight … would have no end."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Refuse an alias."""
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "an alias, of which Helm prints none", mark)
        found: yaml.Node | None = super().compose_node(parent, index)
        return found


def parse_helm_values(text: str) -> dict[str, str]:
    """Read a release's values.

    Returns:
        The path of each value ("ipam.operator.clusterPoolIPv4PodCIDRList") → the value as it is written ("true", "null"); of a list of
        words a line each.

    Raises:
        ParseError: for what is no YAML, holds no keys, or nothing at all. It shows nothing of the text, which may be a secret, but
            helm's own message.
    """
    body = _HEADING.sub("#", text.removeprefix("\ufeff"), count=1)
    shown = body.split("\n", 1)[0] if body.startswith(_FAILED) else ""
    try:
        said = yaml.load(body, Loader=_Loader)  # noqa: S506 - it makes texts, lists and mappings alone
        if isinstance(said, dict):
            return dict(_leaves("", said))
    except (yaml.YAMLError, RecursionError, ValueError) as wrong:
        mark = getattr(wrong, "problem_mark", None)
        why = " ".join(str(getattr(wrong, "problem", type(wrong).__name__)).split())
        raise ParseError(TOOL, mark.line + 1 if mark else 0, shown, f"YAML ({why})") from None  # the error quotes the text
    if said in ("null", "~"):
        return {}
    expected = "keys with values, or null, as helm get values prints them" if said else "values, or null where there are none"
    raise ParseError(TOOL, 0, shown, expected)


def _leaves(place: str, value: Any) -> Iterator[tuple[str, str]]:
    """A list of plain words is one value, a line each; one that holds keys is a value for each of them, by its place in the list."""
    if isinstance(value, str) or not value:
        yield place, value if isinstance(value, str) else "{}" if isinstance(value, dict) else ""
    elif isinstance(value, list) and all(isinstance(part, str) for part in value):
        yield place, "\n".join(value)
    else:
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(f"{place}.{key}" if place else str(key), part)
