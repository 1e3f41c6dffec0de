"""Two runs compared: what became of each conclusion and fact, and what the rules make of it."""

import dataclasses
import pathlib
import re

import pytest
from comparison_sample import NODES, PATH, baseline, with_fact, with_outcome, without

from servicepath.model.baseline import Identity, Judged, Timing
from servicepath.model.comparison import AnotherCluster, Standing, compare
from servicepath.model.mended import JUDGED_BY
from servicepath.model.upgrade_rules import Rule

BEFORE = baseline()
SKIPPED = "master: kube-proxy runs in nftables mode"


def only(found, name):
    """The differences of this name that are not as before."""
    mine = (d for d in (*found.conclusions, *found.facts) if d.name == name and d.standing is not Standing.SAME)
    return [(d.subject, d.change, d.standing.value) for d in mine]


def test_a_run_is_like_itself():
    found = compare(BEFORE, baseline(started="2026-12-01 02:00:00 UTC"))

    assert {d.standing for d in (*found.conclusions, *found.facts)} == {Standing.SAME}
    assert found.exit_status == 0


@pytest.mark.parametrize(
    ("was", "now", "reason", "change", "standing"),
    [
        ("passed", "failed", "10.43.0.10 is on eth0", "held→broken", "regression"),
        ("skipped", "failed", "10.43.0.10 is on eth0", "skipped→broken", "regression"),
        ("error", "failed", "10.43.0.10 is on eth0", "unseen→broken", "regression"),
        ("failed", "failed", "10.43.0.10 is on eth0", "broken→broken", "tolerated"),
        ("failed", "passed", "", "broken→held", "expected"),
        ("passed", "error", "master: ssh: timed out", "held→unseen", "could not be seen"),
        ("error", "error", "master: ssh: timed out", "unseen→unseen", "could not be seen"),
        ("skipped", "passed", "", "skipped→held", "expected"),
        ("passed", "skipped", SKIPPED, "held→skipped", "regression"),
        ("passed", "skipped", "creates or breaks something, which only --disruptive allows", "held→skipped", "tolerated"),
        ("passed", "skipped", "worker1: none of 15 flows reached a Pod on another node: 15 × 10.42.1.66:53", "held→skipped", "tolerated"),
    ],
)
def test_what_became_of_a_conclusion(was, now, reason, change, standing):
    found = compare(with_outcome(BEFORE, "no-interface", "master", was), with_outcome(BEFORE, "no-interface", "master", now, reason))

    assert only(found, "no-interface") == [("master", change, standing)]
    assert found.exit_status == {"regression": 4, "could not be seen": 3}.get(standing, 0)


def test_a_new_conclusion_that_is_broken_is_a_regression_and_so_is_one_that_held_and_is_gone():
    gone = without(BEFORE, "no-interface", "master")
    broken = with_outcome(BEFORE, "no-interface", "master", "failed", "it is there")

    assert only(compare(gone, broken), "no-interface") == [("master", "absent→broken", "regression")]
    assert only(compare(BEFORE, gone), "no-interface") == [("master", "held→absent", "regression")]
    was_broken = with_outcome(BEFORE, "no-interface", "master", "failed", "it is there")
    assert only(compare(was_broken, gone), "no-interface") == [("master", "broken→absent", "tolerated")]
    assert only(compare(gone, BEFORE), "no-interface") == [("master", "absent→held", "expected")]


