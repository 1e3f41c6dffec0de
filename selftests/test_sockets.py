"""ss, as iproute2 6.1 and older print it."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servicepath.parse.errors import ParseError
from servicepath.parse.sockets import parse_ss

REAL = """\
udp UNCONN 0      0      192.168.55.10:8472  0.0.0.0:* users:(("cilium-agent",pid=195,fd=5),("other",pid=1,fd=5))
udp UNCONN 0      0               [::]:53       [::]:* users:(("coredns",pid=195,fd=7))
udp UNCONN 0      0      127.0.0.53%lo:53       0.0.0.0:*
tcp LISTEN 0      128          0.0.0.0:22    0.0.0.0:* users:(("sshd",pid=195,fd=3))
tcp LISTEN 0      128     0.0.0.0%eth0:99    0.0.0.0:*
tcp LISTEN 0      4096       127.0.0.1:10249 0.0.0.0:*
tcp LISTEN 0      128                *:10250       *:* users:(("kubelet",pid=195,fd=6)) ino:50159 sk:6 cgroup:/ v6only:0 <->
tcp LISTEN 0      5  [::ffff:10.43.0.10]:80          *:*
tcp LISTEN 0      5 [fe80::1]%enp1s0:546       [::]:*
"""


def test_every_kind_of_local_address_is_read():
    found = [(x.protocol, str(x.address) if x.address else None, x.port, x.process, x.device) for x in parse_ss(REAL)]
    assert found == [
        ("UDP", "192.168.55.10", 8472, "cilium-agent", None),
        ("UDP", None, 53, "coredns", None),
        ("UDP", "127.0.0.53", 53, None, "lo"),
        ("TCP", None, 22, "sshd", None),
        ("TCP", None, 99, None, "eth0"),
        ("TCP", "127.0.0.1", 10249, None, None),
        ("TCP", None, 10250, "kubelet", None),
        ("TCP", "10.43.0.10", 80, None, None),
        ("TCP", "fe80::1", 546, None, "enp1s0"),
    ]


def test_headings_are_passed_over_and_nothing_is_nothing():
    heading = "Netid State  Recv-Q Send-Q Local Address:Port  Peer Address:PortProcess\n"
    assert parse_ss(heading + REAL) == parse_ss(REAL)
    assert parse_ss("") == ()


@pytest.mark.parametrize(
    "line",
    [
        "tcp LISTEN 0 128 0.0.0.0:ssh 0.0.0.0:*",
        "tcp ESTAB 0 0 10.0.0.1:22 10.0.0.2:50000",
        "tcp LISTEN 0 128 0.0.0.0:22",
        "tcp LISTEN 0 128 0.0.0.0:99999 0.0.0.0:*",
        "tcp LISTEN 0 128 10.43.0:22 0.0.0.0:*",
        "ss: command not found",
    ],
)
def test_another_line_is_an_error_that_names_it(line):
    with pytest.raises(ParseError, match="line 2"):
        parse_ss(REAL.splitlines()[0] + "\n" + line + "\n")


@given(
    address=st.ip_addresses().filter(lambda ip: not ip.is_unspecified and not getattr(ip, "ipv4_mapped", None)),
    port=st.integers(1, 65535),
    process=st.none() | st.from_regex(r"[a-zA-Z0-9_:.-]{1,15}", fullmatch=True),
)
def test_a_socket_that_is_printed_reads_the_same(address, port, process):
    host = f"[{address}]" if address.version == 6 else str(address)
    users = f' users:(("{process}",pid=1,fd=3))' if process else ""
    found = parse_ss(f"udp UNCONN 0 0 {host}:{port} 0.0.0.0:*{users}\n")[0]
    assert (found.address, found.port, found.process) == (ipaddress.ip_address(str(address)), port, process)
