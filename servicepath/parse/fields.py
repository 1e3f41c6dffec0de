"""Typed reading of JSON objects: what is used is checked, what is not used may be anything, and an error names its place."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ..model.addresses import IPAddress, IPNetwork
from . import lines
from .errors import ParseError

T = TypeVar("T")

# dumps() with separators of its own makes an encoder anew for each object.
_COMPACT = json.JSONEncoder(separators=(",", ":"))


class Fields:
    """One JSON object, its fields read by name and type.

    Args:
        tool: whose output it is.
        value: the decoded object.
        place: where it stands ("item 3", "kube-system/kube-dns"); named in errors.
        line: line number for errors, or the number of the object in its list; 0 where neither helps.
    """

    def __init__(self, tool: str, value: object, place: str = "", line: int = 0) -> None:
        self._tool, self._place, self._line = tool, place, line
        if not isinstance(value, Mapping):
            raise self.error("", value, "an object")
        self.value: Mapping[str, Any] = value

    def error(self, name: str, value: object, expected: str) -> ParseError:
        """The error for this field."""
        where = ": ".join(part for part in (self._place, name) if part)
        return ParseError(self._tool, self._line, f"{where}: {value!r}" if where else repr(value), expected)

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self.value.get(name) is not None

    def text(self, name: str) -> str:
        """The field's text; an error when it is absent or empty."""
        found = self.optional_text(name)
        if found is None:
            raise self.error(name, self.value.get(name), "a text")
        return found

    def optional_text(self, name: str) -> str | None:
        """The field's text; None when it is absent, null or empty."""
        found = self._typed(name, str, "a text")
        return found or None

    def name(self, name: str) -> str | None:
        """The field's name, or the number that old tools print where they know no name; None when it is absent, null or empty."""
        found = self.value.get(name)
        return str(found) if isinstance(found, int) and not isinstance(found, bool) else self.optional_text(name)

    @property
    def raw(self) -> str:
        """The object as JSON in one line."""
        return _COMPACT.encode(self.value)

    def number(self, name: str) -> int | None:
        """The field's whole number; None when absent. True and False are no numbers."""
        found = self.value.get(name)
        if found is not None and (not isinstance(found, int) or isinstance(found, bool)):
            raise self.error(name, found, "a whole number")
        return found

    def port(self, name: str) -> int | None:
        """The field's port number (1 to 65535); None when absent."""
        found = self.number(name)
        if found is not None and not 0 < found < 65536:
            raise self.error(name, found, "a port number")
        return found

    def flag(self, name: str) -> bool | None:
        """The field's truth value; None when absent."""
        return self._typed(name, bool, "true or false")

    def address(self, name: str) -> IPAddress | None:
        """The field's address; None when absent or empty."""
        found = self.optional_text(name)
        return None if found is None else self.convert(name, found, lines.address, "an IP address")

    def addresses(self, name: str) -> tuple[IPAddress, ...]:
        """The field's list of addresses."""
        return tuple(self.convert(name, each, lines.address, "an IP address") for each in self.texts(name))

    def networks(self, name: str) -> tuple[IPNetwork, ...]:
        """The field's list of prefixes."""
        return tuple(self.convert(name, each, ipaddress.ip_network, "a prefix") for each in self.texts(name))

    def texts(self, name: str) -> tuple[str, ...]:
        """The field's list of texts; empty when absent."""
        found = self.items(name)
        if any(not isinstance(each, str) for each in found):
            raise self.error(name, found, "a list of texts")
        return tuple(found)

    def labels(self, name: str) -> Mapping[str, str]:
        """The field's map of text to text; empty when absent."""
        found = self._typed(name, dict, "an object") or {}
        if any(not isinstance(each, str) for each in found.values()):
            raise self.error(name, found, "an object of texts")
        return dict(found)

    def child(self, name: str) -> Fields:
        """The field's object; an empty one when absent."""
        found = self.value.get(name)
        return Fields(self._tool, {} if found is None else found, ": ".join(p for p in (self._place, name) if p), self._line)

    def children(self, name: str) -> tuple[Fields, ...]:
        """The field's list of objects; empty when absent."""
        where = ": ".join(part for part in (self._place, name) if part)
        found = enumerate(self.items(name))
        return tuple(Fields(self._tool, each, f"{where}[{number}]", self._line) for number, each in found)

    def items(self, name: str) -> Sequence[Any]:
        """The field's list; empty when absent."""
        return self._typed(name, list, "a list") or []

    def convert(self, name: str, text: str, into: Callable[[str], T], expected: str) -> T:
        """The text made into something; ValueError becomes the field's ParseError."""
        try:
            return into(text)
        except ValueError:
            raise self.error(name, text, expected) from None

    def _typed(self, name: str, kind: type[T], expected: str) -> T | None:
        found = self.value.get(name)
        if found is not None and not isinstance(found, kind):
            raise self.error(name, found, expected)
        return found


def decode(tool: str, text: str, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """The JSON value that the text is; ``pairs`` makes an object of its names and values.

    Raises:
        ParseError: no JSON, such as output that was cut off; names the line.
    """
    try:
        return json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        near = text[max(0, error.pos - 60) : error.pos + 60] or text[-60:]
        raise ParseError(tool, error.lineno, near, f"complete JSON ({error.msg})") from None
    except (RecursionError, ValueError) as error:  # ten thousand brackets; a number of as many digits
        raise ParseError(tool, 0, text, f"JSON that a tool prints ({error})") from None


def json_objects(tool: str, text: str) -> list[Fields]:
    """The objects of a JSON list, in order.

    Of a name that stands twice in an object the first counts: ip prints a route's own ``dst`` before that of its encapsulation.
    Empty objects are left out (ip prints ``{}`` for each interface that its filter hides).

    Raises:
        ParseError: no JSON (output that was cut off, say), or no list of objects.
    """
    found = decode(tool, text, _first_of_each)
    if not isinstance(found, list):
        raise ParseError(tool, 0, text, "a JSON list")
    return [Fields(tool, each, f"item {number}") for number, each in enumerate(found, 1) if each != {}]


def _first_of_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        found.setdefault(name, value)
    return found
