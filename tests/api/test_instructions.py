"""instructions.* and the instructions of load_prompt, over the socket."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from memd.api.dialects import DIALECTS
from memd.projects.project import slug
from memd.testing.daemon import client, daemon_process, throw_away_home
from tests.api.caller import Caller
from tests.api.test_spending import configure

pytestmark = pytest.mark.anyio

# Of answers before load_prompt knew of instruction files, with "{home}" for the home's path,
# "{slug}" for what a folder's name has of it, and "{etag}". A prompt that is changed on purpose
# changes these.
BEFORE = {
    "": "e8577f7578ccf3a0c0c0530db3ac98389a84ab4ea6bcd497d0dc80b9b5598e35",
    "agent": "3f6b442c47ed42e69fd54f622bba57ed23ee4a3a4ed0f7aa1d29682e4a80863f",
}
OFF = (
    '{"jsonrpc":"2.0","id":1,"result":{"prompt":null,"enabled":false,'
    '"reason":"enabled is false in {home}/project/.memd.toml",'
    '"memory_dir":"{home}/.claude/projects/{slug}-project/memory",'
    '"index":{"lines":0,"bytes":0,"cut":""},"etag":"","problems":[]}}\n'
)


def write(caller: Caller, name: str, text: str) -> Path:
    """Write a file of the project, or one with an absolute path."""
    path = Path(caller.cwd, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def loaded(answer: Any) -> list[str]:
    """Return the names of what is loaded."""
    return [os.path.basename(file["path"]) for file in answer["files"] if file["loaded"]]


async def answer(caller: Caller, **params: Any) -> str:
    """Return the very bytes of an answer of load_prompt, without what differs between homes."""
    request = {"jsonrpc": "2.0", "id": 1, "method": "load_prompt", "params": params}
    body = b""
    async with await anyio.connect_unix(caller.home.places.socket) as stream:
        await stream.send(json.dumps(request).encode() + b"\n")
        while not body.endswith(b"\n"):
            body += await stream.receive()
    etag = json.loads(body)["result"]["etag"]
    text = body.decode().replace(slug(caller.home.path), "{slug}")
    text = text.replace(caller.home.path, "{home}")
    return text.replace(etag, "{etag}") if etag else text


async def test_a_prompt_without_them_is_what_it_was(caller: Caller) -> None:
    """Without the parameter not a byte of the answer is another than before there was one."""
    write(caller, "CLAUDE.md", "Use pnpm.")
    plain = await answer(caller, cwd=caller.cwd)
    agent = await answer(caller, cwd=caller.cwd, mode="agent", agent="a", skip_index=True)
    hashes = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in
              (("", plain), ("agent", agent))}  # fmt: skip
    assert hashes == BEFORE
    assert await answer(caller, cwd=caller.cwd, instructions="none") == plain
    write(caller, ".memd.toml", "enabled = false\n")
    assert await answer(caller, cwd=caller.cwd) == OFF


async def test_files_are_listed_with_their_reasons(caller: Caller) -> None:
    """A view says what it loads, in order, and of all else why not."""
    write(caller, "CLAUDE.md", "Use pnpm.\n@docs/a.md\n@docs/none.md\n")
    write(caller, "docs/a.md", "A")
    write(caller, "AGENTS.md", "Use npm.")
    write(caller, ".claude/rules/ts.md", "---\npaths: '**/*.ts'\n---\nNo any.\n")
    claude = await caller.call("instructions.list", view="claude")
    assert loaded(claude) == ["CLAUDE.md", "a.md"]
    assert (claude["view"], claude["problems"], claude["allowed"]) == ("claude", [], None)
    first, included, *_ = claude["files"]
    assert first == {
        "path": f"{caller.cwd}/CLAUDE.md",
        "kind": "project",
        "scope": "project",
        "depth": 0,
        "included_by": "",
        "condition": [],
        "chars": 35,
        "loaded": True,
        "why_not": "",
    }
    assert (included["depth"], included["included_by"]) == (1, first["path"])
    reasons = {os.path.basename(f["path"]): f["why_not"] for f in claude["files"] if f["why_not"]}
    assert set(reasons) == {"none.md", "AGENTS.md", "ts.md"}
    touched = await caller.call("instructions.list", view="claude", touched=["src/main.ts"])
    assert loaded(touched) == ["CLAUDE.md", "a.md", "ts.md"]
    union = await caller.call("instructions.list")
    assert (union["view"], "AGENTS.md" in loaded(union)) == ("union", True)
    assert (await caller.refused("instructions.list", view="emacs")).code == -32602
    assert (await caller.refused("instructions.list", touched=["x"] * 1001)).code == -32602


async def test_the_text_has_what_the_list_names(caller: Caller) -> None:
    """instructions.read is the list with the text; load_prompt brings the same one beside it."""
    write(caller, "CLAUDE.md", "Use pnpm.")
    write(caller, f"{caller.home.path}/.claude/CLAUDE.md", "Answer in German.")
    read = await caller.call("instructions.read", view="claude")
    listed = await caller.call("instructions.list", view="claude")
    assert {name: read[name] for name in listed} == listed
    assert 0 < read["text"].index("Answer in German.") < read["text"].index("Use pnpm.")
    prompt = await caller.call("load_prompt")
    with_files = await caller.call("load_prompt", instructions="claude")
    members = {name: read[name] for name in ("text", "etag", "files", "problems")}
    assert with_files.pop("instructions") == members
    assert with_files == prompt
    write(caller, ".memd.toml", "enabled = false\n")
    off = await caller.call("load_prompt", instructions="claude")
    assert (off["prompt"], off["instructions"]) == (None, members)


async def test_the_user_excludes_files_and_no_repository(caller: Caller) -> None:
    """instructions.exclude and Claude Code's own list count in the user's settings alone."""
    for name in ("CLAUDE.md", "CLAUDE.local.md", ".claude/rules/a.md"):
        write(caller, name, f"{name}\n")
    write(caller, ".memd.toml", '[instructions]\nexclude = ["**"]\n')
    write(caller, ".claude/settings.json", '{"claudeMdExcludes": ["**"]}')
    listed = await caller.call("instructions.list", view="claude")
    assert loaded(listed) == ["CLAUDE.md", "a.md", "CLAUDE.local.md"]
    configure(caller, '[instructions]\nexclude = ["**/CLAUDE.local.md"]\n')
    user = f"{caller.home.path}/.claude/settings.json"
    write(caller, user, '{"claudeMdExcludes": ["**/rules/*"]}')
    listed = await caller.call("instructions.list", view="claude")
    assert loaded(listed) == ["CLAUDE.md"]


async def test_includes_from_outside_wait_for_the_user(caller: Caller) -> None:
    """The yes is of one project, and is taken back; credentials are never among what it allows."""
    outside = write(caller, f"{caller.home.path}/shared/style.md", "Two spaces.")
    key = write(caller, f"{caller.home.path}/.ssh/id_ed25519", "PRIVATE")
    other = caller.home.project("other")
    for cwd in (caller.cwd, other):
        write(caller, f"{cwd}/CLAUDE.md", f"@{outside}\n@{key}\n")
    listed = await caller.call("instructions.list", view="claude")
    assert (loaded(listed), listed["external"]) == (["CLAUDE.md"], [str(outside)])
    decided = await caller.call("instructions.approve", allow=True)
    assert decided == {"root": caller.cwd, "allowed": True, "external": [str(outside)]}
    read = await caller.call("instructions.read", view="claude")
    assert (loaded(read), read["external"]) == (["CLAUDE.md", "style.md"], [])
    assert read["allowed"] is True
    assert "Two spaces." in read["text"]
    assert "PRIVATE" not in read["text"]
    elsewhere = await caller.call("instructions.list", cwd=other, view="claude")
    assert (loaded(elsewhere), elsewhere["allowed"]) == (["CLAUDE.md"], None)
    decided = await caller.call("instructions.approve", allow=False)
    assert (decided["allowed"], decided["external"]) == (False, [str(outside)])
    assert loaded(await caller.call("instructions.list", view="claude")) == ["CLAUDE.md"]


async def test_an_assistants_program_allows_nothing(caller: Caller) -> None:
    """What an assistant runs may deny includes from outside and not allow them."""
    about = {"name": "ann", "kind": "session", "session_id": "s", "pid": os.getppid()}
    await caller.call("agent.register", **about)
    error = await caller.refused("instructions.approve", allow=True)
    assert (error.kind, "terminal of your own" in error.hint) == ("approval_refused", True)
    assert (await caller.call("instructions.list"))["allowed"] is None
    assert (await caller.call("instructions.approve", allow=False))["allowed"] is False


@pytest.mark.parametrize("name", DIALECTS)
async def test_no_hook_brings_what_its_client_loads_itself(caller: Caller, name: str) -> None:
    """Clients with hooks load instruction files themselves and would have them twice."""
    for file in ("CLAUDE.md", "AGENTS.md", "GEMINI.md"):
        write(caller, file, "Zebras are striped.")
    written = await caller.write()
    for number, event in enumerate(DIALECTS[name].events):
        payload = {"session_id": "s", "cwd": caller.cwd, "prompt": "Mock the database? Zebras?"}
        payload |= {"source": "startup", "prompt_id": f"p{number}", "agent_type": "x"}
        answer = await caller.plain(
            "hook", client=name, event=event.partition(" ")[0], payload=payload, deadline_ms=20_000
        )
        assert "striped" not in json.dumps(answer)
    assert written["change"]


async def test_what_is_to_be_mended_is_named(caller: Caller) -> None:
    """A check looks at all views, at the project's other files and at the memories."""
    await caller.write()
    write(caller, "CLAUDE.md", "Use pnpm to install packages.\n@none.md\n@docs/a.md\n")
    write(caller, "docs/a.md", "@../CLAUDE.md")
    write(caller, "AGENTS.md", "Use npm to install packages.\n")
    write(caller, ".claude/rules/ts.md", "---\npaths: '**/*.ts'\n---\nNo any.\n")
    write(caller, ".claude/rules/py.md", "---\npaths: '**/*.py'\n---\nNo Any.\n")
    write(caller, "src/deep/main.py", "")
    checked = await caller.call("instructions.check")
    assert checked["files"] >= 3
    kinds = {issue["kind"]: issue for issue in checked["issues"]}
    assert set(kinds) == {"dead_include", "cycle", "unmatched_rule", "contradiction"}
    assert kinds["unmatched_rule"]["path"].endswith("/ts.md")
    assert "`Use npm to install packages.`" in str(kinds["contradiction"])


def test_the_text_is_the_same_bytes_on_100_calls_and_after_a_restart() -> None:
    """Text and etag depend on the files alone: not on calls before, the clock or the process."""
    with throw_away_home() as home:
        cwd = home.project()
        for number in range(30):
            rule = Path(cwd, f".claude/rules/{number}/rule.md")
            rule.parent.mkdir(parents=True)
            rule.write_text(f"Rule {number}.\n@../{number + 1}/rule.md\n")
        answers = set()
        for calls in (100, 1):
            with daemon_process(home), client(home) as connected:
                for _ in range(calls):
                    params = {"cwd": cwd, "instructions": "union"}
                    answers.add(json.dumps(connected.call("load_prompt", params)))
        (only,) = answers
        assert len(loaded(json.loads(only)["instructions"])) == 30
