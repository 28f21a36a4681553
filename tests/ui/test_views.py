"""Each view, on nothing and on many memories, and on texts that want to be more than texts."""

import os
import re
import sqlite3
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import anyio
import pytest

from memd.core.values import Suggestion
from memd.daemon.app import SCHEMAS
from memd.state.caps import Sum
from memd.state.database import open_database
from memd.state.spend import Account, SpendTable
from memd.state.suggestions import save
from memd.text.invisible import find
from memd.ui.link import Unanswered
from memd.ui.pages import FOLDER
from memd.ui.routes import VIEWS
from memd.ui.views import PageQuery
from tests.api.test_listing import fill
from tests.ui.pages import Browser, words

pytestmark = pytest.mark.anyio

PLAIN = sorted(set(VIEWS) - {"", "memory", "change", "proposal", "note"})
EVIL = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg/onload=alert(3)> "
    "javascript:alert(4) [x](javascript:alert(5)) {{ 7*7 }} &lt;b&gt; "
    "\u202egnp.exe\u202c \u200b\x1b[2J"
)
LONG = "x" * 60_000
SENT_BACK = r'(?:data-cwd|name="cwd" value)="([^"]*)"'


@pytest.mark.parametrize(("name", "told"), [("known", True), ("local", False)])
def test_a_list_of_projects_that_fails_is_told(name: str, *, told: bool) -> None:
    """It does not look like a home without projects; where the page was started need be none."""
    fault = Unanswered("the state file cannot be read")
    answers: dict[str, Any] = {"known": {"projects": []}, "local": None, name: fault}
    shown = VIEWS[""].template_values(PageQuery({"here": "/x"}, 0.0), answers)
    assert shown["problems"] == ([fault] if told else [])


