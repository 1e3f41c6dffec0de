"""Make the API unreachable for a short while, as the inventory says, and bring it back whatever happens.

The undo is armed on the node by a timer before the do runs, so that it comes even if this side dies.
"""

from __future__ import annotations

import shlex

from ..channel import Command

# Seconds after which the node itself brings the API back. k3s' own leases last longer than that, so no node is evicted.
LONGEST = 20


def begin(do: str, undo: str) -> Command:
    """Arm the timer, then make the API unreachable; prints the timer's process group.

    Args:
        do: shell text from the inventory that makes the API unreachable on this node.
        undo: shell text that brings it back; must be harmless when run twice.
    """
    timer = f"sleep {LONGEST}; {undo}"
    text = f"setsid sh -c {shlex.quote(timer)} </dev/null >/dev/null 2>&1 &\necho $!\n{do}"
    return Command("outage-begin", ("sh", "-c", text))


def end(undo: str, timer: str) -> Command:
    """Bring the API back and disarm the timer.

    Args:
        undo: as for begin.
        timer: what begin printed; empty when it did not get so far.
    """
    disarm = f"\nkill -TERM -{int(timer)}" if timer.strip() else ""
    return Command("outage-end", ("sh", "-c", undo + disarm))
