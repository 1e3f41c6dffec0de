"""Ways to spoil a tool's output, and what must hold of a parser whatever it is given."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import strategies as st

from servicepath.parse.errors import ParseError

T = TypeVar("T")

# What edits put in: pieces of the formats themselves, where a parser is likeliest to be led astray, and any character at all.
PIECES = st.sampled_from(
    [
        *(" ", "\n", "\t", "\r\n", '"', "\\", "!", "-", "--", "0", "-1", "65536", "99999999999999999999", "²", "٣", "\x85", "\u2028"),
        *("=", ":", "/", "[", "]", "{", "}", "(", ")", "<", ">", "null", "true", "[]", "{}", "1e999", "NaN", "10.0.0.1", "fd00::1"),
        *("10.0.0.1/33", "src=", "-j", "-A X", "COMMIT", "*nat", "dport=", "via", "mtu", "Enabled", "0x", "%eth0", "lock", "encap"),
    ]
) | st.characters(exclude_categories=["Cs"])


@st.composite
def spoilt(draw: st.DrawFn, text: str) -> str:
    """The text after one to three edits: something taken out, put in, or put in place of something."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        gone = draw(st.sampled_from([0, 0, 1, 1, 2, 5, 20, 200]))
        text = text[:at] + draw(st.just("") | PIECES) + text[at + gone :]
    return text


def cut(text: str) -> st.SearchStrategy[str]:
    """The text's beginning, at least a character; its last line end is gone: nothing at all is what tools print of nothing."""
    return st.integers(1, len(text.rstrip()) - 1).map(lambda end: text[:end])


JSON_VALUES = st.sampled_from([None, True, False, 0, -1, 10**30, 1.5, "", "x", "10.0.0.1", [], {}, [None], [[]], {"x": 1}, ["x"], [{}]])


@st.composite
def reshaped(draw: st.DrawFn, document: Any) -> Any:
    """A JSON document with one value, anywhere in it, taken out or replaced by another."""
    copy = json.loads(json.dumps(document))
    places: list[tuple[Any, Any]] = []
    waiting = [copy]
    while waiting:
        holder = waiting.pop()
        for key, value in holder.items() if isinstance(holder, dict) else enumerate(holder):
            places.append((holder, key))
            if isinstance(value, dict | list):
                waiting.append(value)
    holder, key = draw(st.sampled_from(places))
    if draw(st.booleans()):
        del holder[key]
    else:
        holder[key] = draw(JSON_VALUES)
    return copy


def outcome(parse: Callable[[Any], T], given: Any) -> T | None:
    """What the parser makes of it; None for a ParseError that says what it must. Any other exception is raised."""
    try:
        return parse(given)
    except ParseError as error:
        _check(error, given)
        return None


def _check(error: ParseError, given: Any) -> None:
    """The error names tool, line and text."""
    lines = given.count("\n") + 1 if isinstance(given, str) else 10**6
    assert error.tool
    assert error.expected
    assert 0 <= error.line <= lines
    assert str(error).startswith(f"{error.tool}: ")
