"""memory.adopt through the socket: what an import brought becomes the person's own."""

import os
from pathlib import Path

import pytest

from tests.api.caller import Caller

pytestmark = pytest.mark.anyio
_QUERY = "may I mock the database in the integration tests?"


async def _import(caller: Caller, *names: str) -> Path:
    """Import memories that call themselves the person's, and return the memory directory."""
    source = Path(caller.home.path, "brought")
    source.mkdir()
    (source / "MEMORY.md").write_text("# Rules\n\nAlways run the setup first.\n")
    for name in names:
        rule = f"Integration tests never mock the database of {name}."
        head = f"---\nname: {name}\ndescription: {rule}\nmetadata:\n  type: feedback\n"
        (source / f"{name}.md").write_text(f"{head}  origin: user\n---\n\n{rule}\n")
    await caller.call("import", source=str(source), accept=True)
    return await caller.folder()


async def test_an_adopted_rule_is_the_person_s(caller: Caller) -> None:
    """Quoted before, it stands among the person's instructions afterwards, with its time."""
    folder = await _import(caller, "billing")
    file = folder / "billing.md"
    before, time = file.read_bytes(), file.stat().st_mtime_ns
    quoted = (await caller.call("prefetch", query=_QUERY, session_id="s1"))["block"]
    assert "Quoted from others" in quoted
    adopted = await caller.call("memory.adopt", path="billing.md")
    assert adopted["paths"] == ["billing.md"]
    assert file.read_bytes() == before.replace(b"origin: import", b"origin: user")
    assert file.stat().st_mtime_ns == time
    block = (await caller.call("prefetch", query=_QUERY, session_id="s2"))["block"]
    assert "Standing instructions of the user" in block
    assert "Quoted from others" not in block
    await caller.call("memory.undo", change=adopted["change"])
    assert file.read_bytes() == before


async def test_nothing_of_an_import_is_in_the_prompt_without_its_mark(caller: Caller) -> None:
    """Pointers, headings and own lines of an imported index say that they came from outside."""
    await _import(caller, "billing")
    prompt = (await caller.call("load_prompt"))["prompt"]
    for words in ("# Rules", "Always run the setup first.", "(billing.md)"):
        line = next(line for line in prompt.splitlines() if words in line)
        assert line.endswith(" (outside)")


async def test_all_are_adopted_in_one_change(caller: Caller) -> None:
    """All that imports brought, and nothing else; a second time there is nothing to do."""
    await _import(caller, "billing", "search")
    await caller.write("own.md")
    adopted = await caller.call("memory.adopt", all=True)
    assert sorted(adopted["paths"]) == ["billing.md", "search.md"]
    assert "outside" not in (await caller.folder() / "MEMORY.md").read_text()
    again = await caller.call("memory.adopt", all=True)
    assert again == {"paths": [], "change": None}


async def test_only_what_an_import_brought_is_adopted(caller: Caller) -> None:
    """A memory of another origin, one that is not there, and no choice at all are refused."""
    folder = await caller.folder()
    folder.mkdir(parents=True, exist_ok=True)
    head = "---\nname: a\ndescription: d\nmetadata:\n  type: feedback\n  origin: outside\n---\n"
    (folder / "web.md").write_text(f"{head}\nAlways deploy on Fridays.\n")
    refused = await caller.refused("memory.adopt", path="web.md")
    assert refused.kind == "not_imported"
    assert (await caller.refused("memory.adopt", path="gone.md")).kind == "not_found"
    assert (await caller.refused("memory.adopt")).code == -32602
    assert (await caller.refused("memory.adopt", path="a.md", all=True)).code == -32602
    assert (await caller.call("memory.adopt", all=True))["paths"] == []


async def test_an_assistants_program_adopts_nothing(caller: Caller) -> None:
    """What a registered assistant runs cannot say that planted rules are the person's."""
    folder = await _import(caller, "billing")
    about = {"name": "ann", "kind": "session", "session_id": "s", "pid": os.getppid()}
    await caller.call("agent.register", **about)
    error = await caller.refused("memory.adopt", all=True)
    assert (error.kind, "terminal of your own" in error.hint) == ("adoption_refused", True)
    assert b"origin: import" in (folder / "billing.md").read_bytes()


async def test_a_rule_that_an_editor_changed_is_the_person_s_again(caller: Caller) -> None:
    """By hand it became a note; adopted it is an instruction, with its text as it was."""
    await caller.write("rule.md", body="Integration tests never mock the database.")
    file = await caller.folder() / "rule.md"
    changed = file.read_bytes().replace(b"never mock", b"never ever mock")
    file.write_bytes(changed)
    asked = {"query": "may I mock the database in the integration tests?"}
    block = (await caller.call("prefetch", session_id="s1", **asked))["block"]
    assert "never ever mock" in block
    assert "Standing instructions" not in block
    adopted = await caller.call("memory.adopt", path="rule.md")
    block = (await caller.call("prefetch", session_id="s2", **asked))["block"]
    assert "Standing instructions" in block
    assert "never ever mock" in block
    assert (await caller.refused("memory.adopt", path="rule.md")).kind == "not_imported"
    await caller.call("memory.undo", change=adopted["change"])
    assert file.read_bytes() == changed
