"""The suite as a night's child, which outlives its night by half a minute at most: ``-m servicepath.nightly.suite LIFELINE …pytest's``.

LIFELINE is the number of a pipe's reading end, of which the night has the writing end. A line from it says why the run is to end; its
end, without one, that the night itself is gone (SIGKILL, out of memory). Either is Ctrl-C to pytest: every ``finally`` is run, so what
--disruptive changed is undone, and the report is written. A pipe, and not Linux' PR_SET_PDEATHSIG: it brings the reason along, it is
no matter of which thread began the child, and there is no moment between fork and prctl in which a death goes unseen.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytest

ORPHANED = 30.0  # seconds from the night's end to the suite's; the Lease of a night that is gone is valid for longer (lease.py)


class Ending:
    """How the run is broken off: once, and not while its report is written."""

    def __init__(self) -> None:
        self.why = "stopped by a signal"
        self._reporting = False
        self._heard = threading.Event()

    def signalled(self, _number: int, _frame: object) -> None:
        """The signals' handler: as Ctrl-C, with the reason; a second one would break off what the first one had undone."""
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)
        self._heard.set()
        if not self._reporting:
            raise KeyboardInterrupt(self.why)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """All is judged: what is written now is written to its end."""
        self._reporting = True

    def watch(self, lifeline: int) -> None:
        """Break the run off when the night says so or is gone; then, half a minute after the night, end it whatever it does."""
        said = os.read(lifeline, 1000).decode("utf-8", "replace")
        self.why = said or "the nightly run that began it was killed"
        for _ in range(10):  # one that comes just before a call that blocks is heard only when the call is over
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            if self._heard.wait(0.5):
                break
        if said:
            os.read(lifeline, 1)  # while it lives it keeps the lock, and the time itself
        threading.Event().wait(ORPHANED)
        os.kill(os.getpid(), signal.SIGKILL)


def main(lifeline: int, arguments: list[str]) -> int:
    """Run pytest; its exit status."""
    ending = Ending()
    for each in (signal.SIGINT, signal.SIGTERM):  # SIGINT is ignored where a shell began the night with &
        signal.signal(each, ending.signalled)
    threading.Thread(target=ending.watch, args=(lifeline,), name="lifeline", daemon=True).start()
    return pytest.main(arguments, plugins=[ending])


if __name__ == "__main__":
    _, pipe, *rest = sys.argv
    sys.argv = ["pytest", *rest]
    sys.exit(main(int(pipe), rest))