@pytest.mark.parametrize(("was", "now"), [("passed", "skipped"), ("failed", "skipped"), ("skipped", "passed"), ("skipped", "failed")])
def test_a_conclusion_that_a_run_left_out_as_a_whole_was_left_out_in_each_case(was, now):
    runs = []
    for outcome in (was, now):
        each = with_outcome(BEFORE, "no-interface", "master", outcome, "")
        left_out = Judged("no-interface", "", "", "", "skipped", "asks the agents, which --passive leaves out")
        rest = tuple(judged for judged in BEFORE.judged if judged.conclusion != "no-interface")
        runs.append(dataclasses.replace(BEFORE, judged=(*rest, left_out)) if outcome == "skipped" else each)
    found = compare(*runs)

    word = {"passed": "held", "failed": "broken", "skipped": "skipped"}
    others = ("held", "skipped") if now == "skipped" else ("skipped", "held")
    standing = {"passed": "expected", "failed": "regression", "skipped": "tolerated"}[now]
    assert sorted(only(found, "no-interface")) == [
        ("master", f"{word[was]}→{word[now]}", standing),
        *((node, "→".join(others), "tolerated" if now == "skipped" else "expected") for node in NODES[1:]),
    ]


def test_versions_may_change_and_what_carries_packets_may_not():
    after = with_fact(baseline("1.19.5"), PATH, "translated by", "nobody")
    found = compare(BEFORE, after)

    assert only(found, "Cilium") == [(node, "changed", "tolerated") for node in NODES]
    assert only(found, "translated by") == [(PATH, "changed", "regression")]
    assert found.exit_status == 4


def test_a_node_that_is_not_ready_any_more_is_a_regression_and_one_that_is_again_is_none():
    ready, lost = with_fact(BEFORE, "worker1", "Ready", "yes"), with_fact(BEFORE, "worker1", "Ready", "no")

    assert only(compare(ready, lost), "Ready") == [("worker1", "changed", "regression")]
    assert only(compare(lost, ready), "Ready") == [("worker1", "changed", "expected")]


def test_a_fact_that_could_not_be_seen_is_no_change():
    found = compare(BEFORE, with_fact(BEFORE, "worker1", "routes", unseen="ssh: timed out"))

    assert only(found, "routes") == [("worker1", "unseen", "could not be seen")]
    assert found.unseen == ("routes on worker1: ssh: timed out",)
    assert found.exit_status == 3


def test_a_fact_that_is_new_is_tolerated_and_one_that_is_gone_is_a_regression():
    more = with_fact(BEFORE, "worker1", "IPAM", "254 addresses")

    assert only(compare(BEFORE, more), "IPAM") == [("worker1", "new", "tolerated")]
    assert only(compare(more, BEFORE), "IPAM") == [("worker1", "gone", "regression")]


def left(run, *gone, options=(), **more):
    """The run without what is about these nodes."""
    facts = tuple(fact for fact in run.facts if not any(node in fact.subject for node in gone))
    judged = tuple(one for one in run.judged if not any(node in one.case for node in gone))
    return dataclasses.replace(run, facts=facts, judged=judged, options=options, **more)


def test_a_node_that_is_gone_is_a_regression():
    found = compare(BEFORE, left(BEFORE, "worker2"))

    assert found.exit_status == 4
    assert {(d.subject, d.change) for d in found.regressions} == {("worker2", "held→absent"), ("worker2", "gone")}
    rules = (Rule("conclusion", "*", "tolerated", where="worker2*"), Rule("fact", "*", "tolerated", where="worker2*"))
    assert compare(BEFORE, left(BEFORE, "worker2"), rules).exit_status == 0


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ((), ("--node master", "--node worker1"), 0),
        ((), ("--node worker2",), 4),
        (("--node master",), ("--node master",), 4),
        (("--node master", "--node worker2"), ("--node master",), 0),
        ((), ("-k no_interface",), 0),
        (("-k x",), ("-k x",), 4),
        (("-k x",), (), 4),
        ((), ("only tests/test_1_control_path.py",), 0),
        ((), ("--deselect tests/test_1_control_path.py",), 0),
        ((), ("--service default/resolver",), 4),
        ((), ("--disruptive",), 4),
    ],
)
def test_what_the_options_leave_out_is_tolerated_and_what_they_do_not_is_none(before, after, status):
    found = compare(dataclasses.replace(BEFORE, options=before), left(BEFORE, "worker2", options=after))

    assert found.exit_status == status
    assert {d.change for d in found.regressions} == ({"held→absent", "gone"} if status else set())
    assert bool(found.notes) == (before != after)


