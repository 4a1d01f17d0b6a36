// The pages work without this file. With it, times also say how long ago they
// are, texts have a button that copies them, the examples carry the address that
// the browser used, and a page says when its session has ended.
"use strict";

const root = new URL(document.documentElement.dataset.root, location.href);

// Behind a proxy that strips a path prefix, only the browser knows the whole
// address. It goes into a shell, so it is taken only when it is harmless there.
const api = new URL("api/v1", root).href;
if (/^https?:\/\/[A-Za-z0-9._:[\]-]+(\/[A-Za-z0-9._~%-]+)*$/.test(api)) {
  for (const place of document.querySelectorAll("[data-api]")) {
    place.textContent = api;
  }
}

const units = [["year", 31556952], ["month", 2629746], ["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "short" });

// ago says how far an instant is from now, in the largest unit that fits.
function ago(instant) {
  const seconds = (instant - Date.now()) / 1000;
  const [unit, size] = units.find(([, s]) => Math.abs(seconds) >= s) ?? ["second", 1];
  return relative.format(Math.trunc(seconds / size), unit); // 59.7 minutes are not 60
}

function tellAgo() {
  for (const time of document.querySelectorAll("time:not([title])")) {
    const instant = Date.parse(time.dateTime);
    if (Number.isNaN(instant)) {
      continue;
    }
    let told = time.nextElementSibling;
    if (!told?.classList.contains("ago")) {
      told = document.createElement("span");
      told.className = "ago";
      time.after(" ", told);
    }
    told.textContent = ago(instant);
  }
}
tellAgo();
document.addEventListener("renewed", tellAgo);
setInterval(() => { if (!document.hidden) tellAgo(); }, 30000);

// copy copies what text promises, and says on the button what came of it. A page may use
// the clipboard itself only on https and on this machine, and only if the person lets it;
// otherwise the text is selected and copied as by hand.
const relabel = new WeakMap(); // the timer of a button that says so
async function copy(button, text) {
  const label = button.dataset.label ??= button.textContent;
  try {
    const value = await text();
    try {
      await navigator.clipboard.writeText(value);
    } catch {
      const area = document.createElement("textarea");
      area.value = value;
      button.after(area);
      area.select();
      const copied = document.execCommand("copy");
      area.remove();
      button.focus();
      if (!copied) throw new Error("the browser refuses to copy");
    }
    button.textContent = "Copied";
  } catch {
    button.textContent = "It could not be copied";
  }
  clearTimeout(relabel.get(button));
  relabel.set(button, setTimeout(() => { button.textContent = label; }, 2000));
}

for (const element of document.querySelectorAll("[data-copy]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy ${element.dataset.copy || element.textContent}`);
  button.addEventListener("click", () => copy(button, async () => element.textContent));
  (element.closest("pre") ?? element).after(" ", button);
}

// What a link leads to can be copied without opening it.
for (const link of document.querySelectorAll("[data-copy-from]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = link.dataset.copyFrom;
  button.addEventListener("click", () => copy(button, async () => {
    const answer = await fetch(link.href);
    if (!answer.ok) throw new Error(`the archive answers ${answer.status}`);
    return answer.text();
  }));
  link.after(" ", button);
}

// Failures that were not all counted when a list was made are asked for again, as long
// as counting goes on.
let counting = false;
async function finishCounting() {
  const unfinished = () => [...document.querySelectorAll("td[data-partial]")];
  let wait = 1000;
  for (let further = !counting; further && unfinished().length > 0;) {
    counting = true;
    await new Promise((done) => setTimeout(done, wait));
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
    const text = answer?.ok ? await answer.text().catch(() => null) : null; // an answer may break off
    const page = new DOMParser().parseFromString(text ?? "", "text/html");
    further = text === null && !(answer?.status >= 400 && answer.status < 500); // the archive may be there again
    wait = further ? 5000 : 1000;
    for (const cell of unfinished()) {
      const now = page.getElementById(cell.id);
      if (now && now.outerHTML !== cell.outerHTML) {
        further = true;
        cell.replaceWith(now);
      }
    }
    counting = false;
  }
}
finishCounting();
document.addEventListener("renewed", finishCounting);

// A link to a call unfolds it.
function unfoldTarget() {
  let id;
  try {
    id = decodeURIComponent(location.hash.slice(1));
  } catch {
    return; // what cannot be decoded names nothing
  }
  document.getElementById(id)?.querySelector("details")?.setAttribute("open", "");
}
addEventListener("hashchange", unfoldTarget);
unfoldTarget();

// While the archive is being opened, its page says how far that is, and then
// becomes the page that was asked for.
const opening = document.querySelector("[data-opening]");
if (opening) {
  const look = async () => {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
    if (answer && answer.status < 502) { // a gateway may find nobody for a moment
      location.reload(); // once: another time would break it off
      return;
    }
    const text = await answer?.text().catch(() => ""); // an answer may break off
    const now = text && new DOMParser().parseFromString(text, "text/html").querySelector("[data-opening]");
    if (now) {
      opening.replaceChildren(...now.childNodes);
    }
    setTimeout(look, 2000);
  };
  setTimeout(look, 2000);
}

// Who signs in comes back to the same place of the page. A server never sees it.
for (const element of document.querySelectorAll("[data-return]")) {
  if (element.value !== undefined) {
    element.value += location.hash;
  } else {
    const link = new URL(element.href);
    link.searchParams.set("to", link.searchParams.get("to") + location.hash);
    element.href = link.href;
  }
}

// A page that is open when its session ends stays as it is, so that nothing on it is
// lost, and shows the way to sign in and come back. The session may end early: when
// its token is revoked, or the person signs out elsewhere. So the archive is asked
// when somebody returns to the page, and when a stream breaks.
const ends = Date.parse(document.documentElement.dataset.sessionEnds);

function sessionEnded() {
  if (document.querySelector(".ended")) {
    return;
  }
  const again = new URL("sign-in", root);
  again.searchParams.set("to", location.href.slice(root.href.length));
  const link = document.createElement("a");
  link.href = again.href;
  link.textContent = "Sign in again";
  const note = document.createElement("div");
  note.className = "ended";
  note.setAttribute("role", "alert");
  note.append("Your session has ended. ", link, " to go on from here.");
  document.body.prepend(note);
}

async function checkSession() {
  if (Number.isNaN(ends)) {
    return;
  }
  const answer = await fetch(location.href, { method: "HEAD", cache: "no-store" }).catch(() => null);
  if (answer?.status === 401) {
    sessionEnded();
  }
}

if (!Number.isNaN(ends)) {
  // The clocks may differ, so one question may not be enough.
  const watch = async () => {
    await checkSession();
    if (!document.querySelector(".ended")) {
      setTimeout(watch, 10000);
    }
  };
  setTimeout(watch, Math.max(ends - Date.now(), 0) + 500);
  addEventListener("pageshow", (event) => { if (event.persisted) checkSession(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) checkSession(); });
}
