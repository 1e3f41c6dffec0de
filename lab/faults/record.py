"""Which faults are applied: faults.json in the lab's state, which goes with the lab."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path

from lab.errors import LabError
from lab.paths import RUN

RECORD = RUN / "faults.json"


@dataclasses.dataclass(frozen=True, slots=True)
class Applied:
    """A fault that was applied and not seen gone since.

    Attributes:
        variables: those of lab/faults/places.py as they were when it was applied.
        undone: its undo went well and the lab is well, but it was not seen gone; it stands in no other fault's way.
    """

    variables: dict[str, str]
    undone: bool = False


def applied(path: Path | None = None) -> dict[str, Applied]:
    """Return what is applied by name, in the order in which it was.

    Raises:
        LabError: the record is none of this version of the lab's.
    """
    path = path or RECORD
    try:
        return {name: Applied(**said) for name, said in json.loads(path.read_text(encoding="utf-8")).items()}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (ValueError, TypeError, AttributeError) as error:
        raise LabError(f"{path}: expected the faults that are applied, as this version writes them: python -m lab down") from error


def write(faults: Mapping[str, Applied], path: Path | None = None) -> None:
    """Write the record so that a reader sees either the old or the new one."""
    path = path or RECORD
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps({name: dataclasses.asdict(each) for name, each in faults.items()}, indent=2) + "\n", encoding="utf-8")
    partial.rename(path)


def told(path: Path | None = None) -> list[str]:
    """Return a line for each fault that is applied, with the command that takes it back."""
    lines = []
    for name, each in applied(path).items():
        command = f"python -m lab fault revert {name}"
        if each.undone:
            lines.append(f"undone, but not seen gone: {name} ({command} tries again)")
        else:
            lines.append(f"applied: {name} ({command} takes it back)")
    return lines
