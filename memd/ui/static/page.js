// Says when something changed, and gives the keyboard a few short ways. The page works without it.
"use strict";

const body = document.body;
const changed = document.getElementById("changed");
let stream = null;

function listen() {
  const topics = body.dataset.topics;
  if (!topics || stream || document.hidden) return;
  const about = new URLSearchParams({ topics });
  if (body.dataset.cwd) about.set("cwd", body.dataset.cwd);
  stream = new EventSource(`events?${about}`);
  stream.onmessage = () => { changed.hidden = false; };
}

// A browser has six connections for a host; pages that nobody sees give theirs back.
function leave() {
  if (stream) stream.close();
  stream = null;
}

document.addEventListener("visibilitychange", () => (document.hidden ? leave() : listen()));
addEventListener("pagehide", leave);
addEventListener("pageshow", listen);
listen();

function links() {
  return [...document.querySelectorAll("[data-row]")]
    .map((row) => row.querySelector("a, button, input"))
    .filter(Boolean);
}

function move(by) {
  const all = links();
  if (!all.length) return;
  const row = document.activeElement && document.activeElement.closest("[data-row]");
  const at = row ? all.findIndex((link) => row.contains(link)) : -1;
  const next = all[Math.min(Math.max(at + by, 0), all.length - 1)];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select")) return;
  if (event.key === "/") {
    const field = document.querySelector("[data-search]");
    if (field) { event.preventDefault(); field.focus(); field.select(); }
  } else if (event.key === "j") {
    move(1);
  } else if (event.key === "k") {
    move(-1);
  }
});
