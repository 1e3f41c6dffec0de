"""Where the lab keeps things: one folder while it is up, one folder that stays.

While up: ``/run/servicepath-lab``, a tmpfs of the lab's own that ``down`` unmounts, so nothing in it can be left behind.
Staying: ``$XDG_CACHE_HOME/servicepath-lab`` (``~/.cache/servicepath-lab``), programs, images and the last logs.
"""

import os
from pathlib import Path

LAB = Path(__file__).resolve().parent
PROJECT = LAB.parent

RUN = Path("/run/servicepath-lab")
INVENTORY = RUN / "inventory.yaml"
STATE = RUN / "state.json"
TIMINGS = RUN / "timings.json"
PKI = RUN / "pki"
SSH = RUN / "ssh"
ADMIN_KUBECONFIG = PKI / "admin.kubeconfig"
SUITE_KUBECONFIG = RUN / "kubeconfig.yaml"

# What the lab makes on this machine outside RUN carries this prefix: network namespaces and cgroups.
PREFIX = "servicepath-"
MACHINE_LEG = "servicepath0"
NETNS = Path("/run/netns")


def cache() -> Path:
    """Return the cache folder, which outlives the lab and the checkout."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "servicepath-lab"


def logs() -> Path:
    """Return the folder of the component logs of the lab that runs or ran last."""
    return cache() / "logs"


def node_folder(name: str) -> Path:
    """Return the folder with a host's private part of the file system, on the lab's tmpfs."""
    return RUN / "nodes" / name
