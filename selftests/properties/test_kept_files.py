"""Baselines and watches that somebody edited, cut off or made up: each is read, compared and shown, or it is one clear line."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from properties.spoiling import outcome, reshaped, spoilt
from servicepath.model import watched
from servicepath.model.baseline import Baseline, Fact, Identity, Judged, Span, Timing
from servicepath.model.between import WrongWatch
from servicepath.model.comparison import AnotherCluster, compare
from servicepath.model.watched import Asked, Event, Held, Series, Unwatched, Watch
from servicepath.parse.baseline import parse_baseline
from servicepath.parse.errors import ParseError
from servicepath.parse.watch_summary import parse_watch_summary
from servicepath.report import baseline_json, comparison_html, comparison_json, comparison_text, watch_html, watch_json

WHERE = Identity("3f1c8a52", ("10.43.0.1",), ("10.43.0.0/16",))
PATH = "host on master → kube-dns:dns/UDP"
RUN = Baseline(
    "2026-11-30 02:00:00 UTC", WHERE, ("--node master",),
    (Fact("", "nodes", ("master",)), Fact("master", "routes", ("default",)), Fact("master", "Cilium", (), "timed out")),
    (Judged("no-interface", "It is so.", "A group", "master", "passed"), Judged("pod-answers", "", "", "", "skipped", "none")),
    (Timing(PATH, (0.0004, 0.0005)),), None, Span(1000.0, 1010.0),
)  # fmt: skip
WATCH = watched.sum_up(
    Watch(
        1010.0, 1020.0,
        (Series(PATH, "master", (Asked(1011.0, 0.1, None), Asked(1011.1, None, "lost"), Asked(1011.2, 0.1, None)),
                (Held(1010.5, 1012.0, "reset", "x"),)),),
        (Event(1012.0, "master", "agent stops"),), (Unwatched("host on master", 1013.0, 1014.0, "rebooted"),),
    ),
    ["worker1: nothing"], WHERE,
)  # fmt: skip
HOSTILE = ["<script>alert(1)</script>", "\x1b[2J", "\u202e", "\udcff", "a\nb", "9" * 5000, 10**18, -(10**18), 1e11, -0.5]
HOSTILE += [[[["x"]]], {"since": 1}]


def document_of(kept: Any) -> Any:
    return json.loads(baseline_json.as_text(kept) if isinstance(kept, Baseline) else watch_json.as_text(kept))


def shown(before: Baseline, after: Baseline, watch: watched.Summary | None) -> None:
    """All that is made of what was read: compared, as lines, page and JSON, each fit to be written."""
    try:
        found = compare(before, after, (), watch)
    except (AnotherCluster, WrongWatch):
        return
    page = comparison_html.render(found)
    assert "<script>alert" not in page
    "".join((page, *comparison_text.lines(found))).encode()
    json.dumps(comparison_json.as_json(found), allow_nan=False)


def read_and_shown(text: str, parse: Callable[[str], Any]) -> None:
    found = outcome(parse, text)
    if isinstance(found, Baseline):
        shown(found, RUN, WATCH)
        shown(RUN, found, WATCH)
    elif found is not None:
        shown(RUN, RUN, found)
        "".join((watch_html.render(found), *watch_html.lines(found))).encode()


KEPT = [pytest.param(RUN, parse_baseline, id="baseline"), pytest.param(WATCH, parse_watch_summary, id="watch")]


@pytest.mark.parametrize(("kept", "parse"), KEPT)
@given(data=st.data())
def test_a_value_that_is_another_anywhere_is_read_or_is_one_line(kept, parse, data):
    document = data.draw(reshaped(document_of(kept)))
    read_and_shown(json.dumps(document), parse)


@pytest.mark.parametrize(("kept", "parse"), KEPT)
@given(data=st.data())
def test_a_text_that_was_edited_anywhere_is_read_or_is_one_line(kept, parse, data):
    read_and_shown(data.draw(spoilt(json.dumps(document_of(kept)))), parse)


@pytest.mark.parametrize(("kept", "parse"), KEPT)
def test_every_key_taken_out_and_every_value_made_hostile_is_read_or_is_one_line(kept, parse):
    text = json.dumps(document_of(kept))
    count = sum(1 for _ in places(json.loads(text)))
    assert count > 30
    read = 0
    for number in range(count):
        for instead in (..., None, *HOSTILE):
            document = json.loads(text)
            holder, key = list(places(document))[number]
            if instead is ...:
                del holder[key]
            else:
                holder[key] = instead
            read_and_shown(json.dumps(document), parse)
            read += 1
    assert read == count * (len(HOSTILE) + 2)


def places(document: Any) -> Any:
    """Each (holder, key) of a document, parents first."""
    for key, value in list(document.items() if isinstance(document, dict) else enumerate(document)):
        yield document, key
        if isinstance(value, dict | list):
            yield from places(value)


@pytest.mark.parametrize(("kept", "parse"), KEPT)
def test_a_key_that_is_not_known_yet_changes_nothing(kept, parse):
    assert parse(json.dumps({**document_of(kept), "later": {"x": [1]}})) == kept


@pytest.mark.parametrize(("kept", "parse"), KEPT)
@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", "1" * 5000, "1e13"])
def test_a_number_that_no_run_writes_is_one_line_even_where_it_is_not_used(kept, parse, number):
    text = json.dumps(document_of(kept))
    with pytest.raises(ParseError, match="expected a number that a run writes"):
        parse(f'{text[:-1]}, "later": {number}}}')


def test_what_was_made_up_here_is_what_is_compared():
    assert compare(RUN, RUN, (), WATCH).exit_status == 4
