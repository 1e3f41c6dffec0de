"""Read what node_sender.py printed: one line of JSON a flow, with the answers' bytes.

    {"id": "host-kube-dns:dns/UDP-1", "answers": [{"payload": "6d2e…", "from": ["10.43.0.10", 53], "took": 0.001}],
     "connected": null, "error": null}

``took`` is in seconds.
"""

from __future__ import annotations

import ipaddress
import json
import math
from collections.abc import Sequence

import dns.exception
import dns.message
import dns.rcode

from ..model.addresses import Socket
from ..model.flows import Answer, Flow, Probe
from .errors import ParseError
from .fields import Fields
from .lines import numbered

_TOOL = "probe sender"


def parse_sender(text: str, probes: Sequence[Probe]) -> tuple[Flow, ...]:
    """Join the sender's lines with the probes they answer.

    Args:
        text: the sender's standard output.
        probes: all probes that the command was given.

    Returns:
        One Flow a probe, in the probes' order.

    Raises:
        ParseError: a line that is no such JSON, or a probe without a line (the sender was cut off).
    """
    results: dict[str, tuple[Fields, list[Answer]]] = {}
    for number, line in numbered(_TOOL, text):
        said = Fields(_TOOL, _decoded(number, line), line=number)
        if said.text("id") in results or not said.has("answers"):
            raise ParseError(_TOOL, number, line, "one line a flow, with its answers")
        results[said.text("id")] = (said, [_answer(one) for one in said.children("answers")])
    missing = [probe.id for probe in probes if probe.id not in results]
    if missing:
        raise ParseError(_TOOL, 0, ", ".join(missing), f"a line for each of the {len(probes)} flows")
    for probe in probes:
        said, answers = results[probe.id]
        if len(answers) > len(probe.queries):
            raise said.error("answers", said.items("answers"), f"no more than {len(probe.queries)} answers")
    return tuple(_flow(probe, *results[probe.id]) for probe in probes)


def _decoded(number: int, line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ParseError(_TOOL, number, line, "one JSON object a flow, as the sender prints it") from error


def _flow(probe: Probe, said: Fields, answers: list[Answer]) -> Flow:
    padded = answers + [None] * (len(probe.queries) - len(answers))
    return Flow(probe, tuple(padded), said.flag("connected"), said.optional_text("error"), said.flag("unsent") is True)


def _answer(said: Fields) -> Answer:
    place, took = said.items("from"), said.value.get("took")
    if len(place) != 2 or not isinstance(place[0], str) or isinstance(place[1], bool) or place[1] not in range(65536):
        raise said.error("from", place, "an address and a port")
    source = Socket(said.convert("from", place[0].removeprefix("::ffff:"), ipaddress.ip_address, "an IP address"), int(place[1]))
    # A clock that was set back meanwhile makes it negative.
    if isinstance(took, bool) or not isinstance(took, int | float) or not math.isfinite(took):
        raise said.error("took", took, "seconds")
    payload = said.convert("payload", said.optional_text("payload") or "", bytes.fromhex, "bytes in hexadecimal")
    try:
        message = dns.message.from_wire(payload, ignore_trailing=True)
    except dns.exception.DNSException:
        return Answer(source, None, None, (), took)
    values = tuple(sorted(item.to_text() for rrset in message.answer for item in rrset))
    return Answer(source, message.id, dns.rcode.to_text(message.rcode()), values, took)
