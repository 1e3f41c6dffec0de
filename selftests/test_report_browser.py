"""The page in a real browser: folding, filtering, links, narrow screens, paper; nothing is loaded and nothing is complained of."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import jinja2
import pytest
import pytest_html
import report_sample
from playwright.sync_api import sync_playwright

from servicepath.model.results import RunSummary, Verdict
from servicepath.report import html

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",  # root, as in a container, cannot use it
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH (Debian's package chromium)")

Open = Callable[[str], Any]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The pages as pytest-html writes them, by name: a usual run, and one with hostile names."""
    resources = Path(pytest_html.__file__).parent / "resources"
    template = jinja2.Environment(loader=jinja2.FileSystemLoader(resources), autoescape=True).get_template("index.jinja2")
    folder = tmp_path_factory.mktemp("pages")
    for name, hostile in (("usual", False), ("hostile", True)):
        ours = html.render(report_sample.summary(hostile))
        (folder / f"{name}.html").write_text(_as_pytest_html(template, ours, (resources / "style.css").read_text()))
    return {path.stem: path.as_uri() for path in folder.iterdir()}


def _as_pytest_html(template: Any, ours: str, style: str) -> str:
    row = ['<td class="col-result">Passed</td>', '<td class="col-testId">a</td>', '<td class="col-duration">1 ms</td>', "<td></td>"]
    test = {"extras": [], "result": "Passed", "testId": "a", "resultsTableRow": row, "log": "-", "tableHtml": []}
    data = {"environment": {"Python": "3"}, "tests": {"a": [test]}, "renderCollapsed": ["passed"], "initialSort": "result", "title": "t"}
    outcomes = {name: {"label": name, "value": 1} for name in ("failed", "passed", "skipped", "xfailed", "xpassed", "error", "rerun")}
    text: str = template.render(
        title="t", date="d", time="t", version="4", styles=style, run_count="1", running_state="finished", self_contained=True,
        outcomes=outcomes, test_data=json.dumps(data), table_head=["<th>Result</th>"] * 4,
        additional_summary={"prefix": [ours], "summary": [], "postfix": []},
    )  # fmt: skip
    return text


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"), executable_path=CHROMIUM, args=ARGUMENTS, viewport={"width": 1280, "height": 900}
        )
        yield context
        context.close()


@pytest.fixture
def opened(browser: Any, pages: dict[str, str]) -> Generator[Open, None, None]:
    """Opens a page by name; at the end nothing was complained of, asked or loaded but the page itself."""
    said: list[str] = []
    asked: list[str] = []
    page = browser.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: asked.append(request.url.split("#")[0].split("?")[0]))

    def open_page(name: str) -> Any:
        page.goto(pages[name.split("#")[0]] + ("#" + name.split("#")[1] if "#" in name else ""))
        return page

    yield open_page
    page.close()
    assert said == []
    assert set(asked) <= set(pages.values())


def _shown_rows(page: Any) -> list[str]:
    rows: list[str] = page.eval_on_selector_all(".v", "rows => rows.filter(r => !r.closest('[hidden]')).map(r => r.id)")
    return rows


def test_evidence_unfolds_and_folds(opened: Open) -> None:
    page = opened("usual")
    fold = page.locator("#endpoint-dnat .v.failed details.ev")
    rule = fold.locator("pre").first
    assert not rule.is_visible()
    fold.locator("summary").click()
    assert rule.is_visible()
    assert "[10:1050] -A KUBE-SERVICES" in rule.inner_text()
    fold.locator("summary").click()
    assert not rule.is_visible()


def test_folds_work_by_keyboard(opened: Open) -> None:
    page = opened("usual")
    summary = page.locator("#no-interface > summary")
    summary.focus()
    page.keyboard.press("Enter")
    assert page.locator("#no-interface").get_attribute("open") is not None
    page.keyboard.press("Space")
    assert page.locator("#no-interface").get_attribute("open") is None


def test_shared_evidence_comes_where_it_is_asked_for(opened: Open) -> None:
    page = opened("usual")
    page.locator("#service-rule > summary").click()
    row = page.locator("#service-rule--master-kube-dns-dns-tcp-TCP")
    assert row.locator(".same").count() == 1
    row.locator("summary").click()
    row.locator("pre").first.wait_for()
    assert row.locator(".same").count() == 0
    assert "KUBE-SEP-L5JRWRCR3OTUNAH5" in row.inner_text()


def test_an_address_with_an_anchor_opens_its_verdict(opened: Open) -> None:
    page = opened("usual#no-interface--worker1")
    assert page.locator("#no-interface--worker1").is_visible()
    page.locator(".matrix a[href='#service-rule--worker2-kube-dns-dns-UDP']").click()
    page.locator("#service-rule--worker2-kube-dns-dns-UDP").wait_for()


