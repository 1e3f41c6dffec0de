"""The Kubernetes API: raw JSON, read side by side, kept as Observations.

Read-only, and no Secret is ever read; what Pods carry in their environment is taken out before anything is kept. The client
library is imported only when it is needed: its import takes most of a second.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import pathlib
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..fleet import side_by_side
from ..observation import CouldNotSee, NotRecorded, Observation, Trouble
from . import private

REQUEST_TIMEOUT = 10.0  # seconds; the API server answers in milliseconds, over a busy link in one or two seconds

# Name of the Observation → path. Read by one GET each.
PATHS: Mapping[str, str] = {
    "version": "/version",
    "services": "/api/v1/services",
    "endpointslices": "/apis/discovery.k8s.io/v1/endpointslices",
    "pods": "/api/v1/pods",
    "nodes": "/api/v1/nodes",
    "kube-system": "/api/v1/namespaces/kube-system",
    "servicecidrs": "/apis/networking.k8s.io/v1/servicecidrs",
    "networkpolicies": "/apis/networking.k8s.io/v1/networkpolicies",
    "ciliumnodes": "/apis/cilium.io/v2/ciliumnodes",
    "ciliumnetworkpolicies": "/apis/cilium.io/v2/ciliumnetworkpolicies",
    "ciliumclusterwidenetworkpolicies": "/apis/cilium.io/v2/ciliumclusterwidenetworkpolicies",
}
# Without these there is no cluster to judge.
_NEEDED = frozenset({"version", "services", "endpointslices", "pods", "nodes"})
AGENT_LABEL = ("k8s-app", "cilium")
# What an answer's HTTP status makes of it when the cluster need not have it: Cilium's types without Cilium, and ServiceCIDRs,
# which are there since Kubernetes 1.33 and which an older role does not name; kube-system's UID only tells clusters apart.
_DISPENSABLE: Mapping[str, tuple[int, ...]] = {
    "kube-system": (404, 403),
    "servicecidrs": (404, 403),
    **{name: (404,) for name in PATHS if name.startswith("cilium")},
}


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """One reading of the API.

    Attributes:
        observations: what was asked and what came; named as in ``PATHS``, and ``cilium-config``.
        documents: name → the JSON document as parse_kubernetes takes it; None for what the cluster does not have.
    """

    observations: tuple[Observation, ...]
    documents: Mapping[str, Any]


def connect(kubeconfig: Mapping[str, Any] | pathlib.Path | None, *, context: str | None) -> Any:
    """A client (``kubernetes.client.ApiClient``) from a kubeconfig.

    Args:
        kubeconfig: its content or file; None for $KUBECONFIG or ~/.kube/config.
        context: None for the current one.

    Raises:
        CouldNotSee: file absent, unreadable (k3s' own has mode 0600), or not a kubeconfig.
    """
    files = [] if isinstance(kubeconfig, Mapping) else _files(kubeconfig)
    if not isinstance(kubeconfig, Mapping):
        _check_files(files)
    import yaml
    from kubernetes import client as api
    from kubernetes import config

    loader: Any = config  # it has no annotations

    settings = api.Configuration()
    arguments = {"context": context, "client_configuration": settings, "persist_config": False}
    try:
        if isinstance(kubeconfig, Mapping):
            loader.load_kube_config_from_dict(config_dict=dict(kubeconfig), **arguments)
        else:
            # Named, since the library reads $KUBECONFIG once and for all when it is imported.
            loader.load_kube_config(config_file=os.pathsep.join(map(str, files)), **arguments)
    except (loader.ConfigException, yaml.YAMLError, ValueError, OSError) as wrong:
        raise CouldNotSee(Trouble(node="api", problem=f"the kubeconfig cannot be used: {' '.join(str(wrong).split())}")) from wrong
    except (TypeError, AttributeError, KeyError) as wrong:  # the library takes maps for granted
        raise CouldNotSee(Trouble(node="api", problem=f"the kubeconfig cannot be used: it is not built like one ({wrong})")) from wrong
    # One try a request: with the library's three retries an unreachable API would take four time-outs to say so.
    settings.retries = False
    settings.connection_pool_maxsize = 32  # all that the doctor asks at one time
    return api.ApiClient(settings)


def get(client: Any, name: str, path: str, *, timeout: float = REQUEST_TIMEOUT) -> Observation:
    """One GET. ``status`` is 0 for an answer of 2xx, else the HTTP status; standard error is then the server's message.

    What may be private is taken out of the answer before anything else sees it (private.py).

    Raises:
        CouldNotSee: no connection, TLS trouble or time out.
    """
    import urllib3.exceptions
    from kubernetes.client.exceptions import ApiException

    started, clock = time.time(), time.monotonic()
    request = client.param_serialize("GET", path, header_params={"Accept": "application/json"}, auth_settings=["BearerToken"])
    try:
        response = client.call_api(*request, _request_timeout=timeout)
        body = bytes(response.read() or b"")
    except (ApiException, urllib3.exceptions.HTTPError) as wrong:
        raise CouldNotSee(unreachable(client, path, wrong)) from wrong
    good = 200 <= response.status < 300
    return Observation(
        node="api", name=name, argv=("GET", path), status=0 if good else response.status, stdout=private.without(body),
        stderr=b"" if good else message(body).encode(), started=started, took=time.monotonic() - clock,
    )  # fmt: skip


def unreachable(client: Any, path: str, wrong: Exception) -> Trouble:
    """The Trouble of an API server that did not answer."""
    host = client.configuration.host
    text = str(wrong)
    if "EXPIRED" in text.upper():
        remedy = "a certificate has expired, the server's or the kubeconfig's own: renew it (and see that this machine's clock is right)"
    elif "CERTIFICATE" in text.upper():
        remedy = "the certificate is not for this address: is `server:` in the kubeconfig the right one (kubeconfig_from.server)?"
    elif "refused" in text:
        remedy = "is the API server running there, and is `server:` in the kubeconfig the address as seen from this machine?"
    else:
        remedy = "does this machine reach the address, and is the API server alive?"
    return Trouble(node="api", problem=f"no answer from {host}", command=f"GET {host}{path}", output=text, remedy=remedy)


def read_cluster(client: Any, *, timeout: float = REQUEST_TIMEOUT) -> Reading:
    """``read`` with a client (``kubernetes.client.ApiClient``)."""
    return read(functools.partial(get, client, timeout=timeout))


def read(ask: Callable[[str, str], Observation]) -> Reading:
    """Read all of ``PATHS`` side by side, then the ConfigMap cilium-config in the agents' namespace.

    Args:
        ask: does one GET, given the Observation's name and the path.

    A resource type that the cluster need not have, and does not have, is None; so is one for which an old recording's run did not ask.

    Raises:
        CouldNotSee: a request failed or was forbidden; the text names each that did.
    """
    jobs = {name: functools.partial(_asked, ask, name, path) for name, path in PATHS.items()}
    answers = {name: answer for name, answer in side_by_side(jobs).items() if answer}
    refused = {n: o for n, o in answers.items() if o.status and o.status not in _DISPENSABLE.get(n, ())}
    if refused:
        raise CouldNotSee(_refused(refused.values()))
    documents: dict[str, Any] = {}
    for name, answer in answers.items():
        documents[name] = None if answer.status else _document(answer)
    config = _cilium_config(functools.partial(_asked, ask), documents["pods"])
    documents["cilium-config"] = config and _document(config)
    return Reading((*answers.values(), *([config] if config else [])), documents)


def _asked(ask: Callable[[str, str], Observation], name: str, path: str) -> Observation | None:
    try:
        return ask(name, path)
    except NotRecorded:
        if name in _NEEDED:
            raise
        return None


def agent_namespaces(pods: Mapping[str, Any]) -> tuple[str, ...]:
    """The namespaces in which Pods carry the Cilium agent's label."""
    key, value = AGENT_LABEL
    mine = [item["metadata"] for item in pods["items"] or () if (item["metadata"].get("labels") or {}).get(key) == value]
    return tuple(sorted({metadata["namespace"] for metadata in mine}))


def _cilium_config(ask: Callable[[str, str], Observation | None], pods: Mapping[str, Any]) -> Observation | None:
    for namespace in agent_namespaces(pods):
        path = f"/api/v1/namespaces/{namespace}/configmaps/cilium-config"
        answer = ask("cilium-config", path)
        if answer is None or answer.status == 0:
            return answer
        if answer.status != 404:
            raise CouldNotSee(_refused([answer]))
    return None


def _document(answer: Observation) -> Any:
    try:
        document = json.loads(answer.stdout)
    except ValueError as wrong:
        problem = f"{answer.name}: the answer is no JSON ({wrong})"
        raise CouldNotSee(Trouble(node="api", problem=problem, command=answer.command, output=answer.text[:500])) from wrong
    if not isinstance(document, dict):
        problem = f"{answer.name}: the answer is no object"
        raise CouldNotSee(Trouble(node="api", problem=problem, command=answer.command, output=answer.text[:500]))
    return document


def _refused(answers: Iterable[Observation]) -> Trouble:
    answers = list(answers)
    what = ", ".join(f"{answer.argv[1]} ({answer.status})" for answer in answers)
    remedy = None
    if any(answer.status in (401, 403) for answer in answers):
        remedy = "give the kubeconfig's user the rights of docs/rights/rbac.yaml (401: are its credentials still good?)"
    return Trouble(
        node="api", problem=f"the API refused: {what}", command=f"kubectl get --raw {answers[0].argv[1]}",
        output="\n".join(answer.error_text for answer in answers), remedy=remedy,
    )  # fmt: skip


def message(body: bytes) -> str:
    """What the API server says in an answer that is no success."""
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode("utf-8", "replace")[:500]


def _files(named: pathlib.Path | None) -> list[pathlib.Path]:
    if named:
        return [named]
    listed = [pathlib.Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return listed or [pathlib.Path("~/.kube/config").expanduser()]


def _check_files(files: list[pathlib.Path]) -> None:
    there = [path for path in files if path.exists()]
    for path in there:
        try:
            path.open().close()
        except OSError as wrong:
            remedy = "run as a user who may read it, or let it be read over ssh: kubeconfig_from: {node: …, path: …}"
            raise CouldNotSee(Trouble(node="api", problem=f"kubeconfig: {wrong}", remedy=remedy)) from wrong
    if not there:
        remedy = "set kubeconfig: (or kubeconfig_from:) in the inventory, or $KUBECONFIG"
        raise CouldNotSee(Trouble(node="api", problem=f"no kubeconfig at {files[0]}", remedy=remedy))
