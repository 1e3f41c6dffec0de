"""kubeconfig files with everything in them, so that each can be copied anywhere."""

import base64
from ipaddress import IPv4Address
from pathlib import Path

import yaml

from lab.pki import Authority

API_PORT = 6443


def write(path: Path, authority: Authority, api: IPv4Address, file: str) -> None:
    """Write a kubeconfig, mode 0600, for the user whose certificate is FILE.crt in the authority's folder."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "servicepath-lab",
                "cluster": {"server": f"https://{api}:{API_PORT}", "certificate-authority-data": _encoded(authority.path)},
            }
        ],
        "users": [
            {
                "name": file,
                "user": {
                    "client-certificate-data": _encoded(authority.folder / f"{file}.crt"),
                    "client-key-data": _encoded(authority.folder / f"{file}.key"),
                },
            }
        ],
        "contexts": [{"name": "servicepath-lab", "context": {"cluster": "servicepath-lab", "user": file}}],
        "current-context": "servicepath-lab",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode("ascii")