def test_filters_by_outcome_node_and_text(opened: Open) -> None:
    page = opened("usual")
    everything = len(_shown_rows(page))
    page.locator("[data-outcome=passed]").first.uncheck()
    page.locator("[data-outcome=skipped]").first.uncheck()
    assert _shown_rows(page) == ["mode-as-expected--worker2", "endpoint-dnat--worker2-kube-dns-dns-UDP", "no-listener--worker2"]
    assert page.locator(".found").inner_text() == f"3 of {everything} verdicts shown"
    page.locator("[data-filter=text]").fill("a password is REQUIRED")
    assert _shown_rows(page) == ["no-listener--worker2"]
    page.locator("[data-filter=node]").select_option("master")
    assert _shown_rows(page) == []
    page.locator("[data-filter=text]").fill("")
    page.locator("[data-outcome=passed]").first.check()
    page.locator("[data-outcome=skipped]").first.check()
    assert len(_shown_rows(page)) == sum(v.node == "master" for v in report_sample.summary().verdicts)
    page.locator("[data-filter=node]").select_option("")
    assert len(_shown_rows(page)) == everything
    assert page.eval_on_selector_all(".c[open]", "folds => folds.length") == 3  # as it was before the filter


def test_text_is_found_in_folded_and_shared_evidence(opened: Open) -> None:
    page = opened("usual")
    page.locator("[data-filter=text]").fill("kube-sep-l5jrwrcr3otunah5")
    judged = [v for v in report_sample.summary().verdicts if v.exhibits]
    assert len(_shown_rows(page)) == len(judged)


def test_a_link_leads_to_what_the_filter_hides(opened: Open) -> None:
    page = opened("usual")
    page.locator("[data-filter=text]").fill("nothing has these words")
    page.locator(".matrix a[href='#no-interface--master']").click()
    page.locator("#no-interface--master").wait_for()


def test_open_all_and_close_all(opened: Open) -> None:
    page = opened("usual")
    page.locator("[data-do=open]").click()
    assert page.eval_on_selector_all(".c:not([open]), .ev:not([open])", "folds => folds.length") == 0
    page.locator("[data-do=close]").click()
    assert page.eval_on_selector_all(".c[open], .ev[open]", "folds => folds.length") == 0


def test_commands_can_be_copied(opened: Open, browser: Any) -> None:
    browser.grant_permissions(["clipboard-read", "clipboard-write"])
    page = opened("usual")
    fold = page.locator("#endpoint-dnat .v.failed details.ev")
    fold.locator("summary").click()
    button = fold.locator(".see button.copy").first
    button.click()
    page.wait_for_function("() => [...document.querySelectorAll('button.copy')].some(b => b.textContent === 'copied')")
    assert page.evaluate("navigator.clipboard.readText()") == "ssh worker2 'sudo iptables-save -c -t nat | grep 10.43.0.10'"


@pytest.mark.parametrize("name", ["usual", "hostile"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_overflows_a_phone(name: str, scheme: str, opened: Open) -> None:
    page = opened(name)
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 360, "height": 740})
    page.locator("[data-do=open]").click()
    page.locator(".more-paths summary, .appendix summary").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_paper_shows_what_is_folded(opened: Open) -> None:
    page = opened("usual")
    rule = page.locator("#service-rule pre").first
    assert not rule.is_visible()
    page.emulate_media(media="print")
    assert rule.is_visible()
    assert not page.locator("form.filter").is_visible()
    assert page.evaluate(_OVERLAYS) == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_enough_from_its_ground(scheme: str, opened: Open) -> None:
    page = opened("usual")
    page.emulate_media(color_scheme=scheme)
    page.locator("[data-do=open]").click()
    assert page.evaluate(_CONTRAST) == []


def test_pytests_own_table_is_an_appendix(opened: Open) -> None:
    page = opened("usual")
    assert not page.locator("#results-table").is_visible()
    assert not page.locator("#environment").is_visible()
    page.locator(".appendix > summary").click()
    assert page.locator("#results-table").is_visible()
    assert page.locator(".generated").is_visible()


def test_an_empty_run_is_a_whole_page(browser: Any, tmp_path: Path) -> None:
    said: list[str] = []
    page = browser.new_page()
    page.on("pageerror", lambda error: said.append(str(error)))
    once = Verdict("a", "", "", "A.", "", "passed", "", (), ())
    for verdicts in ((), (once,)):
        path = tmp_path / "page.html"
        path.write_text(html.render(RunSummary("now", 0.0, {}, {}, (), verdicts)))
        page.goto(path.as_uri())
    page.close()
    assert said == []


_OVERLAYS = """[...document.querySelectorAll("main *")]
  .filter((element) => ["fixed", "sticky"].includes(getComputedStyle(element).position)).length"""

# Every text against the nearest ground that is painted (WCAG 2.1, 1.4.3: 4.5 to 1); what fails, with the ratio.
_CONTRAST = """() => {
  const parts = (colour) => (colour.match(/[\\d.]+/g) || []).map(Number);
  const light = (c) => {
    const [r, g, b] = c.map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const c = parts(getComputedStyle(at).backgroundColor);
      if (c.length === 3 || c[3] > 0) return c.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const bad = new Map();
  for (const element of document.querySelectorAll("main *")) {
    if (["STYLE", "SCRIPT", "OPTION"].includes(element.tagName) || element.closest("svg")) continue;
    if (![...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    const a = light(parts(getComputedStyle(element).color).slice(0, 3)), b = light(ground(element));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.set(`${element.tagName}.${element.className} ${ratio.toFixed(2)}`, element.textContent.trim().slice(0, 40));
  }
  return [...bad].map(String);
}"""
