"""Show a folder of this machine on a lab host, at the same path, whatever the host's own mounts hide of it."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from lab import status, topology

# A mount is taken along into another mount namespace by open_tree(2) here and move_mount(2) there (Linux 5.2); a bind mount by
# path is refused across namespaces. Both have the same number on every architecture. Python has setns() only since 3.12.
_BIND = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
path, space = sys.argv[1].encode(), os.open(f"/proc/{sys.argv[2]}/ns/mnt", os.O_RDONLY)
tree = call(428, -100, path, 0x8001)  # open_tree(AT_FDCWD, path, AT_RECURSIVE | OPEN_TREE_CLONE)
if libc.setns(space, 0):
    raise OSError(ctypes.get_errno(), "setns")
os.makedirs(path, exist_ok=True)
call(429, tree, b"", -100, path, 4)  # move_mount(…, MOVE_MOUNT_F_EMPTY_PATH)
"""


@contextlib.contextmanager
def shown(host: str, folder: Path) -> Iterator[None]:
    """The folder, writable, on the host, until the block ends."""
    inside = status.running_host(topology.load(), host)
    subprocess.run([sys.executable, "-c", _BIND, str(folder), str(inside.init.pid)], check=True, timeout=30)
    try:
        yield
    finally:
        inside.run(["umount", "-l", folder])
