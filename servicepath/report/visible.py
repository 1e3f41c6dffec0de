"""Text from nodes and the API, made safe to look at: nothing in it may hide, reorder or drive a terminal.

Escaping for HTML is Jinja2's work (autoescape). What it leaves through and a reader cannot see is made visible here: control
characters, bidirectional overrides and isolates (Unicode Annex 9), zero-width characters, line separators, lone surrogates.
"""

from __future__ import annotations

import unicodedata

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_KEPT = frozenset("\n\t")


def _spelled(character: str) -> str:
    """One character, or its code point in brackets when it would not be seen."""
    if character in _KEPT or unicodedata.category(character) not in _HIDDEN_CATEGORIES:
        return character
    return f"⟨U+{ord(character):04X}⟩"


def visible(text: str) -> str:
    """Return the text with every character that cannot be seen spelled out as ``⟨U+202E⟩``; newlines and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_spelled, text.replace("\r\n", "\n")))
