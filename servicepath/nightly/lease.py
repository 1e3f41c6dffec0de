"""The cluster's lock as a Lease (coordination.k8s.io/v1), renewed while it is held; a killed run's is free again after a minute.

Times are the API server's own, from the Date of its answers, so that no two machines' clocks are compared. The fields mean what they
mean to every holder of a Lease: acquireTime is of the taking alone, a renewal moves renewTime, a change of holders counts as one of
leaseTransitions, and nobody holds a Lease without holderIdentity.

The night renews it, and no other process can: of a night that is killed the last renewal is a third of its time old at most, and its
suite ends within half a minute (suite.py), before the Lease is free.
"""

from __future__ import annotations

import datetime
import email.utils
import json
import threading
import time
from typing import Any

from ..experiments import api
from ..experiments.temporary_service import NAMESPACE
from ..observation import CouldNotSee, Trouble

NAME = "servicepath-nightly"
DURATION = 60  # seconds

_PATH = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
_FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"


class NoRight(CouldNotSee):
    """This user may not have a Lease there, or there is no such namespace: no trouble, but how the cluster is set up."""


class LeaseLock:
    """One Lease, ours to hold.

    Args:
        client: a ``kubernetes.client.ApiClient``.
        holder: who we are; it stands in the Lease.
        duration: seconds after which a Lease that is not renewed is free.
    """

    def __init__(self, client: Any, holder: str, duration: float = DURATION) -> None:
        self._client, self._holder, self._duration = client, holder, duration
        self._ended = threading.Event()
        self._renewing: threading.Thread | None = None
        self._lost: str | None = None

    def take(self) -> str | None:
        """Take it; None, or who has it.

        Raises:
            NoRight: no right to it, or no such namespace.
            CouldNotSee: no answer, or another one than a Lease or who has it.
        """
        begun = time.monotonic()
        status, lease, now = self._ask("GET", f"{_PATH}/{NAME}", good=(200, 404))
        at = _micro(now)
        spec = {"holderIdentity": self._holder, "leaseDurationSeconds": self._duration, "acquireTime": at, "renewTime": at}
        if status == 404:
            made = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": NAME, "namespace": NAMESPACE}}
            status, lease, _ = self._ask("POST", _PATH, {**made, "spec": spec}, good=(200, 201, 409))
        elif who := self._held(lease, now):
            return who
        else:
            spec["leaseTransitions"] = (_spec_of(lease).get("leaseTransitions") or 0) + 1
            status, lease, _ = self._ask("PUT", f"{_PATH}/{NAME}", {**lease, "spec": {**_spec_of(lease), **spec}}, good=(200, 201, 409))
        if status == 409:  # somebody was quicker
            return str(_spec_of(lease).get("holderIdentity") or "a run that took it just now")
        self._renewing = threading.Thread(target=self._renew, args=(begun + self._duration,), name="lease", daemon=True)
        self._renewing.start()
        return None

    def release(self) -> None:
        """Give it back, and stop renewing it; a Lease that cannot be given back frees itself."""
        self._ended.set()
        if self._renewing:
            self._renewing.join()
        try:
            self._write({"holderIdentity": ""})
        except CouldNotSee:
            return  # which is said nowhere: without renewals it is free in a minute

    def descriptors(self) -> tuple[int, ...]:
        """It is held by renewing it alone."""
        return ()

    def lost(self) -> str | None:
        """What became of it while we held it."""
        return self._lost

    def _renew(self, until: float) -> None:
        """Renew it, well before ``until`` (monotonic clock), at which it is free; what goes wrong is tried again until then."""
        pause = self._duration / 3
        while not self._ended.wait(pause):
            begun = time.monotonic()
            try:
                other = self._write({})
            except CouldNotSee as unseen:
                if time.monotonic() >= until:
                    self._lost = f"it could not be renewed: {unseen.trouble.problem}"
                    return
                pause = min(self._duration / 12, max(until - time.monotonic(), 0.0))
                continue
            if other is not None:
                self._lost = other
                return
            until, pause = begun + self._duration, self._duration / 3

    def _write(self, changes: dict[str, str]) -> str | None:
        """Renew it with these changes, as long as it is ours: one that we lost is somebody else's by now, and stays so.

        Returns:
            None, or whose it is.

        Raises:
            CouldNotSee: as _ask; or it was changed by somebody in the same moment.
        """
        status, lease, now = self._ask("GET", f"{_PATH}/{NAME}", good=(200, 404))
        if status == 404:
            return "it was removed"
        spec = _spec_of(lease)
        if spec.get("holderIdentity") != self._holder:
            return f"taken by {spec.get('holderIdentity') or 'nobody'}"
        self._ask("PUT", f"{_PATH}/{NAME}", {**lease, "spec": {**spec, "renewTime": _micro(now), **changes}}, good=(200, 201))
        return None

    def _held(self, lease: Any, now: datetime.datetime) -> str | None:
        spec = _spec_of(lease)
        who, renewed = spec.get("holderIdentity"), spec.get("renewTime")
        if not who or not renewed:
            return None
        try:
            at = datetime.datetime.fromisoformat(renewed.replace("Z", "+00:00"))
            free = at + datetime.timedelta(seconds=spec.get("leaseDurationSeconds") or self._duration)
            return None if now >= free else str(who)
        except (ValueError, TypeError, AttributeError) as wrong:
            raise CouldNotSee(Trouble("api", f"the Lease {NAMESPACE}/{NAME} has no times that can be read: {wrong}")) from wrong

    def _ask(self, method: str, path: str, body: object = None, *, good: tuple[int, ...]) -> tuple[int, Any, datetime.datetime]:
        """HTTP status, the answer, and the API server's time.

        Raises:
            NoRight: no right, or no such namespace.
            CouldNotSee: no answer, no JSON, or another status than the good ones.
        """
        import urllib3.exceptions
        from kubernetes.client.exceptions import ApiException

        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        request = self._client.param_serialize(method, path, header_params=headers, body=body, auth_settings=["BearerToken"])
        try:
            response = self._client.call_api(*request, _request_timeout=api.REQUEST_TIMEOUT)
            content = response.read() or b"{}"
        except (ApiException, urllib3.exceptions.HTTPError) as wrong:
            raise CouldNotSee(api.unreachable(self._client, path, wrong)) from wrong
        found = _document(content) if response.status in (*good, 404) else None
        absent = response.status == 404 and _of_namespace(found)
        if response.status == 403 or absent:
            remedy = "the optional part of docs/rights/rbac.yaml grants it"
            raise NoRight(Trouble("api", f"no Lease in {NAMESPACE} ({response.status})", f"{method} {path}", remedy=remedy))
        if response.status not in good or found is None:
            said = " ".join(api.message(content).split())[:300] if response.status not in good else "expected a JSON object"
            raise CouldNotSee(Trouble("api", f"the API answered {method} {path} with HTTP {response.status}: {said}"))
        return response.status, found, _time_of(response)


def _document(content: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _of_namespace(status: dict[str, Any] | None) -> bool:
    """Whether it is the namespace that is not there."""
    details = (status or {}).get("details")
    return isinstance(details, dict) and details.get("kind") == "namespaces"


def _spec_of(lease: Any) -> dict[str, Any]:
    spec = lease.get("spec")
    return spec if isinstance(spec, dict) else {}


def _micro(at: datetime.datetime) -> str:
    """As the API wants a MicroTime: six digits behind the second."""
    return at.strftime(_FORMAT)


def _time_of(response: Any) -> datetime.datetime:
    """The server's clock; ours where a proxy took its Date away, or made nonsense of it."""
    date = response.getheader("Date") if hasattr(response, "getheader") else None
    try:
        at = email.utils.parsedate_to_datetime(date) if date else None
    except ValueError:
        at = None
    return at if at and at.tzinfo else datetime.datetime.now(datetime.UTC)
