"""What grows over many runs is told."""

import pytest

from lab import soak
from lab.soak import Use

STEADY = [Use(100.0, 0, 0, 3), Use(101.0, 0, 0, 3), Use(99.0, 0, 0, 3), Use(102.0, 0, 0, 3)]


def test_what_varies_a_little_does_not_grow():
    assert soak.grown(STEADY) == []
    assert soak.grown(STEADY[:1]) == []


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (Use(100.0, 1, 0, 3), "processes grew: 0 after the first run, 1 after the last"),
        (Use(100.0, 0, 2, 3), "files grew: 0 after the first run, 2 after the last"),
        (Use(100.0, 0, 0, 4), "connections grew: 3 after the first run, 4 after the last"),
    ],
)
def test_a_count_that_is_higher_in_the_end_has_grown(last, said):
    assert soak.grown([*STEADY, last]) == [said]


def test_memory_that_climbs_has_grown():
    used = [Use(100.0 + 10 * number, 0, 0, 0) for number in range(8)]

    assert soak.grown(used) == ["memory grew: 120 MiB in the first half, 160 MiB in the second"]
