"""What a person changes from the page: only with --write, only by a form of ours, never unseen."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from memd.core.values import Suggestion
from memd.daemon.app import SCHEMAS
from memd.state.database import open_database
from memd.state.suggestions import save
from memd.ui.actions import ACTIONS, FORMS
from memd.ui.app import BODY_BYTES
from tests.ui.pages import Browser, words

pytestmark = pytest.mark.anyio
PATH = "feedback_tests.md"


def fields(html: str, action: str) -> dict[str, str]:
    """Return the hidden fields of the form of a page that leads to an action."""
    (form,) = re.findall(rf'<form [^>]*action="{action}[?"].*?</form>', html, re.DOTALL)
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))


async def content(page: Browser, path: str = PATH) -> str:
    """Return the text of a memory as it is."""
    return str((await page.caller.call("memory.read", path=path))["content"])


async def submit(page: Browser, shown: str, action: str, **params: Any) -> Any:
    """Send the form of a page as a browser does, with ``more`` fields, and return the answer."""
    more = params.pop("more", {})
    about = {"cwd": page.caller.cwd, **params}
    return await page.post(action, about, {**fields(shown, action), **more})


async def suggest(page: Browser, *texts: str) -> None:
    """Have suggestions wait in the project."""
    directory = os.path.realpath(await page.caller.folder())
    database = open_database(page.caller.home.places.database, SCHEMAS)
    now = page.caller.clock.now()
    with database.transaction() as cursor:
        for text in texts:
            save(cursor, directory, Suggestion("s0", text, now, "user"), now)
    database.close()


async def test_a_page_that_reads_has_no_way_to_write(page: Browser) -> None:
    """Without --write there is neither a form nor a route that changes something."""
    await page.caller.write()
    before = await content(page)
    about = {"cwd": page.caller.cwd, "path": PATH, "change": "c1"}
    for path in (one.path for one in (*ACTIONS, *FORMS)):
        assert (await page.post(path, about)).status_code in {404, 405}
    for path in (one.path for one in FORMS):
        assert (await page.about(path, path=PATH, change="c1")).status_code == 404
    assert await content(page) == before
    shown = await page.shown("memory", path=PATH)
    assert re.findall(r'action="([^"]*)"', shown) == ["quit"]


async def test_an_edit_is_written_as_it_was_shown(writer: Browser) -> None:
    """The whole file goes into the form and comes back, with the ends of lines that it had."""
    folder = await writer.caller.folder()
    folder.mkdir(parents=True)
    text = '---\r\nname: a\r\ndescription: b\r\ntype: user\r\n---\r\n\r\n&amp; "<b>"\r\n'
    (folder / "a.md").write_bytes(text.encode())
    shown = await writer.shown("edit", path="a.md")
    edited = text.replace("&amp;", "two lines\r\n&amp;")
    answer = await submit(writer, shown, "write", path="a.md", more={"content": edited})
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("memory?cwd=")
    stored = (folder / "a.md").read_bytes().decode()
    assert stored.endswith('\r\n\r\ntwo lines\r\n&amp; "<b>"\r\n')
    followed = await writer.http.get(f"{writer.access.root}{answer.headers['location']}")
    assert "Done." in words(followed.text)
    again = await submit(writer, shown, "write", path="a.md", more={"content": edited})
    assert again.status_code == 303  # the same request is done once
    changes = (await writer.caller.call("memory.history", path="a.md"))["changes"]
    assert [one["client"] for one in changes].count("memctl ui") == 1


async def test_nothing_newer_is_overwritten(writer: Browser) -> None:
    """What somebody wrote while a form was open stays, and the person's text is not lost."""
    await writer.caller.write(body="one")
    edit = await writer.shown("edit", path=PATH)
    removal = await writer.shown("confirm-delete", path=PATH)
    await writer.caller.write(body="two, by an assistant")
    mine = {"content": "---\nname: a\ndescription: b\n---\n\nmy own words\n"}
    answer = await submit(writer, edit, "write", path=PATH, more=mine)
    assert answer.status_code == 409
    assert "This was not done" in words(answer.text)
    assert "my own words" in answer.text
    assert (await submit(writer, removal, "delete", path=PATH)).status_code == 409
    assert "two, by an assistant" in await content(writer)
    about = {"cwd": writer.caller.cwd, "path": PATH}
    for action in ("write", "delete"):  # a form that does not say what was shown
        assert (await writer.post(action, about, {**mine, "request_id": "r"})).status_code == 409
    assert "two, by an assistant" in await content(writer)


