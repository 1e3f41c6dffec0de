"""Runs on the node, by ``python3 -``: send given bytes from given source ports and say what came back.

It is text for this project's own side (probe.py appends the plan to it) and needs Python 3.6 and the standard library alone.
Each flow of the plan is one socket; one line of JSON a flow goes to standard output. It judges nothing. It starts many times a run,
so it imports little: typing and concurrent.futures alone cost a node more CPU than all the rest of it.
"""

import binascii
import errno
import json
import socket
import struct
import sys
import threading
import time

TYPE_CHECKING = False  # typing is for mypy alone; the annotations are texts, which Python 3.6 takes, too
if TYPE_CHECKING:
    from typing import Any

    Flow = dict[str, Any]

IP_MTU_DISCOVER = 10  # linux/in.h; the socket module does not name it
IP_PMTUDISC_PROBE = 3  # set DF, ignore the path MTU that the kernel has learnt
IP_RECVERR = 11  # linux/in.h: hand ICMP errors to an unconnected UDP socket


AT_ONCE = 32  # flows on their way at one time: where nobody answers, each of many flows waits out its time limit


def open_socket(flow: "Flow") -> socket.socket:
    """Bind a socket to the flow's source port, in the family of its target."""
    family = socket.AF_INET6 if ":" in flow["ip"] else socket.AF_INET
    kind = socket.SOCK_STREAM if flow["protocol"] == "TCP" else socket.SOCK_DGRAM
    sock = socket.socket(family, kind)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET and kind == socket.SOCK_DGRAM:
        sock.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
    if flow["dont_fragment"] and family == socket.AF_INET:
        sock.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE)
    sock.settimeout(flow["timeout"])
    sock.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", flow["sport"]))  # noqa: S104 - a client's socket
    return sock


def said(payload: bytes, peer: "tuple[Any, ...]", started: float) -> "Flow":
    """One answer as it goes into the result."""
    return {"payload": binascii.hexlify(payload).decode(), "from": [peer[0], peer[1]], "took": time.time() - started}


def ask_udp(sock: socket.socket, flow: "Flow", result: "Flow") -> None:
    """Send each payload as a datagram of its own and wait for one answer to each."""
    for payload in flow["payloads"]:
        started = time.time()
        sock.sendto(binascii.unhexlify(payload), (flow["ip"], flow["port"]))
        data, peer = sock.recvfrom(65535)
        result["answers"].append(said(data, peer, started))


def read_exactly(sock: socket.socket, count: int) -> bytes:
    """Read so many bytes from a TCP connection."""
    data = b""
    while len(data) < count:
        piece = sock.recv(count - len(data))
        if not piece:
            raise OSError("connection closed after %d of %d bytes" % (len(data), count))  # noqa: UP031
        data += piece
    return data


def ask_tcp(sock: socket.socket, flow: "Flow", result: "Flow") -> None:
    """Connect, then send each payload with DNS' two-byte length in front (RFC 1035, 4.2.2) and read one answer to each."""
    sock.connect((flow["ip"], flow["port"]))
    result["connected"] = True
    for payload in flow["payloads"]:
        started = time.time()
        raw = binascii.unhexlify(payload)
        sock.sendall(struct.pack("!H", len(raw)) + raw)
        length = struct.unpack("!H", read_exactly(sock, 2))[0]
        result["answers"].append(said(read_exactly(sock, length), sock.getpeername(), started))


def send(flow: "Flow") -> "Flow":
    """Send one flow; what the kernel refused is part of the result, not an end of the run."""
    result: Flow = {"id": flow["id"], "answers": [], "connected": None, "error": None, "unsent": False}
    try:
        sock = open_socket(flow)
        try:
            (ask_tcp if flow["protocol"] == "TCP" else ask_udp)(sock, flow, result)
        finally:
            sock.close()
    except socket.timeout:  # noqa: UP041 - no alias of TimeoutError before Python 3.10
        result["error"] = "no answer within %g s" % flow["timeout"]  # noqa: UP031
    except OSError as error:
        result["error"] = str(error)
        # The port is taken, by another program or an old connection: nothing was sent, which says nothing about the Service.
        result["unsent"] = error.errno in (errno.EADDRINUSE, errno.EADDRNOTAVAIL)
    return result


def main(flows: "list[Flow]") -> None:
    """Send all flows, begun in order, and print one line of JSON for each, in the same order."""
    free = threading.Semaphore(AT_ONCE)
    results: dict[int, Flow] = {}

    def one(place: int) -> None:
        try:
            results[place] = send(flows[place])
        finally:
            free.release()

    threads = [threading.Thread(target=one, args=(place,)) for place in range(len(flows))]
    for thread in threads:
        free.acquire()
        thread.start()
    for place, thread in enumerate(threads):
        thread.join()
        sys.stdout.write(json.dumps(results[place]) + "\n")
        sys.stdout.flush()
