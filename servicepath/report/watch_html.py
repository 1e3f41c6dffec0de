"""A watch as a page of its own, and in a few lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from servicepath.model.watched import Summary

from . import files, watch_picture
from .html import environment, own_text
from .visible import visible


def headline(found: Summary) -> str:
    """``600 s, 12 places: 3 of 72000 lost, the longest gap 0.2 s, 1 standing connection broken``."""
    asked, lost = sum(each.asked for each in found.felt), sum(each.lost for each in found.felt)
    broken = sum(len(each.broken) for each in found.felt)
    gap = max((each.longest_gap for each in found.felt), default=0.0)
    told = f"{lost} of {asked} lost" + (f", the longest gap {gap:.1f} s" if lost else "")
    return f"{found.ended - found.started:.0f} s, {len(found.felt)} series: {told}, {broken} standing connections broken"


def lines(found: Summary) -> Iterator[str]:
    """The headline, then each place; what could not be seen last."""
    yield visible(headline(found))
    for each in found.felt:
        yield visible(f"{'✗' if each.lost or each.broken else '✓'} {each.subject}: {watch_picture.said(each)}")
    for line in found.unseen:
        yield visible(f"! {line}")


def render(found: Summary) -> str:
    """Return the whole page."""
    template = environment().get_template("watch.html.j2")
    return template.render(watched=found, picture=watch_picture.draw(found), headline=headline(found), style=own_text("style.css"))


def write(found: Summary, path: Path) -> None:
    """Write the page whole or not at all."""
    files.write_whole(path, render(found))