def test_a_service_and_a_pod_that_are_left_out_are_told_apart_from_one_that_is_gone():
    resolver = Judged("service-rule", "", "", "master, resolver:dns/UDP", "passed")
    before = dataclasses.replace(BEFORE, judged=(*BEFORE.judged, resolver))
    gone = dataclasses.replace(BEFORE, facts=tuple(fact for fact in BEFORE.facts if fact.subject != PATH))

    assert compare(before, dataclasses.replace(BEFORE, options=("--service kube-system/kube-dns",))).exit_status == 0
    assert compare(before, dataclasses.replace(BEFORE, options=("--service default/resolver",))).exit_status == 4
    assert compare(BEFORE, gone).exit_status == 4
    for option in ("--pod default/client", "--passive", "--service default/resolver"):
        assert compare(BEFORE, dataclasses.replace(gone, options=(option,))).exit_status == 0


def test_what_is_gone_where_something_could_not_be_seen_could_not_be_seen():
    gone = tuple(fact for fact in BEFORE.facts if fact.key != ("worker2", "routes"))
    unreached = with_fact(dataclasses.replace(BEFORE, facts=gone), "worker2", "the node's own state", unseen="ssh: timed out")
    found = compare(BEFORE, unreached)

    assert only(found, "routes") == [("worker2", "unseen", "could not be seen")]
    assert found.exit_status == 3
    assert compare(unreached, BEFORE).exit_status == 0
    elsewhere = with_fact(dataclasses.replace(BEFORE, facts=gone), "worker1", "the node's own state", unseen="ssh: timed out")
    assert only(compare(BEFORE, elsewhere), "routes") == [("worker2", "gone", "regression")]


@pytest.mark.parametrize(
    "changed",
    [
        {"judged": ()},
        {"judged": tuple(dataclasses.replace(one, outcome="skipped") for one in BEFORE.judged)},
        {"judged": (), "facts": ()},
        {"judged": BEFORE.judged[:1], "facts": (), "unfinished": "stopped from the keyboard; 1 of 9 tests were judged"},
    ],
)
def test_a_run_that_judged_nothing_or_was_broken_off_could_not_be_seen(changed):
    found = compare(BEFORE, dataclasses.replace(BEFORE, **changed), (Rule("conclusion", "*", "tolerated", change="held→skipped"),))

    assert found.exit_status == 3
    assert not found.regressions
    assert compare(dataclasses.replace(BEFORE, **changed), BEFORE).exit_status == 3


def test_an_api_that_was_not_read_tells_nothing_of_what_is_gone():
    error = Judged("no-interface", "", "", "api", "error", "the API could not be read")
    after = dataclasses.replace(BEFORE, facts=(), judged=(*BEFORE.judged[3:], error), identity=None)

    assert compare(BEFORE, after).exit_status == 3
    assert compare(after, BEFORE).exit_status == 0


def test_what_kube_proxy_has_in_iptables_mode_alone_goes_with_the_mode():
    same = with_fact(BEFORE, "master", "kube-proxy's mode", "iptables")
    before = with_fact(same, "master, kube-dns:dns/UDP", "chains", "chain: KUBE-SVC-…")
    after = with_fact(BEFORE, "master", "kube-proxy's mode", "nftables")
    rule = Rule("fact", "kube-proxy's mode", "expected", to="nftables")

    assert only(compare(before, after, (rule,)), "chains") == [("master, kube-dns:dns/UDP", "gone", "tolerated")]
    assert only(compare(before, same), "chains") == [("master, kube-dns:dns/UDP", "gone", "regression")]


def test_a_rule_about_what_neither_run_knows_is_named():
    misspelt = (Rule("conclusion", "no-interfaces", "tolerated"), Rule("fact", "rotes", "regression"))
    fine = (Rule("conclusion", "no-*", "tolerated"), Rule("fact", "latency, slower", "regression"))

    assert compare(BEFORE, BEFORE, (*misspelt, *fine)).unmet == misspelt


