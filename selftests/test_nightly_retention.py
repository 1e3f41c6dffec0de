"""What is kept of the nights: by count, by age, by size; and nothing but nights is ever removed."""

import pathlib

import pytest

from servicepath.nightly import retention
from servicepath.nightly.retention import DAY, Folder, Keep

NOW = 100 * DAY


def nights(*sizes):
    """Nights of these sizes, the last one of today, one a day."""
    days = range(len(sizes) - 1, -1, -1)
    return tuple(Folder(pathlib.Path(f"n{99 - day:03}"), NOW - day * DAY, size) for day, size in zip(days, sizes, strict=True))


@pytest.mark.parametrize(
    ("sizes", "keep", "gone"),
    [
        ((1,) * 10, Keep(30, 90, 1000), 0),
        ((1,) * 10, Keep(3, 90, 1000), 7),
        ((1,) * 10, Keep(30, 4.5, 1000), 5),
        ((10,) * 10, Keep(30, 90, 35), 7),
        ((10, 10, 500), Keep(30, 90, 35), 2),
        ((1,), Keep(1, 0.0001, 0), 0),
        ((), Keep(1, 1, 1), 0),
    ],
)
def test_the_oldest_go_first_and_the_latest_stays(sizes, keep, gone):
    kept = nights(*sizes)

    assert retention.surplus(kept, keep, NOW) == kept[:gone]


def test_a_year_of_nights_stays_bounded(tmp_path):
    keep = Keep(30, 14, 10_000)
    for day in range(365):
        folder = tmp_path / f"{2026 + day // 365}-{day:03}"
        folder.mkdir()
        (folder / "report.html").write_bytes(b"x" * 700)
        now = day * DAY
        made = [Folder(f.path, int(f.path.name[5:]) * DAY, f.size) for f in retention.folders(tmp_path)]
        for one in retention.surplus(made, keep, now):
            (one.path / "report.html").unlink()
            one.path.rmdir()

    left = retention.folders(tmp_path)
    assert len(left) == 14
    assert sum(folder.size for folder in left) <= 10_000


def test_what_is_no_night_stays(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (outside / "precious").write_text("x")
    parent = tmp_path / "nights"
    parent.mkdir()
    (parent / "2026-12-01").mkdir()
    (parent / "2026-12-02").mkdir()
    (parent / "0-link").symlink_to(outside)
    (parent / "2026-12-01" / "link").symlink_to(outside / "precious")

    assert retention.apply(parent, Keep(1, 90, 10**9), NOW) == ("2026-12-01",)
    assert (outside / "precious").read_text() == "x"
    assert (parent / "0-link").is_symlink()
