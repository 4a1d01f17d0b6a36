// The pages work without this file. With it, times also say how long ago they
// are, texts have a button that copies them, and the examples carry the address
// that the browser used.
"use strict";

// Behind a proxy that strips a path prefix, only the browser knows the whole
// address. It goes into a shell, so it is taken only when it is harmless there.
const api = new URL(document.documentElement.dataset.root + "api/v1", location.href).href;
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
  return relative.format(Math.round(seconds / size), unit);
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

// The clipboard interface exists only on https and on this machine; elsewhere
// the selection is copied as by hand.
async function copyText(element) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(element.textContent);
    return;
  }
  getSelection().selectAllChildren(element);
  document.execCommand("copy");
}

for (const element of document.querySelectorAll("[data-copy]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy ${element.dataset.copy || element.textContent}`);
  button.addEventListener("click", async () => {
    await copyText(element);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  (element.closest("pre") ?? element).after(" ", button);
}

// A link to a call unfolds it.
function unfoldTarget() {
  const id = decodeURIComponent(location.hash.slice(1));
  document.getElementById(id)?.querySelector("details")?.setAttribute("open", "");
}
addEventListener("hashchange", unfoldTarget);
unfoldTarget();

// While the archive is being opened, its page says how far that is, and then
// becomes the page that was asked for.
const opening = document.querySelector("[data-opening]");
if (opening) {
  setInterval(async () => {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
    if (answer && answer.status !== 503) {
      location.reload();
    } else if (answer) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      opening.replaceChildren(...page.querySelector("[data-opening]")?.childNodes ?? []);
    }
  }, 2000);
}
