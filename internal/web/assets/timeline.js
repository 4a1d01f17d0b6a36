// The timeline of a block. The archive says what to draw: a call is a bar, and
// calls that are too close to be told apart are one. This file draws the bars,
// moves about in time, and follows the block while calls are recorded. Times are
// in microseconds.
"use strict";

(() => {
const section = document.querySelector("section.timeline");
const $ = (selector) => section.querySelector(selector);
const block = section.dataset.block;
const form = $(".callfilter"), panel = $(".panel"), summary = $(".summary"), wentWrong = $(".wentwrong"), live = $(".live");
const lanes = $(".lanes"), tall = $(".tall"), canvas = $(".tall canvas"), labels = $(".tall ul");
const overview = $(".overview"), hint = $(".hint"), shown = $(".shown"), said = $(".said"), legend = $(".legend"), help = $("dialog.keys");
const still = matchMedia("(prefers-reduced-motion: reduce)");
const versionIn = (page) => Number(page.querySelector(".versions .current .number")?.textContent);
const version = versionIn(document); // that the page is about

// Places in a bar.
const LANE = 0, ROW = 1, BEGIN = 2, LENGTH = 3, CALLS = 4, FAILURES = 5, SEQUENCE = 6, FUNCTION = 7, LONGEST = 8, UNKNOWN = 9;
const SHARED = 11; // the row of those that find none free

let data = null; // what the archive sent last
let from = 0, to = 1; // the part of the time that is shown
let whole = true; // everything is shown, also what comes later
let selected = null; // the call in the panel: { call, begin, end }
let freshAfter = Infinity, freshSince = 0; // calls after this sequence have just come
let colours = {};
let rows = []; // of each lane: { top, empty }
let width = 0, gutter = 0;

let ROWHEIGHT = 20, GAP = 10, AXIS = 40; // these grow with the type

// Addresses. They are relative to the page, and keep the filter.

const here = () => new URLSearchParams(location.search);

// filter is what narrows the calls, and the older state of the block if the page shows one.
function filter() {
  const wanted = new URLSearchParams(section.dataset.state);
  for (const name of ["function", "calls", "by"]) {
    const value = form.elements[name].value;
    if (value) wanted.set(name, value);
  }
  return wanted;
}

// view is the filter, and the part of the timeline that is shown.
function view() {
  const wanted = filter();
  if (data && !whole) {
    wanted.set("from", iso(from));
    wanted.set("to", iso(to));
  }
  return wanted;
}

// keep puts what is shown into the address, so that it can be shared. Opening a call, or
// choosing another filter, adds to the browser's history, so that Back undoes it.
let keeping = 0, filtered = false, returns = false, leaving = false;
function keep() {
  clearTimeout(keeping);
  keeping = setTimeout(() => {
    if (!data || leaving) return; // the address has not been read yet, or is another page's
    const wanted = view();
    if (here().has("after") && !filtered) wanted.set("after", here().get("after")); // of the table
    if (selected) wanted.set("call", selected.call);
    const query = wanted.toString().replace(/^./, "?$&");
    const way = returns && query !== location.search ? "pushState" : "replaceState";
    returns = false;
    history[way](null, "", location.pathname + query + location.hash);
    kept = location.search;
  }, 200);
}
let kept = location.search; // what the page shows
addEventListener("popstate", () => {
  leaving = location.search !== kept; // going back again before the other page has loaded stays here
  if (leaving) location.reload();
  else keep();
});

// Times as text, in UTC; how long something took: elapsed, in live.js.

const iso = (t) => new Date(t / 1000).toISOString();
const valid = (t) => Math.abs(t / 1000) < 8.64e15;

function clock(t, step) {
  if (!valid(t)) return "";
  const text = iso(t);
  if (step >= 86400e6) return text.slice(0, text.indexOf("T"));
  const time = text.slice(text.indexOf("T") + 1, -1);
  if (step >= 60e6) return time.slice(0, 5);
  if (step >= 1e6) return time.slice(0, 8);
  const micro = String(((Math.floor(t) % 1e6) + 1e6) % 1e6).padStart(6, "0");
  return time.slice(0, 9) + micro.slice(0, step >= 1e5 ? 1 : step >= 1000 ? 3 : 6);
}

const STEPS = [];
for (let s = 1; s < 1e6; s *= 10) STEPS.push(s, 2 * s, 5 * s);
for (const s of [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200]) STEPS.push(s * 1e6);
for (let s = 86400e6; s < 1e18; s *= 10) STEPS.push(s, 2 * s, 5 * s);

const thousands = (n) => n.toLocaleString("en").replaceAll(",", "\u202f"); // as the archive writes them
const countCalls = (n) => (n === 1 ? "1 call" : `${thousands(n)} calls`);
const lastName = (name) => name.slice(name.lastIndexOf(".") + 1) || "(no name)";

// What the archive sends. One request is under way at a time; if something has
// changed meanwhile, another one follows.

let asking = false, askAgain = false, again = 0;

async function ask() {
  if (asking) {
    askAgain = true;
    return;
  }
  asking = true;
  const known = data?.calls ?? 0;
  let answer;
  try {
    const wanted = filter();
    wanted.set("parts", Math.max(100, Math.round(3 * width / 2)));
    if (data && !whole) { // and as much on each side, to move into
      wanted.set("from", Math.floor(2 * from - to));
      wanted.set("to", Math.ceil(2 * to - from));
      wanted.set("parts", Math.max(100, Math.round(9 * width / 2)));
    }
    answer = await (await fetched(`${block}/timeline?${wanted}`)).json();
    if (current(answer.version)) take(answer);
  } catch (error) {
    data ?? tell(error.message);
    askAgain = false;
    if (!error.refused) askIn(LATER);
    return;
  } finally {
    asking = false;
  }
  const unfinished = !answer.complete && !answer.full;
  if (askAgain || unfinished && answer.calls > known) {
    askAgain = false;
    ask();
  } else if (unfinished) { // and it is not getting on, so that haste would not help
    askIn(1000);
  }
}

function askIn(pause) {
  clearTimeout(again);
  again = setTimeout(ask, pause);
}

// fetched is an answer of the archive. What it refuses is not asked for again; what fails
// otherwise may come later.
const LATER = 3000;
async function fetched(address) {
  const response = await fetch(address);
  if (response.ok) return response;
  throw Object.assign(new Error(await reason(response)), { refused: refuses(response) }); // in live.js
}

async function reason(response) {
  try {
    return (await response.json()).detail;
  } catch {
    return `The archive answers ${response.status}.`;
  }
}

function take(answer) {
  const before = data;
  data = answer;
  if (before && answer.last > before.last && before.complete) {
    freshAfter = before.last;
    freshSince = performance.now();
  }
  if (!before) {
    told = "";
    begin();
  }
  if (whole) {
    [from, to] = everything();
  } else if (before?.complete && to >= before.end && answer.end > before.end) { // follow the end
    const by = answer.end - to + (to - from) * 0.05;
    from += by;
    to += by;
    askAgain = true;
  }
  arrange();
  options();
  explain();
  if (seeking) bring();
  const partial = settled() && summary.querySelector("[data-partial]");
  if (partial || before && before.complete && before.last !== answer.last) renew();
  draw();
}

// settled is whether all calls are counted, so that no number changes unless more come.
const settled = () => data.complete || data.full;

// begin shows what the address says, or everything.
function begin() {
  const given = here();
  const [a, b] = [Date.parse(given.get("from")) * 1000, Date.parse(given.get("to")) * 1000];
  if (a < b) {
    [from, to, whole] = [a, b, false];
    askAgain = true;
  }
}

// everything is the time of nearly all calls, with some room around.
function everything() {
  const [a, b] = data.focus;
  const room = Math.max((b - a) * 0.02, (1e6 - b + a) / 2); // a second at least
  return [a - room, b + room];
}

// options offers the functions that are known, and the chosen one, whose calls may still
// come.
function options() {
  const select = form.elements.function;
  const chosen = select.value;
  const names = !chosen || data.functions.includes(chosen) ? data.functions : [...data.functions, chosen];
  if (select.options.length === names.length + 1) return;
  const short = names.map(lastName);
  const text = (name, i) => (short.indexOf(short[i]) === short.lastIndexOf(short[i]) ? short[i] : name);
  select.replaceChildren(new Option("all", ""), ...names.map((name, i) => new Option(text(name, i), name)));
  select.value = chosen;
}

// explain says which functions have which colour.
let explained = 0;
function explain() {
  if (explained === data.functions.length) return;
  explained = data.functions.length;
  legend.replaceChildren(...[1, 2, 3, 4].flatMap((colour) => {
    const names = data.functions.map(lastName).filter((_, i) => i % 4 + 1 === colour);
    if (!names.length) return [];
    const item = document.createElement("li");
    item.className = `call-${colour}`;
    item.textContent = names.slice(0, 3).join(", ") + (names.length > 3 ? ` and ${names.length - 3} more` : "");
    item.title = names.slice(0, 40).join(", ");
    return [item];
  }), ...legend.querySelectorAll(":not([class^=call-])"));
}

// Lanes: names next to the bars, or above them where there is little room.

// usedLanes are those with calls in the part that is shown. The others are made small.
function usedLanes() {
  return new Set(data.bars.filter((bar) => data.begin + bar[BEGIN] <= to && data.begin + bar[BEGIN] + bar[LENGTH] >= from).map((bar) => bar[LANE]));
}

function arrange() {
  const narrow = lanes.clientWidth < 640;
  gutter = narrow ? 0 : Math.round(Math.min(11 * ROWHEIGHT, Math.max(9 * ROWHEIGHT, lanes.clientWidth * 0.18)));
  const above = narrow ? ROWHEIGHT : 0;
  let top = AXIS + GAP / 2;
  const used = usedLanes();
  rows = data.lanes.map((lane, i) => {
    const row = { top: top + above, empty: !used.has(i) };
    top += above + (row.empty ? (narrow ? 0 : ROWHEIGHT) : Math.max(lane.rows, narrow ? 0 : 2) * ROWHEIGHT) + GAP;
    return row;
  });
  tall.style.height = `${Math.max(top, 120)}px`;
  labels.classList.toggle("above", narrow);
  labels.style.width = narrow ? "100%" : `${gutter}px`;
  labels.replaceChildren(...data.lanes.map((lane, i) => {
    const item = document.createElement("li");
    item.style.top = `${rows[i].top - above}px`;
    item.classList.toggle("empty", rows[i].empty);
    const name = document.createElement("span");
    name.className = "name";
    const named = data.by === "device" ? lane.name : lastName(lane.name);
    name.textContent = lane.name || data.by === "function" ? named : `(no ${data.by})`;
    name.title = lane.name;
    const count = document.createElement("span");
    count.className = "count";
    count.textContent = settled() ? countCalls(lane.calls) : "";
    if (settled() && lane.failures) {
      const bad = document.createElement("span");
      bad.className = "bad";
      bad.textContent = `${thousands(lane.failures)} failed`;
      count.append(", ", bad);
    }
    item.append(name, " ", count);
    return item;
  }));
  for (const button of section.querySelectorAll(".chart-tools .wrong")) button.hidden = !data.failures;
  lanes.setAttribute("aria-label", settled() ? `${countCalls(data.calls)} in time, ${thousands(data.failures)} failed` : "Calls in time, which are being counted");
  size();
}

function size() {
  const ratio = devicePixelRatio || 1;
  for (const [element, high] of [[canvas, lanes.clientHeight], [overview, 48]]) {
    const wide = element.parentElement.clientWidth;
    if (element.width !== Math.round(wide * ratio) || element.height !== Math.round(high * ratio)) {
      element.width = Math.round(wide * ratio);
      element.height = Math.round(high * ratio);
      element.style.height = `${high}px`;
    }
  }
  width = lanes.clientWidth;
}

// readStyle takes colours and sizes from the stylesheet.
function readStyle() {
  const style = getComputedStyle(section);
  for (const name of ["text", "muted", "line", "accent", "surface", "page", "bad", "on-bad", "tint", "call-1", "call-2", "call-3", "call-4", "calls", "on-call", "gap"]) {
    colours[name] = style.getPropertyValue(`--${name}`).trim();
  }
  const unit = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  [ROWHEIGHT, GAP, AXIS] = [20, 10, 40].map((n) => Math.round(n * unit));
  colours.font = `${11.5 * unit}px ${style.fontFamily}`;
}

// Drawing. Everything in sight is drawn again, at most once per frame.

let drawing = false;
function draw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    if (!data) return;
    const began = performance.now();
    drawLanes();
    drawOverview();
    section.dataset.drawn = (performance.now() - began).toFixed(1);
  });
}