def test_the_inventorys_rules_come_first_and_the_first_that_fits_decides():
    after = with_fact(with_outcome(BEFORE, "no-interface", "master", "skipped", SKIPPED), "worker1", "KubeProxyReplacement", "True")
    rules = (
        Rule("conclusion", "no-*", "expected", change="held→skipped", to="*nftables*"),
        Rule("fact", "KubeProxyReplacement", "tolerated", where="worker1", before="False"),
        Rule("fact", "KubeProxyReplacement", "regression"),
    )
    found = compare(BEFORE, after, rules)

    assert only(found, "no-interface") == [("master", "held→skipped", "expected")]
    assert only(found, "KubeProxyReplacement") == [("worker1", "changed", "tolerated")]
    assert found.exit_status == 0


HERE = "master, kube-dns:dns/UDP"


def mended(*more, name="pod-translated-by-ebpf", case=HERE):
    """A run in which a conclusion is broken, and the healthy one after it; each with these conclusions: case, outcome then, outcome now."""
    outcomes = ((name, case, "failed", "passed"), *(("another", *each) for each in more))
    return tuple(
        dataclasses.replace(BEFORE, judged=tuple(Judged(one, "It is so.", "", where, each[n]) for one, where, *each in outcomes))
        for n in range(2)
    )


def test_a_fact_that_changes_with_what_is_mended_at_its_place_is_expected():
    was, now = mended()
    found = compare(with_fact(was, PATH, "translated by", "kube-proxy (iptables)"), now)
    (told,) = (each for each in found.facts if each.name == "translated by")

    assert (told.standing, told.because) == (Standing.EXPECTED, "mended with pod-translated-by-ebpf")
    assert found.exit_status == 0


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ([(HERE, "passed", "passed")], 0),
        ([("worker1, kube-dns:dns/UDP", "passed", "failed")], None),  # elsewhere
        ([(HERE, "passed", "failed")], 4),
        ([(HERE, "failed", "failed")], 4),
        ([(HERE, "passed", "error")], 4),
        ([("master", "passed", "failed")], 4),
        ([("kube-dns:dns/UDP", "passed", "failed")], 4),
        ([("", "passed", "failed")], 4),
        ([("", "failed", "failed")], 0),  # it does not say where
    ],
)
def test_nothing_is_excused_where_a_conclusion_got_worse(more, status):
    was, now = mended(*more)
    tolerated = Rule("conclusion", "another", "tolerated")  # which excuses the conclusion, and no fact with it
    found = compare(with_fact(was, PATH, "translated by", "kube-proxy (iptables)"), now, (tolerated,))

    assert only(found, "translated by") == [(PATH, "changed", "regression" if status else "expected")]
    assert found.exit_status == (status or 0)


@pytest.mark.parametrize(
    ("subject", "fact", "standing"),
    [
        ("Pod on worker1 → kube-dns:dns/UDP", "translated by", "regression"),
        ("Pod on master → kube-dns:dns-tcp/TCP", "translated by", "regression"),
        ("kube-system/kube-dns", "ClusterIP", "regression"),
        ("", "Service CIDR", "regression"),
        ("master", "MTU", "regression"),  # no-route does not look at it
        ("master", "routes", "expected"),
        ("worker1", "routes", "regression"),
    ],
)
def test_a_fact_is_excused_only_by_what_judges_it(subject, fact, standing):
    was, now = mended(name="no-route")
    found = compare(with_fact(was, subject, fact, "other"), with_fact(now, subject, fact, "one"))

    assert only(found, fact) == [(subject, "changed", standing)]


def test_the_inventorys_rule_comes_before_what_was_mended():
    was, now = mended()
    found = compare(with_fact(was, PATH, "translated by", "nobody"), now, (Rule("fact", "translated by", "regression"),))

    assert found.exit_status == 4


def test_what_judges_a_nodes_facts_is_there():
    conclusions = {
        name.replace("_", "-")
        for path in (pathlib.Path(__file__).parent.parent / "tests").glob("test_*.py")
        for name in re.findall(r"^def test_(\w+)", path.read_text(), re.MULTILINE)
    }

    assert {name for names in JUDGED_BY.values() for name in names} <= conclusions


