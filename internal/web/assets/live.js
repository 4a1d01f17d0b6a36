// What a page needs to stay up to date while it is open: follow tells it of
// changes, and its parts with the attribute data-live renew themselves. The attribute
// names the entity that they are about, if it is only one. The pages work without
// this file.
//
// A browser opens no more than six connections to a host, so the pages share one
// stream: this file is also the worker that keeps it. Without shared workers, or if
// this one cannot be loaded, each page has a stream of its own. A page that nobody
// sees follows nothing.
"use strict";

const inWorker = typeof SharedWorkerGlobalScope === "function";
const ownAddress = inWorker ? location.href : document.currentScript.src;

// openStream tells of the changes of these entities, or of all if there are none:
// {connected}, and {changes} together if they come together. It reconnects by
// itself until the function that it returns is called.
function openStream(ids, tell) {
  const address = new URL("../changes?after=now", ownAddress);
  for (const id of ids) {
    address.searchParams.append("id", id);
  }
  const shortest = 500, longest = 20000;
  let pause = shortest, source, timer, gathering, changes = [];
  const connect = () => {
    source = new EventSource(address);
    source.onopen = () => {
      pause = shortest;
      tell({ connected: true });
    };
    source.addEventListener("change", ({ data }) => {
      changes.push(JSON.parse(data));
      gathering ??= setTimeout(() => {
        gathering = undefined;
        tell({ changes: changes.splice(0) });
      }, 100);
    });
    // A browser reconnects by itself after some failures, but not after all.
    source.onerror = () => {
      source.close();
      tell({ connected: false });
      timer = setTimeout(connect, pause * (0.75 + Math.random() / 2));
      pause = Math.min(2 * pause, longest);
    };
  };
  connect();
  return () => {
    source.close();
    clearTimeout(timer);
    clearTimeout(gathering);
  };
}

// keepStream is the worker: it has one stream for all pages that follow.
function keepStream() {
  const pages = new Map(); // the entity that each page follows, empty for all
  let wanted, connected, close;
  const restart = () => {
    const ids = new Set(pages.values());
    const filter = ids.has("") || ids.size > 100 ? [] : [...ids].sort();
    const now = pages.size > 0 ? JSON.stringify(filter) : undefined;
    if (now === wanted) {
      return;
    }
    wanted = now;
    connected = undefined;
    close?.();
    close = now && openStream(filter, (news) => {
      connected = news.connected ?? connected;
      for (const port of pages.keys()) {
        port.postMessage(news);
      }
    });
  };
  addEventListener("connect", ({ ports: [port] }) => {
    port.postMessage({}); // the worker works
    port.onmessage = ({ data: { follow } }) => {
      if (follow === undefined) {
        pages.delete(port);
      } else {
        pages.set(port, follow);
      }
      restart();
      if (follow !== undefined && connected !== undefined) {
        port.postMessage({ connected });
      }
    };
  });
}

// follow calls changed with changes of an entity, or of all if none is named, as
// long as somebody sees the page. Each time it is connected it calls changed
// without any: what was read before may be out of date, and nothing that is stored
// later will be missed. It calls state with whether it is connected. Who follows the same
// on a page shares a connection.
const following = new Map(); // who follows each entity, and whether they are connected
function follow({ id = "", changed, state = () => {} }) {
  const others = following.get(id);
  if (others) {
    others.all.push({ changed, state });
    if (others.connected !== undefined) state(others.connected);
    if (others.connected) changed([]);
    return;
  }
  const us = { all: [{ changed, state }] };
  following.set(id, us);
  const hear = ({ connected, changes = [] }) => {
    if (connected !== undefined) {
      us.connected = connected;
      us.all.forEach((one) => one.state(connected));
    }
    if (connected === false) {
      checkSession(); // in site.js: streams end with their session
    }
    changes = changes.filter((c) => id === "" || c.id === id);
    if (connected || changes.length > 0) {
      us.all.forEach((one) => one.changed(changes));
    }
  };
  let worker, leave, alone = !window.SharedWorker;
  const join = () => {
    if (document.hidden || leave) {
      return;
    }
    if (alone) {
      leave = openStream(id === "" ? [] : [id], hear);
      return;
    }
    if (!worker) {
      const shared = new SharedWorker(ownAddress);
      worker = shared.port;
      const giveUp = () => {
        clearTimeout(silent);
        worker.onmessage = undefined;
        alone = true;
        part();
        join();
      };
      // Browsers do not always say that a worker could not be loaded.
      const silent = setTimeout(giveUp, 5000);
      shared.onerror = giveUp;
      worker.onmessage = ({ data }) => {
        clearTimeout(silent);
        if (leave) hear(data);
      };
    }
    worker.postMessage({ follow: id });
    leave = () => worker.postMessage({});
  };
  const part = () => {
    leave?.();
    leave = undefined;
  };
  document.addEventListener("visibilitychange", () => document.hidden ? part() : join());
  addEventListener("pagehide", part);
  addEventListener("pageshow", join);
  join();
}

