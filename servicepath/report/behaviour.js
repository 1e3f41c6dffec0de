// Folding, filtering and copying; without it the page is still whole, only less handy.
(() => {
  "use strict";
  const root = document.querySelector("main.sp");
  const all = (selector, from = root) => [...from.querySelectorAll(selector)];
  document.documentElement.lang = "en";

  // Evidence that is shown in several places is in the page once; a place that refers to it gets a copy when it is opened.
  const fill = (from) => all(".same", from).forEach((place) => {
    const source = document.getElementById(place.dataset.block);
    if (!source) return;
    const copy = source.cloneNode(true);
    copy.removeAttribute("id");
    place.replaceWith(copy);
  });
  all("details.ev").forEach((fold) => fold.addEventListener("toggle", () => fold.open && fill(fold)));

  const reveal = (element) => {
    for (let at = element; at && at !== root; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  };
  const toTarget = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target || !root.contains(target)) return;
    if (target.closest("[hidden]")) clear();
    reveal(target);
    target.scrollIntoView();
  };
  window.addEventListener("hashchange", toTarget);
  root.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link && link.getAttribute("href") === location.hash) toTarget();
  });

  const form = root.querySelector("form.filter");
  const text = form.querySelector("[data-filter=text]");
  const node = form.querySelector("[data-filter=node]");
  const boxes = all("[data-outcome]", form);
  const found = form.querySelector(".found");
  const words = new Map();
  const wordsOf = (row) => {
    if (!words.has(row)) {
      const referred = all(".same", row).map((place) => document.getElementById(place.dataset.block)?.textContent ?? "");
      const head = row.closest(".c").querySelector("summary").textContent;
      words.set(row, [head, row.textContent, ...referred].join(" ").toLowerCase());
    }
    return words.get(row);
  };
  let asFound = null; // which conclusions were open before the filter opened some
  const apply = () => {
    const outcomes = new Set(boxes.filter((box) => box.checked).map((box) => box.dataset.outcome));
    const wanted = text.value.trim().toLowerCase();
    const where = node ? node.value : "";
    const active = Boolean(wanted || where || outcomes.size !== boxes.length);
    if (active && !asFound) asFound = new Map(all(".c").map((fold) => [fold, fold.open]));
    let shown = 0;
    all(".v").forEach((row) => {
      const fits = outcomes.has(row.dataset.outcome) && (!where || row.dataset.node === where)
        && (!wanted || wordsOf(row).includes(wanted));
      row.hidden = !fits;
      shown += fits;
    });
    all(".c").forEach((fold) => {
      fold.hidden = !fold.querySelector(".v:not([hidden])");
      if (active && !fold.hidden) fold.open = true;
    });
    all(".g").forEach((group) => { group.hidden = !group.querySelector(".c:not([hidden])"); });
    if (!active && asFound) {
      asFound.forEach((open, fold) => { fold.open = open; });
      asFound = null;
    }
    found.textContent = active ? `${shown} of ${all(".v").length} verdicts shown` : "";
  };
  const clear = () => {
    boxes.forEach((box) => { box.checked = true; });
    text.value = "";
    if (node) node.value = "";
    apply();
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", apply);
  form.addEventListener("click", (event) => {
    const what = event.target.dataset.do;
    if (what) all(".c, .ev").forEach((fold) => { fold.open = what === "open"; });
  });

  const copyText = async (value) => {
    if (navigator.clipboard) {
      try { await navigator.clipboard.writeText(value); return true; } catch { /* not allowed here: the old way below */ }
    }
    const area = document.createElement("textarea");
    area.value = value;
    root.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  };
  root.addEventListener("click", async (event) => {
    const button = event.target.closest("button.copy");
    if (!button) return;
    const done = await copyText(button.parentElement.querySelector("code").textContent);
    button.textContent = done ? "copied" : "select it by hand";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  });

  // pytest-html draws its own table after this script: it becomes an appendix, folded.
  document.addEventListener("DOMContentLoaded", () => {
    const appendix = document.createElement("details");
    appendix.className = "appendix";
    appendix.append(Object.assign(document.createElement("summary"), { textContent: "Appendix: pytest’s own table of tests" }));
    const generated = document.querySelector("#title + p");
    if (generated) generated.className = "generated";
    const parts = [generated, ...["p.run-count", "p.filter", ".controls", "#results-table"].map((s) => document.querySelector(s))];
    appendix.append(...parts.filter(Boolean));
    document.body.append(appendix);
    toTarget();
  });
})();
