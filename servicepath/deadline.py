"""The end of the time that a whole run may take."""

from __future__ import annotations

import dataclasses
import time


@dataclasses.dataclass(frozen=True, slots=True)
class Deadline:
    """A moment of the monotonic clock; ``seconds`` is how long the whole run may take."""

    seconds: float
    at: float

    @classmethod
    def starting_now(cls, seconds: float) -> Deadline:
        """A deadline that many seconds from now."""
        return cls(seconds, time.monotonic() + seconds)

    def left(self) -> float:
        """Seconds left; negative when it has passed."""
        return self.at - time.monotonic()

    def limit(self, timeout: float) -> float:
        """The shorter of a time-out and what is left."""
        return min(timeout, self.left())
