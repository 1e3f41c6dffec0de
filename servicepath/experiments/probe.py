"""Plan probe flows and turn them into one command for a node; the queries are built here, by dnspython."""

from __future__ import annotations

import importlib.resources
import json
import math
import secrets
from collections.abc import Container, Iterator, Sequence

import dns.edns
import dns.message
import dns.rdatatype

from ..channel import Command
from ..model.addresses import IPAddress, Socket
from ..model.flows import Probe, Query, Source
from ..model.services import ServicePort
from .node_sender import AT_ONCE

# Outside the kernel's default ephemeral range (32768-60999) and Kubernetes' NodePort range (30000-32767), so that no other
# program gets the same source port by chance. What lies below (from 10240) is the watch's: each of its many connections keeps its port
# for a minute (TIME_WAIT), and a run may follow, or go on beside it.
SOURCE_PORTS = range(18432, 29952)

# Seconds to wait for one answer: so long as a resolver and dig wait (resolv.conf(5), dig(1)). A healthy answer inside a cluster takes
# milliseconds, but on a busy node the server may not run for seconds: what a resolver would still have taken is no lost answer.
ANSWER_TIMEOUT = 5.0

# So many flows of a single-endpoint port as the notes sent: ten from the host (§6), five from the Pod (§7).
NOTES_HOST_FLOWS, NOTES_POD_FLOWS = 10, 5

# With several endpoints, send so many flows that a given one is missed with this probability, but never more than the bound.
MISS_PROBABILITY, MOST_FLOWS = 1e-4, 64


def source_ports(used: Container[int]) -> Iterator[int]:
    """Yield source ports in a row from a random start, each once, so that two runs at the same time hardly meet.

    Two rows of some hundred out of SOURCE_PORTS rarely overlap; as many single ports drawn at random nearly always share one.

    Args:
        used: ports that a flow table still holds from an earlier flow; they are left out. Cilium keeps a TCP connection's entries
            for hours (bpf-ct-timeout-service-tcp, Cilium 1.19), and an old flow must not prove a new one.

    Raises:
        StopIteration: after all of SOURCE_PORTS (11520) were given out.
    """
    start = secrets.randbelow(len(SOURCE_PORTS))
    yield from (port for port in (*SOURCE_PORTS[start:], *SOURCE_PORTS[:start]) if port not in used)


def query(name: str, kind: str = "A", *, size: int | None = None) -> Query:
    """Build one DNS query with a random id, as dig 9.18 builds it: EDNS, a buffer of 1232 bytes and a client cookie.

    For ``kubernetes.default.svc.cluster.local`` that is 77 bytes, 105 with UDP and IPv4 headers, as in the notes. The name is
    spelt in a random mix of cases, which servers echo (draft-vixie-dnsext-dns0x20): with the id it tells our packets from those
    of everybody else who asks the same.

    Args:
        name: the name asked for.
        kind: the record type's name.
        size: when given, the message is padded (RFC 7830) to exactly so many bytes.

    Raises:
        ValueError: the padded message would have to be smaller than the bare one.
    """
    options: list[dns.edns.Option] = [dns.edns.GenericOption(dns.edns.OptionType.COOKIE, secrets.token_bytes(8))]
    spelt = "".join(secrets.choice((c.lower(), c.upper())) for c in name)
    message = dns.message.make_query(spelt, kind, use_edns=0, payload=1232, options=options)
    message.flags |= 0x20  # AD, which dig sets
    payload = message.to_wire(max_size=65535)
    if size is not None:
        missing = size - len(payload) - 4
        if missing < 0:
            raise ValueError(f"a query for {name} cannot be as short as {size} bytes")
        options.append(dns.edns.GenericOption(dns.edns.OptionType.PADDING, bytes(missing)))
        message.use_edns(0, payload=1232, options=options)
        payload = message.to_wire(max_size=65535)
    question = message.question[0]
    return Query(message.id, f"{question.name} {dns.rdatatype.to_text(question.rdtype)}", payload)


def again(old: Query) -> Query:
    """A query for the same, as long as the old one, with another id and spelling."""
    name, _, kind = old.question.lower().rpartition(" ")
    bare = query(name, kind.upper())
    return bare if len(bare.payload) == len(old.payload) else query(name, kind.upper(), size=len(old.payload))


def flow_count(endpoints: int, least: int) -> int:
    """How many flows to send so that each of ``endpoints`` equally likely backends is hit almost surely; at least ``least``."""
    if endpoints < 2:
        return least
    needed = math.ceil(math.log(MISS_PROBABILITY) / math.log(1 - 1 / endpoints))
    return max(least, min(needed, MOST_FLOWS))


def command(name: str, probes: Sequence[Probe], *, netns: str | None) -> Command:
    """The command that sends the probes on a node, in the host's network or in the namespace at ``netns``."""
    script = importlib.resources.files(__package__).joinpath("node_sender.py").read_text(encoding="utf-8")
    plan = [_for_the_node(probe) for probe in probes]
    text = f"{script}\nmain(json.loads({json.dumps(json.dumps(plan))}))\n"
    # So long when nobody answers: that must be told by the sender, flow by flow, and not by its own end.
    waits = [probe.timeout * max(1, len(probe.queries)) for probe in probes]
    longest = sum(waits) / AT_ONCE + max(waits, default=0)
    # Without site and the environment: nothing of the node's own Python set-up is needed, and it starts in two thirds of the time.
    return Command(name, ("python3", "-I", "-S", "-"), stdin=text.encode(), timeout=5 + min(longest, 45), netns=netns)


def _for_the_node(probe: Probe) -> dict[str, object]:
    return {
        "id": probe.id,
        "protocol": probe.port.protocol,
        "ip": str(probe.target.ip),
        "port": probe.target.port,
        "sport": probe.sport,
        "payloads": [q.payload.hex() for q in probe.queries],
        "timeout": probe.timeout,
        "dont_fragment": probe.dont_fragment,
    }


def probes_for(
    port: ServicePort,
    vip: IPAddress,
    source: Source,
    window: str,
    queries: Sequence[tuple[Query, ...]],
    ports: Iterator[int],
) -> tuple[Probe, ...]:
    """One probe for each group of queries; an empty group is a bare TCP connect."""
    return tuple(
        Probe(f"{window}-{port.id}-{n}", window, source, port, Socket(vip, port.port), next(ports), group, ANSWER_TIMEOUT)
        for n, group in enumerate(queries, 1)
    )