const x = (t) => gutter + (t - from) / (to - from) * (width - gutter);
const time = (px) => from + (px - gutter) / (width - gutter) * (to - from);

function context(element) {
  const c = element.getContext("2d");
  const ratio = devicePixelRatio || 1;
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.clearRect(0, 0, element.width, element.height);
  c.font = colours.font;
  c.textBaseline = "middle";
  return c;
}

function drawLanes() {
  const c = context(canvas);
  const high = lanes.clientHeight, scrolled = lanes.scrollTop;
  if (!data.calls) {
    c.fillStyle = colours.muted;
    c.textAlign = "center";
    c.fillText("Calls appear here as they are recorded.", width / 2, high / 2);
    return;
  }
  c.save();
  c.beginPath();
  c.rect(gutter, 0, width - gutter, high);
  c.clip();
  drawGaps(c, high);
  drawGrid(c, high);
  drawShade(c, high);
  const failures = drawBars(c, high, scrolled);
  drawSelected(c);
  drawAxis(c, failures);
  c.restore();
  c.fillStyle = colours.line;
  for (const row of rows.slice(1)) c.fillRect(0, row.top - (gutter ? 0 : ROWHEIGHT) - GAP / 2 - scrolled, width, 1);
  c.fillStyle = colours.surface;
  c.fillRect(0, 0, gutter, AXIS);
  c.fillStyle = colours.muted;
  if (gutter && valid(from)) c.fillText(iso(from).slice(0, 10), 10, AXIS * 0.35);
  c.fillStyle = colours.line;
  c.fillRect(0, AXIS - 1, width, 1);
  if (gutter) c.fillRect(gutter, 0, 1, high);
  if (told) return;
  shown.textContent = `${elapsed(to - from)} shown`;
  if (whole && data.beyond === 1) shown.textContent += "; 1 call is far from the others: zoom out to see it";
  if (whole && data.beyond > 1) shown.textContent += `; ${thousands(data.beyond)} calls are far from the others: zoom out to see them`;
  if (data.full) shown.textContent += `; only the first ${thousands(data.calls)} calls are drawn`;
}

