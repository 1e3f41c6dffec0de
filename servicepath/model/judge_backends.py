"""Does a Service's chain choose among its endpoints fairly, and does each endpoint's chain translate to its endpoint?"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator

from . import chain_names, judge_nft, service_rules
from .addresses import IPAddress, Socket
from .difference import Difference
from .expected_endpoints import Expected
from .nft_rules import NftTable
from .rules import Rule
from .service_rules import Choice, NodeRules, ServiceWalk
from .services import Service, ServicePort

# kube-proxy writes 1/n with ten digits and the kernel keeps 31 bits of it; up to v1.18 it wrote five digits.
_TOLERANCE, _FIVE_DIGITS_TOLERANCE = 1e-6, 2e-5


@dataclasses.dataclass(frozen=True, slots=True)
class Translation:
    """Where an endpoint's chain sends to, and how that is known.

    Attributes:
        backend: nft or legacy.
        choice: the jump and the chain's rules.
        socket: where to; None when it is not known, or when the rules are broken.
        proof: ``rule``: the DNAT rule says so (or is seen to be broken). ``hash``: the rule could not be seen, but the chain's name
            is the hash of this serving endpoint. ``comment``: only the jump's comment says so. None: it cannot be told.
    """

    backend: str
    choice: Choice
    socket: Socket | None
    proof: str | None

    def __str__(self) -> str:
        """The chain, where it sends to, and how that is known."""
        known = {
            "rule": "its DNAT rule says so",
            "hash": "the rule could not be read; the chain's name is the hash of this endpoint",
            "comment": "the rule could not be read; only a comment says so",
            None: "the rule could not be read, and no serving endpoint has this hash",
        }
        return f"{self.choice.chain} ({self.backend}): {self.socket or 'no endpoint'}: {known[self.proof]}"


def translations(port: ServicePort, ip: IPAddress, nat: NodeRules | NftTable, expected: Expected) -> tuple[Translation, ...]:
    """Tell where each endpoint chain of the port sends to; by weaker proof where the tool could not print the rule.

    An iptables that is older than kube-proxy's prints ``DNAT [unsupported revision]``: the remedy is the iptables of
    kube-proxy's image, or a newer one on the host.
    """
    if isinstance(nat, NftTable):
        return tuple(_of_nft(nat, port, ip))
    names = _predicted(port, expected)
    found = []
    for backend, ruleset in nat.holding:
        for choice in service_rules.walk_from_services(ruleset, ip, port.protocol, port.port).choices:
            found.append(_translation(backend, choice, names))
    return tuple(found)


def _of_nft(table: NftTable, port: ServicePort, ip: IPAddress) -> Iterator[Translation]:
    """The endpoints' chains of kube-proxy's nftables table; since v1.36 it is the Service's own chain that translates."""
    found = table.service(ip, port.protocol, port.port)
    for socket in found.endpoints if found else ():
        name = judge_nft.chain_of(port, socket)
        own = found.chain if found else ""
        where = name if name in table.lines else own
        lines = table.lines.get(where, ())
        jump = Rule("kube-proxy", own, 1, 0, f"goto {where}", target=where)
        dnat = Rule("kube-proxy", where, 1, 0, "; ".join(lines), target="DNAT", to_destination=str(socket))
        yield Translation("nftables", Choice(where, jump, 1.0, True, None, (dnat,)), socket, "rule")


def _translation(backend: str, choice: Choice, names: dict[str, Socket]) -> Translation:
    if choice.told:
        return Translation(backend, choice, choice.socket, "rule")
    predicted = names.get(choice.chain)
    if predicted is not None and _hairpin_agrees(choice.hairpin, predicted):
        return Translation(backend, choice, predicted, "hash")
    return Translation(backend, choice, choice.commented, "comment" if choice.commented else None)


def _hairpin_agrees(rule: Rule | None, socket: Socket) -> bool:
    return rule is None or rule.source is None or rule.source.network.network_address == socket.ip


