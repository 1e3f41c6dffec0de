"""What must hold on this machine before the lab changes anything on it; each refusal is one line with its remedy."""

import ctypes
import os
import platform
import shutil
from collections.abc import Mapping
from pathlib import Path

from lab import cgroups, network
from lab.errors import LabError, RefusedError
from lab.process import run
from lab.topology import Topology

# Program → the Debian (and Ubuntu) package that brings it.
TOOLS: Mapping[str, str] = {
    "bpftool": "bpftool",
    "busybox": "busybox-static",
    "catatonit": "catatonit",
    "conntrack": "conntrack",
    "curl": "curl",
    "containerd": "containerd",
    "dig": "dnsutils",
    "etcd": "etcd-server",
    "ethtool": "ethtool",
    "ip": "iproute2",
    "ipset": "ipset",
    "iptables-save": "iptables",
    "mmdebstrap": "mmdebstrap",
    "mount": "mount",
    "nft": "nftables",
    "nsenter": "util-linux",
    "runc": "runc",
    "setpriv": "util-linux",
    "ssh": "openssh-client",
    "sshd": "openssh-server",
    "sudo": "sudo",
    "sysctl": "procps",
    "tcpdump": "tcpdump",
    "unshare": "util-linux",
}
FILES: Mapping[Path, str] = {Path("/usr/lib/cni/loopback"): "containernetworking-plugins"}
IN_NEW_NETWORK = ("unshare", "--net", "--mount")
# What the kernel must be able to do, tried out in namespaces that end with the trial → how the lack is called.
TRIALS: Mapping[tuple[str, ...], str] = {
    ("ip", "link", "add", "type", "veth"): "virtual Ethernet (CONFIG_VETH)",
    ("ip", "link", "add", "type", "bridge"): "bridges (CONFIG_BRIDGE)",
    ("ip", "link", "add", "type", "vxlan", "id", "1", "dstport", "8472"): "VXLAN (CONFIG_VXLAN)",
    ("iptables", "-t", "nat", "-A", "OUTPUT", "-m", "comment", "--comment", "x", "-j", "MARK", "--set-mark", "1"): (
        "iptables nat with comment and MARK (CONFIG_NETFILTER_XT_MATCH_COMMENT, CONFIG_NETFILTER_XT_TARGET_MARK)"
    ),
    ("iptables", "-t", "nat", "-A", "OUTPUT", "-m", "statistic", "--mode", "random", "--probability", "0.5"): (
        "the iptables match statistic (CONFIG_NETFILTER_XT_MATCH_STATISTIC)"
    ),
    ("tc", "qdisc", "add", "dev", "lo", "clsact"): "the queueing discipline clsact (CONFIG_NET_SCH_INGRESS)",
    ("mount", "-t", "bpf", "bpf", "/mnt"): "the BPF file system (CONFIG_BPF_SYSCALL)",
}
# How many inotify instances the lab's components take: 30 were counted (kubelet 6 a node, the API server 3, the rest 1 or 2 each).
INOTIFY_INSTANCES = 36
INOTIFY_LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")
FILE_SYSTEMS: Mapping[str, str] = {"overlay": "CONFIG_OVERLAY_FS", "tmpfs": "CONFIG_TMPFS", "cgroup2": "CONFIG_CGROUPS"}


def check(topology: Topology) -> None:
    """Return if the lab can run here.

    Raises:
        RefusedError: it cannot; the message is one line with the reason and the remedy.
    """
    if os.geteuid() != 0:
        raise RefusedError("the lab makes network namespaces and mounts: run it as root (sudo)")
    if platform.system() != "Linux":
        raise RefusedError(f"the lab needs Linux, this is {platform.system()}")
    _check_tools()
    _check_range(topology)
    _check_kernel()


def check_root() -> None:
    """Return if this process is root's, as the lab is.

    Raises:
        RefusedError: it is not.
    """
    if os.geteuid() != 0:
        raise RefusedError("the lab is root's: run this as root (sudo)")


def _check_tools() -> None:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    lacking = {tool: package for tool, package in TOOLS.items() if not shutil.which(tool, path=path)}
    lacking |= {str(file): package for file, package in FILES.items() if not file.exists()}
    if lacking:
        packages = " ".join(sorted(set(lacking.values())))
        raise RefusedError(f"missing here: {', '.join(lacking)}. Install them: apt-get install --no-install-recommends {packages}")


def _check_range(topology: Topology) -> None:
    users = network.users_of(topology.lan.network)
    if users:
        raise RefusedError(
            f"the lab's range {topology.lan.network} is in use on this machine ({'; '.join(users)}): "
            "take that away, or give the lab another range in lab/topology.yaml"
        )


def _check_kernel() -> None:
    known = Path("/proc/filesystems").read_text(encoding="ascii").split()
    for name, option in FILE_SYSTEMS.items():
        if name not in known:
            raise RefusedError(f"this kernel ({platform.release()}) has no {name} file system ({option})")
    try:
        cgroups.unified()
    except LabError as error:
        raise RefusedError(str(error)) from error
    for argv, name in TRIALS.items():
        try:
            run([*IN_NEW_NETWORK, *argv])
        except LabError as error:
            raise RefusedError(f"this kernel ({platform.release()}) cannot do {name}: {error}") from error


def check_inotify() -> None:
    """Return if the components can watch files; to be asked while no lab is up, since one that is up has its share already.

    The kernel counts inotify instances a user, over all namespaces (inotify(7)); a kubelet that gets none ends.

    Raises:
        RefusedError: other programs of root's leave too few.
    """
    library = ctypes.CDLL(None, use_errno=True)
    made: list[int] = []
    try:
        while len(made) < INOTIFY_INSTANCES and (descriptor := library.inotify_init1(os.O_CLOEXEC)) >= 0:
            made.append(descriptor)
    finally:
        for descriptor in made:
            os.close(descriptor)
    if len(made) < INOTIFY_INSTANCES:
        limit = INOTIFY_LIMIT.read_text(encoding="ascii").strip()
        raise RefusedError(
            f"other programs of root's leave {len(made)} of the {limit} inotify instances that this machine allows, and the lab takes "
            f"{INOTIFY_INSTANCES}: end some of them, or allow more with: sysctl -w fs.inotify.max_user_instances=1024"
        )
