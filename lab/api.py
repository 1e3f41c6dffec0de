"""The Kubernetes API as the lab itself uses it, as the administrator: a few reads and server-side apply, over one connection.

kubectl would do, but it takes longer to start than the API takes to answer, and the lab asks often while it waits.
"""

import http.client
import json
import ssl
from collections.abc import Iterable, Mapping
from functools import cache as remember
from pathlib import Path
from typing import Any

import yaml

from lab.errors import LabError
from lab.kubeconfig import API_PORT
from lab.paths import PKI
from lab.topology import Topology

FIELD_MANAGER = "servicepath-lab"
TIMEOUT = 60.0  # seconds for one answer: on a busy machine a server that has just started takes more than ten over a write


class ApiError(LabError):
    """The API did not answer, or answered with an error; ``code`` is the HTTP status, 0 where there was none."""

    def __init__(self, message: str, code: int = 0):
        super().__init__(message)
        self.code = code


class Api:
    """A connection to the lab's API server; not for use by several threads at a time.

    Raises:
        LabError: there is no lab.
    """

    def __init__(self, topology: Topology, pki: Path = PKI):
        self._host = str(topology.master.address)
        try:
            self._context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
            self._context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        except (FileNotFoundError, NotADirectoryError) as error:
            raise LabError("the lab is not up: python -m lab up") from error
        self._connection: http.client.HTTPSConnection | None = None
        self._resources = remember(self._read_resources)

    def get(self, path: str) -> Any:
        """Return what the API has at a path, decoded from JSON.

        Raises:
            ApiError: no answer, or not 200.
        """
        return json.loads(self._request("GET", path))

    def ready(self) -> str | None:
        """Return None if the API server says that it is ready, else what it says."""
        try:
            said = self._request("GET", "/readyz")
        except ApiError as error:
            return str(error)
        return None if said == b"ok" else said.decode("utf-8", errors="replace")

    def apply(self, manifest: str) -> int:
        """Apply every document of a YAML text on the server's side, in their order, and return their number.

        Raises:
            ApiError: an object was refused; the message names it.
        """
        documents = [document for document in yaml.load_all(manifest, Loader=_LOADER) if document]
        for document in documents:
            path = f"{self._path(document)}?fieldManager={FIELD_MANAGER}&force=true"
            self._request("PATCH", path, json.dumps(document), {"Content-Type": "application/apply-patch+yaml"})
        return len(documents)

    def patch(self, path: str, change: Mapping[str, Any]) -> None:
        """Change an object by a strategic merge patch.

        Raises:
            ApiError: the API refused.
        """
        self._request("PATCH", path, json.dumps(change), {"Content-Type": "application/strategic-merge-patch+json"})

    def create(self, path: str, document: Mapping[str, Any]) -> None:
        """Create an object in the collection at a path; several times as fast as ``apply``.

        Raises:
            ApiError: it was refused, or is there already.
        """
        self._request("POST", path, json.dumps(document), {"Content-Type": "application/json"})

    def serves(self, root: str, resource: str) -> bool:
        """Tell whether the API has a resource by now, such as "ciliumnodes" below "/apis/cilium.io/v2"."""
        try:
            return any(item["name"] == resource for item in self._read_resources(root))
        except ApiError as error:
            if error.code == http.client.NOT_FOUND:
                return False
            raise

    def _path(self, document: Mapping[str, Any]) -> str:
        version, kind, metadata = document["apiVersion"], document["kind"], document["metadata"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        for resource in self._resources(root):
            if resource["kind"] == kind and "/" not in resource["name"]:
                space = f"/namespaces/{metadata.get('namespace', 'default')}" if resource["namespaced"] else ""
                return f"{root}{space}/{resource['name']}/{metadata['name']}"
        raise ApiError(f"the API has no kind {kind} in {version}")

    def _read_resources(self, root: str) -> Iterable[Mapping[str, Any]]:
        return list(self.get(root)["resources"])

    def _request(self, method: str, path: str, body: str | None = None, headers: Mapping[str, str] | None = None) -> bytes:
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(self._host, API_PORT, timeout=TIMEOUT, context=self._context)
        try:
            self._connection.request(method, path, body, dict(headers or {}))
            answer = self._connection.getresponse()
            said = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            self._connection = None
            raise ApiError(f"{method} https://{self._host}:{API_PORT}{path}: {error or type(error).__name__}") from error
        if answer.status not in (200, 201):
            raise ApiError(f"{method} {path}: {answer.status} {said.decode('utf-8', errors='replace')[:1000]}", answer.status)
        return said


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # Cilium's definitions are long: the C parser is ten times as fast
