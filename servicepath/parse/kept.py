"""JSON documents that the suite itself keeps, to be read again: each key and number is what a run wrote, or the file is refused."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from .errors import ParseError
from .fields import Fields

LARGEST = 1e12  # no count, time or span that a run writes comes near it
END_OF_TIME = 253402300800.0  # Unix time of the year 10000, which no calendar shows


def document(tool: str, text: str, kind: str, schema: int, maker: str) -> Fields:
    """The document's fields, when it is of this kind and schema.

    Args:
        tool: what it is called in errors.
        text: the file.
        kind: what its ``kind`` says.
        schema: the newest that can be read.
        maker: what writes such files.

    Raises:
        ParseError: cut off, no JSON, a key that is given twice, a number that no run writes, another kind, a newer schema.
    """
    top = Fields(tool, _decoded(tool, text))
    if top.value.get("kind") != kind:
        raise top.error("kind", top.value.get("kind"), f"{kind!r}: a file that {maker} wrote")
    found = top.number("schema")
    if found is None or found < 1:
        raise top.error("schema", found, f"a whole number from 1 to {schema}")
    if found > schema:
        raise top.error("schema", found, f"at most {schema}: it was written by a newer version of the suite; update this one")
    return top


def required(item: Fields, **expected: str) -> None:
    """See that the keys are there; what is absent must not be taken for what is empty."""
    for key, what in expected.items():
        if key not in item.value:
            raise item.error(key, "not there", what)


def moment(item: Fields, key: str) -> float:
    """The key's Unix time, in seconds."""
    found = item.value.get(key)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < END_OF_TIME:
        raise item.error(key, found, "a Unix time in seconds")
    return float(found)


def _decoded(tool: str, text: str) -> Any:
    def number(digits: str) -> float:
        value = float(digits)
        if not abs(value) <= LARGEST:
            raise ParseError(tool, 0, digits, "a number that a run writes")
        return value

    def whole(digits: str) -> int:
        number(digits)
        return int(digits)

    def constant(name: str) -> NoReturn:
        raise ParseError(tool, 0, name, "a number that a run writes")

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        keys: set[str] = set()
        for key, _ in found:
            if key in keys:
                raise ParseError(tool, 0, key, "each key once in an object")
            keys.add(key)
        return dict(found)

    try:
        return json.loads(text, parse_float=number, parse_int=whole, parse_constant=constant, object_pairs_hook=pairs)
    except ParseError:
        raise
    except ValueError as wrong:
        raise ParseError(tool, getattr(wrong, "lineno", 0), text[-60:], "complete JSON (was it cut off?)") from None
    except RecursionError:
        raise ParseError(tool, 0, text[:60], f"a {tool}, not JSON nested without end") from None
