"""doctor's lines for the model, for notes and for stored results, over the socket."""

import os
from pathlib import Path
from typing import Any

import pytest

from memd.core import limits
from memd.testing.messages import messages_server, text
from tests.api.caller import Caller
from tests.api.test_spending import configure

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("sdk")]


async def line(caller: Caller) -> Any:
    """Return doctor's line for the model."""
    checks = (await caller.plain("doctor"))["checks"]
    return next(check for check in checks if check["name"] == "model")


async def test_an_address_that_is_refused_is_told(caller: Caller) -> None:
    """Plain http to another machine and an address without a key are worth a remedy."""
    for option in ('base_url = "http://gate.example"', 'base_url = "https://gate.example"'):
        configure(caller, f"[model]\n{option}\n")
        results = await line(caller)
        assert (results["state"], "gate.example" in results["detail"]) == ("warning", True)
        assert results["remedy"]


async def test_a_server_is_asked_whether_it_answers(caller: Caller) -> None:
    """Host and source of the key are told, silence and a wrong key with a remedy; the key never."""
    with messages_server(text("x"), keys=["sk-hidden"]) as server:
        configure(caller, f'[model]\nbase_url = "{server.url}"\napi_key = "sk-hidden"\n')
        results = await line(caller)
        assert (results["state"], "it answers" in results["detail"]) == ("ok", True)
        assert "by model.api_key of memd.toml" in results["detail"]
        configure(caller, f'[model]\nbase_url = "{server.url}"\napi_key = "sk-wrong"\n')
        refused = await line(caller)
        assert (refused["state"], "credentials" in refused["detail"]) == ("warning", True)
        assert server.messages == []
    silent = await line(caller)
    assert (silent["state"], "no connection" in silent["detail"]) == ("warning", True)
    assert silent["remedy"]
    assert "sk-" not in str((results, refused, silent))
    used = (await caller.plain("status"))["spend"]["used"]
    assert used["requests"] == 0


async def test_a_model_without_time_is_told(caller: Caller) -> None:
    """A model can be measured; when prompts never leave it time, doctor names what helps."""
    with messages_server(text('{"selected_memories": []}'), keys=["sk-x"]) as server:
        configure(caller, f'[model]\nbase_url = "{server.url}"\napi_key = "sk-x"\n')
        probe = await caller.plain("recall.probe")
        assert (probe["problem"], probe["seconds"] is not None) == ("", True)
        assert 300 <= probe["deadline_ms"] <= 2_500
        await caller.write()
        for number in range(3):
            assert (await line(caller))["state"] == "ok"
            answer = await caller.call(
                "prefetch", session_id=f"{number}", query="mock the database?", deadline_ms=200
            )
            assert "no time to ask the model" in answer["note"]
        slow = await line(caller)
    assert (slow["state"], "never in the time" in slow["detail"]) == ("warning", True)
    assert "memctl setup claude-code" in slow["remedy"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("No heading.\n", "1 to 20 headings"),
        ("# A\n\n# A\n", "no two of them alike"),
        ("# A\n" + "x" * 40_960, "40964"),
    ],
)
async def test_a_template_that_cannot_be_used_is_named(
    caller: Caller, content: str, problem: str
) -> None:
    """The built-in one stands, and the fault is told with the file."""
    path = Path(caller.home.path, ".claude", "session-memory", "config", "template.md")
    path.parent.mkdir(parents=True)
    path.write_text(content)
    checks = (await caller.plain("doctor"))["checks"]
    check = next(check for check in checks if check["name"] == "notes")
    assert check["state"] == "warning"
    assert problem in check["detail"]
    assert str(path) in check["detail"]
    usage = {"input_tokens": 12_000}
    said = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "Gone.", "usage": usage},
    ]
    params = {"session_id": "s", "messages": said, "wait": True}
    assert (await caller.call("notes.update", **params))["status"] == "completed"
    view = await caller.call("notes.read", session_id="s")
    assert len(view["sections"]) == 10
    path.unlink()
    checks = (await caller.plain("doctor"))["checks"]
    assert next(check for check in checks if check["name"] == "notes")["state"] == "ok"


