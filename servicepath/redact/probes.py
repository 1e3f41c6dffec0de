"""What was sent (_plan.json) and what came back (the sender's lines), with neutral names, addresses and DNS messages."""

from __future__ import annotations

import json
import re
from typing import Any

from .mapping import Mapping
from .texts import Texts


class Probes:
    """Rewrites plans and senders' output by a Mapping; in the first pass they come back as they are."""

    def __init__(self, mapping: Mapping, texts: Texts) -> None:
        self._mapping = mapping
        self._texts = texts

    def plan(self, plan: Any) -> dict[str, Any]:
        """A plan (recording/plans.py)."""
        plain = self._texts.plain
        found = dict(plan)
        for key in ("addresses", "client_also"):
            found[key] = [plain(ip) for ip in plan.get(key) or ()]
        for key in ("client", "client_netns"):
            found[key] = plain(plan[key]) if plan.get(key) else plan.get(key)
        found["taps"] = [tap | {"filter": plain(tap["filter"])} for tap in plan["taps"]]
        found["probes"] = [self._probe(probe) for probe in plan["probes"]]
        return found

    def _probe(self, probe: dict[str, Any]) -> dict[str, Any]:
        namespace, service = probe["service"].split("/")
        names = self._mapping.names
        new = f"{names('namespace', namespace)}/{names('service', service)}"
        said = ((query, self._question(query["question"]), self._payload(query["payload"])) for query in probe["queries"])
        queries = [query | {"question": question, "payload": payload} for query, question, payload in said]
        return probe | {"id": self.flow(probe["id"]), "service": new, "ip": self._texts.plain(probe["ip"]), "queries": queries}

    def flow(self, flow: str) -> str:
        """``host-kube-dns:dns/UDP-3``: the window, the Service's name and its port."""
        found = re.fullmatch(r"(?P<window>.*?)-(?P<service>[a-z0-9][-a-z0-9.]*)(?P<port>:[^:]*|/[^:]*)", flow)
        if not found:
            return flow
        window, service = found["window"], found["service"]
        while "-" in service and not self._mapping.names.knows("service", service):  # a window may have hyphens, and a Service, too
            more, _, service = service.partition("-")
            window = f"{window}-{more}"
        known = self._mapping.names.knows("service", service)
        return f"{window}-{self._mapping.names('service', service)}{found['port']}" if known else flow

    def sender(self, text: str) -> str:
        """The sender's lines; a line that is none of its own is text for people."""
        return "".join(self._line(line) for line in text.splitlines(keepends=True))

    def _line(self, line: str) -> str:
        try:
            told = json.loads(line)
            answers = [each | {"payload": self._payload(each["payload"]), "from": self._socket(each["from"])} for each in told["answers"]]
            told |= {"id": self.flow(told["id"]), "answers": answers}
        except (ValueError, KeyError, TypeError):
            return self._texts.free(line)
        for key in ("error", "connected"):
            told[key] = self._texts.free(told[key]) if isinstance(told.get(key), str) else told.get(key)
        return json.dumps(told) + "\n" * line.endswith("\n")

    def _socket(self, socket: list[Any]) -> list[Any]:
        return [self._texts.plain(socket[0]), *socket[1:]] if socket else socket

    def _payload(self, payload: str) -> str:
        return self._mapping.dns.message(bytes.fromhex(payload)).hex() if self._mapping.settled else payload

    def _question(self, question: str | None) -> str | None:
        return self._mapping.dns.question(question) if question and self._mapping.settled else question
