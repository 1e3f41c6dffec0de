"""The temporary Service is made, deleted whatever happens, and only one's own."""

import datetime
import http.server
import ipaddress
import json
import threading

import pytest
from judging import fact

from fixtures import disruption, following
from selftests import traffic_recording as recording
from servicepath.cluster import LiveCluster
from servicepath.deadline import Deadline
from servicepath.experiments import temporary_service
from servicepath.model.addresses import Socket
from servicepath.observation import CouldNotSee

VIP = ipaddress.ip_address("10.43.77.7")
BACKEND = Socket(ipaddress.ip_address("10.42.1.145"), 53)
MADE = temporary_service.TemporaryService(VIP, BACKEND, "UDP")


@pytest.fixture
def api():
    """A client of an API server that keeps what is posted, and refuses what ``refused`` names by method and kind."""
    from kubernetes import client

    kept, refused, asked = {}, {}, []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def _any(self):
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size) or b"{}")
            path = self.path.partition("?")[0]
            kind = "services" if "/services" in path else "endpointslices"
            asked.append((self.command, kind))
            status, said_back = refused.get((self.command, kind)), {"kind": "Status", "message": "no"}
            if status is None:
                status, said_back = self._keep(path, kind, body)
            text = json.dumps(said_back).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def _keep(self, path, kind, body):
            if self.command == "POST":
                body["spec" if kind == "services" else "metadata"] |= {"clusterIP": str(VIP)} if kind == "services" else {}
                kept[kind, body["metadata"]["name"]] = body
                return 201, body
            if self.command == "DELETE":
                return (200, {}) if kept.pop((kind, path.rpartition("/")[2]), None) else (404, {})
            return 200, {"items": [item for (k, _), item in kept.items() if k == kind]}

        do_GET = do_POST = do_DELETE = _any

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        configuration = client.Configuration(host=f"http://127.0.0.1:{server.server_port}")
        configuration.retries = False
        made = client.ApiClient(configuration)
        made.kept, made.refused, made.asked = kept, refused, asked
        yield made
        server.shutdown()
        thread.join()


def test_a_temporary_service_is_made_with_its_endpoint_first_and_deleted_itself_first(api):
    name = temporary_service.fresh_name()

    assert temporary_service.create(api, name, BACKEND, "UDP") == MADE
    slice_ = api.kept["endpointslices", name]
    assert slice_["endpoints"] == [{"addresses": [str(BACKEND.ip)], "conditions": {"ready": True}}]
    assert slice_["metadata"]["labels"]["kubernetes.io/service-name"] == name
    assert api.kept["services", name]["spec"]["ports"] == [
        {"name": "probe", "protocol": "UDP", "port": temporary_service.PORT, "targetPort": 53}
    ]
    assert "selector" not in api.kept["services", name]["spec"]

    temporary_service.delete(api, name)
    temporary_service.delete(api, name)  # what is gone is no error

    assert api.kept == {}
    assert api.asked[:4] == [("POST", "endpointslices"), ("POST", "services"), ("DELETE", "services"), ("DELETE", "endpointslices")]


def test_what_an_interrupted_run_left_is_deleted(api):
    names = sorted(temporary_service.fresh_name() for _ in range(2))
    for name in names:
        temporary_service.create(api, name, BACKEND, "TCP")
        made_before(api, name, temporary_service.OLDEST + 60)
    api.kept.pop(("services", names[0]))

    assert temporary_service.delete_leftovers(api) == tuple(names)
    assert api.kept == {}


def test_what_another_run_has_just_made_is_left_to_it(api):
    young, unknown = temporary_service.fresh_name(), temporary_service.fresh_name()
    for name in (young, unknown):
        temporary_service.create(api, name, BACKEND, "TCP")
    made_before(api, young, 40)

    assert temporary_service.delete_leftovers(api) == ()
    assert {name for _, name in api.kept} == {young, unknown}


def made_before(api, name, seconds):
    """Let the API server have made both objects so long ago."""
    at = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=seconds)
    for kind in ("services", "endpointslices"):
        api.kept[kind, name]["metadata"]["creationTimestamp"] = at.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_refusal_names_the_right_that_is_missing(api):
    api.refused["POST", "services"] = 403

    with pytest.raises(CouldNotSee, match="cannot create the temporary Service in namespace servicepath-test: 403") as refused:
        temporary_service.create(api, "servicepath-1", BACKEND, "UDP")
    assert "rbac.yaml" in refused.value.trouble.remedy


def test_one_object_that_cannot_be_deleted_does_not_keep_the_other(api):
    temporary_service.create(api, "servicepath-1", BACKEND, "UDP")
    api.refused["DELETE", "services"] = 500

    with pytest.raises(CouldNotSee, match="cannot delete servicepath-1"):
        temporary_service.delete(api, "servicepath-1")
    assert set(api.kept) == {("services", "servicepath-1")}


def test_the_service_is_deleted_when_a_look_breaks(api, monkeypatch):
    class Broken:
        def __init__(self, *_):
            pass

        def look(self, phase):
            return {}

        def until(self, made, *, there):
            raise KeyboardInterrupt

    for name in ("inventory_of", "options_of", "clock_of"):
        monkeypatch.setattr(disruption, name, lambda config: None)
    monkeypatch.setattr(disruption, "select_nodes", lambda *_: ())
    monkeypatch.setattr(following, "Observer", Broken)
    known = recording.objects()
    cluster = LiveCluster(api, Deadline.starting_now(60))

    with pytest.raises(KeyboardInterrupt):
        fact(disruption.followings, None, None, cluster, known, (known.service("kube-system/kube-dns"),))
    assert api.kept == {}
    assert ("POST", "services") in api.asked
