"""SIGTERM, SIGHUP and Ctrl-C: what waits is ended at once, what keeps and tells the night is not. And waiting no longer than so long."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Stopped(BaseException):
    """A signal came while something was waited for; the text is its name. No Exception, so that no client library catches it."""


class Stop:
    """Whether this run was asked to end, and by which signal; ``asked`` is None while it was not."""

    def __init__(self) -> None:
        self.asked: str | None = None
        self._raises = False

    @contextlib.contextmanager
    def raising(self) -> Iterator[None]:
        """Inside, a signal raises Stopped where it comes; so does one that came before. Outside it is noted alone."""
        self._raises = True
        try:
            if self.asked:
                raise Stopped(self.asked)
            yield
        finally:
            self._raises = False

    def note(self, number: int, _frame: object) -> None:
        """The signals' handler."""
        self.asked = signal.Signals(number).name
        if self._raises:
            self._raises = False  # a second signal breaks off nothing of what the first one began
            raise Stopped(self.asked)


@contextlib.contextmanager
def noticed() -> Iterator[Stop]:
    """Notice the signals from here on; one that whoever started us ignores (nohup) stays ignored."""
    stop = Stop()
    earlier = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in (number for number, handler in earlier.items() if handler is not signal.SIG_IGN):
        signal.signal(number, stop.note)
    try:
        yield stop
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


class TimeIsUp(Exception):
    """It took too long. No OSError, so that no client library takes it for trouble of its own."""


def _time_is_up(*_: object) -> None:
    raise TimeIsUp


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise TimeIsUp inside when it takes longer, whatever it waits for; for the main thread."""
    earlier = signal.signal(signal.SIGALRM, _time_is_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier)
