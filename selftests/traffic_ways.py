"""Ways to spoil a recorded traffic experiment: what a conclusion must find, and where none may be drawn. See traffic_observed.py."""

import dataclasses
import ipaddress
import json
import pathlib
import re
import struct

import host_samples

from selftests import traffic_recording as recording
from servicepath.model.flows import Source
from servicepath.model.following import Following, Presence
from servicepath.observation import Trouble
from servicepath.parse.iproute import parse_ip_route

KNOWN = recording.objects()
SERVICE = KNOWN.service("kube-system/kube-dns")
UDP, TCP, METRICS = SERVICE.ports
BACKEND = sorted(KNOWN.serving(SERVICE, UDP), key=str)[0].ip
CILIUM = pathlib.Path(__file__).parent / "data" / "cilium-1.19.1"
STATUS = (CILIUM / "status.json").read_text(encoding="utf-8")
VERBOSE = (CILIUM / "status-verbose.txt").read_text(encoding="utf-8")

# Addresses as a packet carries them.
VIP, BACK, STRANGER = SERVICE.cluster_ips[0].packed, BACKEND.packed, ipaddress.ip_address("10.42.77.77").packed
MASTER, WORKER1, WORKER2 = (KNOWN.node(name).internal_ips[0].packed for name in ("master", "worker1", "worker2"))
INTERNAL = KNOWN.cilium_node("master").cilium_internal_ips[0]

ROUTES = frozenset(parse_ip_route("default via 192.168.55.1 dev enp1s0\n10.42.1.0/24 via 10.42.0.9 dev cilium_host mtu 1450\n"))
MORE = ROUTES | frozenset(parse_ip_route("10.43.77.7 dev cilium_host\n"))
YES, NO = Presence(True, True, True), Presence(False, False, False)
TEMPORARY, BEHIND = ipaddress.ip_address("10.43.77.7"), ipaddress.ip_address("10.42.1.145")
FOLLOWED = Following("master", TEMPORARY, NO, YES, NO, (ROUTES, ROUTES, ROUTES), (1.0, 2.0), BEHIND)


