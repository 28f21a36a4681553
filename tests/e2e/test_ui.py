"""The page in a real browser: every view, by keyboard, at three sizes, and without JavaScript.

``install.sh`` brings Playwright and axe-core, and Chromium where this machine has none at
``/usr/bin/chromium``. The pictures stay in ``build/ui`` for whoever wants to look at them.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.programs import HERE, INSTALLED, ROOT, program, run
from tests.support.daemon import Home, client, daemon_process, throw_away_home
from tests.ui.served import Served, page_process

pytestmark = pytest.mark.e2e
AXE = INSTALLED / "axe-core" / "node_modules" / "axe-core" / "axe.min.js"
HOSTILE = "<script>alert(1)</script> \u202e [x](javascript:alert(1)) " + "W" * 65_000
KINDS = ("user", "feedback", "project", "reference")
LOOKS = (("keyboard", "write"), ("dark",), ("narrow",), ("narrow", "dark"), ("noscript",))
EMPTY = {"projects", "health", "project", "report"}  # the views of a project that holds nothing
VIEWS = EMPTY | {"memory", "search", "review", "dreams", "notes", "note"}
WISH = "Stop summarizing what you just did at the end of every response, I can read the diff."


def write(home: Home, count: int) -> None:
    """Lay memories into a project: most as files, some through the daemon, one of them hostile."""
    cwd = home.project()
    with client(home) as caller:
        folder = Path(caller.call("memory.list", {"cwd": cwd})["memory_dir"])
        if not count:  # a project that had one
            memory = {"path": "gone.md", "name": "gone", "description": "Gone", "body": "Gone."}
            caller.call("memory.write", {**memory, "type": "user", "cwd": cwd})
            caller.call("memory.delete", {"path": "gone.md", "cwd": cwd})
            return
        for number in range(count - 12):
            words = f"staging number {number}"
            path = folder / f"laid-{number}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(
                f"---\nname: {words}\ndescription: The {words} runs at night\n"
                f"type: {KINDS[number % 4]}\n---\nUse {words} before a release.\n"
            )
        for number in range(12):
            body = HOSTILE if number == 5 else f"Deploy {number} to staging first."
            memory = {"path": f"said-{number}.md", "name": f"staging {number}", "body": body}
            memory |= {"description": f"How staging {number} works", "type": "feedback"}
            caller.call("memory.write", {**memory, "cwd": cwd}, timeout=120)
        session = {"cwd": cwd, "session_id": "s"}
        caller.call("prefetch", {**session, "query": "how does staging 3 work?"})
        said = [("user", WISH), ("assistant", "I will stop.")]
        messages = [{"id": role, "role": role, "content": words} for role, words in said]
        caller.call("extract", {**session, "messages": messages, "wait": True})
        caller.call("notes.update", {**session, "messages": messages, "wait": True, "force": True})
        caller.call("dream", {"cwd": cwd, "wait": True, "force": True}, timeout=300)


@contextmanager
def served(count: int) -> Iterator[tuple[Home, Served]]:
    """Run a daemon with as many memories, and a page that may write."""
    with throw_away_home() as home, daemon_process(home):
        write(home, count)
        with page_process(home, "--write") as page:
            yield home, page


def tour(home: Home, page: Served, count: int, look: tuple[str, ...]) -> dict[str, Any]:
    """Return what a visit saw."""
    chromium = "/usr/bin/chromium"
    if not os.path.exists(chromium):
        chromium = program("chromium")
    if not AXE.exists():
        pytest.skip("axe-core is not there: tests/e2e/install.sh could not bring it")
    pictures = ROOT / "build" / "ui" / str(count)
    pictures.mkdir(parents=True, exist_ok=True)
    script = str(HERE / "scripts" / "page_tour.py")
    command = [program("browser-python"), script, page.address, chromium, str(AXE), str(pictures)]
    seen: dict[str, Any] = json.loads(run([*command, *look], home, seconds=400))
    return seen


def record(count: int, look: tuple[str, ...], seen: dict[str, Any]) -> None:
    """Keep the figures of a visit beside its pictures."""
    figures = {name: seen.get(name) for name in ("first_byte_ms", "seconds", "steps")}
    path = ROOT / "build" / "ui" / str(count) / f"{'-'.join(look)}.json"
    path.write_text(json.dumps(figures, indent=1) + "\n")


@pytest.mark.parametrize("look", LOOKS, ids="-".join)
@pytest.mark.parametrize("count", [0, 60, 10_000])
def test_each_view_is_sound_in_a_real_browser(count: int, look: tuple[str, ...]) -> None:
    """Each view opens, axe-core has nothing to say, nothing is wider than its window or moves."""
    if count == 0:
        look = tuple(one for one in look if one not in {"keyboard", "write"})
    with served(count) as (home, page):
        seen = tour(home, page, count, look)
    record(count, look, seen)
    assert set(seen["views"]) >= (VIEWS if count else EMPTY)
    expected: dict[str, Any] = {"violations": {}, "wide": [], "shifted": {}, "unseen_focus": []}
    expected |= {"elsewhere": [], "errors": []}
    assert {name: seen[name] for name in expected} == expected
    if "keyboard" in look:
        assert seen["steps"][0] == "skipped to #main"
        assert [seen["steps"][-4], seen["steps"][-1]] == ["saved: True", "undone: project"]
