"""Are a Service's ready endpoints exactly the ready Pods that its selector matches?

The expectation is the EndpointSlice controller's own (k8s.io/endpointslice v0.34.4): a Pod is ready when its Ready condition is
true and it is not being deleted; with publishNotReadyAddresses every matched Pod is. Endpoints are compared as sockets, so that
several slices of one Service may repeat one (the API allows it while endpoints move between slices).
"""

from __future__ import annotations

from collections.abc import Mapping

from .addresses import IPAddress, Socket
from .difference import Difference
from .services import ClusterObjects, Endpoint, Pod, Service, ServicePort


def not_judged(objects: ClusterObjects, service: Service) -> str | None:
    """Why the Service's endpoints cannot be compared with Pods: ExternalName, headless, no selector. None: they can be."""
    if service.type == "ExternalName":
        return f"{service.key} is an ExternalName Service: DNS answers with another name and there are no endpoints"
    if service.headless:
        return f"{service.key} is headless: it has no ClusterIP, and DNS names its Pods"
    if not service.selector:
        listed = ", ".join(sorted({endpoint.slice_name for endpoint in objects.endpoints_of(service)})) or "no EndpointSlice"
        return f"{service.key} has no selector: its endpoints are made by hand or by a controller of its own ({listed})"
    return None


def silent(objects: ClusterObjects, service: Service) -> str | None:
    """Why the EndpointSlices that were read could not have shown the opposite; None when they could.

    Pods that match, none of them ready, and yet no endpoint at all: not-ready Pods stand in a slice with ready=false, so the slices
    of this Service were not seen (or the controller does not work).
    """
    pods = [pod for pod in objects.selected_pods(service) if _addresses(service, pod)]
    if objects.endpoints_of(service) or not pods or any(_is_ready(service, pod) for pod in pods):
        return None
    return f"no EndpointSlice of {service.key} holds an endpoint, though its selector matches {len(pods)} Pods"


def judge_endpoints(objects: ClusterObjects, service: Service, port: ServicePort) -> tuple[Difference, ...]:
    """Compare the port's ready endpoints with the ready Pods that the Service's selector matches.

    Returns:
        One Difference for each ready endpoint that no ready Pod stands behind, and for each ready Pod that is no ready endpoint.
    """
    subject = f"{service.key}:{port.name or port.port}/{port.protocol}"
    seen, expected = _ready_endpoints(objects, service, port), _ready_pods(objects, service, port)
    wrong = [
        Difference(
            f"{subject}: endpoint {socket}",
            "is ready in an EndpointSlice, but no ready Pod that the selector matches has this address and port",
            _listed(expected),
            _why_no_pod(objects, service, port, socket),
            tuple(_line(endpoint) for endpoint in endpoints),
        )
        for socket, endpoints in sorted(seen.items(), key=lambda item: str(item[0]))
        if socket not in expected
    ]
    for socket, pod in sorted(expected.items(), key=lambda item: str(item[0])):
        if socket not in seen:
            others = [e for e in objects.endpoints_of(service) if e.ip == socket.ip]
            wrong.append(
                Difference(
                    f"{subject}: Pod {pod.key}",
                    "is ready and matched by the selector, but no ready endpoint",
                    f"{socket} with ready=true",
                    _listed(seen),
                    tuple(_line(endpoint) for endpoint in others),
                )
            )
    return tuple(wrong)


def describe(objects: ClusterObjects, service: Service) -> tuple[str, ...]:
    """The Service's endpoints and the Pods that its selector matches, one line each, as evidence."""
    selector = ", ".join(f"{key}={value}" for key, value in sorted((service.selector or {}).items()))
    pods = (f"Pod {p.key} {_states(p)} {' '.join(map(str, p.ips))}" for p in objects.selected_pods(service))
    return (*map(_line, objects.endpoints_of(service)), f"selector {selector}", *pods)


def _ready_endpoints(objects: ClusterObjects, service: Service, port: ServicePort) -> Mapping[Socket, list[Endpoint]]:
    """The port's endpoints with ready=true (or not said, which the API defines as ready), each with where it is listed."""
    found: dict[Socket, list[Endpoint]] = {}
    for endpoint in objects.endpoints_of(service):
        number = endpoint.ports.get((port.name, port.protocol))
        if endpoint.ready is not False and number is not None:
            found.setdefault(Socket(endpoint.ip, number), []).append(endpoint)
    return found


def _ready_pods(objects: ClusterObjects, service: Service, port: ServicePort) -> Mapping[Socket, Pod]:
    """Where the port's ready Pods listen; a Pod without a container port of the target's name has no such socket."""
    found: dict[Socket, Pod] = {}
    for pod in objects.selected_pods(service):
        number = port.number_on(pod)
        if number is not None and _is_ready(service, pod):
            found.update({Socket(ip, number): pod for ip in _addresses(service, pod)})
    return found


def _is_ready(service: Service, pod: Pod) -> bool:
    return service.publish_not_ready or (pod.ready and not pod.terminating)


def _addresses(service: Service, pod: Pod) -> tuple[IPAddress, ...]:
    """The Pod's addresses of the Service's families."""
    return tuple(ip for ip in pod.ips if not service.families or ip.version in service.families)


def _why_no_pod(objects: ClusterObjects, service: Service, port: ServicePort, socket: Socket) -> str:
    """What is known of the Pods with this address."""
    pods = [pod for pod in objects.pods if socket.ip in pod.ips]
    if not pods:
        return f"no Pod has the address {socket.ip}"
    return "; ".join(_why_not(service, port, pod) for pod in pods)


def _why_not(service: Service, port: ServicePort, pod: Pod) -> str:
    if not service.selects(pod):
        return f"Pod {pod.key} is not matched by the selector"
    if not _is_ready(service, pod):
        return f"Pod {pod.key} is {_states(pod)}"
    return f"Pod {pod.key} ({_states(pod)}) has the port at {port.number_on(pod) or 'no number'}"


def _states(pod: Pod) -> str:
    return " ".join([pod.phase, "ready" if pod.ready else "not ready", *(["terminating"] if pod.terminating else [])])


def _line(endpoint: Endpoint) -> str:
    """One endpoint as evidence."""
    ports = ", ".join(f"{name or ''}{':' if name else ''}{number}/{proto}" for (name, proto), number in endpoint.ports.items())
    said = (("ready", endpoint.ready), ("serving", endpoint.serving), ("terminating", endpoint.terminating))
    conditions = " ".join(f"{name}={str(value).lower()}" for name, value in said if value is not None)
    target = f" Pod {endpoint.pod}" if endpoint.pod else ""
    return f"EndpointSlice {endpoint.namespace}/{endpoint.slice_name}: {endpoint.ip} {ports} {conditions}{target}"


def _listed(sockets: Mapping[Socket, object]) -> str:
    return ", ".join(map(str, sorted(sockets, key=str))) or "none"