async def test_a_memory_of_the_team_has_no_button_that_is_always_refused(writer: Browser) -> None:
    """What would come back from the team is not offered for deletion; a private memory is."""
    await writer.caller.write(body="one")
    team = Path((await writer.caller.call("load_prompt"))["memory_dir"], "team")
    team.mkdir()
    (team / "b.md").write_text("shared\n")
    assert 'href="confirm-delete?' in await writer.shown("memory", path=PATH)
    assert 'href="confirm-delete?' not in await writer.shown("memory", path="team/b.md")


async def test_what_a_form_cannot_bring_back_is_not_edited(writer: Browser) -> None:
    """A text with hidden characters is edited with memctl, not in a form that would change it."""
    await writer.caller.write(body="a\u200bb")
    assert "memctl edit" in words(await writer.shown("edit", path=PATH))
    assert 'href="edit?' not in await writer.shown("memory", path=PATH)


async def test_deleting_undoing_and_restoring_are_shown_before(writer: Browser) -> None:
    """What goes or comes back stands on a page with one button, and is one change each time."""
    await writer.caller.write(body="one")
    await writer.caller.write(body="two")
    shown = await writer.shown("confirm-delete", path=PATH)
    assert "can be undone" in words(shown)
    answer = await submit(writer, shown, "delete", path=PATH)
    (change,) = re.findall(r"done=(c\d+)", answer.headers["location"])
    gone = await writer.shown("memory", path=PATH)
    assert "Restore this version" in words(gone)
    shown = await writer.shown("confirm-undo", change=change)
    assert f"created {PATH}" in words(shown)
    assert (await submit(writer, shown, "undo", change=change)).status_code == 303
    assert "two" in await content(writer)
    shown = await writer.shown("confirm-restore", change="c1", path=PATH)
    answer = await submit(writer, shown, "restore", change="c1", path=PATH)
    assert answer.status_code == 303
    assert "one" in await content(writer)
    unknown = words(await writer.shown("confirm-undo", change="c999"))
    assert "there is no change" in unknown


async def test_suggestions_are_taken_reworded_and_dismissed(writer: Browser) -> None:
    """Each suggestion becomes a memory as it was said, in other words, or nothing."""
    await suggest(writer, "Reviews are on Mondays.", "Tabs in Makefiles.", "Ship on Fridays.")
    about = {"cwd": writer.caller.cwd}
    waiting = (await writer.caller.call("suggestion.list"))["suggestions"]
    first, second, third = (one["id"] for one in waiting)
    await writer.post("take", {**about, "suggestion": first}, {"text": "", "type": ""})
    reworded = {"text": "Makefiles want tabs.", "type": "reference"}
    answer = await writer.post("take", {**about, "suggestion": second}, reworded)
    assert answer.headers["location"].startswith("review?cwd=")
    assert (await writer.post("dismiss", {**about, "suggestion": third})).status_code == 303
    again = await writer.post("dismiss", {**about, "suggestion": third})
    assert again.status_code == 409
    assert "no suggestion" in words(again.text)
    paths = [one["path"] for one in (await writer.caller.call("memory.list"))["memories"]]
    assert len(paths) == 2
    assert any("makefiles-want-tabs" in path for path in paths)
    assert "No suggestion waits" in words(await writer.shown("review"))