// Times in which nothing was called.
function drawGaps(c, high) {
  for (const [a, b] of data.gaps) {
    const left = Math.max(x(data.begin + a), gutter), right = Math.min(x(data.begin + b), width);
    if (right - left < 12) continue;
    c.fillStyle = colours.gap;
    c.fillRect(left, AXIS, right - left, high);
    const text = elapsed(b - a);
    if (right - left > c.measureText(text).width + 12) {
      c.fillStyle = colours.muted;
      c.textAlign = "center";
      c.fillText(text, (left + right) / 2, high - 10);
      c.textAlign = "left";
    }
  }
}

function step() {
  const least = (to - from) * 100 / Math.max(width - gutter, 1);
  return STEPS.find((s) => s >= least) ?? STEPS[STEPS.length - 1];
}

function drawGrid(c, high) {
  const every = step();
  c.fillStyle = colours.line;
  for (let t = Math.ceil(from / every) * every; t <= to; t += every) c.fillRect(Math.round(x(t)), AXIS - 5, 1, high);
}

// The axis covers what is scrolled under it. A mark on it points at each failure.
function drawAxis(c, failures) {
  c.fillStyle = colours.surface;
  c.fillRect(gutter, 0, width, AXIS);
  const every = step();
  c.fillStyle = colours.muted;
  for (let t = Math.ceil(from / every) * every; t <= to; t += every) {
    const midnight = t % 86400e6 === 0;
    const text = clock(t, midnight ? 86400e6 : every), begin = Math.round(x(t)) + 4;
    if (begin + c.measureText(text).width <= width) c.fillText(text, begin, AXIS * 0.35);
    c.fillRect(Math.round(x(t)), 6, 1, AXIS - 6);
  }
  c.fillStyle = colours.bad;
  const mark = AXIS / 9;
  let before = -Infinity;
  for (const at of failures.sort((a, b) => a - b)) {
    if (at - before < 1.5 * mark) continue;
    before = at;
    c.beginPath();
    c.moveTo(at - mark, AXIS - 2 - 2 * mark);
    c.lineTo(at + mark, AXIS - 2 - 2 * mark);
    c.lineTo(at, AXIS - 2);
    c.fill();
  }
}

