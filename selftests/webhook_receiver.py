"""A chat tool's webhook on this machine."""

import contextlib
import http.server
import json
import threading


@contextlib.contextmanager
def receiver(status=200, reason=None, headers=()):
    """Its URL, and what it got: each message's content type and document; other methods by their names."""
    got = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            """Take a message."""
            got.append((self.headers["Content-Type"], json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.send_response(status, reason)
            for name, value in headers:
                self.send_header(name, value)
            self.end_headers()

        def do_GET(self):
            """Nobody has to ask."""
            got.append("GET")
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hooks/s3cret?token=s3cret", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
