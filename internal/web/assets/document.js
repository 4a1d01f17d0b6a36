// Documents and comparisons fold without this file. With it, all of one can be
// folded and unfolded at once, and a document can be searched and copied.
"use strict";
{
  for (const tools of document.querySelectorAll(".foldtools")) {
    const within = document.getElementById(tools.dataset.for);
    const folds = () => within.querySelectorAll("details");
    tools.hidden = folds().length === 0;
    tools.querySelector(".unfold").addEventListener("click", () => {
      for (const fold of folds()) fold.open = true;
    });
    tools.querySelector(".refold").addEventListener("click", () => {
      for (const fold of folds()) fold.open = fold.parentElement === within && within.classList.contains("json");
    });
  }

  // A line of the document is a value, or the head of one with others in it.
  const json = document.getElementById("json");
  const box = document.querySelector(".findtools");
  if (json && box) {
    const input = box.querySelector("input");
    const told = box.querySelector("output");
    let lines = null; // with their texts, once somebody searches
    let hits = [];
    let at = -1;

    const marks = "highlights" in CSS ? new Highlight() : null;
    const mark = marks && new Highlight();
    if (marks) {
      CSS.highlights.set("found", marks);
      CSS.highlights.set("found-here", mark);
      mark.priority = 1;
    }

    const read = () => [...json.querySelectorAll("summary, div:not([class])")].map((line) => {
      const shown = line.tagName === "SUMMARY" ? line.querySelector(".key") : line;
      return { line, shown, text: shown ? shown.textContent.toLowerCase() : "" };
    });

    // rangeOf is where a text stands in a line, which may have several parts.
    const rangeOf = ({ shown, text }, needle) => {
      const range = document.createRange();
      let start = text.indexOf(needle);
      let end = start + needle.length;
      const parts = document.createTreeWalker(shown, NodeFilter.SHOW_TEXT);
      for (let part = parts.nextNode(); part; part = parts.nextNode()) {
        const length = part.data.length;
        if (start >= 0 && start < length) range.setStart(part, start);
        if (end > 0 && end <= length) range.setEnd(part, end);
        start -= length;
        end -= length;
      }
      return range;
    };

    const go = (to) => {
      hits[at]?.line.classList.remove("here");
      at = hits.length ? (to + hits.length) % hits.length : -1;
      mark?.clear();
      if (at < 0) return;
      const hit = hits[at];
      for (let fold = hit.line.parentElement.closest("details"); fold; fold = fold.parentElement.closest("details")) {
        if (hit.line.parentElement !== fold) fold.open = true;
      }
      hit.line.classList.add("here");
      mark?.add(hit.range);
      hit.line.scrollIntoView({ block: "center" });
      told.textContent = `${at + 1} of ${hits.length}`;
    };

    const find = () => {
      const needle = input.value.toLowerCase();
      for (const hit of hits) hit.line.classList.remove("hit", "here");
      marks?.clear();
      mark?.clear();
      lines ??= read();
      hits = needle ? lines.filter((line) => line.text.includes(needle)) : [];
      for (const hit of hits) {
        hit.line.classList.add("hit");
        hit.range = rangeOf(hit, needle);
        marks?.add(hit.range);
      }
      at = -1;
      told.textContent = needle ? (box.dataset.cut ? "not in what is shown" : "not in the document") : "";
      go(0);
    };

    input.addEventListener("input", find);
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      go(at + (event.shiftKey ? -1 : 1));
    });
    box.querySelector(".previous").addEventListener("click", () => go(at - 1));
    box.querySelector(".next").addEventListener("click", () => go(at + 1));
    box.hidden = false;
  }

  // The document is copied as it is stored: to write its numbers again would change
  // them.
  for (const button of document.querySelectorAll("button[data-from]")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button, async () => { // in site.js
      const answer = await fetch(button.dataset.from, { headers: { Accept: "application/json" } });
      if (!answer.ok) throw new Error(answer.statusText);
      return answer.text();
    }));
  }
}