def _predicted(port: ServicePort, expected: Expected) -> dict[str, Socket]:
    """The names that the chains of the serving endpoints have, with what they stand for."""
    return {name: socket for socket in expected.sockets for name in chain_names.endpoint_chains(port, socket)}


def judge_endpoint_dnat(
    node: str, port: ServicePort, seen: tuple[Translation, ...], expected: Expected
) -> tuple[Difference, ...]:
    """Judge that each endpoint's chain translates to exactly its serving endpoint, ip and port, by DNAT.

    Translations without proof are not judged: see ``untold``.
    """
    names = _predicted(port, expected)
    where = f"{node}: {port.chain_key}/{port.protocol}"
    if not seen:
        return (Difference(where, "has no endpoint chain", _listed(expected.sockets), "none"),)
    wrong: list[Difference] = []
    for each in seen:
        if each.proof is not None:
            subject = f"{node}: {each.choice.chain} of {port.chain_key}/{port.protocol} ({each.backend})"
            wrong.extend(_translates(subject, port, each, names, expected))
    return tuple(wrong)


def untold(seen: tuple[Translation, ...]) -> tuple[Translation, ...]:
    """The translations that cannot be told at all: neither the rule could be seen nor does the chain's name prove it."""
    return tuple(each for each in seen if each.proof is None)


def _translates(
    subject: str, port: ServicePort, seen: Translation, names: dict[str, Socket], expected: Expected
) -> Iterator[Difference]:
    rules = seen.choice.dnat
    lines = tuple(rule.raw for rule in rules) or (seen.choice.jump.raw,)
    own = names.get(seen.choice.chain)
    wanted = str(own) if own else f"one of {_listed(expected.sockets)}"
    if seen.proof == "rule" and seen.choice.unreached:
        taking = tuple(rule for rule in seen.choice.strange if rule.target != "DNAT")
        actual = f"{taking[0].target}, and packets never come to the translation"
        lines = (*(rule.raw for rule in taking), *lines)
        yield Difference(subject, "ends the packet's way before it is translated", f"DNAT to {wanted}", actual, lines)
        return
    if seen.proof == "rule" and (len(rules) != 1 or seen.socket is None):
        actual = ", ".join(f"DNAT to {rule.to_destination}" for rule in rules) or "no DNAT rule"
        yield Difference(subject, "does not translate to one endpoint", wanted, actual, lines)
        return
    for rule in seen.choice.strange if seen.proof == "rule" else ():
        if rule.target == "DNAT":
            yield Difference(subject, "translates only some packets", f"DNAT to {wanted} without a condition", rule.raw, (rule.raw,))
        else:
            problem = "lets some packets go before they are translated"
            yield Difference(subject, problem, f"nothing but DNAT to {wanted}", str(rule.target), (rule.raw, *lines))
    if seen.socket not in expected.sockets:
        yield Difference(subject, "translates to what is no serving endpoint", wanted, str(seen.socket), lines)
    elif own is not None and own != seen.socket:
        yield Difference(subject, "translates to another endpoint than the one it is named after", wanted, str(seen.socket), lines)
    for rule in rules:
        if rule.protocol not in (None, port.protocol.lower()):
            yield Difference(subject, "translates another protocol", port.protocol, str(rule.protocol).upper(), (rule.raw,))


def judge_backend_choice(
    node: str, service: Service, port: ServicePort, ip: IPAddress, nat: NodeRules | NftTable, expected: Expected
) -> tuple[Difference, ...]:
    """Judge that the Service's chain has one jump a serving endpoint, with equal chances, and affinity's rules before them."""
    if isinstance(nat, NftTable):
        return judge_nft.backend_choice(node, port, ip, nat, expected)
    wrong: list[Difference] = []
    for backend, ruleset in nat.holding:
        walk = service_rules.walk_from_services(ruleset, ip, port.protocol, port.port)
        place = f"{node}: {walk.chain or 'the chain'} of {port.chain_key}/{port.protocol} ({backend})"
        wrong.extend(_jumps(place, port, walk, expected))
        wrong.extend(_shares(place, walk))
        wrong.extend(_affinity(place, walk, service.session_affinity == "ClientIP"))
        for rule in walk.strange:
            wrong.append(Difference(place, "holds a rule that kube-proxy does not write", "none such", rule.raw, (rule.raw,)))
    return tuple(wrong)


