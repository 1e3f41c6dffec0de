"""The time at which rules are judged: again while kube-proxy was seen to be behind, and never without a cause that was seen."""

from __future__ import annotations

import dataclasses
import ipaddress

import pytest
import rule_cases

from fixtures import rule_facts, standing
from fixtures.standing import Look
from selftests import traffic_recording as recording
from servicepath.model.difference import Difference
from servicepath.model.services import Service
from servicepath.observation import CouldNotSee, Observation, Trouble

KNOWN = recording.objects()
SERVICE = KNOWN.service("kube-system/kube-dns")
assert isinstance(SERVICE, Service)
SAVE = recording.answers("master")["cut-0-nat"].stdout
READ_AT = 1000.0
# An endpoint of the Service elsewhere than kube-proxy's rules lead to.
AHEAD = dataclasses.replace(
    KNOWN,
    endpoints=tuple(
        dataclasses.replace(e, ip=ipaddress.ip_address("10.42.1.250")) if e.service == "kube-dns" else e for e in KNOWN.endpoints
    ),
)


class SteppingClock:
    """Time that passes only while it is waited for, ``step`` seconds at each."""

    def __init__(self, step):
        self.step, self.time = step, 0.0

    def now(self, what):
        """Seconds."""
        return self.time

    def sleep(self, seconds):
        """Let time pass."""
        self.time += self.step


def said(*, synced=0.0, queued=0.0, status=0):
    """What master says; its rules are the recorded ones."""
    prefix = "kubeproxy_sync_proxy_rules_last"
    metrics = f"{prefix}_timestamp_seconds {synced}\n{prefix}_queued_timestamp_seconds {queued}\n"

    def one(name, text, status=0):
        return Observation("master", name, (name,), status, text, b"", READ_AT, 0.1)

    return {
        "iptables-nft-save": one("iptables-nft-save", SAVE),
        "iptables-legacy-save": one("iptables-legacy-save", b"", 127),
        "ip-tables-names": one("ip-tables-names", b"", 1),
        "kube-proxy-sync": one("kube-proxy-sync", metrics.encode() if not status else b"", status),
    }


def look(before=KNOWN, after=None, **metrics):
    return Look(before, {"master": said(**metrics)}, {}, after or before)


def settled(first, *later, step=1.0):
    """The look that is judged, what the report was told, and the looks that were not needed."""
    told, left = [], list(later)
    found = standing.settle(first, lambda: left.pop(0), [SERVICE], told.append, SteppingClock(step))
    return found, told, left


def test_a_node_at_rest_is_looked_at_once():
    for first in (look(), look(synced=999.0), look(queued=999.0)):
        found, told, _ = settled(first)
        assert (found.cause, found.unlike, told) == (None, {}, [])


@pytest.mark.parametrize(
    ("metrics", "cause"),
    [
        ({"synced": 998.0, "queued": 999.5}, "kube-proxy has yet to write rules that it was asked for"),
        ({"synced": 1000.2, "queued": 999.9}, "kube-proxy wrote its rules after they were read"),
        ({"synced": 998.5, "queued": 998.0}, "kube-proxy wrote its rules 1.5 s before they were read"),
    ],
)
def test_rules_behind_an_api_that_changed_before_the_first_read_are_looked_at_again(metrics, cause):
    found, told, left = settled(look(AHEAD, **metrics), look(AHEAD, **metrics), look(KNOWN), look(KNOWN))

    assert (found.cause, len(left)) == (None, 1)
    assert [line.startswith(f"rules and maps, look {n}: master") for n, line in enumerate(told, 1)] == [True, True]
    assert all(line.endswith(f"and {cause}: looked again") for line in told)


def test_a_difference_without_a_cause_that_was_seen_is_judged_at_once():
    for metrics in ({}, {"synced": 900.0, "queued": 899.0}, {"status": 7}, {"status": 127}):  # at rest, at rest, stopped, no curl
        found, told, _ = settled(look(AHEAD, **metrics))
        assert (found.objects, found.cause, told) == (AHEAD, None, [])
        found.require_still("master")


def test_a_difference_that_stays_is_judged_in_the_end():
    found, told, _ = settled(look(AHEAD, queued=999.0), look(AHEAD, queued=999.0), step=11.0)

    ends = ("looked again", "judged as they are")
    assert told == [f"rules and maps, look {n}: {found.cause}: {end}" for n, end in enumerate(ends, 1)]
    found.require_still("master")  # nothing moved: what is left is a difference and no doubt


