"""Batches as a shell answers them: any bytes with any status come back the same, and no part of a stream is an answer."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from servicepath import framing
from servicepath.channel import Command

BOUNDARY = "5b" * 16
# What could be taken for a marker stands among the outputs: another batch's, and parts of this one's.
LIKE_MARKERS = ["\n", "\n\n", BOUNDARY, f"{BOUNDARY} 1 0 5.0\n", f"\n{'a7' * 16} 1 0 5.0\n", " 1 0\n"]
OUTPUTS = (
    st.lists(st.binary(max_size=12) | st.sampled_from([text.encode() for text in LIKE_MARKERS]), max_size=3)
    .map(b"".join)
    .filter(lambda output: f"\n{BOUNDARY} ".encode() not in output)
)
STATUSES = st.integers(0, 255)
ANSWERS = st.lists(st.tuples(OUTPUTS, OUTPUTS, STATUSES, st.floats(0, 5)), min_size=1, max_size=4)


def streams(answers, *, before=b"", began=1_700_000_000.0, uptime=100.0):
    """Both streams as the script writes them (framing.build), in hundredths of a second, as /proc/uptime counts."""
    out = before + f"\n{BOUNDARY} 0 {began:.9f} {uptime:.2f}\n".encode()
    error = before + f"\n{BOUNDARY} 0\n".encode()
    for number, (output, errors, status, took) in enumerate(answers, 1):
        uptime += took
        out += output + f"\n{BOUNDARY} {number} {status} {uptime:.2f}\n".encode()
        error += errors + f"\n{BOUNDARY} {number}\n".encode()
    return out, error


def commands(answers):
    return [Command(f"c{number}", ("true",), timeout=60) for number in range(len(answers))]


@given(ANSWERS, OUTPUTS)
def test_any_bytes_with_any_status_come_back_the_same(answers, before):
    said = framing.take_apart(*streams(answers, before=before), commands(answers), BOUNDARY, "n")

    assert [(each.stdout, each.stderr, each.status) for each in said.values()] == [answer[:3] for answer in answers]
    assert [each.took for each in said.values()] == pytest.approx([answer[3] for answer in answers], abs=0.011)
    assert all(each.started >= 1_700_000_000 for each in said.values())


@given(ANSWERS, st.data())
def test_a_stream_that_is_cut_at_any_byte_is_no_answer(answers, data):
    cut = list(streams(answers))
    which = data.draw(st.sampled_from([0, 1]))
    end = data.draw(st.integers(0, len(cut[which]) - 1))
    cut[which] = cut[which][:end]

    with pytest.raises(framing.CutOff, match=f"{['standard output', 'standard error'][which]} was cut off after {end} bytes"):
        framing.take_apart(*cut, commands(answers), BOUNDARY, "n")


@given(ANSWERS, st.data())
def test_a_stream_with_a_piece_missing_is_no_answer_or_the_other_commands_are_as_they_were(answers, data):
    """A lost piece may lie inside of an output, where nothing tells; of all that it does not touch the answer is right."""
    whole = streams(answers)
    start = data.draw(st.integers(0, len(whole[0]) - 1))
    gone = data.draw(st.integers(1, 40))
    try:
        said = framing.take_apart(whole[0][:start] + whole[0][start + gone :], whole[1], commands(answers), BOUNDARY, "n")
    except framing.CutOff:
        return
    assert sum((each.stdout, each.status) != (answer[0], answer[2]) for each, answer in zip(said.values(), answers, strict=True)) <= 1


@given(st.integers(0, 255), st.integers(1, 9), st.floats(0, 12))
@example(137, 1, 1.0)
@example(124, 9, 1.0)
def test_only_a_command_that_we_ended_has_no_status(status, timeout, took):
    command = Command("a", ("true",), timeout=timeout)
    said = framing.take_apart(*streams([(b"", b"", status, took)]), [command], BOUNDARY, "n")["a"]

    ended = status in (124, 137, 143) and took >= timeout - 0.05
    assert said.status == (None if ended else status) or abs(took - timeout) < 0.2


@given(ANSWERS)
def test_an_answer_of_another_batch_is_none(answers):
    with pytest.raises(framing.CutOff):
        framing.take_apart(*streams(answers), commands(answers), "00" * 16, "n")
