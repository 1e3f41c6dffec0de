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


def parse_helm_values(text: str) -> dict[str, str]:
    """Read a release's values.

    Returns:
        The path of each value ("ipam.operator.clusterPoolIPv4PodCIDRList") → the value as YAML writes it ("true", "null"); of a list
        of words a line each.

    Raises:
        ParseError: for what is no YAML, or holds no keys.
    """
    try:
        said = yaml.safe_load(_HEADING.sub("#", text, count=1))
    except (yaml.YAMLError, RecursionError, ValueError) as wrong:
        mark = getattr(wrong, "problem_mark", None)
        line = mark.line + 1 if mark else 0
        found = text.splitlines()[mark.line] if mark and mark.line < len(text.splitlines()) else text
        raise ParseError(TOOL, line, found, f"YAML ({' '.join(str(getattr(wrong, 'problem', wrong)).split())})") from wrong
    if not isinstance(said, dict | None):
        raise ParseError(TOOL, 0, text, "keys with values, as helm get values prints them")
    return dict(_leaves("", said)) if said else {}


def _leaves(place: str, value: Any) -> Iterator[tuple[str, str]]:
    """A list of plain words is one value, a line each; one that holds keys is a value for each of them, by its place in the list."""
    words = isinstance(value, list) and not any(isinstance(part, dict | list) for part in value)
    if isinstance(value, dict | list) and value and not words:
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(f"{place}.{key}" if place else str(key), part)
    else:
        yield place, "\n".join(map(_word, value)) if words else _word(value)


def _word(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
    return str(value)