async def test_room_that_stored_results_take_is_told(caller: Caller) -> None:
    """Their number and bytes are told, with what helps where little room is left."""
    lines = []
    for number, size in enumerate((1_000, 4_000_000_000)):
        about = {"tool_use_id": f"t{number}", "content_hash": "00", "action": "spill"}
        decision = {**about, "content": "begins", "path": f"/stored/{number}", "size": size}
        await caller.call("context.restore", session_id="s", decisions=[decision])
        checks = (await caller.plain("doctor"))["checks"]
        lines.append(next(check for check in checks if check["name"] == "stored results"))
    assert [check["state"] for check in lines] == ["ok", "warning"]
    assert lines[0]["detail"].startswith("1 with 1,000 of at most 4,294,967,296 bytes")
    assert "memctl context forget" in lines[1]["remedy"]


async def test_instruction_files_that_are_to_be_mended_are_told(caller: Caller) -> None:
    """A long file, a dead include and a broken rule are named, with what tells more."""

    async def told() -> Any:
        checks = (await caller.call("doctor"))["checks"]
        return next(check for check in checks if check["name"] == "instruction files")

    assert (await told())["detail"] == "0 with 0 characters"
    folder = Path(caller.cwd, ".claude", "rules")
    folder.mkdir(parents=True)
    (folder / "fine.md").write_text("Be brief.")
    assert await told() == {
        "name": "instruction files",
        "state": "ok",
        "detail": "1 with 9 characters",
        "remedy": "",
        "fix": None,
    }
    Path(caller.cwd, "CLAUDE.md").write_text("@none.md\n" + "x" * 40_000)
    (folder / "broken.md").write_text("---\npaths: 3\n---\nx")
    results = await told()
    assert (results["state"], "memctl instructions check" in results["remedy"]) == ("warning", True)
    for words in (
        "CLAUDE.md: has 40,009 characters",
        "none.md: there is no",
        "broken.md: its paths",
    ):
        assert words in results["detail"]
    (folder / "other.md").write_text("---\npaths:\n---\nx")
    assert (await told())["detail"].endswith("; and 1 more")


async def named(caller: Caller, name: str) -> Any:
    """Return a check of doctor by its name."""
    checks = (await caller.call("doctor"))["checks"]
    return next(check for check in checks if check["name"] == name)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("enabled = flase\n", "not valid TOML"),
        ('enabled = "no"\n', "must be true or false"),
        ("[recall]\nlimit = 1\n", "ignored: recall"),
    ],
)
async def test_a_project_s_settings_are_checked(caller: Caller, text: str, words: str) -> None:
    """A ``.memd.toml`` that does not do what it says is named, since memory stays on."""
    assert (await named(caller, "project settings"))["state"] == "ok"
    Path(caller.cwd, ".memd.toml").write_text(text)
    results = await named(caller, "project settings")
    assert (results["state"], words in results["detail"]) == ("warning", True)


async def test_memory_that_is_off_is_told(caller: Caller) -> None:
    """Status does not say that all is well where the settings switch memory off."""
    assert (await caller.plain("status"))["health"] == []
    configure(caller, "enabled = false\n")
    assert [check["name"] for check in (await caller.plain("status"))["health"]] == ["memory"]


async def test_files_that_cannot_be_used_are_told(caller: Caller) -> None:
    """A memory that is too large to be loaded is named, and a directory that takes no writes."""
    await caller.write()
    folder = await caller.folder()
    assert (await named(caller, "files"))["state"] == "ok"
    (folder / "huge.md").write_bytes(bytes(limits.READ_BYTES + 1))
    results = await named(caller, "files")
    assert (results["state"], "huge.md is too large" in results["detail"]) == ("warning", True)
    if os.getuid() != 0:  # root may write everywhere
        folder.chmod(0o500)
        try:
            assert "may not write" in (await named(caller, "files"))["detail"]
        finally:
            folder.chmod(0o700)
