"""Runs on the node, in the background: ask a Service again and again, and write down what came back and when.

It is text for this project's own side (watching.py brings it to the node) and needs Python 3.6 and the standard library alone.
Arguments: the plan (JSON) and the file to write to. It ends by itself when its time is up, and judges nothing. One line of JSON each:

    ["asked", series, when, seconds, null]           an answer came after so many seconds
    ["asked", series, when, null, "no answer …"]     none came, or a wrong one
    ["open", series, when]                           a TCP connection stands
    ["end", series, when, "reset", "Connection …"]   it broke: reset, closed, time-out; or none could be had: refused
    ["done", when]                                   the time is up; connections that stand have lasted

``when`` is Unix time in seconds.
"""

import errno
import json
import os
import random
import select
import selectors
import socket
import struct
import sys
import threading
import time
from typing import Any, Dict, Optional  # noqa: UP035 - the node's Python may be 3.6

Plan = Dict[str, Any]  # noqa: UP006

# In no ephemeral and no NodePort range, as the probes' own (probe.py), and none of those.
PORTS = (10240, 18432)


class Record:
    """The file, written to line by line by several threads."""

    def __init__(self, path: str) -> None:
        self.file = open(path, "a", buffering=1)  # noqa: SIM115 - open as long as this program runs
        self.lock = threading.Lock()

    def write(self, *values: Any) -> None:
        """Write one line."""
        with self.lock:
            self.file.write(json.dumps(values) + "\n")


class Ports:
    """Source ports, each given out once before any is given out again, so that every query is a flow of its own."""

    def __init__(self) -> None:
        self.left = []  # type: list[int]
        self.lock = threading.Lock()

    def bind(self, sock: socket.socket, family: int) -> None:
        """Bind a socket to the next port that nobody has."""
        while True:
            with self.lock:
                if not self.left:
                    self.left = random.sample(range(*PORTS), PORTS[1] - PORTS[0])
                port = self.left.pop()
            try:
                sock.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", port))  # noqa: S104 - a client's socket
                return
            except OSError as error:
                if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                    raise


def family_of(series: Plan) -> int:
    """The address family of a series' target."""
    return socket.AF_INET6 if ":" in series["ip"] else socket.AF_INET


def wrong(data: bytes, ident: bytes) -> Optional[str]:  # noqa: UP045
    """What is wrong with a DNS answer; None: nothing."""
    if len(data) < 12 or data[:2] != ident:
        return "an answer to another question"
    return None if data[3] & 15 == 0 else "rcode %d" % (data[3] & 15)  # noqa: UP031


