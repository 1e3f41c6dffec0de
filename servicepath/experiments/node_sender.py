"""Runs on the node, by ``python3 -``: send given bytes from given source ports and say what came back.

It is text for this project's own side (probe.py appends the plan to it) and needs Python 3.6 and the standard library alone.
Each flow of the plan is one socket; one line of JSON a flow goes to standard output. It judges nothing.
"""

import binascii
import json
import socket
import struct
import sys
import time

IP_MTU_DISCOVER = 10  # linux/in.h; the socket module does not name it
IP_PMTUDISC_PROBE = 3  # set DF, ignore the path MTU that the kernel has learnt
IP_RECVERR = 11  # linux/in.h: hand ICMP errors to an unconnected UDP socket


def open_socket(flow):
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
    sock.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", flow["sport"]))
    return sock


def said(payload, peer, started):
    """One answer as it goes into the result."""
    return {"payload": binascii.hexlify(payload).decode(), "from": [peer[0], peer[1]], "took": time.time() - started}


def ask_udp(sock, flow, result):
    """Send each payload as a datagram of its own and wait for one answer to each."""
    for payload in flow["payloads"]:
        started = time.time()
        sock.sendto(binascii.unhexlify(payload), (flow["ip"], flow["port"]))
        data, peer = sock.recvfrom(65535)
        result["answers"].append(said(data, peer, started))


def read_exactly(sock, count):
    """Read so many bytes from a TCP connection."""
    data = b""
    while len(data) < count:
        piece = sock.recv(count - len(data))
        if not piece:
            raise OSError("connection closed after %d of %d bytes" % (len(data), count))
        data += piece
    return data


def ask_tcp(sock, flow, result):
    """Connect, then send each payload with DNS' two-byte length in front (RFC 1035, 4.2.2) and read one answer to each."""
    sock.connect((flow["ip"], flow["port"]))
    result["connected"] = True
    for payload in flow["payloads"]:
        started = time.time()
        raw = binascii.unhexlify(payload)
        sock.sendall(struct.pack("!H", len(raw)) + raw)
        length = struct.unpack("!H", read_exactly(sock, 2))[0]
        result["answers"].append(said(read_exactly(sock, length), sock.getpeername(), started))


def send(flow):
    """Send one flow; what the kernel refused is part of the result, not an end of the run."""
    result = {"id": flow["id"], "answers": [], "connected": None, "error": None}
    try:
        sock = open_socket(flow)
        try:
            (ask_tcp if flow["protocol"] == "TCP" else ask_udp)(sock, flow, result)
        finally:
            sock.close()
    except socket.timeout:
        result["error"] = "no answer within %g s" % flow["timeout"]
    except OSError as error:
        result["error"] = str(error)
    return result


def main(flows):
    """Send all flows in order and print one line of JSON for each."""
    for flow in flows:
        sys.stdout.write(json.dumps(send(flow)) + "\n")
        sys.stdout.flush()
