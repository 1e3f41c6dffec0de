"""Keys and OpenSSH files by which the suite logs in to the lab's hosts as an ordinary user."""

from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from lab.paths import SSH
from lab.topology import Topology

USER = "servicepath"


def create(topology: Topology, folder: Path = SSH) -> None:
    """Write the client's key (id_ed25519), each host's key (HOST.key), known_hosts and config."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _write_key(folder / "id_ed25519", f"{USER}@lab")
    known = []
    for host in topology.hosts:
        public = _write_key(folder / f"{host.name}.key", f"root@{host.name}")
        known.append(f"{host.name},{host.address} {public}")
    (folder / "known_hosts").write_text("".join(f"{line}\n" for line in known), encoding="ascii")
    (folder / "config").write_text(config(topology, folder), encoding="ascii")


def config(topology: Topology, folder: Path = SSH) -> str:
    """Return the text of an OpenSSH client configuration that knows the hosts by name (ssh_config(5))."""
    hosts = [f"Host {host.name}\n    HostName {host.address}\n" for host in topology.hosts]
    everyone = {
        "User": USER,
        "IdentityFile": folder / "id_ed25519",
        "IdentitiesOnly": "yes",
        "UserKnownHostsFile": folder / "known_hosts",
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        "BatchMode": "yes",
    }
    return "".join(hosts) + "Host *\n" + "".join(f"    {key} {value}\n" for key, value in everyone.items())


def _write_key(path: Path, comment: str) -> str:
    """Write a new key (mode 0600) and its .pub, and return the public key's line."""
    key = ed25519.Ed25519PrivateKey.generate()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode("ascii")
    path.touch(mode=0o600)
    path.write_bytes(private)
    path.with_name(path.name + ".pub").write_text(f"{public} {comment}\n", encoding="ascii")
    return public
