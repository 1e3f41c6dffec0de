"""Send a copy of every IPv4 packet that leaves by some interfaces into another one: tap.py TO FROM …."""

import selectors
import socket
import sys

ETH_P_ALL = 3  # linux/if_ether.h
OUTGOING = 4  # PACKET_OUTGOING, linux/if_packet.h

out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind((sys.argv[1], 0))
listening = selectors.DefaultSelector()
for interface in sys.argv[2:]:
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    tap.bind((interface, ETH_P_ALL))
    listening.register(tap, selectors.EVENT_READ)
while True:
    for ready, _ in listening.select():
        tap = ready.fileobj  # type: ignore[assignment]  # each was registered as a socket
        frame, where = tap.recvfrom(65535)
        if where[2] == OUTGOING and frame[12:14] == b"\x08\x00":
            out.send(frame)