// extent is where a bar is drawn: never narrower than what an eye can see.
function extent(bar) {
  const left = x(data.begin + bar[BEGIN]);
  return [left, Math.max(x(data.begin + bar[BEGIN] + bar[LENGTH]) - left, bar[FAILURES] ? 4 : 2)];
}

function drawBars(c, high, scrolled) {
  const failures = [];
  const fresh = !still.matches && performance.now() - freshSince < 2000;
  // Failures are drawn last, so that nothing covers them.
  for (const failed of [false, true]) {
    for (let i = 0; i < data.bars.length; i++) {
      const bar = data.bars[i];
      if (bar[FAILURES] > 0 !== failed) continue;
      const [left, wide] = extent(bar);
      if (left > width || left + wide < gutter) continue;
      if (failed) failures.push(Math.min(Math.max(left, gutter + 4) + Math.min(wide, 8) / 2, width - 4));
      const top = rows[bar[LANE]].top + bar[ROW] * ROWHEIGHT - scrolled;
      if (top > high || top + ROWHEIGHT < AXIS) continue;
      c.fillStyle = failed ? colours.bad : bar[CALLS] > 1 ? colours.calls : colours[`call-${bar[FUNCTION] % 4 + 1}`];
      if (bar[UNKNOWN] && bar[CALLS] === 1) {
        drawUnknown(c, left, top);
      } else if (wide > 6) {
        c.beginPath();
        c.roundRect(left, top + 1, Math.max(wide - 1, 2), ROWHEIGHT - 3, 3);
        c.fill();
      } else {
        c.fillRect(left, top + 1, wide, ROWHEIGHT - 3);
      }
      if (bar[SEQUENCE] > freshAfter && fresh) {
        c.globalAlpha = 1 - (performance.now() - freshSince) / 2000;
        c.strokeStyle = colours.text;
        c.lineWidth = 2;
        c.strokeRect(left - 2, top - 1, Math.max(wide, 4) + 4, ROWHEIGHT + 1);
        c.globalAlpha = 1;
      }
      if (wide > 34 && bar[ROW] < SHARED) label(c, bar, left, wide, top);
      else if (bar[CALLS] === 1 && data.by !== "function") labelBeside(c, bar, data.bars[i + 1], left + wide, top);
    }
  }
  if (fresh) draw();
  return failures;
}

// An answer never came, or nobody knows when: the bar has no end.
function drawUnknown(c, left, top) {
  c.beginPath();
  c.moveTo(left, top + 1);
  c.lineTo(left + 5, top + 1);
  c.lineTo(left + 11, top + ROWHEIGHT / 2 - 0.5);
  c.lineTo(left + 5, top + ROWHEIGHT - 2);
  c.lineTo(left, top + ROWHEIGHT - 2);
  c.fill();
}

function label(c, bar, left, wide, top) {
  const begin = Math.max(left, gutter) + 6;
  const room = Math.min(left + wide, width) - begin - 5;
  const name = bar[CALLS] > 1 ? `${thousands(bar[CALLS])} calls` : lastName(data.functions[bar[FUNCTION]]);
  const long = bar[CALLS] > 1 || bar[UNKNOWN] ? name : `${name}  ${elapsed(bar[LENGTH])}`;
  c.fillStyle = bar[FAILURES] ? colours["on-bad"] : colours["on-call"];
  c.fillText(c.measureText(long).width <= room ? long : fit(c, name, room), begin, top + ROWHEIGHT / 2);
}

// A short call has its name next to it, if nothing else is there.
function labelBeside(c, bar, next, right, top) {
  const end = next && next[LANE] === bar[LANE] && next[ROW] === bar[ROW] ? x(data.begin + next[BEGIN]) : width;
  if (end - right < 40) return;
  const name = lastName(data.functions[bar[FUNCTION]]), begin = right + (bar[UNKNOWN] ? 12 : 4);
  if (c.measureText(name).width > end - begin - 6) return;
  c.fillStyle = bar[FAILURES] ? colours.bad : colours.muted;
  c.fillText(name, begin, top + ROWHEIGHT / 2);
}

// fit cuts a text to what there is room for.
function fit(c, text, room) {
  const wide = c.measureText(text).width;
  if (wide <= room) return text;
  const some = Math.floor(text.length * room / wide) - 1;
  return some < 3 ? "" : text.slice(0, some) + "…";
}

