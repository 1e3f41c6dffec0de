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

    assert retention.surplus(kept, keep, NOW, "n099") == kept[:gone]


def test_a_year_of_nights_stays_bounded(tmp_path):
    keep = Keep(30, 14, 10_000)
    for day in range(365):
        folder = tmp_path / f"2026-01-01T{day:06}Z"
        folder.mkdir()
        (folder / "report.html").write_bytes(b"x" * 700)
        now = day * DAY
        made = [Folder(f.path, int(f.path.name[11:17]) * DAY, f.size) for f in retention.folders(tmp_path)]
        for one in retention.surplus(made, keep, now, folder.name):
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
    for name in ("0-mine", "2026-12-01T020000Z", "2026-12-02T020000Z", "zz-mine"):
        (parent / name).mkdir()
    (parent / "2026-11-01T020000Z").symlink_to(outside)
    (parent / "2026-12-01T020000Z" / "link").symlink_to(outside / "precious")

    assert retention.apply(parent, Keep(1, 90, 10**9), NOW, "2026-12-02T020000Z") == ("2026-12-01T020000Z",)
    assert (outside / "precious").read_text() == "x"
    assert sorted(path.name for path in parent.iterdir()) == ["0-mine", "2026-11-01T020000Z", "2026-12-02T020000Z", "zz-mine"]


def test_a_night_of_a_clock_that_was_ahead_is_no_reason_to_remove_the_one_that_was_just_run():
    ahead, kept = Folder(pathlib.Path("n999"), NOW, 1), nights(1, 1, 1)

    assert retention.surplus((*kept, ahead), Keep(1, 90, 1000), NOW, "n099") == (ahead, *kept[:2])
    assert retention.surplus((*kept, ahead), Keep(3, 90, 1000), NOW, "n099") == (ahead,)
    assert retention.surplus((*kept, ahead), Keep(3, 90, 1000), NOW, "n001") == kept[:1]  # or is this one's clock behind?