def test_an_expected_value_that_does_not_come_is_a_regression_also_where_nothing_changed():
    after = with_fact(with_fact(baseline("1.19.5"), "worker1", "Cilium", "1.19.1"), "worker2", "Cilium", "1.18.6")
    found = compare(BEFORE, after, (Rule("fact", "Cilium", "expected", to="1.19.5"),))

    assert sorted(only(found, "Cilium")) == [
        ("master", "changed", "expected"), ("worker1", "same", "regression"), ("worker2", "changed", "regression"),
    ]  # fmt: skip
    assert {d.because for d in found.regressions} == {"was to become 1.19.5"}


def test_an_expected_value_that_does_not_come_is_a_regression_also_where_it_was_not_seen_before():
    before = with_fact(baseline(), "worker2", "Cilium", unseen="timed out")
    after = with_fact(baseline("1.19.5"), "worker2", "Cilium", "1.19.1")
    found = compare(before, after, (Rule("fact", "Cilium", "expected", to="1.19.5"),))

    assert [(each.subject, each.change, each.because) for each in found.regressions] == [("worker2", "new", "was to become 1.19.5")]


def test_an_expectation_that_met_nothing_is_named():
    rule = Rule("conclusion", "kpr-false-yet-clusterip", "expected", change="held→skipped")

    assert compare(BEFORE, BEFORE, (rule,)).unmet == (rule,)
    assert str(rule) == "{conclusion: kpr-false-yet-clusterip, change: held→skipped, is: expected}"


def test_a_run_that_is_not_whole_could_not_be_seen():
    found = compare(BEFORE, dataclasses.replace(BEFORE, unfinished="stopped from the keyboard"))

    assert found.exit_status == 3
    assert found.unseen == ("the run after is not whole: stopped from the keyboard",)


@pytest.mark.parametrize(
    ("seconds", "name"),
    [
        ((0.0004, 0.0005, 0.0005, 0.0007), "latency"),
        ((0.0014, 0.0015, 0.0015, 0.0017), "latency, slower"),
        ((0.0001, 0.0001, 0.0001, 0.0001), "latency, faster"),
        ((0.0001, 0.0005, 0.0015, 0.0095), "latency"),
    ],
)
def test_latencies_are_compared_with_their_spread(seconds, name):
    found = compare(BEFORE, dataclasses.replace(BEFORE, timings=(Timing(PATH, seconds),)))
    told = next(d for d in found.facts if d.name.startswith("latency"))

    assert told.name == name
    assert told.before == ("0.45 ms (half of them 0.40 to 0.53 ms, 4 answers)",)
    assert found.exit_status == 0


def test_a_rule_can_make_slower_answers_a_regression():
    slow = dataclasses.replace(BEFORE, timings=(Timing(PATH, (0.1, 0.1)),))

    assert compare(BEFORE, slow, (Rule("fact", "latency, slower", "regression"),)).exit_status == 4


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (Identity("another", ("10.43.0.1",), ("10.43.0.0/16",)), "UID of the Namespace kube-system"),
        (Identity(None, ("10.96.0.1",), ()), "10.43.0.1 there and 10.96.0.1 here"),
        (Identity(None, ("10.43.0.1",), ("10.43.0.0/20",)), "the Service CIDR is 10.43.0.0/16 there and 10.43.0.0/20 here"),
    ],
)
def test_another_cluster_is_refused(other, why):
    with pytest.raises(AnotherCluster, match=why):
        compare(BEFORE, dataclasses.replace(BEFORE, identity=other))


def test_what_tells_nothing_of_the_cluster_is_not_refused():
    assert compare(BEFORE, dataclasses.replace(BEFORE, identity=None)).exit_status == 0
    assert compare(BEFORE, dataclasses.replace(BEFORE, identity=Identity(None, (), ()))).exit_status == 0
