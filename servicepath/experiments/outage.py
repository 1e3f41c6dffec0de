"""Make the API unreachable for a short while, as the inventory says, and bring it back whatever happens.

The undo is armed on the node by a timer before the do runs, so that it comes even if this side dies.
"""

from __future__ import annotations

import shlex

from ..channel import Command

# Seconds after which the node itself brings the API back. k3s' own leases last longer than that, so no node is evicted.
LONGEST = 20


def begin(do: str, undo: str) -> Command:
    """Arm the timer, then make the API unreachable; prints the timer's process group, and then whatever ``do`` prints.

    Args:
        do: shell text from the inventory that makes the API unreachable on this node.
        undo: shell text that brings it back; must be harmless when run twice.
    """
    timer = f"sleep {LONGEST}; {undo}"
    text = f"setsid sh -c {shlex.quote(timer)} </dev/null >/dev/null 2>&1 &\necho $!\n{do}"
    return Command("outage-begin", ("sh", "-c", text))


def end(undo: str, timer: str) -> Command:
    """Bring the API back and, when that did not fail, disarm the timer; its status is the undo's.

    Args:
        undo: as for begin.
        timer: what begin printed; empty when it did not get so far.
    """
    # In a subshell, so that an exit in it does not leave the timer armed. A timer that has gone off need not be disarmed.
    text = f"(\n{undo}\n) || exit"
    if timer.strip():
        text += f"\nkill -TERM -{int(timer.split()[0])} || :"
    return Command("outage-end", ("sh", "-c", text))
