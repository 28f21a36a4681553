"""What the project's instruction files say already is neither learnt nor suggested.

From the conversation to the result, through a real daemon, without a model and with one.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from memd.client.aio import AsyncClient
from memd.testing.daemon import Home, daemon_here, throw_away_home
from memd.testing.messages import ReceivedMessage, text, tools
from tests.promises.learning import RULE, WISH, Desk, desk, memory, nothing, turn

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("sdk")]
SAID = "# Shop\n\n- Always answer in German, never in English.\n- Deploys happen on Tuesdays.\n"
ANSWERS = "From now on always answer in German, never in English!"
DEPLOYS = "Our deploys happen on Tuesdays."
NEWS = "Never push to the main branch without asking me."


class LocalProject:
    """A project whose conversations the local extractor looks at, on a daemon in this process."""

    def __init__(self, home: Home, client: AsyncClient) -> None:
        self.home = home
        self.cwd = home.project()
        self.file = Path(self.cwd, "AGENTS.md")
        self._client = client

    async def call(self, method: str, **params: Any) -> Any:
        """Call a method about the project."""
        with anyio.fail_after(60):
            return await self._client.call(method, {"cwd": self.cwd, **params})

    async def extract(self, session: str, *said: str) -> Any:
        """Extract from what the person said."""
        messages = [{"role": "user", "content": each} for each in said]
        return await self.call("extract", session_id=session, messages=messages, wait=True)

    def configure(self, options: str) -> None:
        """Write the user's settings."""
        config = Path(self.home.places.config)
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(options)


@asynccontextmanager
async def local_project() -> AsyncIterator[LocalProject]:
    """Serve in a throw-away home."""
    with throw_away_home() as home:
        async with daemon_here(home), AsyncClient(home.places.socket, name="test") as client:
            yield LocalProject(home, client)


async def test_the_local_extractor_passes_over_what_a_file_says() -> None:
    """It is named with its file; what the file does not say, and says otherwise, is saved."""
    async with local_project() as here:
        here.file.write_text(SAID)
        first = await here.extract("a", ANSWERS, NEWS)
        assert first["already_said"] == [{"text": ANSWERS, "file": str(here.file)}]
        assert first["passed_over"] == {"already_said": 1}
        assert [name for name in first["saved"] if "push" in name] == first["saved"] != []
        here.file.write_text(SAID.replace("German, never in English", "English, never in German"))
        second = await here.extract("b", ANSWERS)
        assert (second["already_said"], len(second["saved"])) == (None, 1)


async def test_what_corrects_a_memory_is_saved_although_a_file_says_it() -> None:
    """A memory that says otherwise must not be the last word."""
    async with local_project() as here:
        await here.extract("a", ANSWERS)
        here.file.write_text(SAID.replace("German, never in English", "English, never in German"))
        done = await here.extract("b", "From now on always answer in English, never in German!")
        assert done["already_said"] is None
        assert len([*done["saved"], *done["updated"]]) == 1


async def test_the_switch_is_read_at_each_use() -> None:
    """With ``already_said = false`` all is saved as if there were no files."""
    async with local_project() as here:
        here.file.write_text(SAID)
        assert (await here.extract("a", ANSWERS))["saved"] == []
        here.configure("[instructions]\nalready_said = false\n")
        done = await here.extract("b", ANSWERS)
        assert (done["already_said"], len(done["saved"])) == (None, 1)


async def test_a_suggestion_that_a_file_says_is_not_offered() -> None:
    """A new one is not filed; one that waits goes to no session as long as the file says it."""
    async with local_project() as here:
        here.file.write_text(SAID)
        first = await here.extract("a", DEPLOYS)
        assert (first["suggested"], first["passed_over"]) == (0, {"already_said": 1})
        here.file.write_text("Nothing.\n")
        assert (await here.extract("b", DEPLOYS))["suggested"] == 1
        here.file.write_text(SAID)
        assert (await here.call("suggestion.offer", session_id="c"))["block"] == ""
        here.file.write_text("Nothing.\n")
        assert DEPLOYS in (await here.call("suggestion.offer", session_id="c"))["block"]


async def test_a_check_names_the_memories_that_repeat_a_file() -> None:
    """By path and file; one that says more is not named."""
    async with local_project() as here:
        await here.extract("a", ANSWERS, NEWS)
        here.file.write_text(SAID)
        issues = (await here.call("instructions.check"))["issues"]
    (issue,) = [issue for issue in issues if issue["kind"] == "repeated_memory"]
    assert issue["text"] == f"says what {here.file} says"


def writes(desks: list[Desk]) -> Any:
    """Return a script that writes what a file says, hears that, and writes what it does not."""

    def answer(request: ReceivedMessage) -> Any:
        folder = desks[0].memory
        known = memory("pnpm", RULE, "feedback", quote=WISH)
        other = memory("ann", "Ann owns the releases", "feedback", quote="Ann owns the releases")
        contents = {1: ("pnpm.md", known), 2: ("ann.md", other)}
        if turn(request) not in contents:
            return text("done")
        name, content = contents[turn(request)]
        return tools(("Write", {"file_path": f"{folder}/{name}", "content": content}))

    return answer


async def test_a_model_is_told_and_refused() -> None:
    """Its task names what the file says; what it writes all the same is refused with the file."""
    desks: list[Desk] = []
    async with desk(writes(desks)) as here:
        desks.append(here)
        file = Path(here.cwd, "CLAUDE.md")
        file.write_text(f"# Shop\n\n{RULE}.\n")
        said = here.conversation("s1")
        said.user(f"{WISH} Ann owns the releases, please keep that in mind.")
        done = await here.extract(said)
        first, second = (json.dumps(each.json["messages"][-1]) for each in here.server.messages[:2])
        assert f"({file})" in first
        assert "said_in_files" in first
        assert f"{file} says that already" in second
        assert done["already_said"] == [{"text": RULE, "file": str(file)}]
        assert (done["saved"], done["passed_over"]) == (["ann.md"], {"already_said": 1})
        assert done["engine"] != "local"
    async with desk(nothing) as here:
        Path(here.cwd, "CLAUDE.md").write_text(f"# Shop\n\n{RULE}.\n")
        said = here.conversation("s1")
        said.user("Deploys are on Friday this week.")
        await here.extract(said)
        assert "said_in_files" not in json.dumps(here.server.messages[0].json)