def _jumps(place: str, port: ServicePort, walk: ServiceWalk, expected: Expected) -> Iterator[Difference]:
    names = _predicted(port, expected)
    lines = tuple(choice.jump.raw for choice in walk.choices)
    reached: collections.Counter[Socket] = collections.Counter()
    for choice in walk.choices:
        socket = names.get(choice.chain) or choice.socket
        if socket is None or socket not in expected.sockets:
            target = f"{choice.chain}, which leads to {socket or 'no endpoint that is known'}"
            evidence = (choice.jump.raw, *(rule.raw for rule in choice.dnat))
            yield Difference(place, "jumps to what is no serving endpoint", _listed(expected.sockets), target, evidence)
        else:
            reached[socket] += 1
    for socket, times in sorted(reached.items(), key=lambda item: str(item[0])):
        if times > 1:
            yield Difference(place, f"jumps more than once to {socket}", "one jump", f"{times} jumps", lines)
    missing = expected.sockets - reached.keys()
    if missing and (expected.exact or not reached):
        yield Difference(place, "has no jump to a serving endpoint", _listed(missing), _listed(reached), lines)


def _shares(place: str, walk: ServiceWalk) -> Iterator[Difference]:
    if not walk.choices:
        return
    fair = 1 / len(walk.choices)
    chances = [choice.jump.probability for choice in walk.choices if choice.jump.probability is not None]
    tolerance = _FIVE_DIGITS_TOLERANCE if all(_has_five_digits(chance) for chance in chances) else _TOLERANCE
    if any(abs(choice.share - fair) > tolerance for choice in walk.choices):
        actual = ", ".join(f"{choice.share:.6f} {choice.chain}" for choice in walk.choices)
        lines = tuple(choice.jump.raw for choice in walk.choices)
        yield Difference(place, "does not give endpoints equal chances", f"{fair:.6f} each", actual, lines)


def _has_five_digits(chance: float) -> bool:
    scaled = chance * 1e5
    return abs(scaled - round(scaled)) < 1e-3


def _affinity(place: str, walk: ServiceWalk, wanted: bool) -> Iterator[Difference]:
    lines = tuple(rule.raw for rule in walk.affinity)
    if not wanted:
        if walk.affinity:
            yield Difference(place, "keeps clients at endpoints without sessionAffinity", "no recent rule", f"{len(lines)}", lines)
        return
    jumped = sorted(str(rule.target) for rule in walk.affinity)
    chosen = sorted(choice.chain for choice in walk.choices)
    if jumped != chosen:
        missing = ", ".join(sorted(set(chosen) - set(jumped))) or "none"
        problem = "does not keep clients at their endpoint (sessionAffinity ClientIP)"
        yield Difference(place, problem, f"one recent rule for each of {len(chosen)}", f"missing: {missing}", lines)
    first = min((choice.jump.position for choice in walk.choices), default=0)
    late = tuple(rule.raw for rule in walk.affinity if rule.position > first)
    if late:
        yield Difference(place, "chooses by chance before it looks for the client", "recent rules first", "later", late)
    for choice in walk.choices:
        for rule in choice.dnat:
            if rule.affinity != "set" or rule.affinity_name != choice.chain:
                problem = f"does not remember clients in {choice.chain}"
                yield Difference(place, problem, f"recent --set --name {choice.chain}", "no such match", (rule.raw,))


def _listed(sockets: object) -> str:
    return ", ".join(sorted(map(str, sockets))) if isinstance(sockets, (set, frozenset, dict)) and sockets else "none"
