"""suggestion.list, accept, edit, dismiss and offer, and what hooks bring of them."""

import os
from typing import Any

import pytest

from memd.core import limits
from memd.core.values import Suggestion
from memd.daemon.app import SCHEMAS
from memd.state import suggestions
from memd.state.database import open_database
from memd.text.quoting import units
from tests.api.caller import Caller
from tests.api.test_spending import configure

pytestmark = pytest.mark.anyio
TABS = "We indent Makefiles with tabs, never with spaces."
DAY = 86_400.0


async def suggest(caller: Caller, *texts: str, origin: str = "user") -> None:
    """File suggestions as an extraction does."""
    directory = os.path.realpath((await caller.call("memory.list"))["memory_dir"])
    database = open_database(caller.home.places.database, SCHEMAS)
    now = caller.clock.now()
    with database.transaction() as cursor:
        for text in texts:
            filed = Suggestion("s0", text, now, origin, "feedback", "unmarked")
            suggestions.save(cursor, directory, filed, now)
    database.close()


async def waiting(caller: Caller) -> list[dict[str, Any]]:
    """Return what the list shows."""
    result: list[dict[str, Any]] = (await caller.call("suggestion.list"))["suggestions"]
    return result


async def counts(caller: Caller) -> dict[str, int]:
    """Return the counters of ``status`` that are not 0."""
    status = await caller.plain("status")
    return {name: count for name, count in status["suggestions"].items() if count}


async def hook(caller: Caller, event: str, session: str, **members: Any) -> str:
    """Return what a hook of a session adds to its conversation."""
    payload = {"session_id": session, "cwd": caller.cwd, "prompt_id": session + event} | members
    requested = {"client": "claude-code", "event": event, "payload": payload}
    answer = await caller.plain("hook", **requested, deadline_ms=20_000)
    return answer["hookSpecificOutput"]["additionalContext"] if answer else ""


async def test_what_waits_is_listed(caller: Caller) -> None:
    """The members are those of the protocol; nothing of it is a memory."""
    assert await waiting(caller) == []
    await suggest(caller, TABS)
    (shown,) = await waiting(caller)
    assert shown == {
        "id": "s1",
        "text": TABS,
        "session": "s0",
        "at": caller.clock.now(),
        "origin": "user",
        "type": "feedback",
        "reason": "unmarked",
        "offered": [],
    }
    assert (await caller.call("memory.list"))["memories"] == []
    assert TABS not in (await caller.call("load_prompt"))["prompt"]


async def test_an_extraction_says_that_it_suggests(caller: Caller) -> None:
    """What waits for somebody to decide is counted in the result, not passed over in silence."""
    messages = [{"role": "user", "content": "I'm a nurse and new to Python."}]
    done = await caller.call("extract", session_id="s", messages=messages, wait=True)
    assert (done["saved"], done["suggested"], done["passed_over"]) == ([], 1, {})


@pytest.mark.parametrize("decision", ["", "suggestion.dismiss", "suggestion.accept"])
async def test_an_extraction_counts_only_new_suggestions(caller: Caller, decision: str) -> None:
    """What waits already, was dismissed or became a memory is not called a suggestion again."""
    messages = [{"role": "user", "content": "I'm a nurse and new to Python."}]
    await caller.call("extract", session_id="s", messages=messages, wait=True)
    if decision:
        await caller.call(decision, suggestion="s1")
    done = await caller.call("extract", session_id="t", messages=messages, wait=True)
    assert done["suggested"] == 0


async def test_an_accepted_one_is_a_memory_with_its_evidence(caller: Caller) -> None:
    """It has the words, the quotation and the date, is the person's, and can be taken back."""
    await suggest(caller, TABS)
    done = await caller.call("suggestion.accept", suggestion="s1")
    assert done["path"] == "feedback_we-indent-makefiles-with-tabs-never.md"
    memory = await caller.call("memory.read", path=done["path"])
    assert memory["type"] == "feedback"
    assert memory["content"].endswith(f'{TABS}\n\n**Said:** "{TABS}" (2026-03-03)\n')
    (change,) = (await caller.call("memory.history"))["changes"]
    assert (change["id"], change["session"]) == (done["change"], "s0")
    assert change["reason"] == "accepted suggestion s1"
    assert (await caller.call("memory.why", path=done["path"]))["last"]["origin"] == "user"
    assert await counts(caller) == {"taken": 1}
    await caller.call("memory.undo", change=done["change"])
    assert (await caller.call("memory.list"))["memories"] == []
    assert await waiting(caller) == []
    assert (await caller.refused("suggestion.accept", suggestion="s1")).code == 1001


