// The home page works without this file. With it, the examples carry the
// address that the browser used and have a button each that copies them.
"use strict";

// Behind a proxy that strips a path prefix, only the browser knows the whole
// address. It goes into a shell, so it is taken only when it is harmless there.
const api = location.origin + location.pathname.replace(/\/+$/, "");
if (/^https?:\/\/[A-Za-z0-9._:[\]-]+(\/[A-Za-z0-9._~%-]+)*$/.test(api)) {
  for (const place of document.querySelectorAll("[data-api]")) {
    place.textContent = api;
  }
}

// copyText puts the text of an element on the clipboard. The clipboard
// interface exists only on https and on this machine; elsewhere the selection
// is copied as by hand.
async function copyText(element) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(element.textContent);
    return;
  }
  getSelection().selectAllChildren(element);
  if (!document.execCommand("copy")) {
    throw new Error("The browser refused to copy.");
  }
}

document.querySelectorAll(".examples li").forEach((example, i) => {
  const heading = example.querySelector("h3");
  heading.id = `example-${i + 1}`;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-describedby", heading.id);
  button.addEventListener("click", async () => {
    try {
      await copyText(example.querySelector("code"));
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(example.querySelector("code"));
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  example.append(button);
});
