"""Listen on an address that no interface holds: listener.py ADDRESS PORT. Linux lets a socket do so that sets IP_FREEBIND (ip(7))."""

import signal
import socket
import sys

IP_FREEBIND = 15  # linux/in.h

listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
listener.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
listener.bind((sys.argv[1], int(sys.argv[2])))
listener.listen()
signal.pause()
