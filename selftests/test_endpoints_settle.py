"""Endpoints that are read while they follow their Pods: read again, told, and judged as they are in the end."""

import types

import host_samples as sample
import pytest
from host_samples import pod, service
from test_judge_endpoints import endpoint

from fixtures import endpoints
from servicepath.observation import CouldNotSee, Trouble, Unrecorded

KEYS = ["kube-system/kube-dns"]


def api(*made, ready=True):
    return sample.objects(services=(service(),), pods=(pod(ready=ready),), endpoints=made)


RIGHT, LATE = api(endpoint()), api()


def settled(first, *later):
    """The objects that are judged, what was told, and how often the clock was waited for."""
    told, waits, rest = [], [], iter(later)

    def again():
        found = next(rest)
        if isinstance(found, Trouble):
            raise CouldNotSee(found)
        return found

    clock = types.SimpleNamespace(sleep=waits.append)
    return endpoints.settle(first, KEYS, again, told.append, clock), told, waits


def test_what_is_right_is_read_once():
    assert settled(RIGHT) == (RIGHT, [], [])


def test_a_pod_that_became_ready_between_two_lists_is_judged_by_a_later_reading_and_told():
    found, told, waits = settled(LATE, RIGHT)
    assert found is RIGHT
    assert len(waits) == 1
    assert "Pod kube-system/coredns-a: is ready and matched by the selector, but no ready endpoint" in told[0]


def test_what_stays_is_judged_after_so_many_readings_and_not_told_as_a_change():
    found, told, waits = settled(LATE, *[api() for _ in range(endpoints.LOOKS)])
    assert found == LATE
    assert told == []
    assert len(waits) == endpoints.LOOKS


def test_a_service_that_nobody_asked_for_is_not_waited_for():
    assert endpoints.settle(LATE, ["default/other"], pytest.fail, pytest.fail, None) is LATE


def test_a_recording_with_one_reading_is_judged_by_that():
    assert settled(LATE, Unrecorded("api", "not in this recording"))[0] is LATE


def test_an_api_that_cannot_be_read_again_is_no_verdict():
    with pytest.raises(CouldNotSee, match="gone"):
        settled(LATE, Trouble("api", "gone"))
