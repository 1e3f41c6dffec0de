"""The cluster's lock as a Lease (coordination.k8s.io/v1), renewed while it is held; a killed run's is free again after a minute.

Times are the API server's own, from the Date of its answers, so that no two machines' clocks are compared.
"""

from __future__ import annotations

import datetime
import email.utils
import json
import threading
from typing import Any

from ..experiments import api
from ..experiments.temporary_service import NAMESPACE
from ..observation import CouldNotSee, Trouble

NAME = "servicepath-nightly"
DURATION = 60  # seconds

_PATH = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
_FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"


class LeaseLock:
    """One Lease, ours to hold.

    Args:
        client: a ``kubernetes.client.ApiClient``.
        holder: who we are; it stands in the Lease.
        duration: seconds after which a Lease that is not renewed is free.
    """

    def __init__(self, client: Any, holder: str, duration: int = DURATION) -> None:
        self._client, self._holder, self._duration = client, holder, duration
        self._ended = threading.Event()
        self._renewing: threading.Thread | None = None

    def take(self) -> str | None:
        """Take it; None, or who has it.

        Raises:
            CouldNotSee: no right to it, no such namespace, or no answer.
        """
        status, lease, now = self._ask("GET", f"{_PATH}/{NAME}")
        if status == 404:
            made = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": NAME, "namespace": NAMESPACE}}
            status, lease, _ = self._ask("POST", _PATH, {**made, "spec": self._spec(now)})
        elif who := self._held(lease, now):
            return who
        else:
            status, lease, _ = self._ask("PUT", f"{_PATH}/{NAME}", {**lease, "spec": self._spec(now)})
        if status == 409:  # somebody was quicker
            return str((lease.get("spec") or {}).get("holderIdentity") or "a run that took it just now")
        self._renewing = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._renewing.start()
        return None

    def release(self) -> None:
        """Give it back, and stop renewing it; a Lease that cannot be given back frees itself."""
        self._ended.set()
        if self._renewing:
            self._renewing.join()
        self._write(None)

    def _renew(self) -> None:
        while not self._ended.wait(self._duration / 3):
            self._write(self._holder)

    def _write(self, holder: str | None) -> None:
        """Write it, as long as it is ours: one that we lost is somebody else's by now, and stays so."""
        try:
            _, lease, now = self._ask("GET", f"{_PATH}/{NAME}")
            if (lease.get("spec") or {}).get("holderIdentity") == self._holder:
                self._ask("PUT", f"{_PATH}/{NAME}", {**lease, "spec": {**self._spec(now), "holderIdentity": holder or ""}})
        except CouldNotSee:
            return  # the next renewal tries again, and without any it frees itself

    def _spec(self, now: datetime.datetime) -> dict[str, Any]:
        at = now.strftime(_FORMAT)
        return {"holderIdentity": self._holder, "leaseDurationSeconds": self._duration, "acquireTime": at, "renewTime": at}

    def _held(self, lease: Any, now: datetime.datetime) -> str | None:
        spec = lease.get("spec") or {}
        who, renewed = spec.get("holderIdentity"), spec.get("renewTime")
        if not who or not renewed:
            return None
        at = datetime.datetime.fromisoformat(renewed.replace("Z", "+00:00"))
        free = at + datetime.timedelta(seconds=spec.get("leaseDurationSeconds") or self._duration)
        return None if now >= free else str(who)

    def _ask(self, method: str, path: str, body: object = None) -> tuple[int, Any, datetime.datetime]:
        """HTTP status, the answer, and the API server's time."""
        import urllib3.exceptions
        from kubernetes.client.exceptions import ApiException

        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        request = self._client.param_serialize(method, path, header_params=headers, body=body, auth_settings=["BearerToken"])
        try:
            response = self._client.call_api(*request, _request_timeout=api.REQUEST_TIMEOUT)
            content = response.read() or b"{}"
        except (ApiException, urllib3.exceptions.HTTPError) as wrong:
            raise CouldNotSee(api.unreachable(self._client, path, wrong)) from wrong
        date = response.getheader("Date") if hasattr(response, "getheader") else None
        now = email.utils.parsedate_to_datetime(date) if date else datetime.datetime.now(datetime.UTC)
        found = json.loads(content)
        absent = response.status == 404 and (found.get("details") or {}).get("kind") == "namespaces"
        if response.status in (401, 403) or absent:
            remedy = "the optional part of docs/rights/rbac.yaml grants it"
            raise CouldNotSee(Trouble("api", f"no Lease in {NAMESPACE} ({response.status})", f"{method} {path}", remedy=remedy))
        return response.status, found, now
