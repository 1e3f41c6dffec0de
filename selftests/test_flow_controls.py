"""The controls of conclusions about traffic: what was not seen is no verdict, and what was seen and is wrong is judged."""

import dataclasses
import types

import pytest

from fixtures import counted, facts, flows, rule_facts, selected, traffic_facts
from fixtures.standing import Standing
from selftests import traffic_recording as recording
from servicepath.model import expected_endpoints, judge_wire
from servicepath.model.flows import Source
from servicepath.observation import CouldNotSee, Trouble

KNOWN = recording.objects()
SERVICE = KNOWN.service("kube-system/kube-dns")
DNS = SERVICE.ports[0]
VIP = SERVICE.cluster_ips[0]


@pytest.fixture(scope="module")
def far():
    """The experiment of master, whose backend is on another node."""
    return recording.read("master", KNOWN)


@pytest.fixture(scope="module")
def near():
    """The experiment of worker1, whose backend is its own."""
    return recording.read("worker1", KNOWN)


def given(fixture, *arguments):
    """What a fixture's own function returns."""
    return fixture.__wrapped__(*arguments)


def of(run, source):
    return run.traffic.of(DNS, source, source.value.lower())


def changed(run, change):
    """The experiment with each trace changed."""
    return dataclasses.replace(run, traffic=dataclasses.replace(run.traffic, traces=tuple(map(change, run.traffic.traces))))


def dropping(run, *roles):
    """The experiment whose captures of these roles lost packets."""
    captures = {
        role: dataclasses.replace(one, complete=False, problem="7 packets dropped by kernel") if role in roles else one
        for role, one in run.traffic.captures.items()
    }
    return dataclasses.replace(run, traffic=dataclasses.replace(run.traffic, captures=captures))


@pytest.mark.parametrize("role", ["tunnel", "underlay"])
def test_a_tunnel_capture_that_lost_packets_does_not_prove_their_absence(near, role):
    given(flows.seen_at_both_pods, near, of(near, Source.POD))

    with pytest.raises(CouldNotSee, match="not whole"):
        given(flows.seen_at_both_pods, dropping(near, role), of(near, Source.POD))


def test_without_a_tunnel_device_nothing_shows_that_a_flow_was_not_tunnelled(near):
    captures = {role: one for role, one in near.traffic.captures.items() if role != "tunnel"}
    blind = dataclasses.replace(near, traffic=dataclasses.replace(near.traffic, captures=captures))

    with pytest.raises(CouldNotSee, match="nothing was captured as tunnel"):
        given(flows.seen_at_both_pods, blind, of(near, Source.POD))


def test_a_large_packet_that_a_capture_may_have_lost_is_no_verdict(far):
    node = KNOWN.node("master")

    with pytest.raises(CouldNotSee, match="not whole"):
        given(flows.sized_flows, dropping(far, "underlay"), DNS, of(far, Source.POD), (), KNOWN, node)


def test_a_pods_flow_that_never_left_the_pod_proves_nothing(far):
    pod = of(far, Source.POD)
    stuck = dataclasses.replace(
        pod[0], ct=(), packets={}, flow=dataclasses.replace(pod[0].flow, answers=(None,), error="Network is unreachable")
    )

    assert given(counted.pod_growth, far, DNS, VIP, pod).svc.packets == 0
    with pytest.raises(CouldNotSee, match="was not seen to leave the Pod"):
        given(counted.pod_growth, far, DNS, VIP, (stuck, *pod[1:]))


def test_a_flow_that_nobody_translated_is_judged_where_the_underlay_carried_it(far):
    backend = of(far, Source.POD)[0].backend.ip

    def leak(trace):
        if trace.probe.source is not Source.POD:
            return trace
        plain = [dataclasses.replace(p, outer=p.inner, inner=None, vni=None) for p in trace.packets["underlay"] if p.inner]
        there = [p for p in plain if p.outer.destination == backend]
        plain = [dataclasses.replace(p, outer=dataclasses.replace(p.outer, destination=VIP)) for p in there]
        return dataclasses.replace(trace, ct=(), backend=None, backend_node=None, packets={"underlay": tuple(plain)})

    run = changed(far, leak)
    judged = given(flows.remote_flows, run, of(run, Source.HOST), KNOWN, KNOWN.node("master"))

    assert len(judge_wire.carrying(judged, "underlay", VIP)) == 5
    assert judge_wire.carrying(given(flows.remote_flows, far, of(far, Source.HOST), KNOWN, KNOWN.node("master")), "underlay", VIP) == ()


