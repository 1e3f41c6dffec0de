"""What the page is made of: facts compared, paths drawn, text made visible, the record, the JSON and the closing lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import report_sample

from servicepath.model.paths import Hop, PathCell
from servicepath.model.results import RunSummary, Verdict
from servicepath.report import closing, facts_json, facts_table, picture, view
from servicepath.report.record import RunRecord
from servicepath.report.visible import visible


def _cell(*hops: Hop) -> PathCell:
    return PathCell("Pod", "master", "kube-dns:dns/UDP", "Cilium (eBPF)", "Cilium VXLAN", "passed", hops=hops)


def _verdict(outcome: str, node: str | None = "master", port: str | None = None, message: str = "") -> Verdict:
    return Verdict("no-route", "§4", "Group", "A sentence.", node or "", outcome, message, (), (), node=node, port=port)


def test_translated_addresses_are_marked_where_they_first_show() -> None:
    drawn = picture.draw(
        _cell(
            Hop("lxc", "10.42.0.161:40123 → 10.43.0.10:53/UDP"),
            Hop("cilium_vxlan", "10.42.0.161:40123 → 10.42.1.113:53/UDP"),
            Hop("reply", "10.42.1.113:53 → 10.42.0.161:40123/UDP"),
        )
    )
    changed = [span.text for text in drawn.texts for span in text.spans if span.changed]
    assert changed == ["10.42.1.113:53/UDP"]


def test_inner_box_lies_within_the_outer() -> None:
    drawn = picture.draw(_cell(Hop("wire", "10.42.0.161:1 → 10.42.1.113:53/UDP", "192.168.55.10 → 192.168.55.11:8472/UDP")))
    outer, inner = (next(b for b in drawn.boxes if b.kind == kind) for kind in ("outer", "inner"))
    assert outer.x < inner.x
    assert inner.x + inner.width < outer.x + outer.width
    assert outer.y < inner.y
    assert inner.y + inner.height < outer.y + outer.height <= drawn.height
    assert drawn.boxes.index(outer) < drawn.boxes.index(inner)


def test_long_headers_break_at_the_arrow_and_lose_nothing() -> None:
    header = "[fd00:10:42:1111:2222:3333:4444:a1b2]:40123 → [fd00:10:43::a]:53/UDP"
    lines = picture.header_lines(header, frozenset(), 44)
    assert ["".join(span.text for span in line) for line in lines] == header.replace(" → ", "\n→ ").split("\n")


def test_nothing_is_drawn_outside_the_picture() -> None:
    text = "\n".join(report_sample.HOSTILE) + "x" * 300
    drawn = picture.draw(_cell(Hop(text, text, text, text)))
    assert all(0 < text.y < drawn.height and text.x < drawn.width for text in drawn.texts)
    assert max(sum(len(span.text) for span in text.spans) for text in drawn.texts) <= 46


def test_facts_that_differ_are_told_from_a_nodes_own() -> None:
    rows = {row.fact: row for row in facts_table.rows(report_sample.facts())}
    assert [fact for fact, row in rows.items() if row.differs] == ["kernel", "proxy mode"]
    assert [cell.kind for cell in rows["kernel"].cells] == ["", "", "odd"]
    assert [cell.kind for cell in rows["conntrack"].cells] == ["", "", "unseen"]


def test_without_a_majority_no_node_is_the_odd_one() -> None:
    (row,) = facts_table.rows({"a": {"kernel": "1"}, "b": {"kernel": "2"}})
    assert row.differs
    assert [cell.kind for cell in row.cells] == ["", ""]


def test_a_fact_that_a_node_never_told_is_absent() -> None:
    (row,) = facts_table.rows({"a": {"kernel": "1"}, "b": {}})
    assert [cell.kind for cell in row.cells] == ["", "absent"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain → text\n\tline", "plain → text\n\tline"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("a\x1b[0m", "a⟨U+001B⟩[0m"),
        ("one\r\ntwo\r", "one\ntwo⟨U+000D⟩"),
        ("\ud800", "⟨U+D800⟩"),
        ("zero\u200bwidth\ufeff", "zero⟨U+200B⟩width⟨U+FEFF⟩"),
        ("żółć", "żółć"),
    ],
)
def test_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_one_failure_speaks_for_its_cell_and_leads_to_itself() -> None:
    run = report_sample.summary()
    columns = view.matrix_columns(run)
    assert columns == ("master", "worker1", "worker2", "cluster")
    dnat = next(each for each in view.conclusions(run) if each.id == "endpoint-dnat")
    cells = view.matrix_row(dnat, columns)
    assert [cell and (cell.outcome, cell.count, cell.of) for cell in cells] == [("passed", 5, 5), ("passed", 5, 5), ("failed", 1, 5), None]
    assert cells[2] is not None
    assert cells[2].anchor == "endpoint-dnat--worker2-kube-dns-dns-UDP"


def test_causes_stand_beside_reds_of_their_node_and_port_alone() -> None:
    record = RunRecord()
    record.cause("master", None, "drops")
    record.cause(None, "web:80/TCP", "not ready")
    found = record.summary(
        [_verdict("failed"), _verdict("failed", "worker1", "web:80/TCP"), _verdict("passed"), _verdict("error", "worker1")],
        started="now",
        took=1.0,
    )
    assert [verdict.cause for verdict in found.verdicts] == [("drops",), ("not ready",), (), ()]


def test_phases_add_up() -> None:
    record = RunRecord()
    record.phase("snapshot", "master", 1, 0.5)
    record.phase("snapshot", "master", 2, 0.25)
    assert record.summary([], started="now", took=0.0).phases == {"snapshot": {"master": (3, 0.75)}}


def test_json_holds_the_whole_run(tmp_path: Path) -> None:
    run = report_sample.summary(hostile=True)
    facts_json.write(run, tmp_path / "reports" / "facts.json")
    told = json.loads((tmp_path / "reports" / "facts.json").read_text())
    assert told["schema"] == facts_json.SCHEMA
    assert len(told["verdicts"]) == len(run.verdicts)
    assert told["verdicts"][0]["exhibits"][0]["lines"][0].startswith("[10:1050]")
    assert told["paths"][0]["hops"][0]["header"] == "192.168.55.10:51515 → 10.43.0.10:53/UDP"
    assert told["phases"]["snapshot"]["master"] == {"round_trips": 1, "seconds": 0.31}
    assert told["attempts"][-8:] == list(report_sample.HOSTILE[-8:])
    assert [path.name for path in (tmp_path / "reports").iterdir()] == ["facts.json"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "facts.json"
    target.write_text("old")
    broken = RunSummary("now", 0.0, {"fact": object()}, {}, (), ())  # type: ignore[dict-item]
    with pytest.raises(TypeError):
        facts_json.write(broken, target)
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["facts.json"]


def test_closing_lines_name_place_problem_and_cause() -> None:
    lines = list(closing.lines(report_sample.summary(hostile=True)))
    assert lines[0] == "20 conclusions: 3 not so, 1 could not be seen"
    at = lines.index("✗ endpoint-dnat on worker2, kube-dns:dns/UDP")
    assert "expected: 10.42.1.113:53, actual: 10.42.1.98:53" in lines[at + 1]
    assert lines[at + 2].startswith("    likely cause: Pod kube-system/coredns-6d9f")
    assert not any("\x1b" in line for line in lines)


def test_closing_lines_are_silent_when_all_holds() -> None:
    assert list(closing.lines(RunSummary("now", 0.0, {}, {}, (), (_verdict("passed"), _verdict("skipped"))))) == []