class Parsed(HTMLParser):
    """What a browser would make of a page: its tags with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.append((tag, dict(attrs)))


def check_safe(html: str) -> None:
    """Fail where a page has anything but its own script, its own links and its own forms."""
    parsed = Parsed(html)
    scripts = [attrs for tag, attrs in parsed.tags if tag == "script"]
    assert scripts == [{"src": "static/page.js", "defer": None}]
    for tag, attrs in parsed.tags:
        assert tag not in {"img", "iframe", "object", "embed", "base", "style", "b"}
        assert not [name for name in attrs if name.startswith("on") or name == "style"]
        for name in ("href", "src", "action", "formaction"):
            link = attrs.get(name) or ""
            assert re.match(r"(?!/)[\w./-]*(\?[\w.~%=&+*-]*)?(#\w+)?$", link), link
    assert "49" not in re.findall(r">\s*(49)\s*<", html)
    assert find(re.sub(SENT_BACK, "", html)) == ""  # what nobody sees may hide something


async def evil(page: Browser) -> str:
    """Fill the daemon with texts that want more than to be read; return the id of a change."""
    caller = page.caller
    folder = await caller.folder()
    folder.mkdir(parents=True, exist_ok=True)
    head = f"name: >-\n  {EVIL.replace(chr(27), '')}\ndescription: {EVIL!r}\ntype: feedback"
    for name in ('"><script>alert(6).md', "a\u202egnp.md", "plain.md"):
        (folder / name).write_text(f"---\n{head}\n---\n\n{EVIL}\n{LONG}\n")
    await caller.write("written.md", description="<script>alert(7)</script>", body=EVIL)
    made = await caller.write(
        "written.md", description="<script>alert(8)</script>", body=f"{EVIL}\n\nmore"
    )
    await caller.call("prefetch", session_id=EVIL, query="mock the database in integration tests")
    await caller.call("agent.register", name="reviewer", kind=EVIL[:60])
    await caller.call("message.send", to="reviewer", body=EVIL, summary=EVIL[:110])
    await caller.call(
        "notes.write", session_id="s1", section="Learnings", content=EVIL, base_hash=""
    )
    database = open_database(caller.home.places.database, SCHEMAS)
    with database.transaction() as cursor:
        for origin in ("user", "outside"):
            text = f"{EVIL} {origin}"
            one = Suggestion(EVIL, text, caller.clock.now(), origin, "feedback", EVIL)
            save(cursor, os.path.realpath(folder), one, caller.clock.now())
    account = Account("extract", EVIL, EVIL)
    SpendTable(database).add(account, Sum(1, 2, 3, 4, 5, 0.5), caller.clock.now())
    database.close()
    return str(made["change"])


async def test_a_view_of_nothing_says_what_to_do(page: Browser) -> None:
    """A view of a project without memories is a page that explains itself."""
    for view in PLAIN:
        shown = await page.shown(view)
        check_safe(shown)
        assert "<h1>" in shown
        assert 'class="empty"' in shown or view == "health", view
    assert "No project has memories yet" in (await page.get()).text


async def test_every_view_of_sixty_memories(page: Browser) -> None:
    """Each view of a project that is in use is a page, and lists lead on to further pages."""
    await fill(page.caller, 160)
    await page.caller.write(body="Never mock the database.")
    for view in PLAIN:
        check_safe(await page.shown(view))
    listed = await page.shown("project")
    assert "161 memories" in words(listed)
    assert listed.count("data-row") == 100
    (after,) = re.findall(r"after=([^\"&]+)\">Next page", listed)
    later = await page.http.get(f"{page.access.root}project?cwd={page.caller.cwd}&after={after}")
    assert later.text.count("data-row") == 61
    narrowed = words(await page.shown("project", q="REAL database", type="feedback"))
    assert "1 memory matches" in narrowed
    assert "No memory matches" in words(await page.shown("project", q="nowhere"))


async def test_the_way_from_the_projects_to_a_memory(page: Browser) -> None:
    """A project leads to its memories, a memory shows its text, its origin and its history."""
    await page.caller.write(body="Never mock the database.")
    await page.caller.write(body="Never mock a database.")
    projects = (await page.get()).text
    assert f"project?cwd={page.caller.cwd.replace('/', '%2F')}" in projects
    listed = await page.shown("project")
    assert "memory?cwd=" in listed
    assert "Integration tests hit a real database" in words(listed)
    shown = words(await page.shown("memory", path="feedback_tests.md"))
    assert "Never mock a database." in shown
    assert "First written" in shown
    assert "Never mock the database." in shown  # in the diff
    change = words(await page.shown("change", change="c2"))
    assert "Before After" in change
    assert "Never mock the database." in change
    below = await page.shown("change", change="c2", view="lines")
    assert 'class="diff lines"' in below


async def test_hostile_texts_are_texts_in_every_view(writer: Browser) -> None:
    """Names, texts, ids and reasons are shown as they are, hidden characters spelled out."""
    change = await evil(writer)
    pages = [await writer.shown(view, q="mock") for view in PLAIN if view != "project"]
    pages += [await writer.shown("project"), (await writer.get()).text]
    odd = '"><script>alert(6).md'
    for path in (odd, "a\u202egnp.md", "written.md", "plain.md", "MEMORY.md"):
        pages.append(await writer.shown("memory", path=path))
        pages.append(await writer.shown("memory", path=path, all="1"))
    pages += [
        await writer.shown("change", change=change),
        await writer.shown("note", session="s1"),
        await writer.shown("usage", session=EVIL),
        await writer.shown("search", q=EVIL, session=EVIL),
        await writer.shown("project", q=EVIL, type=EVIL),
        await writer.shown("edit", path="written.md"),
        await writer.shown("confirm-delete", path="plain.md"),
        await writer.shown("confirm-undo", change=change),
        await writer.shown("confirm-restore", change=change, path="written.md"),
        (await writer.about("memory", path=EVIL)).text,
        (await writer.get("project", cwd=EVIL)).text,
        (await writer.get("health", cwd=EVIL)).text,
    ]
    for shown in pages:
        check_safe(shown)
    whole = "\n".join(words(shown) for shown in pages)
    assert "<script>alert(1)</script>" in whole
    assert "<U+202E>gnp.exe<U+202C>" in whole
    assert "javascript:alert(4)" in whole


async def test_long_texts_are_cut_with_a_way_to_the_whole(page: Browser) -> None:
    """A line of 60,000 characters costs a page its beginning; the rest is one link away."""
    await evil(page)
    shown = await page.shown("memory", path="plain.md")
    assert len(shown) < 100_000
    assert "more characters" in shown
    assert LONG in await page.shown("memory", path="plain.md", all="1")


async def test_looking_changes_nothing(page: Browser) -> None:
    """However much is looked at, the state and the files are as they were."""
    change = await evil(page)
    await page.caller.plain("memory.history", cwd=page.caller.cwd)
    for view in PLAIN:  # what a first look computes is there from now on
        await page.about(view, q="mock the database")
    before = everything(page)
    for view in PLAIN:
        await page.shown(view, q="mock the database in integration tests", session="s9")
    await page.shown("memory", path="written.md")
    await page.shown("change", change=change)
    await page.get()
    # What is written late is written by the next use of the ledger.
    await page.caller.call("memory.why", path="written.md")
    assert everything(page) == before


def everything(page: Browser) -> dict[str, object]:
    """Return all rows of the state file and all texts of the project."""
    found: dict[str, object] = {}
    with sqlite3.connect(page.caller.home.places.database) as database:
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            found[table] = database.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608
    database.close()
    for file in sorted(Path(page.caller.home.path).rglob("*.md")):
        found[str(file)] = file.read_bytes()
    return found


async def test_without_a_daemon_the_page_says_so(page: Browser) -> None:
    """The daemon's end is told with what to do, and the page works again with the next one."""
    page.server._link = type(page.server._link)(f"{page.caller.home.path}/run/none.sock", {})
    answer = await page.about("project")
    assert answer.status_code == 503
    assert "no memd answers" in words(answer.text)
    assert "start one with: memd" in words(answer.text)
    check_safe(answer.text)


