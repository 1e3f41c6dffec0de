"""What a host of the lab finds on its file system that the machine has not: accounts, ssh, names, keys and configurations.

Everything is written into the upper folders of the host's copy-on-write copies before the host starts; the machine's own
files stay as they are.
"""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from lab.paths import PKI, PROJECT, SSH, node_folder
from lab.pki import Authority
from lab.ssh import USER
from lab.templates import render
from lab.topology import Host, KubernetesNode, Topology

SUDOERS = PROJECT / "docs" / "rights" / "sudoers"
UID = 60055  # in the range that Debian leaves to the local administrator for such things
CNI_LOOPBACK = Path("/usr/lib/cni/loopback")
CONTROL_PLANE_PKI = (
    *("etcd", "apiserver-etcd-client", "apiserver", "apiserver-kubelet-client"),
    *("kube-controller-manager", "kube-scheduler", "service-accounts"),
)


def fill_host(host: Host, topology: Topology) -> None:
    """Write what every host has: the suite's user with its sudoers, sshd's files, /etc/hosts."""
    etc = node_folder(host.name) / "upper" / "etc"
    _add_user(etc)
    _write(etc / "hosts", _hosts(topology))
    # No name server: nothing that a host looks up may leave the lab.
    _write(etc / "resolv.conf", "# the lab has no upstream name server\n")
    _write(etc / "hostname", f"{host.name}\n")
    _write(etc / "sudoers.d" / USER, SUDOERS.read_text(encoding="utf-8"), mode=0o440)
    _write(etc / "ssh" / "servicepath-lab.conf", render("sshd_config.j2"), mode=0o600)
    _write(etc / "ssh" / "servicepath-lab.key", (SSH / f"{host.name}.key").read_text(encoding="ascii"), mode=0o600)
    public = (SSH / "id_ed25519.pub").read_text(encoding="ascii")
    _write(etc / "ssh" / "authorized_keys" / USER, public)


def fill_node(node: KubernetesNode, topology: Topology, authority: Authority, pause: str) -> None:
    """Write what a node of the cluster has on top: its keys, and its containerd's, kubelet's and kube-proxy's configuration.

    Args:
        node: the node.
        topology: the lab.
        authority: whose certificates have been issued.
        pause: the name of the image that holds a Pod's namespaces open.
    """
    upper = node_folder(node.name) / "upper"
    pki = upper / "etc/kubernetes/pki"
    files = [f"kubelet-{node.name}", "kube-proxy", *(CONTROL_PLANE_PKI if node.control_plane else ())]
    _copy_keys(authority, files, pki)
    _write(upper / "etc/containerd/config.toml", render("containerd.toml.j2", pause=pause))
    cluster = topology.cluster
    kubelet = render("kubelet.yaml.j2", node=node.name, dns_service=cluster.dns_service, domain=cluster.domain)
    _write(upper / "etc/kubernetes/kubelet.yaml", kubelet)
    users = {"kubelet": f"kubelet-{node.name}", "kube-proxy": "kube-proxy"}
    if node.control_plane:
        users |= {name: name for name in ("kube-controller-manager", "kube-scheduler")}
    for name, file in users.items():
        values = {"api": topology.master.address, "file": file}
        _write(upper / f"etc/kubernetes/{name}.kubeconfig", render("component.kubeconfig.j2", **values), mode=0o600)
    (upper / "opt/cni/bin").mkdir(parents=True, exist_ok=True)
    shutil.copy(CNI_LOOPBACK, upper / "opt/cni/bin/loopback")


def _add_user(etc: Path) -> None:
    """Add the suite's user to the host's own copies of passwd, group and shadow (passwd(5), shadow(5))."""
    home = f"/home/{USER}"
    entries = {
        # "*" is no password at all; "!" would read as a locked account, which sshd turns away.
        "shadow": (f"{USER}:*:19000:0:99999:7:::", 0o640),
        "passwd": (f"{USER}:x:{UID}:{UID}::{home}:/bin/bash", 0o644),
        "group": (f"{USER}:x:{UID}:", 0o644),
    }
    for name, (entry, mode) in entries.items():
        lines = Path("/etc", name).read_text(encoding="utf-8").splitlines()
        kept = [line for line in lines if not line.startswith(f"{USER}:")]
        _write(etc / name, "".join(f"{line}\n" for line in [*kept, entry]), mode=mode)
        if name == "shadow":
            os.chown(etc / name, 0, Path("/etc/shadow").stat().st_gid)
    folder = etc.parent / home.lstrip("/")
    folder.mkdir(parents=True, exist_ok=True)
    os.chown(folder, UID, UID)


def _hosts(topology: Topology) -> str:
    lines = ["127.0.0.1 localhost", *(f"{host.address} {host.name}" for host in topology.hosts)]
    return "".join(f"{line}\n" for line in lines)


def _copy_keys(authority: Authority, files: Iterable[str], target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True, mode=0o700)
    shutil.copy(authority.path, target)
    for file in files:
        for path in PKI.glob(f"{file}.*"):
            shutil.copy2(path, target)


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.chmod(mode)
    path.write_text(text, encoding="utf-8")