// The call in the panel has a shade in all lanes, so that one sees what else was
// going on, and a frame.
function drawShade(c, high) {
  if (!selected) return;
  const left = x(selected.begin), right = Math.max(x(selected.end), left + 2);
  c.fillStyle = colours.tint;
  c.fillRect(left, AXIS, right - left, high);
  c.fillStyle = colours.accent;
  c.fillRect(left - 1, AXIS, 1, high);
  c.fillRect(right, AXIS, 1, high);
}

function drawSelected(c) {
  const bar = selected && data.bars.find((b) => b[SEQUENCE] === selected.call);
  if (!bar) return;
  const [left, wide] = extent(bar);
  c.strokeStyle = colours.text;
  c.lineWidth = 2.5;
  c.strokeRect(left - 2, rows[bar[LANE]].top + bar[ROW] * ROWHEIGHT - 1 - lanes.scrollTop, Math.max(wide, 4) + 3, ROWHEIGHT);
}

// The strip above shows the whole block, and which part of it is below.
function strip() {
  const [a, b] = everything(), wide = overview.clientWidth;
  return { at: (t) => (t - a) / (b - a) * wide, time: (px) => a + px / wide * (b - a) };
}

function drawOverview() {
  const c = context(overview);
  const wide = overview.clientWidth, high = 48, { at } = strip();
  const first = at(data.focus[0]), part = (at(data.focus[1]) - first) / data.overview.length;
  const most = Math.max(1, ...data.overview.map(([calls]) => calls));
  c.fillStyle = colours["call-1"];
  data.overview.forEach(([calls], i) => {
    if (calls) c.fillRect(first + i * part, high - 4 - (high - 14) * Math.sqrt(calls / most), Math.max(part, 1) + 0.5, (high - 14) * Math.sqrt(calls / most) + 4);
  });
  c.fillStyle = colours.bad;
  const worst = Math.max(1, ...data.overview.map(([, failures]) => failures));
  data.overview.forEach(([, failures], i) => {
    const tall = failures && 12 + (high - 12) * failures / worst;
    if (failures) c.fillRect(first + i * part - 1, high - tall, Math.max(part, 3), tall);
  });
  const left = Math.max(0, at(from)), right = Math.min(wide, at(to));
  c.globalAlpha = 0.6;
  c.fillStyle = colours.page;
  c.fillRect(0, 0, left, high);
  c.fillRect(right, 0, wide - right, high);
  c.globalAlpha = 1;
  c.strokeStyle = colours.accent;
  c.lineWidth = 2;
  c.strokeRect(left + 1, 1, Math.max(right - left - 2, 2), high - 2);
}

// Moving about.

function show(a, b) {
  const [first, last] = [Math.min(data.begin, data.focus[0]), data.end];
  const most = Math.max(last - first, 1e6) * 1.04, least = 20;
  const long = Math.min(Math.max(b - a, least), most);
  const middle = (a + b) / 2;
  a = Math.min(Math.max(middle - long / 2, first - long * 0.5), last + long * 0.5 - long);
  [from, to, whole] = [a, a + long, false];
  told = "";
  const used = usedLanes();
  if (rows.some((row, i) => row.empty && used.has(i))) arrange(); // lanes become small only when one has stopped moving
  draw();
  keep();
  askIn(60); // for more detail, when one has stopped moving
}

const pan = (part) => show(from + (to - from) * part, to + (to - from) * part);

function zoom(factor, at = (from + to) / 2) {
  show(at - (at - from) * factor, at + (to - at) * factor);
}

function showAll() {
  whole = true;
  [from, to] = everything();
  told = "";
  draw();
  keep();
  ask();
}

const press = (link) => {
  const to = section.querySelector(`.panel ${link}`);
  if (to) to.click();
  return Boolean(to);
};

// inSight is whether the call in the panel is in the part that is shown.
const inSight = () => selected && !(selected.end < from || selected.begin > to);

// failure goes to the failure before or after the call in the panel, or before or after
// what is shown if it is not there. The archive knows all; steps are taken one by one.
let steps = Promise.resolve(), waiting = 0;
function failure(which) {
  if (waiting > 2) return; // somebody holds the key
  waiting++;
  steps = steps.then(() => stepTo(which)).catch((error) => tell(error.message)).finally(() => waiting--);
}

async function stepTo(which) {
  if (!settled()) tell("Counting failures…");
  while (!settled()) await pause(100); // in live.js
  const query = filter();
  if (inSight()) query.set("call", selected.call);
  else query.set("edge", Math.floor(which === "next-failure" ? from : to));
  const call = await (await fetched(`${block}/timeline/${which}?${query}`)).json();
  if (call) await select(call);
  else tell(said.textContent = which === "next-failure" ? "No failure comes after this" : "No failure comes before this");
}

function showKeys() {
  if (help.open) help.close();
  else help.showModal();
}

const actions = {
  all: showAll,
  in: () => zoom(0.5),
  out: () => zoom(2),
  left: () => pan(-0.25),
  right: () => pan(0.25),
  first: () => show(data.begin - (to - from) * 0.02, data.begin + (to - from) * 0.98),
  last: () => show(data.end - (to - from) * 0.98, data.end + (to - from) * 0.02),
  failureBefore: () => failure("previous-failure"),
  failureAfter: () => failure("next-failure"),
  before: () => press("[rel=prev]"),
  after: () => press("[rel=next]"),
  close: () => unselect(),
  keys: showKeys,
};