async def test_a_proposal_is_decided_file_by_file(writer: Browser) -> None:
    """Of what an import wants one file is accepted and the others are rejected with a reason."""
    source = f"{writer.caller.home.path}/notes"
    os.makedirs(source)
    for name in ("a", "b", "c"):
        text = f"---\nname: {name}\ndescription: about {name}\ntype: project\n---\n\nText {name}.\n"
        with open(f"{source}/{name}.md", "w", encoding="utf-8") as file:
            file.write(text)
    await writer.caller.call("import", source=source)
    (proposal,) = (await writer.caller.call("dream.review"))["proposals"]
    paths = [file["path"] for file in proposal["files"]]
    shown = await writer.shown("proposal", proposal=proposal["id"])
    assert all(path in words(shown) for path in paths)
    assert "Accept all that is open (3)" in words(shown)
    about = {"cwd": writer.caller.cwd, "proposal": proposal["id"]}
    accepted = await writer.post("accept", {**about, "path": paths[0]})
    assert accepted.status_code == 303, words(accepted.text)
    assert (await writer.post("reject", about, {"reason": "not these"})).status_code == 303
    listed = await writer.caller.call("memory.list")
    assert [one["path"] for one in listed["memories"]] == [paths[0]]
    (decided,) = (await writer.caller.call("dream.review", all=True))["proposals"]
    assert decided["state"] == "partly"
    assert "rejected" in words(await writer.shown("proposal", proposal=proposal["id"]))
    adopted = await writer.post("adopt", {"cwd": writer.caller.cwd, "path": paths[0]})
    assert adopted.status_code == 303, words(adopted.text)


async def test_a_form_that_is_not_ours_changes_nothing(writer: Browser) -> None:
    """A token that is missing or guessed, another origin, a body that is too large: nothing."""
    await writer.caller.write()
    before, token = await content(writer), f"form_token={writer.access.form_token}"
    own = {"content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin"}
    own["origin"] = str(writer.http.base_url).rstrip("/")
    cases: tuple[tuple[dict[str, str], str, int], ...] = (
        ({}, "content=x", 403),
        ({}, "form_token=wrong&content=x", 403),
        ({"origin": "http://evil.example"}, token, 403),
        ({"content-type": "application/json"}, token, 403),
        ({"sec-fetch-site": "cross-site"}, token, 403),
        ({}, f"{token}&content={'x' * BODY_BYTES}", 413),
        ({}, f"{token}&content=%ff", 400),
        ({}, "&".join(["x=1"] * 300), 400),
    )
    address, params = f"{writer.access.root}delete", {"cwd": writer.caller.cwd, "path": PATH}
    for headers, body, status in cases:
        answer = await writer.http.post(
            address, params=params, content=body, headers={**own, **headers}
        )
        assert (answer.status_code, answer.text) == (status, "")
    assert await content(writer) == before


async def test_the_daemon_decides_who_is_a_person(writer: Browser) -> None:
    """What the daemon refuses is a page with its sentence, and its hint."""
    await writer.caller.write()
    about = {"cwd": writer.caller.cwd, "path": PATH}
    refused = await writer.post("adopt", about)
    assert refused.status_code == 409
    assert "memctl why shows" in words(refused.text)
    secret = f"---\nname: a\ndescription: b\n---\n\nkey {'sk-ant-api03-' + 'a1B2' * 24}\n"
    shown = await writer.shown("edit", path=PATH)
    answer = await submit(writer, shown, "write", path=PATH, more={"content": secret})
    assert answer.status_code == 409


async def test_rules_are_switched_on_and_off(writer: Browser) -> None:
    """A memory's check becomes a rule by a form, and is off again by another one."""
    check = "check: git push --force\n"
    text = (
        f"---\nname: no-force\ndescription: Never force-push\ntype: feedback\n{check}---\n\nNo.\n"
    )
    await writer.caller.call("memory.write", path="feedback_force.md", content=text)
    shown = await writer.shown("rules")
    assert "git push --force" in words(shown)
    about = {"cwd": writer.caller.cwd, "path": "feedback_force.md"}
    assert (await writer.post("rule-on", about, {"answer": "deny"})).status_code == 303
    (rule,) = (await writer.caller.call("rule.list"))["rules"]
    assert (rule["state"], rule["answer"]) == ("on", "deny")
    off = {"cwd": writer.caller.cwd, "rule": rule["id"]}
    assert (await writer.post("rule-off", off)).status_code == 303
    assert "Switch on" in await writer.shown("rules")
    again = await writer.post("rule-on", {**about, "answer": "ask"})
    assert again.status_code == 303
    (rule,) = (await writer.caller.call("rule.list"))["rules"]
    assert (rule["state"], rule["answer"]) == ("on", "ask")
    plain = {"cwd": writer.caller.cwd, "path": "MEMORY.md"}
    assert (await writer.post("rule-on", plain, {"answer": "ask"})).status_code == 409
