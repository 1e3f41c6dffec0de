"""Signals as at a terminal: who was begun with nohup or & passes it on that some are ignored, to tests and to what they begin."""

import contextlib
import signal

NUMBERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def signals():
    """Before a program begins (``preexec_fn``): what ends a run is ignored no more."""
    for number in NUMBERS:
        signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def heard():
    """Inside, this process ignores none of them."""
    earlier = {number: signal.signal(number, signal.default_int_handler) for number in NUMBERS}
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