const pause = (time) => new Promise((done) => setTimeout(done, time));

// A click must end where it began, so nothing moves while a button or a finger is down.
let pointerDown = false;
if (!inWorker) {
  for (const type of ["pointerdown", "pointermove", "pointerup", "pointercancel"]) {
    addEventListener(type, ({ buttons }) => { pointerDown = type !== "pointercancel" && buttons !== 0; }, true);
  }
}

async function released() {
  while (pointerDown) {
    await pause(100);
  }
}

// loadAgain loads the page again, as soon as nothing that somebody types or selects is
// lost with it.
let loading = false;
async function loadAgain() {
  if (loading) {
    return;
  }
  loading = true;
  const used = (field) => field === document.activeElement || field.value !== field.defaultValue || field.checked !== field.defaultChecked;
  while (pointerDown || !getSelection().isCollapsed || [...document.querySelectorAll("input")].some(used)) {
    await pause(200);
  }
  location.reload();
}

const served = new WeakMap(); // what the server sent for a child of a part

function remember(part) {
  for (const child of part.children) {
    served.set(child, child.outerHTML);
  }
}

// renewPart gives a part the children that the server sent now. What has not changed
// stays in place, with the focus in it.
function renewPart(part, sent) {
  const kept = new Map([...part.children].map((child) => [served.get(child), child]));
  const children = sent.map((child) => {
    const text = child.outerHTML;
    if (!kept.has(text)) {
      served.set(child, text);
      child.classList.toggle("fresh", part.children.length > 0);
    }
    return kept.get(text) ?? child;
  });
  const focused = part.contains(document.activeElement) && document.activeElement;
  for (const child of [...part.children].filter((c) => !children.includes(c))) {
    child.remove();
  }
  children.forEach((child, i) => {
    if (part.children[i] !== child) {
      part.insertBefore(child, part.children[i] ?? null);
    }
  });
  if (focused && !part.contains(document.activeElement)) {
    const name = ["rel", "data-go", "href"].find((name) => focused.hasAttribute(name)); // their addresses may be others now
    part.querySelector(`[${name}="${CSS.escape(focused.getAttribute(name))}"]`)?.focus({ preventScroll: true });
  }
}

// refuses is whether an answer says that the page may not have what it asked for, as after
// the end of its session. To ask again would not help.
function refuses(answer) {
  return answer.status >= 400 && answer.status < 500 && answer.status !== 429;
}

// connection is what a page says of its connection: nothing while there is one.
const connection = (connected) => connected ? "" : "Not connected to the archive. Trying again…";

// renewParts keeps the parts with data-live as the server would send them now. It may send
// them by themselves, at the address data-from. What depends on the time as well is read
// again after so many seconds as data-every says.
function renewParts() {
  const parts = [...document.querySelectorAll("[data-live]")];
  parts.forEach(remember);
  const { live: id, from: own, every } = parts[0].dataset;
  const from = own ?? location.href;
  const names = (page) => [...page.querySelectorAll("[data-live]")].map((part) => part.id).join(" ");

  const read = async () => {
    const answer = await fetch(from, { headers: { Accept: "text/html" } });
    if (refuses(answer)) {
      return;
    }
    if (!answer.ok) {
      throw new Error(`the page answers ${answer.status}`);
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    await released();
    for (const part of parts) {
      const sent = page.getElementById(part.id);
      if (sent) {
        renewPart(part, [...sent.children]);
      }
    }
    document.dispatchEvent(new Event("renewed"));
    if (names(page) !== names(document)) {
      loadAgain();
    }
  };

  // Changes that come together, or while the page is being read, cost one reading.
  let wanted = false, reading = false;
  const changed = async (changes) => {
    if (own && changes.length > 0 && changes.every((c) => c.change === "recorded")) {
      return; // calls are no matter of these parts
    }
    wanted = true;
    if (reading) {
      return;
    }
    reading = true;
    while (wanted && !document.hidden) {
      wanted = false;
      const began = performance.now();
      await read().catch(() => { wanted = true; });
      await pause(Math.max(1000, 5 * (performance.now() - began))); // what takes the server long is read less often
    }
    reading = false;
  };
  const state = (connected) => {
    for (const place of document.querySelectorAll("[data-connected]")) {
      place.dataset.connected = connected;
      place.textContent = connection(connected);
    }
  };
  follow({ id, changed, state });
  if (every) {
    setInterval(() => { if (!document.hidden) changed([]); }, 1000 * every);
  }
}

if (inWorker) {
  keepStream();
} else if (document.querySelector("[data-live]")) {
  renewParts();
}
