"""The recordings in selftests/data/recordings, and the verdicts that each must give.

    NAME.tar.zst (or a folder NAME)     what a run saw
    NAME.expected.txt                   outcome, conclusion and case of every test, one a line

To add one, with the cluster in the state that is to be kept, and then look at what was written:

    python -m pytest --disruptive --record=selftests/data/recordings/NAME.tar.zst
    python -m selftests.recordings NAME
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = pathlib.Path(__file__).parent / "data" / "recordings"
PACKED, EXPECTED = ".tar.zst", ".expected.txt"

# What only POSIX has: a replay must do without. Scapy's own code for Linux is let through; on other systems it takes other code.
POSIX = ("fcntl", "grp", "pwd", "pty", "resource", "syslog", "termios", "tty")
WITHOUT_POSIX = f"""
import builtins, sys
real = builtins.__import__
def guarded(name, globals=None, *rest, **named):
    if name in {POSIX!r} and not (globals or {{}}).get("__name__", "").startswith("scapy.arch.linux"):
        raise ImportError("only POSIX has " + name)
    return real(name, globals, *rest, **named)
for name in {POSIX!r}:
    sys.modules.pop(name, None)
builtins.__import__ = guarded
"""


def found() -> list[pathlib.Path]:
    """All recordings."""
    return sorted(path for path in FOLDER.iterdir() if path.name.endswith(PACKED) or path.is_dir())


def expectation(recording: pathlib.Path) -> pathlib.Path:
    """The file of the verdicts that it must give."""
    return recording.with_name(recording.name.removesuffix(PACKED) + EXPECTED)


def suite(root, *arguments, posix=True, **environment):
    """Run the suite as a user would, with a root folder of its own, so that its reports do not mix with the user's."""
    start = ["-m", "pytest"] if posix else ["-c", WITHOUT_POSIX + "import pytest; sys.exit(pytest.main())"]
    own = ["-c", str(ROOT / "pytest.ini"), f"--rootdir={root}", f"--confcutdir={ROOT}", "-q", str(ROOT / "tests")]
    return subprocess.run(
        [sys.executable, *start, *own, *arguments], cwd=root, env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


def facts(root):
    """What the run in this root folder found."""
    return json.loads((pathlib.Path(root) / "reports" / "facts.json").read_text(encoding="utf-8"))


def verdicts(root):
    """The run's verdicts, one line each, in order."""
    return [f"{v['outcome']:<8}{v['conclusion']:<28}{v['case']}".rstrip() for v in facts(root)["verdicts"]]


def replay(recording, root, *arguments, **said):
    """Judge a recording where there is no home, no kubeconfig and no tool to reach anything."""
    nowhere = {"HOME": str(root), "KUBECONFIG": str(pathlib.Path(root) / "none"), "PATH": ""}
    return suite(root, f"--replay={recording}", *arguments, **said, **nowhere)


def main() -> None:
    """Write the expectations of the named recordings, to be looked at before they are believed."""
    for name in sys.argv[1:]:
        recording = next(path for path in found() if path.name.removesuffix(PACKED) == name)
        with tempfile.TemporaryDirectory() as root:
            done = replay(recording, root)
            expectation(recording).write_text("\n".join(verdicts(root)) + "\n", encoding="utf-8")
            print(f"{expectation(recording)}: {done.stdout.strip().splitlines()[-2:]}")


if __name__ == "__main__":
    main()
