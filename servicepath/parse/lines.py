"""Text cut into numbered lines, and its end looked at: a last line without its line feed was cut off.

The line-oriented tools that are read here end every line. Most of their lines have no end of their own to tell by, so that half a
line (``mtu 14`` of ``mtu 1450``, ``10.42.1.3:5`` of ``10.42.1.36:53``) would be another fact, and nothing else would show it.
"""

from __future__ import annotations

import functools
import ipaddress
import re

from .errors import ParseError

# No number that is read here has more: 2**64 has twenty digits.
_DIGITS = 20

# What people write for lines that they leave out, and what may stand beside it.
_LEFT_OUT = re.compile(r"\.{2,}|…+|snip(?:ped|s)?|cut|truncated|omitted|skipped|more|etc\.?|redacted", re.IGNORECASE)
_BESIDE = re.compile(r"\d+|lines?|output|rules|and|the|rest", re.IGNORECASE)
_LONGEST = 40  # characters of such a line

# The address that the text is; ValueError for anything else. The same few stand in every flow of a table and in every node's routes.
address = functools.lru_cache(maxsize=1 << 14)(ipaddress.ip_address)


def numbered(tool: str, text: str) -> list[tuple[int, str]]:
    r"""The lines from 1, without their ends (``\n`` or ``\r\n``); other characters that Python takes for line ends are none.

    Raises:
        ParseError: the last line does not end.
    """
    lines = text.split("\n")
    last = lines.pop()
    if last.strip():
        raise ParseError(tool, len(lines) + 1, last, "a line feed at the line's end: the text is cut off")
    return [(number, line.removesuffix("\r")) for number, line in enumerate(lines, 1)]


def elided(line: str) -> bool:
    """Whether the line stands for others that a person left out: ``...``, ``[…]``, ``<snip>``, ``# … (omitted)``."""
    words = line.strip(" \t#/-<>[]()").split() if len(line) < _LONGEST else []
    left_out = [word for word in words if _LEFT_OUT.fullmatch(word)]
    return bool(left_out) and all(word in left_out or _BESIDE.fullmatch(word) for word in words)


def is_number(text: str) -> bool:
    """A whole number as tools print it: int() takes more, such as underscores, signs and the digits of other scripts."""
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS


def whole(text: str) -> int:
    """The whole number; ValueError for anything else."""
    if not is_number(text):
        raise ValueError(f"{text!r} is no whole number")
    return int(text)


def port(text: str) -> int:
    """The port number (0 to 65535); ValueError for anything else."""
    number = whole(text)
    if number > 65535:
        raise ValueError(f"{text} is no port")
    return number
