"""For processes that tests begin: their signals as at a terminal. Who was begun with nohup or & passes it on that some are ignored."""

import signal


def signals():
    """Before the program begins (``preexec_fn``): what ends a run is ignored no more."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