async def test_what_is_not_there_is_said(page: Browser) -> None:
    """An address that leads to nothing is a page with the daemon's sentence."""
    for view, params, said in (
        ("memory", {}, "does not say which path"),
        ("memory", {"path": "gone.md"}, "no memory"),
        ("memory", {"path": "../../etc/passwd"}, "no memory"),
        ("change", {"change": "c999"}, "c999"),
        ("proposal", {"proposal": "p9"}, "p9"),
        ("note", {"session": "nobody"}, "notes"),
    ):
        answer = await page.about(view, **params)
        assert answer.status_code == 404
        assert said in words(answer.text)
    answer = await page.get("search")
    assert (answer.status_code, "does not say which cwd" in words(answer.text)) == (404, True)


async def test_a_project_of_any_name_can_be_filtered_and_searched(page: Browser) -> None:
    """What forms and the script send back is the directory as it is, hidden characters too."""
    cwd = page.caller.home.project("a\u200bb\u202e\"'<i>&\x01")
    parts = {"name": "a", "description": "about a", "type": "user", "body": "text"}
    await page.caller.plain("memory.write", cwd=cwd, path="a.md", **parts)
    for view in ("project", "search"):
        shown = (await page.get(view, cwd=cwd)).text
        sent = re.findall(SENT_BACK, shown)
        assert [unescape(one) for one in sent] == [cwd, cwd]
        assert "a<U+200B>b<U+202E>" in words(shown)


async def test_the_chart_of_spending_has_its_table(page: Browser) -> None:
    """What was spent is drawn by day and kind, and stands in tables beside that."""
    await evil(page)
    shown = await page.shown("spend")
    assert shown.count("<rect") == 1
    assert "2026-03-03, extract: $0.5000" in shown
    assert "0.5000" in words(shown)


async def test_open_pages_are_told_what_changed(page: Browser) -> None:
    """A change of a memory is told by its topic; nothing of it is in the stream."""
    received: list[str] = []
    told = anyio.Event()

    async def send(text: str) -> None:
        received.append(text)
        if text.startswith("data: "):
            told.set()

    async with anyio.create_task_group() as group:
        topics = page.server.events.accepted_topics("memory.changed nonsense job.done")
        assert topics == ["memory.changed", "job.done"]
        group.start_soon(page.server.events.run, topics, page.caller.cwd, send)
        with anyio.fail_after(60):
            while not received:
                await anyio.lowlevel.checkpoint()
            await page.caller.write()
            await told.wait()
        assert page.server.events.open == 1
        page.server.stop.set()
    assert received[1:] == ["data: memory.changed\n\n"]
    assert page.server.events.open == 0
    assert (await page.get("events", topics="nonsense")).status_code == 204


def test_no_template_leaves_the_escaping() -> None:
    """No template marks a text as safe, or makes a link of one."""
    escapes = re.compile(
        r"\|\s*(safe|urlize|xmlattr|tojson|e|escape|forceescape)\b|autoescape|Markup"
    )
    files = sorted(Path(FOLDER).glob("*.html"))
    assert len(files) > 20
    # The project goes back as it came: escaped, and not spelled out.
    bare = {file.name: file.read_text().replace('="{{ project.cwd|e }}"', "") for file in files}
    assert [name for name, text in bare.items() if escapes.search(text)] == []
    hrefs = [re.findall(r"(?:href|action)=\"([^\"]*)\"", file.read_text()) for file in files]
    own = re.compile(r"\{\{ (url\(|action|all|here).*|#\w+|static/[\w.]+|\w*")
    assert [link for links in hrefs for link in links if not own.fullmatch(link)] == []
