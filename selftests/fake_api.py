"""A Kubernetes API server of a few lines: JSON by path, access reviews, and pods/exec whose command runs here."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.server
import json
import pathlib
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

LISTS = (
    "/api/v1/services", "/apis/discovery.k8s.io/v1/endpointslices", "/api/v1/pods", "/api/v1/nodes",
    "/apis/networking.k8s.io/v1/servicecidrs", "/apis/networking.k8s.io/v1/networkpolicies", "/apis/cilium.io/v2/ciliumnodes",
    "/apis/cilium.io/v2/ciliumnetworkpolicies", "/apis/cilium.io/v2/ciliumclusterwidenetworkpolicies",
)  # fmt: skip


class FakeApi:
    """What the server answers; change it at will.

    Attributes:
        documents: path → document; a path that is not there is a 404.
        refused: path → HTTP status.
        delay: seconds before each answer.
        denied: (verb, resource) for which an access review says no.
        paths: what was asked, in order.
        cut_exec: after how many bytes of standard output an exec is cut off; None: never.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.documents: dict[str, Any] = {path: {"items": []} for path in LISTS}
        self.documents["/version"] = {"gitVersion": "v1.34.4+k3s1"}
        self.documents["/api/v1/namespaces/kube-system"] = {"metadata": {"name": "kube-system", "uid": "a5786dac"}}
        self.refused: dict[str, int] = {}
        self.delay = 0.0
        self.denied: set[tuple[str, str]] = set()
        self.paths: list[str] = []
        self.cut_exec: int | None = None

    def kubeconfig(self, server: str | None = None) -> dict[str, Any]:
        """A kubeconfig for this server, or for another address."""
        return {
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": server or self.address}}],
            "users": [{"name": "u", "user": {"token": "open-sesame"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }  # fmt: skip

    def write_kubeconfig(self, path: pathlib.Path) -> pathlib.Path:
        """The same as a file."""
        path.write_text(json.dumps(self.kubeconfig()))
        return path


@contextlib.contextmanager
def serve() -> Iterator[FakeApi]:
    server = _Server(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.api = FakeApi(f"http://127.0.0.1:{server.server_port}")  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.api  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64  # clients ask many things at one time

    def handle_error(self, *_: Any) -> None:
        """A client that gave up is what some tests are about."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def api(self) -> FakeApi:
        return self.server.api  # type: ignore[attr-defined]

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        self.api.paths.append(path)
        time.sleep(self.api.delay)
        if path in self.api.refused:
            self._answer(self.api.refused[path], {"kind": "Status", "message": f'cannot get "{path}"'})
        elif path.endswith("/exec"):
            self._exec(query)
        elif path in self.api.documents:
            self._answer(200, self.api.documents[path])
        else:
            self._answer(404, {"kind": "Status", "message": "the server could not find the requested resource"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = body["spec"]["resourceAttributes"]
        resource = asked["resource"] + (f"/{asked['subresource']}" if asked.get("subresource") else "")
        allowed = (asked["verb"], resource) not in self.api.denied
        self._answer(201, body | {"status": {"allowed": allowed}})

    def log_message(self, *_: Any) -> None:
        pass

    def _answer(self, status: int, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _exec(self, query: str) -> None:
        from urllib.parse import parse_qsl

        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.send_header("Sec-WebSocket-Protocol", "v4.channel.k8s.io")
        self.end_headers()
        command = [value for name, value in parse_qsl(query) if name == "command"]
        finished = subprocess.run(command, capture_output=True, timeout=30)
        cut = self.api.cut_exec
        for start in range(0, len(finished.stdout if cut is None else finished.stdout[:cut]), 1000):
            end = start + 1000 if cut is None else min(start + 1000, cut)
            self._frame(1, finished.stdout[start:end])
        self._frame(2, finished.stderr)
        if cut is None:
            self._frame(3, json.dumps({"status": "Success"}).encode())
        self.wfile.write(struct.pack("!BB", 0x88, 0))
        self.close_connection = True

    def _frame(self, channel: int, data: bytes) -> None:
        payload = bytes([channel]) + data
        size = len(payload)
        head = struct.pack("!BB", 0x82, size) if size < 126 else struct.pack("!BBH", 0x82, 126, size)
        self.wfile.write(head + payload)
        self.wfile.flush()
