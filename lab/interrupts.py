"""Interrupts while something of the lab must be taken back: the first one is heard, and no other cuts the undo off."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """SIGINT and SIGTERM as they are heard within ``heard_once``.

    Attributes:
        heard: whether one has come. From then on both are ignored, by the programs that are started, too: Ctrl-C reaches them all.
    """

    def __init__(self) -> None:
        self.heard = False
        self._holding = False

    def hear(self, _number: int, _frame: FrameType | None) -> None:
        """Take note of the first signal; it is raised as KeyboardInterrupt, at once or as soon as it is held back no more."""
        self.heard = True
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        if not self._holding:
            raise KeyboardInterrupt

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let the inside come to its end; what was heard meanwhile is raised after it."""
        before, self._holding = self._holding, True
        known = self.heard
        try:
            yield
        finally:
            self._holding = before
        if self.heard and not known and not before:
            raise KeyboardInterrupt

    @contextmanager
    def let_through(self) -> Iterator[None]:
        """Within ``held``: the inside can be cut off all the same."""
        before, self._holding = self._holding, False
        try:
            if self.heard:
                raise KeyboardInterrupt
            yield
        finally:
            self._holding = before


@contextmanager
def heard_once() -> Iterator[Interrupts]:
    """Within this the first SIGINT or SIGTERM raises KeyboardInterrupt, and any further one is ignored."""
    interrupts = Interrupts()
    before = {each: signal.signal(each, interrupts.hear) for each in SIGNALS}
    try:
        yield interrupts
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
