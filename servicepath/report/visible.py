"""Text from nodes and the API, made safe to look at: nothing in it may hide, reorder or drive a terminal.

Escaping for HTML is Jinja2's work (autoescape). What it leaves through and a reader cannot see is made visible here: control
characters, bidirectional overrides and isolates (Unicode Annex 9), zero-width characters, line separators, lone surrogates.
"""

from __future__ import annotations

import re
import unicodedata

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

# What may have to be spelled out: everything but printable ASCII, newline and tab. One search of a text costs less than a look at each
# of its characters, and a report holds more than a million.
_DOUBTFUL = re.compile(r"[^\x20-\x7e\n\t]")


def _spelled(found: re.Match[str]) -> str:
    """One character, or its code point in brackets when it would not be seen."""
    character = found[0]
    return f"⟨U+{ord(character):04X}⟩" if unicodedata.category(character) in _HIDDEN_CATEGORIES else character


def one_line(text: object) -> str:
    """The text in one line, whatever ends lines in it."""
    return " ".join(str(text).split())


def visible(text: str) -> str:
    """Return the text with every character that cannot be seen spelled out as ``⟨U+202E⟩``; newlines and tabs stay."""
    return _DOUBTFUL.sub(_spelled, text.replace("\r\n", "\n"))
