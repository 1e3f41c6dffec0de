"""A whole recording with neutral names and addresses."""

from __future__ import annotations

import dataclasses
import json
import re
import secrets
from collections.abc import Mapping as Any_
from typing import Any

from ..expectations import Upgrade
from ..experiments.private import NOT_KEPT
from ..inventory import Inventory
from ..observation import Observation, Trouble
from ..parse.errors import ParseError
from ..recording.model import Head, Recording, RecordingError, Round
from ..selection import Options
from .mapping import Mapping
from .objects import Objects
from .packets import PCAP, PCAPNG, Packets
from .probes import Probes
from .ranges import without_ranges
from .rules import Rules
from .texts import Texts

# Output without any name or address: versions, which look like addresses, and the like.
_AS_IT_IS = re.compile(r"kernel|os-release|tool-versions|kube-proxy-mode|ip-tables-names|version|kube-proxy-sync|cut-\d+-sync-\d+")
_RULES = re.compile(r"ip6?tables-.*|nft-kube-proxy.*|nft-other-tables|cut-\d+-nat.*|nat|save.*")
_PLAIN = re.compile(
    r"ip6?-.*|route-get-.*|conntrack.*|cut-\d+-conntrack-\d+|listeners|agent-ct|bpf-ct|agent-lb-list|pod-namespaces|connects"
)
_SENDER = re.compile(r"send-.*|outage-(?:host|pod)")
_SUBNET = re.compile(r'"local":\s*"([^"]+)",[^{}]*?"prefixlen":\s*(\d+)|\binet6? ([0-9a-fA-F.:]+)/(\d+)')


def redact(recording: Recording, key: bytes | None = None) -> Recording:
    """The recording with neutral names and addresses; its verdicts are the same.

    Args:
        recording: it must not be redacted already.
        key: what the map of addresses depends on; without one a new one, which is kept nowhere.

    Raises:
        RecordingError: something in it cannot be read well enough to be sure of what it holds.
    """
    if recording.head.redacted:
        raise RecordingError(f"{recording.source}: expected a recording with its own names, found one that is redacted already")
    work = _Redaction(recording, Mapping(key or secrets.token_bytes(32)))
    work.whole()
    work.mapping.settle()
    return work.whole()