const keys = {
  ArrowLeft: "left", ArrowRight: "right", "+": "in", "=": "in", "-": "out", "0": "all", Home: "first", End: "last",
  n: "failureAfter", p: "failureBefore", ".": "after", ",": "before", Escape: "close", "?": "keys",
};

// Keys work on the whole page, but not where they write or scroll.
document.addEventListener("keydown", (event) => {
  const action = keys[event.key], at = event.target;
  if (!action || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || !data) return;
  if (at.matches("input, textarea, select, [contenteditable]") || help.open && action !== "keys") return;
  const here = at.closest(".chart, .panel");
  if (event.key.startsWith("Arrow") && at.matches("pre, .graph") || ["Home", "End"].includes(event.key) && (!here || at.matches("pre"))) return;
  if (action === "close" && !selected) return;
  event.preventDefault();
  const box = section.getBoundingClientRect();
  if (!here && action !== "close" && (box.bottom < innerHeight / 4 || box.top > innerHeight * 3 / 4)) section.scrollIntoView();
  actions[action]();
});

section.querySelector(".chart").addEventListener("click", (event) => {
  const action = event.target.closest("[data-do]")?.dataset.do;
  if (action && data) actions[action]();
  if (event.target === help || event.target.closest("dialog a")) help.close(); // beside it, or to the table
});

lanes.addEventListener("wheel", (event) => {
  if (!data) return;
  const sideways = event.shiftKey ? event.deltaY : event.deltaX;
  if (event.ctrlKey || event.metaKey) {
    zoom(Math.exp(Math.max(-100, Math.min(100, event.deltaY)) * 0.005), time(event.clientX - lanes.getBoundingClientRect().left));
  } else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
    pan(sideways / (width - gutter));
  } else {
    return; // the page scrolls
  }
  event.preventDefault();
}, { passive: false });

// Pointers: one moves, two zoom.
const pointers = new Map();
let moved = false;

lanes.addEventListener("pointerdown", (event) => {
  if (!data || event.button !== 0) return;
  moved = pointers.size > 0;
  pointers.set(event.pointerId, event.clientX);
});
addEventListener("pointermove", (event) => {
  if (!pointers.has(event.pointerId)) {
    if (event.target === canvas || labels.contains(event.target)) point(event);
    return;
  }
  const before = [...pointers.values()];
  const old = pointers.get(event.pointerId);
  if (!moved && Math.abs(event.clientX - old) < 4) return;
  if (!moved) lanes.setPointerCapture(event.pointerId);
  moved = true;
  pointers.set(event.pointerId, event.clientX);
  hint.hidden = true;
  const now = [...pointers.values()], left = lanes.getBoundingClientRect().left;
  if (now.length === 2) {
    const middle = time((now[0] + now[1]) / 2 - left);
    zoom(Math.max(8, Math.abs(before[0] - before[1])) / Math.max(8, Math.abs(now[0] - now[1])), middle);
  } else {
    pan((old - event.clientX) / (width - gutter));
  }
});
for (const name of ["pointerup", "pointercancel"]) {
  addEventListener(name, (event) => {
    if (!pointers.delete(event.pointerId) || moved || name === "pointercancel") return;
    const bar = barAt(event);
    if (bar) select(bar[SEQUENCE]);
  });
}
lanes.addEventListener("dblclick", (event) => { if (data) zoom(0.25, time(event.clientX - lanes.getBoundingClientRect().left)); });
lanes.addEventListener("pointerleave", () => { hint.hidden = true; });
lanes.addEventListener("scroll", draw);

overview.addEventListener("pointerdown", (event) => {
  if (!data || event.button !== 0) return;
  overview.setPointerCapture(event.pointerId);
  const place = (e) => e.clientX - overview.getBoundingClientRect().left;
  const start = place(event), { time } = strip(), long = to - from;
  const end = new AbortController();
  overview.addEventListener("pointermove", (e) => {
    const [a, b] = [Math.min(start, place(e)), Math.max(start, place(e))];
    if (b - a > 4) show(time(a), time(b));
  }, { signal: end.signal });
  overview.addEventListener("pointerup", (e) => {
    end.abort();
    if (Math.abs(place(e) - start) <= 4) show(time(start) - long / 2, time(start) + long / 2);
  }, { signal: end.signal });
  overview.addEventListener("pointercancel", () => end.abort(), { signal: end.signal }); // nothing follows then
});

// barAt finds the bar under a pointer: a failure first, and one nearby for a
// finger.
function barAt(event) {
  const box = lanes.getBoundingClientRect();
  const at = event.clientX - box.left, down = event.clientY - box.top, near = event.pointerType === "touch" ? 12 : 3;
  if (down < AXIS || at < gutter) return null;
  let found = null, distance = near;
  for (const bar of data.bars) {
    const top = rows[bar[LANE]].top + bar[ROW] * ROWHEIGHT - lanes.scrollTop;
    if (down < top || down > top + ROWHEIGHT) continue;
    const [left, wide] = extent(bar);
    const off = Math.max(left - at, at - left - wide, 0);
    if (off < distance || off === distance && bar[FAILURES]) [found, distance] = [bar, off];
  }
  return found;
}

