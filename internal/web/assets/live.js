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

// openStream tells of what comes on a stream of events, all that come together at once, and
// whether it is connected. It reconnects by itself until the function that it returns is
// called.
function openStream(address, event, tell) {
  const shortest = 500, longest = 20000;
  let pause = shortest, source, timer, gathering, events = [];
  const connect = () => {
    source = new EventSource(address);
    source.onopen = () => {
      pause = shortest;
      tell({ connected: true });
    };
    source.addEventListener(event, ({ data }) => {
      events.push(JSON.parse(data));
      gathering ??= setTimeout(() => {
        gathering = undefined;
        tell({ events: events.splice(0) });
      }, event === "change" ? 100 : 0);
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

// followChanges tells of the changes of these entities, or of all if there are none:
// {connected}, and {changes}.
function followChanges(ids, tell) {
  const address = new URL("../changes?after=now", ownAddress);
  for (const id of ids) {
    address.searchParams.append("id", id);
  }
  return openStream(address, "change", ({ connected, events }) => tell({ connected, changes: events }));
}

// followRunning tells {running: true} when other calls are in progress than before, and
// {connected}. What is told last of calls is all of them, so others need not be kept.
function followRunning(tell) {
  return openStream(new URL("../running", ownAddress), "running", ({ connected, events }) => tell({ connected, running: events?.at(-1).running }));
}

// openStreams is what a page follows: changes, and what is running if it wants that. It is
// connected while all of it is. What runs in other blocks than its own is kept from it.
function openStreams({ ids, running }, tell) {
  const states = [];
  const of = (i) => ({ connected, ...news }) => {
    if (connected !== undefined) {
      states[i] = connected;
      const all = states.length === (running ? 2 : 1) && !states.includes(undefined) ? !states.includes(false) : connected ? undefined : false;
      if (all !== undefined) tell({ connected: all });
    } else {
      tell(news);
    }
  };
  const close = [followChanges(ids, of(0)), ...running ? [followRunning(of(1))] : []];
  return () => close.forEach((one) => one());
}

// runningIn keeps of what is running what matters to a page that follows an entity, or all,
// and forgets it where it is as before.
function runningIn(id, news, before) {
  if (news.running === undefined) {
    return news;
  }
  const text = JSON.stringify(news.running.filter((call) => id === "" || call.eb_id === id).map(({ eb_id, key, request, sent_at, silent }) => [eb_id, key, request, sent_at, silent]));
  const running = text !== before.text;
  before.text = text;
  return running ? { running } : {};
}

// keepStream is the worker: it has one stream of each kind for all pages that follow.
function keepStream() {
  const pages = new Map(); // what each page follows: an entity, or empty for all; and whether what is running
  let wanted, connected, close, last;
  const restart = (again) => {
    const all = [...pages.values()];
    const ids = new Set(all.map(({ id }) => id));
    const filter = { ids: ids.has("") || ids.size > 100 ? [] : [...ids].sort(), running: all.some(({ running }) => running) };
    const now = pages.size > 0 ? JSON.stringify(filter) : undefined;
    if (now === wanted && !again) {
      return;
    }
    wanted = now;
    connected = last = undefined;
    close?.();
    close = now && openStreams(filter, (news) => {
      connected = news.connected ?? connected;
      for (const [port, page] of pages) {
        const told = page.running ? runningIn(page.id, news, page.before) : { ...news, running: undefined };
        if (Object.values(told).some((one) => one !== undefined)) port.postMessage(told);
      }
    });
  };
  addEventListener("connect", ({ ports: [port] }) => {
    port.postMessage({}); // the worker works
    port.onmessage = ({ data: { follow, running, again } }) => {
      if (follow === undefined) {
        pages.delete(port);
      } else {
        pages.set(port, { id: follow, running, before: {} });
      }
      restart(again);
      if (follow !== undefined && connected !== undefined) {
        port.postMessage({ connected });
      }
    };
  });
}

// follow calls changed with changes of an entity, or of all if none is named, as
// long as somebody sees the page, and without any if other calls are in progress, where that
// is wanted. Each time it is connected it calls changed without any, too: what was read before
// may be out of date, and nothing that is stored later will be missed. It calls state with
// whether it is connected. Who follows the same on a page shares a connection. It returns
// what opens the streams again, which may be dead without anybody having said so.
const following = new Map(); // who follows each entity, and whether they are connected
function follow({ id = "", running = false, changed, state = () => {} }) {
  const others = following.get(id);
  if (others) {
    others.all.push({ changed, state });
    if (running) others.wantRunning();
    if (others.connected !== undefined) state(others.connected);
    if (others.connected) changed([]);
    return others.again;
  }
  const us = { all: [{ changed, state }] };
  following.set(id, us);
  const hear = ({ connected, changes = [], running }) => {
    if (connected !== undefined) {
      us.connected = connected;
      us.all.forEach((one) => one.state(connected));
    }
    if (connected === false) {
      checkSession(); // in site.js: streams end with their session
    }
    changes = changes.filter((c) => id === "" || c.id === id);
    if (connected || running || changes.length > 0) {
      us.all.forEach((one) => one.changed(changes));
    }
  };
  let worker, leave, alone = !window.SharedWorker;
  const join = () => {
    if (document.hidden || leave) {
      return;
    }
    if (alone) {
      const before = {};
      leave = openStreams({ ids: id === "" ? [] : [id], running }, (news) => hear(runningIn(id, news, before)));
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
    worker.postMessage({ follow: id, running });
    leave = () => worker.postMessage({});
  };
  const part = () => {
    leave?.();
    leave = undefined;
  };
  us.again = () => {
    if (leave && !alone) {
      worker.postMessage({ follow: id, running, again: true });
    } else if (leave) {
      part();
      join();
    }
  };
  us.wantRunning = () => {
    if (running) return;
    running = true;
    us.again();
  };
  document.addEventListener("visibilitychange", () => document.hidden ? part() : join());
  addEventListener("pagehide", part);
  addEventListener("pageshow", join);
  join();
  return us.again;
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

// elapsed writes how long something took, in microseconds, as the archive does.
function elapsed(t) {
  if (t < 1000) return `${Math.round(t)} µs`;
  if (t < 1e6) return `${Math.min(999, Math.round(t / 1000))} ms`;
  if (t < 60e6) return `${Math.min(59.9, t / 1e6).toFixed(1)} s`;
  const two = (n) => String(Math.floor(n)).padStart(2, "0");
  if (t < 3600e6) return `${Math.floor(t / 60e6)} min ${two((t / 1e6) % 60)} s`;
  if (t < 360000e6) return `${Math.floor(t / 3600e6)} h ${two((t / 60e6) % 60)} min`;
  return `${Math.floor(t / 86400e6).toLocaleString("en").replaceAll(",", "\u202f")} d ${two((t / 3600e6) % 24)} h`;
}

// goingOn is the same of what is not over, which nobody wants to see in tenths of a second.
const goingOn = (t) => t < 60e6 ? `${Math.max(0, Math.floor(t / 1e6))} s` : elapsed(t);

// muchLonger is how many times as long as usual a call takes that takes much longer.
const muchLonger = 2;

// renewParts keeps the parts with data-live as the server would send them now. It may send
// them by themselves, at the address data-from; all parts that it sends so have the same. What
// depends on the time as well is read again after so many seconds as data-every says, what
// depends on calls in progress says data-running, and what depends on those that were recorded
// and is sent by itself, data-recorded. A part with data-late in it is not all that there will be.
function renewParts(parts) {
  parts.forEach(remember);
  const { live: id, from: own, every } = parts[0].dataset;
  const [running, recorded] = ["running", "recorded"].map((name) => name in parts[0].dataset);
  const from = own ?? location.href;
  const names = (page) => [...page.querySelectorAll("[data-live]")].filter((part) => isSent(part) === isSent(parts[0])).map((part) => part.id).join(" ");

  // What is wrong with what is seen, if anything is.
  let connected, failed = false, refused = "";
  const tell = () => {
    const trouble = refused || connection(connected !== false && !failed);
    says.set(parts, { trouble, connected });
    const all = [...says.values()], worst = all.find((one) => one.trouble)?.trouble ?? "";
    for (const place of places) {
      if (place.textContent !== worst) place.textContent = worst;
      if (worst || all.every((one) => one.connected)) place.dataset.connected = worst === "";
    }
  };

  const read = async () => {
    // An answer that does not come is none.
    const answer = await fetch(from, { headers: { Accept: "text/html" }, signal: AbortSignal.timeout(own ? 10000 : 60000) });
    refused = refuses(answer) ? `The archive shows this page nothing new: it answers ${answer.status}.` : "";
    if (refused) {
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

  // Changes that come together, or while the page is being read, cost one reading. That calls
  // began or ended is told at most once a second, and shown at once.
  let wanted = false, reading = false, hurry = () => {};
  const changed = async (changes) => {
    if (own && !recorded && changes.length > 0 && changes.every((c) => c.change === "recorded")) {
      return; // calls are no matter of these parts
    }
    wanted = true;
    if (changes.length === 0) hurry();
    if (reading) {
      return;
    }
    reading = true;
    while (wanted && !document.hidden) {
      wanted = false;
      const began = performance.now(), before = failed;
      failed = await read().then(() => false, () => true);
      wanted ||= failed || parts.some((part) => part.querySelector("[data-late]"));
      if (before && !failed) again(); // its streams may be dead as well
      tell();
      const took = performance.now() - began;
      const now = new Promise((done) => { hurry = done; });
      await pause(failed ? 1000 : 5 * took); // what takes the server long is read less often
      await Promise.race([pause(1000 - 5 * took), now]);
    }
    reading = false;
  };
  const again = follow({ id, running, changed, state: (now) => { connected = now; tell(); } });
  if (every) {
    setInterval(() => { if (!document.hidden) changed([]); }, 1000 * every);
  }
}

const isSent = (part) => part.dataset.from !== undefined; // by itself
const says = new Map(); // by the parts of the page: what is wrong with them, and whether they are connected
const places = inWorker ? [] : [...document.querySelectorAll("[data-connected]")];
const isLost = () => [...says.values()].some((one) => one.trouble);

// tick says how long things have been going on, each second. The clock is that of the archive:
// the one of a display may be wrong. Nothing goes on while the page is not up to date.
function tick() {
  let at, read; // when the archive sent what is seen, and when that was here
  const clocks = [...document.querySelectorAll("[data-clock]")].map((place) =>
    [place, new Intl.DateTimeFormat("en-GB", { timeStyle: "medium", timeZone: place.dataset.clock })]);
  const heard = () => {
    const sent = document.querySelector("[data-at]")?.dataset.at;
    if (sent && Date.parse(sent) !== at) [at, read] = [Date.parse(sent), performance.now()];
    show();
  };
  const show = () => {
    if (at === undefined || document.hidden) {
      return;
    }
    const now = at + performance.now() - read;
    document.documentElement.classList.toggle("out-of-date", isLost());
    for (const [place, clock] of clocks) place.textContent = clock.format(now);
    if (isLost()) {
      return;
    }
    for (const place of document.querySelectorAll("[data-for]")) {
      const lasts = 1000 * (now - Date.parse(place.dataset.for));
      const text = goingOn(lasts);
      if (place.textContent !== text) place.textContent = text;
      if (place.dataset.usual) place.closest("li").classList.toggle("long", lasts > muchLonger * place.dataset.usual);
    }
  };
  heard();
  document.addEventListener("renewed", heard);
  setInterval(show, 1000);
}

// fit makes a page for a wall so small that all of it is seen: nobody scrolls there.
function fit() {
  const page = document.documentElement;
  for (let zoom = 1; zoom >= .5; zoom -= .05) {
    page.style.zoom = zoom;
    if (page.scrollHeight <= page.clientHeight) break;
  }
}

if (inWorker) {
  keepStream();
} else {
  const live = [...document.querySelectorAll("[data-live]")];
  [live.filter(isSent), live.filter((part) => !isSent(part))].filter((parts) => parts.length > 0).forEach(renewParts);
  if (document.querySelector("[data-at]")) tick();
  if (document.documentElement.matches(".wall")) {
    fit();
    document.addEventListener("renewed", fit);
    addEventListener("resize", fit);
  }
}