def test_services_that_keep_moving_while_the_nodes_are_asked_are_no_verdict():
    found, told, _ = settled(look(AHEAD, KNOWN), look(AHEAD, KNOWN), step=11.0)

    assert found.moved == {SERVICE.key}
    assert "kube-system/kube-dns changed while the nodes were asked: judged as they are" in told[1]
    with pytest.raises(CouldNotSee, match="kube-system/kube-dns"):
        found.require_still("master")
    with pytest.raises(CouldNotSee):
        rule_facts.still.__wrapped__(KNOWN.node("master"), SERVICE, KNOWN, found)
    rule_facts.still.__wrapped__(KNOWN.node("master"), KNOWN.service("default/kubernetes"), KNOWN, found)


def test_a_change_that_the_rules_do_not_contradict_is_no_doubt():
    found, told, _ = settled(look(KNOWN, AHEAD))

    assert (found.moved, found.unlike, told) == ({SERVICE.key}, {}, [])
    rule_facts.still.__wrapped__(KNOWN.node("master"), SERVICE, KNOWN, found)


def test_a_service_that_was_itself_changed_since_the_run_began_is_no_longer_the_one_under_test():
    other = dataclasses.replace(SERVICE, internal_traffic_policy="Local")
    found, *_ = settled(look(dataclasses.replace(KNOWN, services=(other,))))

    with pytest.raises(CouldNotSee, match="was changed since the run began"):
        rule_facts.still.__wrapped__(KNOWN.node("master"), SERVICE, KNOWN, found)


def test_a_node_that_could_not_be_asked_disturbs_no_other():
    blind = Look(AHEAD, {"master": said(), "worker1": Trouble("worker1", "ssh failed")}, {}, KNOWN)
    found, *_ = settled(blind, blind, step=11.0)

    assert set(found.unlike) == {"master"}


def of_another_set_up(mode, save=b"*nat\nCOMMIT\n", nft=""):
    """What a node says whose kube-proxy has no rules in iptables."""
    one = said()["iptables-legacy-save"]
    texts = {"iptables-nft-save": save, "kube-proxy-mode": mode.encode(), "nft-kube-proxy": nft.encode()}
    return said() | {name: dataclasses.replace(one, name=name, status=0, stdout=text) for name, text in texts.items()}


def with_one_endpoint(address):
    """The API with the DNS Service's UDP port alone, and one endpoint behind it."""
    service = dataclasses.replace(SERVICE, ports=tuple(port for port in SERVICE.ports if port.protocol == "UDP"))
    first = next(e for e in KNOWN.endpoints if e.service == "kube-dns")
    endpoint = dataclasses.replace(first, ip=ipaddress.ip_address(address))
    return dataclasses.replace(KNOWN, services=(service,), endpoints=(endpoint,))


def test_rules_of_nftables_mode_behind_endpoints_that_change_meanwhile_are_no_verdict():
    node = of_another_set_up("nftables", nft=rule_cases.text("06", "nft-list-table-ip-kube-proxy.txt"))
    still, ahead = with_one_endpoint("10.42.0.171"), with_one_endpoint("10.42.1.250")

    assert settled(Look(still, {"master": node}, {}, ahead))[0].unlike == {}
    found, told, _ = settled(*[Look(ahead, {"master": node}, {}, still)] * 2, step=11.0)
    assert "changed while the nodes were asked: looked again" in told[0]
    with pytest.raises(CouldNotSee, match="kube-system/kube-dns"):
        found.require_still("master", frozenset({SERVICE.key}))


def test_cilium_in_kube_proxys_place_behind_endpoints_that_change_meanwhile_is_no_verdict(monkeypatch):
    monkeypatch.setattr(standing, "_of_maps", lambda *_: iter([Difference("master: the map", "holds other backends", "one", "other")]))
    changing = Look(AHEAD, {"master": of_another_set_up("")}, {"master": {}}, KNOWN)

    found, *_ = settled(changing, changing, step=11.0)
    with pytest.raises(CouldNotSee, match="kube-system/kube-dns"):
        found.require_still("master", frozenset({SERVICE.key}))