function point(event) {
  const bar = data && barAt(event);
  hint.hidden = !bar;
  lanes.classList.toggle("over", Boolean(bar));
  if (!bar) return;
  const name = lastName(data.functions[bar[FUNCTION]]);
  const begin = clock(data.begin + bar[BEGIN], 1000);
  if (bar[CALLS] > 1) {
    hint.textContent = `${thousands(bar[CALLS])} calls from ${begin}` +
      (bar[FAILURES] ? `, ${thousands(bar[FAILURES])} failed` : "") +
      (bar[LONGEST] >= 0 ? `, longest ${elapsed(bar[LONGEST])}` : "");
  } else {
    hint.textContent = `${name} · ${begin}` + (bar[UNKNOWN] ? " · no answer time" : ` · ${elapsed(bar[LENGTH])}`) + (bar[FAILURES] ? " · failed" : "");
  }
  hint.classList.toggle("failed", bar[FAILURES] > 0);
  const box = lanes.getBoundingClientRect();
  const left = Math.min(event.clientX - box.left + 12, box.width - hint.offsetWidth - 8);
  hint.style.left = `${Math.max(4, left)}px`;
  hint.style.top = `${event.clientY - box.top + 18 + lanes.scrollTop}px`;
}

// The panel has one call. The archive writes it.

let wanted = 0; // the call that was asked for last
async function select(call, opened = true) {
  wanted = call;
  try {
    const before = renewals;
    const text = await (await fetched(`${block}/timeline/${call}?${view()}`)).text();
    if (wanted !== call) return;
    panel.replaceChildren(...parse(text));
    returns ||= opened && !selected;
    shownCall();
    bring();
    if (renewals !== before) renew(); // calls may have come meanwhile, or another filter
    said.textContent = ["h3", ".outcome", ".problem"].map((part) => panel.querySelector(part)?.textContent ?? "").join(". ");
    // Where the panel is below the timeline, its head comes into sight.
    panel.parentElement.scrollTop = 0;
    const { top } = panel.getBoundingClientRect();
    if (top > innerHeight * 0.6 || top < 0) scrollBy({ top: top - innerHeight * 0.6 });
  } catch (error) {
    if (wanted === call) tell(error.message);
  }
}

// parse makes elements of what the archive wrote, which runs nothing.
function parse(text) {
  return [...new DOMParser().parseFromString(text, "text/html").body.children];
}

function shownCall() {
  const article = panel.querySelector("article");
  told = "";
  selected = article && { call: Number(article.dataset.call), begin: Number(article.dataset.begin), end: Number(article.dataset.end) }; // NaN if it is not known where it is
  if (selected) remember(panel.querySelector("nav")); // in live.js
  keep();
  resized();
}

// bring moves a call into sight. Where it is joined with others, it is looked at closer
// until it has a bar of its own.
let seeking = false; // it goes on when the archive has sent more
function bring() {
  seeking = false;
  if (!selected || !data || Number.isNaN(selected.begin)) return;
  const middle = (selected.begin + selected.end) / 2;
  const look = (long) => show(middle - long / 2, middle + long / 2);
  if (!inSight()) look(to - from);
  draw();
  const bar = data.bars.find((b) => b[SEQUENCE] === selected.call);
  if (bar) {
    const top = rows[bar[LANE]].top + bar[ROW] * ROWHEIGHT;
    if (top < lanes.scrollTop + AXIS || top + ROWHEIGHT > lanes.scrollTop + lanes.clientHeight) lanes.scrollTop = top - lanes.clientHeight / 2;
    return;
  }
  seeking = !settled() || inSight() && !(data.from <= selected.begin && selected.begin <= data.to);
  const begin = selected.begin - data.begin, closer = Math.max((to - from) / 8, (selected.end - selected.begin) * 4);
  const joined = data.bars.some((b) => b[CALLS] > 1 && b[BEGIN] <= begin && begin <= b[BEGIN] + b[LENGTH]);
  if (!inSight() || !joined || closer > (to - from) / 2 || closer < 1000) return;
  seeking = true;
  look(closer);
}

function unselect() {
  if (panel.contains(document.activeElement)) lanes.focus();
  panel.replaceChildren();
  wanted = 0;
  shownCall();
}

// Links to calls of this page, in the panel, the summary and the table.
document.addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  const link = event.target.closest("a");
  if (!link) return;
  const close = link.matches(".panel .close");
  const call = Number(link.dataset.call || link.closest(".panel nav") && new URL(link.href).searchParams.get("call"));
  if (!close && !call) return;
  event.preventDefault();
  if (close) {
    unselect();
    return;
  }
  const around = link.closest(".panel nav"), focused = document.activeElement;
  select(call).then(() => {
    if (wanted !== call) return; // another one was, or none
    const same = link.dataset.go ? `[data-go=${link.dataset.go}]` : `[rel=${link.rel}]`;
    // Leave the focus alone if it has moved elsewhere meanwhile.
    if (around && [focused, document.body].includes(document.activeElement)) (panel.querySelector(same) ?? lanes).focus({ preventScroll: true });
    if (link.closest("table")) section.scrollIntoView({ block: "start" });
  });
});

form.addEventListener("change", () => {
  returns = true;
  filtered = true;
  filters++;
  keep();
  ask();
  renew();
});
form.addEventListener("submit", (event) => event.preventDefault());

// Following. A change of the block says that there is something new; the archive is
// then asked for it, so that what is drawn never depends on what was heard.

function state(connected) {
  live.dataset.connected = connected;
  if (!outdated) live.textContent = connection(connected); // in live.js
}