@dataclasses.dataclass
class Seen:
    """What a way may spoil: the plan, what the node's commands said (name → bytes), and what is not in the recording."""

    node: str
    plan: object
    said: dict | None
    outage: object
    followings: dict
    ct: object = None
    status: str = STATUS
    verbose: str = VERBOSE
    interfaces: str = host_samples.INTERFACES
    mode: str = "iptables"

    def sport(self, window, port=UDP):
        """The source port of a window's first flow to a port, as conntrack prints it."""
        return next(p.sport for p in self.plan.probes if p.window == window and p.port == port)

    def edit(self, name, change):
        """Change what the commands said whose name matches."""
        for key in [key for key in self.said if re.fullmatch(name, key)]:
            self.said[key] = change(self.said[key])

    def lines(self, name, mine, change):
        """Change each line that holds this; None takes it out."""
        self.edit(name, lambda text: b"".join(
            kept for line in text.splitlines(keepends=True) if (kept := change(line) if mine in line else line)
        ))  # fmt: skip

    def flow(self, name, **changes):
        """Change the first line of a sender that is about kube-dns:dns/UDP."""
        lines = [json.loads(line) for line in self.said[name].splitlines()]
        mine = next(line for line in lines if UDP.id in line["id"])
        mine |= {key: change(mine[key]) if callable(change) else change for key, change in changes.items()}
        self.said[name] = "".join(json.dumps(line) + "\n" for line in lines).encode()

    def frames(self, role, change):
        """Change each frame of a capture; None takes it out."""
        data, at = self.said[f"capture-{role}"], 24
        kept = [data[:at]]
        while at < len(data):
            seconds, part, captured, length = struct.unpack_from("<IIII", data, at)
            frame = change(data[at + 16 : at + 16 + captured])
            at += 16 + captured
            if frame is not None:
                kept += [struct.pack("<IIII", seconds, part, len(frame), length), frame]
        self.said[f"capture-{role}"] = b"".join(kept)

    def chain(self, port):
        """The chain of a port of kube-dns."""
        lines = self.said["cut-0-nat"].decode().splitlines()
        return next(x for x in lines if "-A KUBE-SERVICES" in x and f"{port.chain_key} cluster IP" in x).rsplit(" ", 1)[1]

    def count(self, first, packets, *words):
        """Add packets to the counters of the rules that hold all these words, from a cut on."""

        def more(text):
            lines = text.decode().splitlines()
            for index, line in enumerate(lines):
                if all(word in line for word in words):
                    counter, _, rule = line.partition(" ")
                    had, size = counter.strip("[]").split(":")
                    lines[index] = f"[{int(had) + packets}:{int(size) + 105 * packets}] {rule}"
            return "\n".join([*lines, ""]).encode()

        self.edit(f"cut-[{first}-5]-nat", more)

    def conntrack(self, name, source, sport, there="10.43.0.10"):
        """Add an entry of a translated flow."""
        back = source if source != "192.168.55.10" else INTERNAL
        there_and_back = f"src={source} dst={there} sport={sport} dport=53 src={BACKEND} dst={back} sport=53 dport={sport}"
        self.edit(name, lambda text: text + f"udp      17 28 {there_and_back} mark=0 use=1\n".encode())

    def silence(self, role=b""):
        """Let tcpdump say that it dropped packets, at one place or everywhere."""
        self.edit("captures-stop", lambda text: b"== ".join(
            part.replace(b"\n0 packets dropped", b"\n3 packets dropped") if part.startswith(role) else part for part in text.split(b"== ")
        ))  # fmt: skip

    def without_client(self):
        """A node on which no Pod could be the client."""
        probes = tuple(p for p in self.plan.probes if p.source is Source.HOST)
        taps = tuple(tap for tap in self.plan.taps if tap.role != "client-lxc")
        self.plan = dataclasses.replace(self.plan, probes=probes, taps=taps, clients=(), client_netns=None)
        self.said = {name: text for name, text in self.said.items() if not re.fullmatch("send-.*-pod", name)}

    def agent(self, mode):
        """Let the agent say another KubeProxyReplacement, or none."""
        self.status = self.status.replace('"mode": "False"', f'"mode": "{mode}"')
        line = rf"\1{mode}\n" if mode else ""
        self.verbose = re.sub(r"(?m)^(KubeProxyReplacement:\s+|  Status:\s+)False\s*\n", line, self.verbose)

    def follow(self, **changes):
        """Let the node have followed the temporary Service in another way."""
        self.followings[self.node] = dataclasses.replace(self.followings[self.node], **changes)

    def unanswered_outage(self):
        """Let one flow of the outage have got no answer."""
        flow = self.outage.flows[self.node][0]
        silent = dataclasses.replace(flow, answers=(None,) * len(flow.answers), connected=None, error="no answer within 2 s")
        self.outage = dataclasses.replace(self.outage, flows={self.node: (silent,)})


def replaced(old, new):
    """A change that replaces an address wherever the frame, or the line, carries it."""
    return lambda data: data.replace(old, new)


def of(mark, old, new, count=-1):
    """The same in those frames alone that hold a mark."""
    return lambda frame: frame.replace(old, new, count) if mark in frame.lower() else frame


def but(offset, value):
    """Take out the frames that carry the value there."""
    return lambda frame: None if frame[offset : offset + len(value)] == value else frame


def fragments(size, more):
    """Set or clear "more fragments" in outer packets whose inner packet has this length."""

    def change(frame):
        if frame[66:68] != struct.pack("!H", size):
            return frame
        flags = struct.unpack_from("!H", frame, 20)[0]
        return frame[:20] + struct.pack("!H", flags | 0x2000 if more else flags & ~0x2000) + frame[22:]

    return change


def plain(frame):
    """Take the tunnel's headers off a frame."""
    return frame[50:] if frame[23] == 17 and frame[36:38] == struct.pack("!H", 8472) else frame


