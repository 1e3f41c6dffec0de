"""The picture of a path: where the packet was seen, hop by hop, and which addresses it carried there.

Only geometry and text are worked out here, in SVG user units that are CSS pixels at full size; the template picture.svg.j2 draws
it, so that escaping is the template engine's. The picture is as narrow as a phone, so that its text is never scaled down.
"""

from __future__ import annotations

import dataclasses
import re
import textwrap

from servicepath.model.paths import Hop, PathCell

from .visible import visible

WIDTH = 340
RAIL_X = 9
LEFT = 26
_PAD = 8
_LINE = 16
_MONO = 6.7  # width of a character at 11 px in the widest usual monospaced face
_SANS = {"place": 7.4, "note": 7.0}  # average at 12 px in a wide face; places are bold
_ARROW = " → "


@dataclasses.dataclass(frozen=True, slots=True)
class Span:
    """A run of text; ``changed`` when no earlier hop's header has the address: it was translated on the way here."""

    text: str
    changed: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Text:
    """One line of text at its baseline. ``kind`` is "place", "label", "header" or "note"."""

    x: float
    y: float
    kind: str
    spans: tuple[Span, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Box:
    """A packet header: "outer" holds an "inner" one; "plain" stands alone."""

    x: float
    y: float
    width: float
    height: float
    kind: str


@dataclasses.dataclass(frozen=True, slots=True)
class Picture:
    """What picture.svg.j2 draws. ``dots`` are the heights at which the hops sit on the rail."""

    width: int
    height: float
    title: str
    description: str
    dots: tuple[float, ...]
    boxes: tuple[Box, ...]
    texts: tuple[Text, ...]


def draw(cell: PathCell) -> Picture:
    """Return the picture of the cell's hops; the cell has at least one."""
    pen = _Pen()
    previous: frozenset[str] = frozenset()
    for hop in map(_visible, cell.hops):
        pen.hop(hop, previous)
        previous = _addresses(hop.header)
    return Picture(
        width=WIDTH,
        height=pen.y,
        title=f"{cell.source} on {cell.node} to {cell.frontend}",
        description=". ".join(_described(hop) for hop in cell.hops),
        dots=tuple(pen.dots),
        boxes=tuple(pen.boxes),
        texts=tuple(pen.texts),
    )


def _visible(hop: Hop) -> Hop:
    """The hop with hidden characters spelled out before lines are measured."""
    outer = None if hop.outer is None else visible(hop.outer)
    return Hop(visible(hop.place), visible(hop.header), outer, visible(hop.note))


def _described(hop: Hop) -> str:
    outer = f"outer {hop.outer}, inner " if hop.outer else ""
    return f"{hop.place}: {outer}{hop.header}" + (f" ({hop.note})" if hop.note else "")


def _ends(header: str) -> list[str]:
    return header.split(_ARROW)


def _bare(end: str) -> str:
    """An end without its protocol and without what a person added behind it."""
    return re.split(r"[/ ]", end.strip(), maxsplit=1)[0]


def _addresses(header: str) -> frozenset[str]:
    return frozenset(map(_bare, _ends(header)))


def header_lines(header: str, previous: frozenset[str], limit: int) -> list[tuple[Span, ...]]:
    """Return the header in lines of at most ``limit`` characters, ends that the previous hop did not have marked as changed."""
    ends = [Span(end, changed=bool(previous) and _bare(end) not in previous) for end in _ends(header)]
    if len(header) <= limit:
        spans: list[Span] = []
        for end in ends:
            spans.extend((Span(_ARROW), end) if spans else (end,))
        return [tuple(spans)]
    lines: list[tuple[Span, ...]] = []
    for index, end in enumerate(ends):
        arrow = Span("→ ") if index else Span("")
        pieces = textwrap.wrap(end.text, limit - len(arrow.text)) or [""]
        lines.extend((arrow if not number else Span(""), Span(piece, end.changed)) for number, piece in enumerate(pieces))
    return lines


class _Pen:
    """Draws downwards."""

    def __init__(self) -> None:
        self.y = 4.0
        self.dots: list[float] = []
        self.boxes: list[Box] = []
        self.texts: list[Text] = []

    def hop(self, hop: Hop, previous: frozenset[str]) -> None:
        self.dots.append(self.y + 8)
        self._words(hop.place, "place", LEFT)
        self.y += 6
        if hop.outer is None:
            self._box(hop.header, previous, "plain", LEFT, WIDTH - LEFT - 1)
        else:
            self._nested(hop, hop.outer, previous)
        if hop.note:
            self.y += 3
            self._words(hop.note, "note", LEFT)
        self.y += 12

    def _nested(self, hop: Hop, outer: str, previous: frozenset[str]) -> None:
        top, width = self.y, WIDTH - LEFT - 1
        slot = len(self.boxes)
        self._label("outer", LEFT + _PAD)
        self._header(outer, frozenset(), LEFT + _PAD, width - 2 * _PAD)
        self.y += 8
        self._box(hop.header, previous, "inner", LEFT + _PAD, width - 2 * _PAD)
        self.y += _PAD
        self.boxes.insert(slot, Box(LEFT, top, width, self.y - top, "outer"))  # below the box that it holds

    def _box(self, header: str, previous: frozenset[str], kind: str, x: float, width: float) -> None:
        top = self.y
        if kind == "inner":
            self._label("inner", x + _PAD)
        self._header(header, previous, x + _PAD, width - 2 * _PAD)
        self.y += 7
        self.boxes.append(Box(x, top, width, self.y - top, kind))

    def _header(self, header: str, previous: frozenset[str], x: float, width: float) -> None:
        for spans in header_lines(header, previous, int(width / _MONO)):
            self.y += _LINE
            self.texts.append(Text(x, self.y, "header", spans))

    def _label(self, label: str, x: float) -> None:
        self.y += 13
        self.texts.append(Text(x, self.y, "label", (Span(label),)))
        self.y -= 1

    def _words(self, words: str, kind: str, x: float) -> None:
        for line in textwrap.wrap(words, int((WIDTH - x) / _SANS[kind])) or [""]:
            self.y += _LINE - 4 if not self.texts else _LINE
            self.texts.append(Text(x, self.y, kind, (Span(line),)))
