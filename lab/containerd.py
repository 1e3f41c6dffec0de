"""A containerd of this machine's own for a moment, to import images into a folder.

It runs on a tmpfs, because the overlayfs snapshotter cannot work on an overlay, which the cache may lie on; what it leaves is
plain files and folders, and those are copied to where they shall stay.
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from lab.errors import LabError
from lab.paths import cache
from lab.process import run
from lab.waiting import until

NAMESPACE = "k8s.io"  # containerd's namespace of the kubelet's images
IMPORT_TIMEOUT = 600.0  # seconds for one image
START_TIMEOUT = 30.0
ENDED_WITH_US = ("setpriv", "--pdeathsig", "KILL")


def import_archives(archives: Sequence[Path], target: Path) -> None:
    """Import image archives and leave the filled containerd folder at ``target``.

    Raises:
        LabError: containerd or an import failed.
    """
    clean_up()
    mounted = scratch()
    mounted.mkdir(parents=True)
    run(["mount", "-t", "tmpfs", "-o", "mode=0700", "tmpfs", mounted])
    try:
        root, socket, log = mounted / "root", mounted / "containerd.sock", mounted / "log"
        folders = ["--root", str(root), "--state", str(mounted / "state"), "--address", str(socket)]
        # Ended with this process, whatever happens to it; its passing mounts stay in a namespace of its own.
        with (
            log.open("wb") as out,
            subprocess.Popen(
                [*ENDED_WITH_US, "unshare", "--mount", "containerd", "--config", "/dev/null", *folders],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            ) as daemon,
        ):
            try:
                _await_socket(daemon, socket, log)
                for path in archives:
                    run(["ctr", "-a", socket, "-n", NAMESPACE, "images", "import", path], timeout=IMPORT_TIMEOUT)
            finally:
                daemon.terminate()
        run(["cp", "-a", root, target], timeout=IMPORT_TIMEOUT)
    finally:
        clean_up()


def scratch() -> Path:
    """Return where the passing containerd's tmpfs is mounted."""
    return cache() / "images" / ".containerd"


def clean_up() -> None:
    """Unmount and remove the tmpfs, also one that a killed run left."""
    if scratch().is_mount():
        run(["umount", "--lazy", scratch()])
    if scratch().exists():
        scratch().rmdir()


def _await_socket(daemon: "subprocess.Popen[bytes]", socket: Path, log: Path) -> None:
    def answers() -> str | None:
        if daemon.poll() is not None:
            raise LabError(f"containerd ended at once: {log.read_text(encoding='utf-8', errors='replace')[-1000:]}")
        if not socket.exists():
            return "its socket is not there"
        try:
            run(["ctr", "-a", socket, "version"], timeout=10)
        except LabError as error:
            return str(error)
        return None

    until(answers, "starting a containerd for the import", seconds=START_TIMEOUT)
