"""Read what node_sender.py printed: one line of JSON a flow, with the answers' bytes.

    {"id": "host-kube-dns:dns/UDP-1", "answers": [{"payload": "6d2e…", "from": ["10.43.0.10", 53], "took": 0.001}],
     "connected": null, "error": null}

``took`` is in seconds.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Sequence
from typing import Any

import dns.exception
import dns.message
import dns.rcode

from ..model.addresses import Socket
from ..model.flows import Answer, Flow, Probe
from .errors import ParseError

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
    results: dict[str, tuple[dict[str, Any], list[Answer]]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        try:
            result = json.loads(line)
            results[result["id"]] = (result, [_answer(one) for one in result["answers"]])
        except (ValueError, KeyError, TypeError) as error:
            raise ParseError(_TOOL, number, line, "one JSON object a flow, as the sender prints it") from error
    missing = [probe.id for probe in probes if probe.id not in results]
    if missing:
        raise ParseError(_TOOL, 0, ", ".join(missing), f"a line for each of the {len(probes)} flows")
    for probe in probes:
        if len(results[probe.id][1]) > len(probe.queries):
            raise ParseError(_TOOL, 0, json.dumps(results[probe.id][0]), f"no more than {len(probe.queries)} answers")
    return tuple(_flow(probe, *results[probe.id]) for probe in probes)


def _flow(probe: Probe, result: dict[str, object], answers: list[Answer]) -> Flow:
    padded = answers + [None] * (len(probe.queries) - len(answers))
    connected, error = result.get("connected"), result.get("error")
    came = connected if isinstance(connected, bool) else None
    return Flow(probe, tuple(padded), came, str(error) if error else None, result.get("unsent") is True)


def _answer(said: dict[str, Any]) -> Answer:
    ip, port = said["from"]
    source = Socket(ipaddress.ip_address(str(ip).removeprefix("::ffff:")), int(port))
    payload = bytes.fromhex(str(said["payload"]))
    took = float(str(said["took"]))
    try:
        message = dns.message.from_wire(payload, ignore_trailing=True)
    except dns.exception.DNSException:
        return Answer(source, None, None, (), took)
    values = tuple(sorted(item.to_text() for rrset in message.answer for item in rrset))
    return Answer(source, message.id, dns.rcode.to_text(message.rcode()), values, took)