// current is whether what the archive sent is about the version of the page. Another
// one may have other calls, so nothing of it is taken: the page is loaded again.
let outdated = false;
function current(sent) {
  if (!live || sent === version) return true; // an older state does not change
  if (sent && !outdated) { // 0 while a version is being stored
    outdated = true;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "plain";
    button.textContent = "Show it";
    button.addEventListener("click", () => location.reload());
    live.replaceChildren("There is a new version. ", button);
    loadAgain(); // in live.js
  }
  return false;
}

// heard asks for what is new, a few times per second at most.
let hearing = 0;
function heard() {
  hearing ||= setTimeout(() => {
    hearing = 0;
    ask();
  }, 150);
}

// renew asks for the parts of the page that new calls change, one after another, and for
// the whole table if the filter has changed.
let renewing = false, renewAgain = false, renewal = 0, renewals = 0;
let filters = 0, inTable = 0; // how many were chosen, and which of them the table shows
async function renew() {
  renewAgain = renewing;
  if (renewing) return;
  renewing = true;
  clearTimeout(renewal);
  try {
    await renewParts();
  } catch (error) {
    if (!error.refused) renewal = setTimeout(renew, LATER);
  }
  renewing = false;
  if (renewAgain) renew();
}

async function renewParts() {
  renewals++;
  const [tally, list] = parse(await (await fetched(`${block}/timeline/summary?${filter()}`)).text());
  await released(); // in live.js, as renewPart is
  renewPart(summary, [...tally.children]);
  const unfolded = wentWrong.querySelector("details[open]");
  renewPart(wentWrong, [...list.children]);
  if (unfolded) wentWrong.querySelector("details")?.setAttribute("open", "");
  document.dispatchEvent(new Event("renewed"));
  const table = document.querySelector("table.calls");
  // Not all calls may have been known when the table was made.
  if (inTable !== filters || !table || table.hasAttribute("data-partial")) await renewTable();
  else if (table.hasAttribute("data-end")) await renewTable(Number(table.dataset.last));
  if (selected && Number.isNaN(selected.begin)) await select(selected.call, false); // it is known now where it is
  else if (selected) await renewAround(selected.call);
}

// renewAround asks for the links to the calls around the one in the panel. There are none
// if another version is stored meanwhile, which has no such call.
async function renewAround(call) {
  const wanted = view();
  wanted.set("call", call);
  const [links] = parse(await (await fetched(`${block}/timeline/around?${wanted}`)).text());
  await released();
  if (links && selected?.call === call) renewPart(panel.querySelector("nav"), [...links.children]);
}

// renewTable asks for the table again, or for the rows after a call.
async function renewTable(after = 0) {
  const wanted = view(); // so that the links of the table keep it
  const chosen = filters;
  if (after) wanted.set("after", after);
  const response = await fetched(`${block}?${wanted}`);
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  await released();
  if (chosen !== filters || !current(versionIn(page))) return; // this is no longer wanted
  const section = document.getElementById("calls").closest("section");
  const now = page.getElementById("calls").closest("section");
  const [old, fresh] = [section.querySelector("table"), now.querySelector("table")];
  if (!after || !old) {
    section.replaceChildren(...now.children);
    inTable = chosen;
    return;
  }
  if (!fresh?.querySelector("tr[id]")) return;
  if (old.rows.length > 2000) { // enough for a page
    old.removeAttribute("data-end");
    const next = document.createElement("a");
    next.href = `${block}?${wanted}#calls`;
    next.rel = "next";
    next.textContent = "Next";
    let further = section.querySelector("table ~ .paging");
    if (!further) {
      further = document.createElement("nav");
      further.className = "paging";
      further.setAttribute("aria-label", "Further calls");
      old.after(further);
    }
    further.append(next);
    return;
  }
  old.tBodies[0].append(...fresh.tBodies[0].rows);
  old.dataset.last = fresh.dataset.last;
  if (!fresh.hasAttribute("data-end")) await renewTable(Number(fresh.dataset.last));
}

// tell says something in the place of what is shown, until one goes on.
let told = "";
function tell(text) {
  told = shown.textContent = text;
}

function resized() {
  if (!data) return;
  arrange();
  draw();
}

for (const element of section.querySelectorAll("[data-scripted]")) element.hidden = false;
section.classList.add("scripted");
form.querySelector("button").hidden = true;
if (["module", "function", "device"].includes(here().get("by"))) form.elements.by.value = here().get("by");
const chosen = here().get("function") ?? "";
// A filter may be chosen before this file is there.
const touched = (select) => select.selectedIndex !== Math.max(0, [...select.options].findIndex((option) => option.defaultSelected));
const other = touched(form.elements.function), early = other || touched(form.elements.calls);
if (!other) form.elements.function.value = chosen;
// Its calls may not have been read when the page was made.
if (!other && form.elements.function.value !== chosen) form.elements.function.add(new Option(lastName(chosen), chosen, true, true));
remember(summary);
remember(wentWrong);
readStyle();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readStyle();
  draw();
});
new ResizeObserver(resized).observe(lanes);
size();
shownCall();
const named = !selected && location.hash.match(/^#call-(\d+)$/);
ask().then(() => {
  if (named && !wanted) select(Number(named[1]), false); // it was there from the beginning
  keep(); // a filter may have been chosen meanwhile
  if (early) form.dispatchEvent(new Event("change"));
  bring();
  if (live) follow({ id: block, changed: heard, state }); // an older state does not change
});
})();