class Asker:
    """A series of questions, each from a socket and port of its own: DNS over UDP, or a TCP connect."""

    def __init__(self, number: int, series: Plan, ports: Ports, record: Record) -> None:
        self.number, self.series, self.ports, self.record = number, series, ports, record
        self.selector = selectors.DefaultSelector()
        self.waiting = {}  # type: dict[socket.socket, tuple[float, float, bytes]]

    def run(self, until: float) -> None:
        """Ask until the time (of the monotonic clock), then wait for the last answers."""
        due = time.monotonic() + random.random() * self.series["every"]  # noqa: S311 - not to ask all at one moment
        while self.waiting or due < until:
            now = time.monotonic()
            if due <= now and due < until:
                self.ask()
                # What a busy machine kept us from asking is not asked later, all at once.
                due = max(due + self.series["every"], now)
            self.collect(max(0.0, min(due - time.monotonic(), self.series["timeout"] / 10)))

    def ask(self) -> None:
        """Send one question."""
        udp = self.series["kind"] == "udp"
        family = family_of(self.series)
        sock = socket.socket(family, socket.SOCK_DGRAM if udp else socket.SOCK_STREAM)
        sock.setblocking(False)
        ident = os.urandom(2)
        sent = time.time()
        begun = time.monotonic()
        try:
            self.ports.bind(sock, family)
            status = sock.connect_ex((self.series["ip"], self.series["port"]))
            if status not in (0, errno.EINPROGRESS):
                raise OSError(status, os.strerror(status))
            if udp:
                sock.send(ident + bytes.fromhex(self.series["payload"])[2:])
        except OSError as error:
            sock.close()
            self.record.write("asked", self.number, sent, None, str(error))
            return
        self.waiting[sock] = (sent, begun, ident)
        self.selector.register(sock, selectors.EVENT_READ if udp else selectors.EVENT_WRITE)

    def collect(self, seconds: float) -> None:
        """Take the answers that come within so many seconds, and give up on what has waited too long."""
        for key, _ in self.selector.select(seconds):
            self.finish(key.fileobj)  # type: ignore[arg-type]  # sockets are all that is registered
        now = time.monotonic()
        for sock, (_, begun, _) in list(self.waiting.items()):
            if now - begun < self.series["timeout"]:
                continue
            if self.series["kind"] == "udp" and select.select([sock], [], [], 0)[0]:
                self.finish(sock)  # it came while this program was not run: late, not lost
            else:
                self.close(sock, None, "no answer within %g s" % self.series["timeout"])  # noqa: UP031

    def finish(self, sock: socket.socket) -> None:
        """Read one answer."""
        _, begun, ident = self.waiting[sock]
        took = time.monotonic() - begun
        try:
            if self.series["kind"] == "udp":
                problem = wrong(sock.recv(65535), ident)
            else:
                status = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                problem = os.strerror(status) if status else None
        except OSError as error:
            problem = str(error)
        self.close(sock, None if problem else took, problem)

    def close(self, sock: socket.socket, took: Optional[float], problem: Optional[str]) -> None:  # noqa: UP045
        """Write one question down and forget it."""
        self.selector.unregister(sock)
        sent = self.waiting.pop(sock)[0]
        sock.close()
        self.record.write("asked", self.number, sent, took, problem)


def hold(number: int, series: Plan, ports: Ports, record: Record, until: float) -> None:
    """Keep one TCP connection and ask over it again and again; when it breaks, say how and make another."""
    while time.monotonic() < until:
        sock = socket.socket(family_of(series), socket.SOCK_STREAM)
        sock.settimeout(series["patience"])
        begun, stood = time.monotonic(), False
        try:
            ports.bind(sock, family_of(series))
            sock.connect((series["ip"], series["port"]))
            stood = True
            record.write("open", number, time.time())
            talk(sock, series, until)
        except socket.timeout:  # noqa: UP041 - no alias of TimeoutError before Python 3.10
            record.write("end", number, time.time(), "time-out" if stood else "refused", "no answer within %g s" % series["patience"])  # noqa: UP031
        except (OSError, ValueError) as error:
            how = "reset" if isinstance(error, ConnectionResetError) else "closed" if isinstance(error, ValueError) else "time-out"
            record.write("end", number, time.time(), how if stood else "refused", str(error))
        finally:
            sock.close()
        time.sleep(max(0.0, min(1.0 - (time.monotonic() - begun), until - time.monotonic())))


def talk(sock: socket.socket, series: Plan, until: float) -> None:
    """Ask over a connection, with DNS' two-byte length in front (RFC 1035, 4.2.2), until the time is up."""
    while time.monotonic() < until:
        ident = os.urandom(2)
        raw = ident + bytes.fromhex(series["payload"])[2:]
        sock.sendall(struct.pack("!H", len(raw)) + raw)
        length = struct.unpack("!H", exactly(sock, 2))[0]
        problem = wrong(exactly(sock, length), ident)
        if problem:
            raise ValueError(problem)
        time.sleep(series["every"])


def exactly(sock: socket.socket, count: int) -> bytes:
    """Read so many bytes; ValueError when the other end has closed."""
    data = b""
    while len(data) < count:
        piece = sock.recv(count - len(data))
        if not piece:
            raise ValueError("the other end closed the connection")
        data += piece
    return data


def main(plan: Plan, path: str) -> None:
    """Run every series in a thread of its own until the time is up."""
    record, ports = Record(path), Ports()
    until = time.monotonic() + plan["seconds"]
    threads = []
    for number, series in enumerate(plan["series"]):
        if series["kind"] == "held":
            threads.append(threading.Thread(target=hold, args=(number, series, ports, record, until)))
        else:
            threads.append(threading.Thread(target=Asker(number, series, ports, record).run, args=(until,)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    record.write("done", time.time())


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2])
