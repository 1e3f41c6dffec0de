"""Cilium by its own Helm chart: rendered to bring the lab up, and afterwards changed as any user changes a release."""

from collections.abc import Mapping

from lab import cgroups
from lab.builds import Module
from lab.paths import ADMIN_KUBECONFIG
from lab.process import run
from lab.settings import Settings
from lab.templates import render
from lab.topology import Topology

RELEASE = "cilium"
NAMESPACE = ("--namespace", "kube-system")
CHART = "install/kubernetes/cilium"
UPGRADE_TIMEOUT = 180.0  # seconds; Helm waits for nothing here, and takes some five


def definitions(cilium: Module) -> str:
    """Return Cilium's own resource definitions: applied first, no agent has to wait for the operator to bring them."""
    folder = cilium.assets / "pkg/k8s/apis/cilium.io/client/crds"
    return "\n---\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.yaml")))


def values(topology: Topology, images: Mapping[str, str], settings: Settings) -> str:
    """Return the chart's values for a set-up, with the images' names."""
    return render("cilium-values.yaml.j2", topology=topology, images=images, settings=settings, cgroup_root=cgroups.unified())


def rendered(modules: Mapping[str, Module], said: str) -> str:
    """Return the chart, rendered by Helm with the values; the quicker way to a first installation."""
    helm, chart = modules["helm"].program("helm"), modules["cilium"].assets / CHART
    version = modules["kubernetes"].version.removeprefix("v")
    return run([helm, "template", RELEASE, chart, *NAMESPACE, "--kube-version", version, "--values", "-"], stdin=said)


def upgrade(helm: Module, cilium: Module, said: str) -> None:
    """Bring the running release to a version's chart with the values; the first time Helm adopts what ``up`` has applied.

    Raises:
        LabError: Helm failed; the message has its words.
    """
    options = ["--install", "--take-ownership", "--reset-values", *NAMESPACE, "--kubeconfig", str(ADMIN_KUBECONFIG), "--values", "-"]
    run([helm.program("helm"), "upgrade", RELEASE, cilium.assets / CHART, *options], stdin=said, timeout=UPGRADE_TIMEOUT)
