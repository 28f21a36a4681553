"""Drives the page in headless Chromium and prints what it saw as one JSON object.

Started by ``tests/e2e/test_ui.py`` with the Python that has Playwright:
``page_tour.py ADDRESS CHROMIUM AXE FOLDER [write] [dark] [narrow] [noscript]``. Every view that a
link leads to is opened once; each is looked at by axe-core, and photographed into the folder.
"""

import json
import re
import sys
import time
from typing import Any

from playwright.sync_api import ConsoleMessage, Page, sync_playwright

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
VIEWS = 40
# Browsers call 0.1 good. A long table whose end has not come yet may widen a column by a pixel.
STEADY = 0.01
WIDE, NARROW = {"width": 1200, "height": 800}, {"width": 390, "height": 780}
# How far the content moved by itself since the page began, as browsers count it.
SHIFTS = """() => new Promise(done => {
  let sum = 0;
  new PerformanceObserver(list => {
    for (const one of list.getEntries()) if (!one.hadRecentInput) sum += one.value;
  }).observe({type: "layout-shift", buffered: true});
  requestAnimationFrame(() => requestAnimationFrame(() => done(sum)));
})"""
AXE = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations.map(
  one => [one.id, one.nodes.slice(0, 3).map(node => node.html.slice(0, 160))])"""
FOCUS = """() => {
  const at = document.activeElement, style = getComputedStyle(at);
  return {text: (at.innerText || at.name || at.id || "").trim(), tag: at.tagName,
    seen: style.outlineStyle !== "none" || style.boxShadow !== "none"};
}"""


def name_of(address: str, root: str) -> str:
    """Return which view an address shows, and no more; ``note`` is the notes of one session."""
    name = re.sub(r"\W.*", "", address.removeprefix(root)) or "projects"
    return "note" if name == "notes" and "session=" in address else name


class Tour:
    """One visit: ``seen`` is what is printed in the end."""

    def __init__(self, page: Page, axe: str, folder: str, look: str) -> None:
        self._page, self._axe, self._folder, self._look = page, axe, folder, look
        self.seen: dict[str, Any] = {
            "views": [],
            "violations": {},
            "wide": [],
            "shifted": {},
            "unseen_focus": [],
            "elsewhere": [],
            "errors": [],
            "steps": [],
        }
        page.on("pageerror", lambda error: self.seen["errors"].append(str(error)))
        page.on("console", self._noted)
        page.on("request", lambda request: self._asked(request.url))
        self.host = ""

    def _noted(self, note: ConsoleMessage) -> None:
        if note.type == "error":
            self.seen["errors"].append(note.text)

    def _asked(self, address: str) -> None:
        if self.host and not address.startswith(self.host):
            self.seen["elsewhere"].append(address)

    def look(self, name: str, *, script: bool) -> None:
        """Look at the view that is open."""
        page = self._page
        self.seen["views"].append(name)
        page.screenshot(path=f"{self._folder}/{name}-{self._look}.png")
        if not script:
            return
        if page.evaluate("() => document.documentElement.scrollWidth > innerWidth"):
            self.seen["wide"].append(name)
        if (moved := page.evaluate(SHIFTS)) > STEADY:
            self.seen["shifted"][name] = moved
        page.evaluate(self._axe)  # by the debugger: the page's own policy lets no script in
        if violations := page.evaluate(AXE):
            self.seen["violations"][name] = violations

    def everything(self, root: str, *, script: bool) -> None:
        """Open each view once."""
        page = self._page
        opened: set[str] = set()
        waiting = [root]
        while waiting and len(opened) < VIEWS:
            address = waiting.pop(0).split("#")[0]
            name = name_of(address, root)
            if name in opened or not address.startswith(root):
                continue
            opened.add(name)
            page.goto(address)
            self.look(name, script=script)
            links = "found => found.map(one => one.href)"
            waiting += page.eval_on_selector_all("a[href]", links)

    def keys(self, *presses: str) -> None:
        """Press keys one after the other."""
        for press in presses:
            self._page.keyboard.press(press)

    def reach(self, text: str, most: int = 200) -> None:
        """Go by Tab until what has the text has the focus. Raises LookupError."""
        for _ in range(most):
            self.keys("Tab")
            at = self._page.evaluate(FOCUS)
            if at["tag"] != "BODY" and not at["seen"]:
                self.seen["unseen_focus"].append(at["text"][:40])
            if at["text"].startswith(text):
                return
        raise LookupError(text)

    def enter(self, text: str) -> None:
        """Reach a link or button and press it."""
        self.reach(text)
        with self._page.expect_navigation():
            self.keys("Enter")
        self.seen["steps"].append(f"{text}: {self._page.title()}")

    def by_keyboard(self, root: str, *, write: bool) -> None:
        """Do what a person does all day, without a mouse; ``root`` has at least one memory."""
        page = self._page
        page.goto(root)
        self.keys("Tab", "Enter")
        self.seen["steps"].append(f"skipped to {page.evaluate('() => location.hash')}")
        self.enter("project")
        self.keys("/")
        page.keyboard.type("staging")
        with page.expect_navigation():
            self.keys("Enter")
        self.seen["steps"].append(f"filtered: {page.locator('[data-row]').count()}")
        self.keys("j")
        with page.expect_navigation():
            self.keys("Enter")
        self.seen["steps"].append(f"memory: {page.locator('h1').inner_text()}")
        self.enter("Search")
        self.keys("/")
        page.keyboard.type("how does staging 3 work?")
        with page.expect_navigation():
            self.keys("Enter")
        self.look("search-results", script=True)
        for tab in ("Dreams", "Notes", "Review"):  # the last is that of all projects
            self.enter(tab)
        if write:
            self._changes(root)

    def _changes(self, root: str) -> None:
        page = self._page
        page.goto(root)
        self.enter("project")
        self.keys("j")
        with page.expect_navigation():
            self.keys("Enter")
        self.enter("Edit")
        self.reach("content")
        self.keys("Control+End")
        page.keyboard.type("\nWritten by keyboard.\n")
        self.enter("Save")
        self.seen["steps"].append(f"saved: {'Written by keyboard.' in page.content()}")
        self.enter("Undo")  # the newest change is the first
        self.enter("Undo")
        self.seen["steps"].append(f"undone: {name_of(page.url, root)}")


def main() -> None:
    """Make the visit that the arguments describe."""
    address, chromium, axe, folder, *words = sys.argv[1:]
    script = "noscript" not in words
    with open(axe, encoding="utf-8") as file:
        source = file.read()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        context = browser.new_context(
            viewport=NARROW if "narrow" in words else WIDE,
            color_scheme="dark" if "dark" in words else "light",
            java_script_enabled=script,
        )
        context.set_default_timeout(20_000)
        page = context.new_page()
        tour = Tour(page, source, folder, "-".join(w for w in words if w != "write") or "light")
        page.goto(address)
        root = page.url
        tour.host = re.match(r"http://[^/]+/", root)[0]  # type: ignore[index]
        tour.everything(root, script=script)
        if script:
            started = time.perf_counter()
            page.goto(root)
            tour.seen["seconds"] = time.perf_counter() - started
            tour.seen["first_byte_ms"] = page.evaluate(
                "() => performance.getEntriesByType('navigation')[0].responseStart"
            )
        if "keyboard" in words:
            tour.by_keyboard(root, write="write" in words)
        browser.close()
    sys.stdout.write(json.dumps(tour.seen))


main()