def answers(change):
    """Change each answer of a flow."""
    return lambda said: [one | change(one) for one in said]


# Offsets in a frame: 26 and 30 the outer (or only) source and destination, 66 the inner packet's length.
AAAA = b"\x05local\0\0\x1c"

HEALTHY = {
    f"healthy {node} {port.name}": (node, port, lambda seen: None) for node in ("master", "worker1") for port in SERVICE.ports
}  # fmt: skip
OF_MASTER = {
    "a host flow is not answered": lambda s: s.flow("send-host-host", answers=[], error="no answer within 2 s"),
    "a host flow gets a wrong answer": lambda s: s.flow(
        "send-host-host", answers=answers(lambda one: {"payload": one["payload"].replace("0a2b0001", "0a090909")})
    ),
    "the backend itself answers a host flow": lambda s: s.flow("send-host-host", answers=answers(lambda one: {"from": [str(BACKEND), 53]})),
    "one flow more is counted": lambda s: s.count(1, 1, "-A KUBE-SEP-", f"{BACKEND}:53", "-p udp"),
    "the host's flows are not marked": lambda s: s.count(1, -10, f"-A {s.chain(UDP)} ", "-j KUBE-MARK-MASQ"),
    "conntrack holds a host flow untranslated": lambda s: s.lines(
        "cut-.*-conntrack-.", b"sport=%d dport=53" % s.sport("host"), replaced(b"src=%s " % str(BACKEND).encode(), b"src=10.43.0.10 ")
    ),
    "a host flow keeps a source that cannot be answered": lambda s: s.lines(
        "cut-.*-conntrack-.", b"sport=%d dport=53" % s.sport("host"), replaced(b"dst=%s " % str(INTERNAL).encode(), b"dst=192.168.55.10 ")
    ),
    "a Pod flow is not answered": lambda s: s.flow("send-pod-pod", answers=[], error="no answer within 2 s"),
    "a Pod flow is answered with another id": lambda s: s.flow(
        "send-pod-pod", answers=answers(lambda one: {"payload": "ffff" + one["payload"][4:]})
    ),
    "iptables counts the Pod's flows": lambda s: s.count(2, 5, f"-A {s.chain(UDP)} ", "-j KUBE-SEP-"),
    "the host's conntrack translates a Pod flow": lambda s: s.conntrack("cut-5-conntrack-2", s.plan.client, s.sport("pod")),
    "the host's conntrack holds a Pod flow": lambda s: s.conntrack("cut-5-conntrack-2", s.plan.client, s.sport("pod"), BACKEND),
    "Cilium does not translate a Pod flow": lambda s: s.lines(
        "bpf-ct", b":%d " % s.sport("pod"), lambda line: None if b" OUT " in line else line
    ),
    "no flow table holds a Pod flow": lambda s: s.lines("bpf-ct", b":%d " % s.sport("pod"), lambda line: None),
    "the Pod's packets go plain": lambda s: s.frames("underlay", plain),
    "Cilium's agent does not say its set-up": lambda s: s.agent(""),
    "the Pod's packets are translated too early": lambda s: s.frames("client-lxc", replaced(VIP, BACK)),
    "the tunnel device gets the ClusterIP": lambda s: s.frames("tunnel", replaced(BACK, VIP)),
    "the tunnel leads to another node": lambda s: s.frames("underlay", replaced(WORKER1, WORKER2)),
    "another address than the Pod's is inside": lambda s: s.frames("underlay", replaced(s.plan.client.packed, STRANGER)),
    "the ClusterIP is inside": lambda s: s.frames("underlay", replaced(BACK, VIP)),
    "AAAA goes another way than A": lambda s: s.frames("underlay", of(AAAA, MASTER, WORKER2)),
    "the answer goes to another node": lambda s: s.frames(
        "underlay", lambda frame: frame.replace(MASTER, WORKER2, 1) if frame[26:30] == WORKER1 else frame
    ),
    "the host's flows keep the node's address inside": lambda s: s.frames("underlay", replaced(INTERNAL.packed, MASTER)),
    "a packet as large as the MTU is broken": lambda s: s.frames("underlay", fragments(1450, True)),
    "a packet larger than the MTU crosses whole": lambda s: s.frames("underlay", fragments(1451, False)),
    "a packet as large as the MTU never leaves": lambda s: s.frames("underlay", but(66, struct.pack("!H", 1450))),
    "the underlay's capture lost the answers": lambda s: s.frames("underlay", but(26, WORKER1)),
    "the client's capture lost the questions": lambda s: s.frames("client-lxc", but(30, VIP)),
    "tcpdump dropped packets": lambda s: s.silence(),
    "the underlay's capture is cut off": lambda s: s.edit("capture-underlay", lambda data: data[: len(data) // 2 + 5]),
    "the Pod's sender is cut off": lambda s: s.edit("send-pod-pod", lambda text: text[:-20]),
    "the control flow is not counted": lambda s: s.said.update({"cut-3-nat": s.said["cut-2-nat"]}),
    "the control flow is not in conntrack": lambda s: s.lines("cut-.*-conntrack-.", b"sport=%d " % s.sport("control"), lambda x: None),
    "the agent does not answer": lambda s: setattr(s, "ct", Trouble("master", "the agent did not answer")),
    "the counters are cut off": lambda s: s.edit("cut-2-nat", lambda text: text[: len(text) // 2]),
    "a host flow could not be sent": lambda s: s.flow("send-host-host", answers=[], unsent=True, error="Address already in use"),
    "somebody begins a flow while counters are read": lambda s: s.conntrack("cut-1-conntrack-2", "192.168.55.10", 50000),
    "somebody used a source port before": lambda s: s.conntrack("cut-0-conntrack-.", "192.168.55.11", s.sport("host")),
    "the underlay's MTU is not listed": lambda s: setattr(s, "interfaces", s.interfaces.replace("enp1s0", "enp9s0")),
    "the node has no client Pod": lambda s: s.without_client(),
    "the node could not be reached": lambda s: setattr(s, "said", None),
    "kube-proxy runs in nftables mode": lambda s: setattr(s, "mode", "nftables"),
    "Cilium replaces kube-proxy": lambda s: s.agent("True"),
    "a Service does not arrive in Cilium's map": lambda s: s.follow(created=Presence(True, True, False)),
    "a deleted Service stays in the rules": lambda s: s.follow(deleted=Presence(True, False, False)),
    "a Service brings a route": lambda s: s.follow(routes=(ROUTES, MORE, ROUTES)),
    "the temporary address was in use before": lambda s: s.follow(before=Presence(False, False, True)),
    "the rules never changed": lambda s: s.follow(created=Presence(False, True, True)),
    "no route was listed": lambda s: s.follow(routes=(frozenset(),) * 3),
    "without the API nothing is answered": lambda s: s.unanswered_outage(),
    "the API answered all the while": lambda s: setattr(s, "outage", dataclasses.replace(s.outage, api_said=None)),
}
OF_WORKER1 = {
    "local traffic enters the tunnel": lambda s: s.said.update({"capture-tunnel": s.said["capture-backend-lxc-1"]}),
    "local traffic is translated too early": lambda s: s.frames("client-lxc", replaced(VIP, BACK)),
    "tcpdump dropped packets at the tunnel": lambda s: s.silence(b"tunnel"),
}

# Way → node, port, how it is spoilt.
WAYS = HEALTHY | {name: ("master", UDP, spoil) for name, spoil in OF_MASTER.items()}
WAYS |= {name: ("worker1", UDP, spoil) for name, spoil in OF_WORKER1.items()}
WAYS["a connection's packets are counted"] = ("master", TCP, lambda s: s.count(4, 2, f"-A {s.chain(TCP)} ", "-j KUBE-SEP-"))