@pytest.mark.parametrize("method", ["suggestion.accept", "suggestion.edit"])
async def test_it_may_get_other_words_and_another_type(caller: Caller, method: str) -> None:
    """What the person said stays with the memory as it was said."""
    await suggest(caller, TABS)
    done = await caller.call(method, suggestion="s1", text="缩进用制表符。", type="project")
    memory = await caller.call("memory.read", path=done["path"])
    assert done["path"].startswith("project_note-")
    assert "缩进用制表符。" in memory["content"]
    assert f'**Said:** "{TABS}"' in memory["content"]


async def test_a_models_wording_gets_no_evidence(caller: Caller) -> None:
    """No assistant is shown it; a person may accept it, and it does not pose as a quotation."""
    await suggest(caller, TABS, origin="outside")
    assert await hook(caller, "UserPromptSubmit", "a", prompt="which indentation here?") == ""
    done = await caller.call("suggestion.accept", suggestion="s1")
    assert "Said" not in (await caller.call("memory.read", path=done["path"]))["content"]
    why = await caller.call("memory.why", path=done["path"])
    assert why["last"]["origin"] == "assistant"


async def test_a_secret_makes_no_memory(caller: Caller) -> None:
    """Other words are scanned as every memory is, and the suggestion still waits."""
    await suggest(caller, TABS)
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    refused = await caller.refused("suggestion.edit", suggestion="s1", text=f"Push with {token}")
    assert refused.code == 1003
    assert token not in str(refused)
    assert len(await waiting(caller)) == 1


async def test_a_dismissed_one_does_not_come_back(caller: Caller) -> None:
    """It is gone from the list and from hooks, also when it is said again."""
    await suggest(caller, TABS)
    assert await caller.call("suggestion.dismiss", suggestion="s1") == {"suggestion": "s1"}
    await suggest(caller, TABS.upper())
    assert await waiting(caller) == []
    assert (await caller.call("suggestion.offer", session_id="a"))["block"] == ""
    assert (await caller.refused("suggestion.dismiss", suggestion="s1")).code == 1001
    assert await counts(caller) == {"dismissed": 1}


async def test_a_hook_brings_what_was_said(caller: Caller) -> None:
    """A prompt brings it once to a session, a second session's start brings it once more."""
    await suggest(caller, TABS)
    brought = await hook(caller, "UserPromptSubmit", "a", prompt="ok")
    assert brought.startswith("<memd-context>")
    assert f'"{TABS}"' in brought
    assert "`memctl suggestions accept s1`" in brought
    assert await hook(caller, "UserPromptSubmit", "a", prompt="ok", prompt_id="2") == ""
    assert await hook(caller, "SessionStart", "a", source="startup") == ""
    assert TABS in await hook(caller, "SessionStart", "b", source="startup")
    assert await hook(caller, "UserPromptSubmit", "c", prompt="ok") == ""
    assert await counts(caller) == {"open": 1, "offered": 2}


async def test_what_is_saved_by_now_is_not_brought(caller: Caller) -> None:
    """A memory that has the words closes the suggestion, whoever wrote it and wherever."""
    await suggest(caller, TABS, "Reviews are done on Mondays.")
    await caller.write(body=f"From the talk: {TABS.upper()}")
    (await caller.folder() / "mine.md").write_text("Reviews are done\non *Mondays*.\n")
    assert await hook(caller, "UserPromptSubmit", "a", prompt="ok") == ""
    assert await waiting(caller) == []
    assert await counts(caller) == {"taken": 2}


async def test_it_comes_beside_memories_and_the_section(caller: Caller) -> None:
    """Both are within what a client takes, however much there is of either, in any script."""
    for number in range(5):
        await caller.write(f"m{number}.md", name=f"mock-{number}", body="mock database 😀 " * 999)
    await suggest(caller, *(f"{number} 界 {'long😀 ' * 200}" for number in range(4)))
    prompt = "may I mock the database in this integration test?"
    brought = await hook(caller, "UserPromptSubmit", "a", prompt=prompt)
    memories, said, suggested = brought.partition("\n\nThe user said earlier")
    assert units(brought) <= limits.HOOK_CHARACTERS
    assert 500 < units(said + suggested) <= limits.SUGGESTION_CHARACTERS
    assert (brought.count("<memd-context>"), brought.count("</memd-context>")) == (1, 1)
    assert suggested.count("\n- s") == 3
    assert "mock-4" in memories


async def test_the_setting_switches_it(caller: Caller) -> None:
    """Without ``extract.suggest`` no hook brings anything; the list still shows what waits."""
    await suggest(caller, TABS)
    configure(caller, "[extract]\nsuggest = false\n")
    assert await hook(caller, "UserPromptSubmit", "a", prompt="ok") == ""
    assert len(await waiting(caller)) == 1


async def test_time_passes(caller: Caller) -> None:
    """After thirty days nothing waits, and a hook brings nothing."""
    await suggest(caller, TABS)
    caller.clock.jump(30 * DAY + 1)
    assert await waiting(caller) == []
    assert (await caller.call("suggestion.offer", session_id="a"))["block"] == ""
    assert await counts(caller) == {"expired": 1}
