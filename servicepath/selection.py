"""What a run looks at: Services, nodes and client Pods, from the options, the inventory and the API."""

from __future__ import annotations

import collections
import dataclasses
import pathlib
from collections.abc import Iterable, Sequence

from .inventory import Inventory
from .model.services import ClusterObjects, Node, Pod, Policy, Service, ServicePort

_DNS_LABEL = ("k8s-app", "kube-dns")
_DNS_PORT = 53


class SelectionError(Exception):
    """Something was named that the cluster does not have; the text is one line."""


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """What was said on the command line.

    Attributes:
        inventory: --inventory.
        services: --service, ``namespace/name``.
        nodes: --node.
        pods: --pod, ``namespace/name``.
        passive: no traffic, capture or exec.
        disruptive: what creates or breaks something may run.
        deadline: --deadline in seconds, None for the inventory's.
    """

    inventory: pathlib.Path | None = None
    services: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()
    passive: bool = False
    disruptive: bool = False
    deadline: float | None = None


def select_nodes(objects: ClusterObjects, options: Options, inventory: Inventory) -> tuple[Node, ...]:
    """The nodes to judge: --node's, else the inventory's, else all of the API's.

    Raises:
        SelectionError: one is not in the cluster.
    """
    names = options.nodes or tuple(inventory.nodes) or tuple(node.name for node in objects.nodes)
    there = {node.name: node for node in objects.nodes}
    _all_there("node", names, there, _source(options.nodes, "--node", inventory))
    return tuple(there[name] for name in dict.fromkeys(names))


def select_services(objects: ClusterObjects, options: Options, inventory: Inventory) -> tuple[Service, ...]:
    """The Services under test: --service's, else the inventory's, else the cluster's DNS Service.

    Raises:
        SelectionError: one is not in the cluster, or no DNS Service can be told.
    """
    names = options.services or inventory.services
    if not names:
        return (_dns_service(objects),)
    there = {service.key: service for service in objects.services}
    _all_there("Service", names, there, _source(options.services, "--service", inventory))
    chosen = [there[name] for name in dict.fromkeys(names)]
    called = collections.Counter(service.name for service in chosen)
    return tuple(_ambiguous(service) if called[service.name] > 1 else service for service in chosen)


def _ambiguous(service: Service) -> Service:
    """The Service with ports whose ids name its namespace."""
    return dataclasses.replace(service, ports=tuple(dataclasses.replace(port, ambiguous=True) for port in service.ports))


def client_pods(
    objects: ClusterObjects, options: Options, inventory: Inventory, services: Sequence[Service]
) -> dict[str, Pod | None]:
    """Node → the Pod whose traffic is looked at; None where there is none.

    A Pod named on the command line or in the inventory counts for its node, and --pod leaves the other nodes without one. Else:
    a Ready Pod with a network of its own that is no backend of a Service under test, no svclb Pod of k3s', and that no policy
    limits in its egress; one outside kube-system is preferred, then by name.

    Raises:
        SelectionError: a named Pod is not there or has the node's network; one named by --pod is not Ready. In place of one that
            only the inventory names and that is not Ready another of its node is taken.
    """
    named = _named_pods(objects, options, inventory)
    found: dict[str, Pod | None] = {node.name: None for node in objects.nodes}
    if not options.pods:
        backends = {endpoint.ip for service in services for endpoint in objects.endpoints_of(service)}
        for pod in sorted(objects.pods, key=lambda pod: (pod.namespace == "kube-system", pod.key), reverse=True):
            if pod.node_name in found and _is_client(pod) and not backends & set(pod.ips) and not _limited(pod, objects.policies):
                found[pod.node_name] = pod
    return found | {pod.node_name: pod for pod in named if pod.node_name}


def speaks(port: ServicePort, inventory: Inventory) -> str | None:
    """What to send to a port: "dns", "tcp" (a connect), or None when nothing can be said to it."""
    said = inventory.probes.get(f"{port.namespace}/{port.service}", {})
    chosen = said.get(port.name or "") or said.get(str(port.port))
    if chosen:
        return chosen
    dns = port.port == _DNS_PORT or (port.name or "").startswith("dns")
    if dns and port.protocol in ("UDP", "TCP"):
        return "dns"
    return "tcp" if port.protocol == "TCP" else None


def _dns_service(objects: ClusterObjects) -> Service:
    key, value = _DNS_LABEL
    served = [s for s in objects.services if s.cluster_ips and any(port.port == _DNS_PORT for port in s.ports)]
    labelled = [s for s in served if s.labels.get(key) == value]
    # Several may carry the label (a copy for monitoring, NodeLocal DNSCache's upstream): the one of the usual name first.
    wanted = sorted(labelled or [s for s in served if s.namespace == "kube-system"], key=lambda s: (s.name != "kube-dns", s.key))
    if not wanted:
        raise SelectionError("no DNS Service in the cluster (label k8s-app=kube-dns, or port 53 in kube-system): name one with --service")
    return wanted[0]


def _named_pods(objects: ClusterObjects, options: Options, inventory: Inventory) -> list[Pod]:
    names = options.pods or inventory.pods
    there = {pod.key: pod for pod in objects.pods}
    _all_there("Pod", names, there, _source(options.pods, "--pod", inventory))
    named = [there[name] for name in names]
    for pod in named:
        if pod.host_network:
            raise SelectionError(f"Pod {pod.key} has the node's network (hostNetwork): it is no client Pod")
        if options.pods and not (pod.ready and pod.node_name):
            raise SelectionError(f"Pod {pod.key} is not Ready ({pod.phase}): it cannot be a client Pod")
    # The inventory's names stand for many runs: where a Pod, or its whole node, is down now, the rest of the cluster is looked at.
    return [pod for pod in named if pod.ready]


def _is_client(pod: Pod) -> bool:
    svclb = "svccontroller.k3s.cattle.io/svcname" in pod.labels or pod.name.startswith("svclb-")
    return pod.ready and not pod.terminating and not pod.host_network and bool(pod.ips) and not svclb


def _limited(pod: Pod, policies: Iterable[Policy]) -> bool:
    return any(policy.limits_egress and _selects(policy, pod) for policy in policies)


def _selects(policy: Policy, pod: Pod) -> bool:
    if policy.namespace not in (None, pod.namespace):
        return False
    return policy.match_labels is None or policy.match_labels.items() <= pod.labels.items()


def _source(said: Sequence[str], option: str, inventory: Inventory) -> str:
    return option if said else str(inventory.file)


def _all_there(kind: str, names: Iterable[str], there: Iterable[str], source: str) -> None:
    there = sorted(there)
    for name in names:
        if name not in there:
            few = ", ".join(there[:12]) + (", …" if len(there) > 12 else "")
            raise SelectionError(f"{source}: no {kind} {name} in the cluster; there are: {few or 'none'}")
