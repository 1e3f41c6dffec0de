"""What a person sees while the lab works: which step, how long, and at the end a table of times."""

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO


@dataclass
class Progress:
    """Steps with their times, in seconds since this object was made.

    Lines go to ``out`` (standard error by default, so that a command's own output stays clean).
    """

    out: TextIO = field(default_factory=lambda: sys.stderr)
    started: float = field(default_factory=time.monotonic)
    steps: list[tuple[str, float, float]] = field(default_factory=list)

    def elapsed(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self.started

    def say(self, line: str) -> None:
        """Print one line with the time so far."""
        print(f"[{self.elapsed():6.1f} s] {line}", file=self.out, flush=True)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time what runs inside, and say when it is done; what fails is not recorded."""
        begin = self.elapsed()
        yield
        end = self.elapsed()
        self.steps.append((name, begin, end))
        self.say(f"{name} ({end - begin:.1f} s)")

    @contextmanager
    def alive(self, name: str, every: float = 60.0) -> Iterator[None]:
        """Say what goes on inside again and again, ``every`` so many seconds, with the time that it has taken so far."""
        begin, done = self.elapsed(), threading.Event()

        def say() -> None:
            while not done.wait(every):
                self.say(f"{name}: {self.elapsed() - begin:.0f} s so far")

        teller = threading.Thread(target=say)
        teller.start()
        try:
            yield
        finally:
            done.set()
            teller.join()

    def table(self) -> str:
        """Return the steps as a table: when each ended and how long it took."""
        rows = [f"{'step':<44}{'took':>8}{'ended at':>10}"]
        rows += [f"{name:<44}{end - begin:>6.1f} s{end:>8.1f} s" for name, begin, end in self.steps]
        return "\n".join(rows)

    def write(self, path: Path) -> None:
        """Write the steps and the total as JSON, times in seconds."""
        steps = [{"step": name, "seconds": round(end - begin, 2), "ended": round(end, 2)} for name, begin, end in self.steps]
        path.write_text(json.dumps({"total": round(self.elapsed(), 2), "steps": steps}, indent=2) + "\n", encoding="utf-8")