class _Redaction:
    def __init__(self, recording: Recording, mapping: Mapping) -> None:
        self._recording = recording
        self.mapping = mapping
        self._texts = Texts(mapping)
        self._rules = Rules(mapping, self._texts)
        self._objects = Objects(mapping, self._texts)
        self._probes = Probes(mapping, self._texts)

    def whole(self) -> Recording:
        """One pass over everything: the API first, whose names all others use."""
        told, name = self._recording, self.mapping.names
        api = {phase: {self._name(key): self._answer(key, found) for key, found in answers.items()} for phase, answers in told.api.items()}
        plans = {
            name("node", node): {phase: self._plan(plan) for phase, plan in rounds.items()} for node, rounds in told.plans.items()
        }  # fmt: skip
        nodes, agents = self._places(told.nodes), self._places(told.agents)
        costs = {name("node", node): dict(rounds) for node, rounds in told.costs.items()}
        return Recording(nodes, api, agents, plans, told.clock, costs, self._head(told.head), told.source)

    def _places(self, places: Any_[str, Any_[str, Round]]) -> dict[str, dict[str, Round]]:
        node = self.mapping.names
        return {node("node", place): {phase: self._round(found) for phase, found in rounds.items()} for place, rounds in places.items()}

    def _round(self, found: Round) -> Round:
        if isinstance(found, Trouble):
            return self._trouble(found)
        return {self._name(name): self._observation(each) for name, each in found.items()}

    def _name(self, name: str) -> str:
        return self._texts.plain(name)

    def _plan(self, plan: Any_[str, Any] | Trouble) -> Any_[str, Any] | Trouble:
        return self._trouble(plan) if isinstance(plan, Trouble) else self._probes.plan(plan)

    def _trouble(self, trouble: Trouble) -> Trouble:
        free = self._texts.free
        return dataclasses.replace(
            trouble, node=self.mapping.names("node", trouble.node) if trouble.node != "api" else "api", problem=free(trouble.problem),
            command=free(trouble.command) if trouble.command else trouble.command, output=free(trouble.output),
            remedy=free(trouble.remedy) if trouble.remedy else trouble.remedy,
        )  # fmt: skip

    def _answer(self, name: str, found: Observation | Trouble) -> Observation | Trouble:
        if isinstance(found, Trouble):
            return self._trouble(found)
        try:
            document = json.loads(found.stdout)
            stdout = json.dumps(self._objects.answer(name, document)).encode()
        except ValueError:  # no JSON: what came of a change, or an answer that its test calls no answer
            return self._observation(found)
        except (AttributeError, KeyError, TypeError) as wrong:
            place = f"{self._recording.source}: the API's answer {name}"
            raise RecordingError(f"{place}: expected an object of the API, found another shape ({wrong})") from wrong
        return dataclasses.replace(self._asked(found), stdout=stdout)

    def _asked(self, found: Observation) -> Observation:
        """With its command, its node and what it complained of."""
        return dataclasses.replace(
            found, node="api" if found.node == "api" else self.mapping.names("node", found.node), name=self._name(found.name),
            argv=tuple(map(self._texts.free, found.argv)), stderr=self._texts.free(found.error_text).encode(),
        )  # fmt: skip

    def _observation(self, found: Observation) -> Observation:
        asked = self._asked(found)
        if found.stdout[:4] in (*PCAP, PCAPNG) or found.name.startswith("capture-"):
            return dataclasses.replace(asked, stdout=self._capture(found))
        return dataclasses.replace(asked, stdout=self._output(found.name, found.text).encode())

    def _capture(self, found: Observation) -> bytes:
        if not self.mapping.settled or not found.stdout:
            return found.stdout
        try:
            return Packets(self.mapping.addresses, self.mapping.dns).capture(found.stdout)
        except ParseError as wrong:
            raise RecordingError(f"{self._recording.source}: {found.node}: {found.name}: {wrong}") from wrong

    def _output(self, name: str, text: str) -> str:
        if _AS_IT_IS.fullmatch(name):
            return text
        if _RULES.fullmatch(name):
            return self._rules.rules(without_ranges(text) if name == "nft-other-tables" else text)
        if _SENDER.fullmatch(name):
            return self._probes.sender(text)
        if not self.mapping.settled:
            self._see(name, text)
        return self._texts.plain(text) if _PLAIN.fullmatch(name) else self._texts.free(text)

    def _see(self, name: str, text: str) -> None:
        """The networks of interfaces, and names that only the agent's output has."""
        see = self.mapping.names
        if name.startswith(("ip-addr", "ip6-addr")):
            for json_ip, json_length, ip, length in _SUBNET.findall(text):
                self.mapping.see_subnet(f"{json_ip or ip}/{json_length or length}")
        elif name == "agent-services":
            for namespace, service in re.findall(r'"name":\s*"([^"]+)",\s*"namespace":\s*"([^"]+)"', text):
                see("namespace", service)
                see("service", namespace)
        elif name.startswith("agent-status"):
            for namespace, pod in re.findall(r'(?:\(|": ")([a-z0-9][-a-z0-9]*)/([a-z0-9][-a-z0-9.]*)(?:\)|")', text):
                see("namespace", namespace)
                see("pod", pod)

    def _head(self, head: Head) -> Head:
        names, options = self.mapping.names, head.options
        return dataclasses.replace(
            head, by="a machine", redacted=True, inventory=self._inventory(head.inventory),
            options=Options(
                services=tuple(map(self._key, options.services)), nodes=tuple(names("node", node) for node in options.nodes),
                pods=tuple(map(self._pod, options.pods)), passive=options.passive, disruptive=options.disruptive,
            ),
        )  # fmt: skip

    def _key(self, key: str) -> str:
        namespace, _, service = key.partition("/")
        return f"{self.mapping.names('namespace', namespace)}/{self.mapping.names('service', service)}"

    def _pod(self, key: str) -> str:
        namespace, _, pod = key.partition("/")
        return f"{self.mapping.names('namespace', namespace)}/{self.mapping.names('pod', pod)}"

    def _inventory(self, told: Inventory) -> Inventory:
        names, outage, expect = self.mapping.names, told.api_outage, told.expect
        if outage:
            outage = outage.model_copy(update={"node": names("node", outage.node), "do": NOT_KEPT, "undo": NOT_KEPT})
        if expect.cluster_cidr:
            cidr = expect.cluster_cidr
            new = self.mapping.addresses.network(cidr) if self.mapping.settled else cidr
            expect = expect.model_copy(update={"cluster_cidr": new})
        return told.model_copy(
            update={
                "nodes": {names("node", name): node for name, node in told.nodes.items()},
                "services": tuple(map(self._key, told.services)), "pods": tuple(map(self._pod, told.pods)),
                "probes": {self._key(key): ports for key, ports in told.probes.items()}, "api_outage": outage, "expect": expect,
                "upgrade": Upgrade(),  # a person's own words, which only a comparison needs
                "cluster_domain": self.mapping.dns.name(told.cluster_domain),
            }
        )  # fmt: skip
