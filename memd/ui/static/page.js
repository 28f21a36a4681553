// Gives the keyboard a few short ways. The page works without it.
"use strict";

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
