"""The page: what it shows in which order, that nothing told by a node or the API becomes markup, that evidence is there once."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

import pytest
import report_sample

from servicepath.model.results import Exhibit, RunSummary, Verdict
from servicepath.report import html

_VOID = {"meta", "input", "img", "br", "hr", "link"}


class Page(HTMLParser):
    """The page as a browser takes it apart: elements with their attributes and the elements around them, text by element."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None], tuple[str, ...]]] = []
        self.text: list[tuple[str, tuple[str, ...]]] = []
        self._open: list[str] = []
        self.unbalanced: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        self.elements.append((tag, dict(attrs), tuple(self._open)))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element that is empty by its spelling (SVG)."""
        self.elements.append((tag, dict(attrs), tuple(self._open)))

    def handle_endtag(self, tag: str) -> None:
        """An element ends; one that is not open is noted."""
        if not self._open or self._open[-1] != tag:
            self.unbalanced.append(tag)
        else:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        """Text within the elements that are open."""
        self.text.append((data, tuple(self._open)))

    def all(self, tag: str, css_class: str | None = None) -> list[dict[str, str | None]]:
        """Attributes of the elements of a name, of a class where one is given."""
        found = (attrs for name, attrs, _ in self.elements if name == tag)
        return [a for a in found if css_class is None or css_class in (a.get("class") or "").split()]

    def shown(self) -> str:
        """Everything a reader may read."""
        return "".join(data for data, around in self.text if not {"style", "script"} & set(around))


@pytest.fixture(scope="module")
def calm() -> Page:
    return Page(html.render(report_sample.summary()))


@pytest.fixture(scope="module")
def hostile() -> Page:
    return Page(html.render(report_sample.summary(hostile=True)))


def test_sections_stand_in_the_order_of_reading(calm: Page) -> None:
    assert [a["id"] for a in calm.all("section")] == [
        "section-cluster",
        "section-paths",
        "section-matrix",
        "section-conclusions",
        "section-run",
    ]


@pytest.mark.parametrize("name", ["calm", "hostile"])
def test_markup_is_well_formed_and_ids_are_unique(name: str, request: pytest.FixtureRequest) -> None:
    page: Page = request.getfixturevalue(name)
    ids = Counter(a["id"] for _, a, _ in page.elements if "id" in a)
    assert page.unbalanced == []
    assert [i for i, n in ids.items() if n > 1] == []


@pytest.mark.parametrize("name", ["calm", "hostile"])
def test_every_inner_link_leads_somewhere(name: str, request: pytest.FixtureRequest) -> None:
    page: Page = request.getfixturevalue(name)
    ids = {a["id"] for _, a, _ in page.elements if "id" in a}
    inner = {a["href"][1:] for a in page.all("a") if (a.get("href") or "").startswith("#") and a["href"]}
    assert inner - ids == set()
    assert {a["data-block"] for a in page.all("div", "same")} <= ids


def test_hostile_text_makes_no_element_and_no_handler(calm: Page, hostile: Page) -> None:
    assert Counter(t for t, _, _ in hostile.elements).keys() == Counter(t for t, _, _ in calm.elements).keys()
    assert len(hostile.all("script")) == len(calm.all("script")) == 1
    assert [a for _, a, _ in hostile.elements for key in a if key.startswith("on")] == []
    assert hostile.all("img") == []


def test_hostile_text_is_shown_as_it_came(hostile: Page) -> None:
    shown = hostile.shown()
    for text in report_sample.HOSTILE[:5]:
        assert text in shown
    assert "49" not in [data.strip() for data, _ in hostile.text]


def test_hidden_characters_are_spelled_out_everywhere() -> None:
    text = html.render(report_sample.summary(hostile=True))
    text.encode("utf-8")  # no lone surrogate is left
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)
    for spelled in ("⟨U+001B⟩", "⟨U+0000⟩", "⟨U+202E⟩", "⟨U+2066⟩", "⟨U+DCFF⟩"):
        assert spelled in text


@pytest.mark.parametrize("name", ["calm", "hostile"])
def test_nothing_outside_the_page_is_needed(name: str, request: pytest.FixtureRequest) -> None:
    page: Page = request.getfixturevalue(name)
    assert page.all("link") == []
    assert [a for _, a, _ in page.elements if a.get("src") or a.get("srcset")] == []
    links = [a.get("href") or "" for a in page.all("a")]
    assert [link for link in links if not re.match(r"#|raw/", link)] == []
    style = "".join(data for data, around in page.text if "style" in around)
    assert "url(" not in style
    assert "@import" not in style


def test_troubled_conclusions_come_first_and_open(calm: Page) -> None:
    folds = calm.all("details", "c")
    assert [a["id"] for a in folds[:3]] == ["mode-as-expected", "endpoint-dnat", "no-listener"]
    assert [a["id"] for a in folds if "open" in a] == [a["id"] for a in folds[:3]]


def test_every_conclusion_and_every_verdict_is_there(calm: Page) -> None:
    verdicts = report_sample.summary().verdicts
    rows = calm.all("div", "v")
    assert len(rows) == len(verdicts)
    assert Counter(a["data-outcome"] for a in rows) == Counter(v.outcome for v in verdicts)
    for sentence in {v.sentence for v in verdicts}:
        assert sentence in calm.shown()


def test_evidence_is_folded_until_asked_for(calm: Page) -> None:
    assert all("open" not in a for a in calm.all("details", "ev"))
    inside = [around.count("details") for tag, a, around in calm.elements if tag == "div" and "exhibit" in (a.get("class") or "")]
    assert inside
    assert set(inside) == {2}  # in its conclusion's fold and in its own


def test_message_and_cause_are_seen_without_unfolding_evidence(calm: Page) -> None:
    around = next(around for data, around in calm.text if "DNAT leads to no serving endpoint" in data)
    assert around.count("details") == 1
    around = next(around for data, around in calm.text if "coredns-6d9f was replaced" in data)
    assert around.count("details") == 1


def test_counters_are_readable_in_the_evidence(calm: Page) -> None:
    assert ("[10:1050]", "b") in {(data, around[-1]) for data, around in calm.text if around}


def test_differences_between_nodes_are_marked_by_class_and_word(calm: Page) -> None:
    assert len(calm.all("tr", "differs")) == 2
    assert calm.shown().count("≠ differs") == 2
    assert len(calm.all("td", "odd")) == 2
    assert len(calm.all("td", "unseen")) == 1


def test_not_tested_is_said_with_its_reason(calm: Page) -> None:
    assert "a TCP connect shows no answer to follow" in calm.shown()
    assert "not tested" in calm.shown()


def test_what_was_measured_and_is_wrong_is_never_called_not_tested(calm: Page) -> None:
    failed = [a["class"] for a in calm.all("span", "say") if "failed" in (a["class"] or "")]
    assert len(failed) == 2
    said = "".join(calm.shown().split())
    assert "✗unanswered" in said
    assert "noneof12flowswasanswered" in said
    assert "✗notasexpected" in said


def test_a_slot_nobody_told_of_is_not_tested() -> None:
    run = report_sample.summary()
    paths = tuple(p for p in run.paths if (p.source, p.frontend) != ("LAN host", "kube-dns:dns/UDP"))
    text = Page(html.render(RunSummary(run.started, run.took, {}, {}, paths, ()))).shown()
    assert "nothing measured it" in text


def test_unfinished_run_says_so_at_the_top() -> None:
    run = RunSummary("now", 1.0, {}, {}, (), (), unfinished="stopped from the keyboard; 3 of 9 tests were judged")
    page = Page(html.render(run))
    assert "Run was interrupted" in page.shown()
    assert "3 of 9 tests were judged" in page.shown()
    assert "Nothing was judged" in page.shown()


def test_four_hundred_verdicts_on_the_same_evidence_stay_small() -> None:
    shared = Exhibit("Rules", "sudo iptables-save -c", tuple(f"[{n}:{n}] -A KUBE-SVC-{n:016}" for n in range(500)), "master/nat.txt")
    verdicts = tuple(
        Verdict(f"conclusion-{n // 15}", "§3", "Group", "A sentence.", f"case {n}", "passed", "", (shared,), ("ip route",), node="master")
        for n in range(400)
    )
    text = html.render(RunSummary("now", 1.0, {}, {"master": {}}, (), verdicts))
    assert text.count("KUBE-SVC-0000000000000499") == 1
    assert len(text) < 1_000_000
    assert len(Page(text).all("div", "same")) == 399


def test_raw_files_are_linked_from_where_the_page_is() -> None:
    page = Page(html.render(report_sample.summary(), raw_base="../reports/raw/"))
    assert "../reports/raw/worker2/iptables-nft-save.txt" in {a.get("href") for a in page.all("a")}
