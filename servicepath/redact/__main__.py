"""``python -m servicepath.redact IN OUT``: a recording that is there, with neutral names and addresses."""

from __future__ import annotations

import argparse
import pathlib
import sys

from ..recording import storage
from ..recording.model import RecordingError
from .recording import redact


def main() -> int:
    """Read IN, write OUT; 2 and one line where that cannot be."""
    parser = argparse.ArgumentParser(prog="python -m servicepath.redact", description="a recording with neutral names and addresses")
    parser.add_argument("source", metavar="IN", type=pathlib.Path, help="a recording: its folder or .tar.zst")
    parser.add_argument("target", metavar="OUT", type=pathlib.Path, help="a new folder, or a new .tar.zst")
    said = parser.parse_args()
    try:
        storage.check_new(said.target)
        storage.write(redact(storage.read(said.source)), said.target)
    except RecordingError as wrong:
        print(f"ERROR: {wrong}", file=sys.stderr)
        return 2
    print(f"{said.target}: neutral names and addresses; look through it all the same before you give it away")
    return 0


if __name__ == "__main__":
    sys.exit(main())