def test_pods_flows_whose_backend_could_not_be_seen_are_not_left_out_silently(far):
    blind = dataclasses.replace(far, missing={"bpf ct": Trouble("master", "no agent")})

    with pytest.raises(CouldNotSee, match="no agent"):
        given(flows.remote_flows, blind, of(far, Source.HOST), KNOWN, KNOWN.node("master"))


def test_a_conntrack_entry_that_ran_out_before_the_last_cut_was_seen_all_the_same():
    empty = {f"cut_{number}_conntrack_{table}": b"" for number in range(2, 6) for table in (1, 2)}
    run = recording.read("master", KNOWN, **empty)

    assert all(trace.conntrack for trace in of(run, Source.HOST))
    assert traffic_facts._ever([]) == ()


def test_a_service_that_is_local_is_probed_only_from_nodes_that_have_an_endpoint():
    local = dataclasses.replace(SERVICE, internal_traffic_policy="Local")
    node = KNOWN.node_of(next(iter(KNOWN.serving(SERVICE, DNS))).ip)
    other = next(n for n in KNOWN.nodes if n.name != node)
    here, there = (expected_endpoints.expect(KNOWN.endpoints_of(local), local, DNS, name, 4) for name in (node, other.name))

    assert given(facts.serving, here) == KNOWN.serving(SERVICE, DNS)
    assert given(flows.probed, DNS, "dns", here, KNOWN.node(node)) == "dns"
    with pytest.raises(pytest.skip.Exception, match=f"no serving endpoint on {other.name}.*Local"):
        given(flows.probed, DNS, "dns", there, other)


def test_one_node_alone_is_equal_to_nobody():
    with pytest.raises(pytest.skip.Exception, match="no other node"):
        given(rule_facts.all_nat, Standing(KNOWN, {"master": Trouble("master", "x")}, {}, frozenset(), frozenset(), {}, None))


def test_masquerade_all_is_another_expectation(far):
    def everywhere(rule):
        return dataclasses.replace(rule, source=None) if rule.target == "KUBE-MARK-MASQ" else rule

    window = far.windows["host"]
    nat = window.after.nat
    chains = {key: dataclasses.replace(chain, rules=tuple(map(everywhere, chain.rules))) for key, chain in nat.chains.items()}
    window = dataclasses.replace(window, after=dataclasses.replace(window.after, nat=dataclasses.replace(nat, chains=chains)))
    inventory = types.SimpleNamespace(expect=types.SimpleNamespace(cluster_cidr=None))

    assert given(counted.marked_growth, far, "growth", inventory, KNOWN.node("master")) == "growth"
    with pytest.raises(pytest.skip.Exception, match="masquerade-all"):
        given(counted.marked_growth, dataclasses.replace(far, windows={"host": window}), "growth", inventory, KNOWN.node("master"))


def test_services_of_one_name_are_told_apart_by_their_namespace():
    twin = dataclasses.replace(SERVICE, namespace="other")

    assert selected._told_apart([SERVICE, twin]) == ["kube-system/kube-dns", "other/kube-dns"]
    assert selected._told_apart([SERVICE]) == ["kube-dns"]


def test_services_and_endpoints_that_changed_between_two_readings_are_told():
    first, *rest = KNOWN.endpoints
    later = dataclasses.replace(KNOWN, endpoints=(dataclasses.replace(first, ready=False), *rest))
    fewer = dataclasses.replace(KNOWN, services=tuple(s for s in KNOWN.services if s != SERVICE))
    changed_one = f"{first.namespace}/{first.service}"

    assert expected_endpoints.moved(KNOWN, KNOWN) == frozenset()
    assert expected_endpoints.moved(KNOWN, later) == {changed_one}
    assert expected_endpoints.moved(KNOWN, fewer) == {SERVICE.key}
