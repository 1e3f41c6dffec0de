"""A Service of our own, made and removed: opt-in, in a namespace of its own, named so that leftovers are found.

It has no selector; its one EndpointSlice names a backend that already serves the Service under test, so that no Pod is made.
"""

from __future__ import annotations

import contextlib
import dataclasses
import email.utils
import ipaddress
import secrets
from collections.abc import Callable, Iterator
from typing import Any

from ..model.addresses import IPAddress, Socket
from ..observation import CouldNotSee, Trouble

# The namespace for which docs/rights/rbac.yaml grants creation and deletion, and nothing outside it.
NAMESPACE = "servicepath-test"

# Every object carries it; what an interrupted run left behind is removed by the next one that creates something.
LABEL = {"app.kubernetes.io/managed-by": "servicepath"}

# Seconds for which a run's own Service may be there: two waits of 30 s for the dataplanes, and looks that take their whole time-out.
OLDEST = 300

# The one port of the Service.
PORT = 53535


@dataclasses.dataclass(frozen=True, slots=True)
class TemporaryService:
    """What was made: its ClusterIP, its one endpoint, and the protocol of its one port (PORT)."""

    vip: IPAddress
    backend: Socket
    protocol: str


def fresh_name() -> str:
    """A name that no other run uses."""
    return f"servicepath-{secrets.token_hex(4)}"


@contextlib.contextmanager
def _refusals(what: str) -> Iterator[None]:
    """Turn the API's refusal or silence into CouldNotSee."""
    from kubernetes import client as api
    from urllib3.exceptions import HTTPError

    try:
        yield
    except api.ApiException as error:
        remedy = "the optional part of docs/rights/rbac.yaml grants this" if error.status in (403, 404) else None
        problem = f"cannot {what}: {error.status} {error.reason}"
        raise CouldNotSee(Trouble("api", problem, output=str(error.body or ""), remedy=remedy)) from error
    except HTTPError as error:
        raise CouldNotSee(Trouble("api", f"cannot {what}: {error}")) from error


def create(client: Any, name: str, backend: Socket, protocol: str) -> TemporaryService:
    """Create the EndpointSlice, then the Service, so that the Service never stands without an endpoint.

    Args:
        client: a kubernetes ApiClient.
        name: of both objects.
        backend: where its endpoint is.
        protocol: UDP or TCP, as the backend speaks.

    Returns:
        It, with the ClusterIP that the API server gave it.

    Raises:
        CouldNotSee: refused (rights, quota, admission), or no answer.
    """
    from kubernetes import client as api

    metadata = {"name": name, "namespace": NAMESPACE, "labels": LABEL}
    slice_: Any = {
        "metadata": {**metadata, "labels": {**LABEL, "kubernetes.io/service-name": name}},
        "addressType": f"IPv{backend.ip.version}",
        "ports": [{"name": "probe", "protocol": protocol, "port": backend.port}],
        "endpoints": [{"addresses": [str(backend.ip)], "conditions": {"ready": True}}],
    }
    service: Any = {
        "metadata": metadata,
        "spec": {"ports": [{"name": "probe", "protocol": protocol, "port": PORT, "targetPort": backend.port}]},
    }
    with _refusals(f"create the temporary Service in namespace {NAMESPACE}"):
        api.DiscoveryV1Api(client).create_namespaced_endpoint_slice(NAMESPACE, slice_)
        made: Any = api.CoreV1Api(client).create_namespaced_service(NAMESPACE, service)
    return TemporaryService(ipaddress.ip_address(made.spec.cluster_ip), backend, protocol)


def delete(client: Any, name: str) -> None:
    """Delete the Service and its EndpointSlice; what is already gone is no error.

    Raises:
        CouldNotSee: refused for another reason than absence, or no answer; the other of the two was then tried, too.
    """
    from kubernetes import client as api

    removals = api.CoreV1Api(client).delete_namespaced_service, api.DiscoveryV1Api(client).delete_namespaced_endpoint_slice
    with contextlib.ExitStack() as both:
        for remove in reversed(removals):  # the last called back is the first
            both.callback(_delete, remove, name)


def _delete(remove: Callable[[str, str], object], name: str) -> None:
    from kubernetes import client as api

    with _refusals(f"delete {name} in namespace {NAMESPACE}"):
        try:
            remove(name, NAMESPACE)
        except api.ApiException as error:
            if error.status != 404:
                raise


def delete_leftovers(client: Any) -> tuple[str, ...]:
    """Delete what an interrupted run left in the namespace, and return the names.

    What is younger than OLDEST may be that of another run, which goes on; age is counted by the API server's own clock (its answer's
    Date). Without that, and without a creationTimestamp, nothing can be told to be old, and nothing is deleted.
    """
    from kubernetes import client as api

    selector = ",".join(f"{key}={value}" for key, value in LABEL.items())
    with _refusals(f"look for leftovers in namespace {NAMESPACE}"):
        found: Any = api.CoreV1Api(client).list_namespaced_service_with_http_info(NAMESPACE, label_selector=selector)
        services, _, headers = found
        slices: Any = api.DiscoveryV1Api(client).list_namespaced_endpoint_slice(NAMESPACE, label_selector=selector)
    date = next((value for key, value in (headers or {}).items() if key.lower() == "date"), None)
    now = email.utils.parsedate_to_datetime(date) if date else None
    made = {str(item.metadata.name): item.metadata.creation_timestamp for item in (*slices.items, *services.items)}
    names = sorted(name for name, at in made.items() if now and at and (now - at).total_seconds() > OLDEST)
    for name in names:
        delete(client, name)
    return tuple(names)
