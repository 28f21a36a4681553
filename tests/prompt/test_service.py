"""load_prompt: the memory section of a system prompt."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from msgspec import structs

from memd.core.settings import PromptSettings, Settings, TeamSettings
from memd.core.values import Header, MemoryFile, Project
from memd.prompt.service import AgentNameMissingError, LoadedPrompt, Prompts, UnknownModeError

pytestmark = pytest.mark.anyio

PROJECT = Project(
    "/srv/shop", "/srv/shop", "/b/projects/-srv-shop/memory", "default", "/b/projects", enabled=True
)
TEAM = Settings(team=TeamSettings(enabled="true"))


class Shelf:
    """Indexes in memory; notes which directories were made."""

    def __init__(self, indexes: Mapping[str, bytes]) -> None:
        self.indexes = indexes
        self.made: list[str] = []
        self.problems: dict[str, str] = {}

    async def ensure(self, directory: str, path: str) -> str:
        """Note the folder; say the problem that a test wants."""
        self.made.append(f"{directory}/{path}".removesuffix("/MEMORY.md"))
        return self.problems.get(path, "")

    async def read_many(self, directory: str, paths: Sequence[str]) -> tuple[MemoryFile, ...]:
        """Return the index, once its folder was made."""
        (path,) = paths
        folder = f"{directory}/{path}".removesuffix("/MEMORY.md")
        assert self.made[-1] == folder
        if folder not in self.indexes:
            return ()
        content = self.indexes[folder]
        header = Header("MEMORY.md", "", "", None, 0, len(content), False, 0)  # noqa: FBT003 - a field
        return (MemoryFile(header, content, "", content.decode()),)


INDEX = b"- [Freeze](freeze.md) \xe2\x80\x94 from 2026-03-05\n"


async def load(shelf: Shelf, settings: Settings = Settings(), **wishes: object) -> LoadedPrompt:  # noqa: B008 - immutable
    """Load the prompt of the project, with no environment unless a test brings one."""
    given = {"environment": {}} | wishes
    return await Prompts(shelf).load(PROJECT, settings, **given)  # type: ignore[arg-type]


@pytest.fixture
def shelf() -> Shelf:
    """Return a shelf with the project's index."""
    return Shelf({PROJECT.memory_dir: INDEX})


async def test_the_standard_prompt(shelf: Shelf) -> None:
    """Directory made, index loaded, the transcripts of this working directory named."""
    loaded = await load(shelf)
    assert loaded.prompt is not None
    assert "- [Freeze](freeze.md) — from 2026-03-05" in loaded.prompt
    assert "/b/projects/-srv-shop\n" in loaded.prompt.replace("`", "")
    assert (loaded.enabled, loaded.reason, loaded.problems) == (True, None, ())
    assert (loaded.index.lines, loaded.index.bytes, loaded.index.cut) == (1, len(INDEX) - 1, "")
    assert loaded.memory_dir == PROJECT.memory_dir
    assert shelf.made == [PROJECT.memory_dir]


async def test_the_same_inputs_give_the_same_bytes(shelf: Shelf) -> None:
    """Nothing but the inputs is in a prompt; a changed index changes text and etag."""
    first, second = await load(shelf), await load(shelf)
    assert first == second
    shelf.indexes = {}
    third = await load(shelf)
    assert third.prompt != first.prompt
    assert third.etag != first.etag
    assert "The index is empty" in str(third.prompt)


async def test_off_gives_no_prompt_and_the_reason(shelf: Shelf) -> None:
    """With memory off nothing is made and the reason is told."""
    off = structs.replace(PROJECT, enabled=False, reason="MEMD_DISABLE is set")
    loaded = await Prompts(shelf).load(off, Settings(), environment={})
    assert (loaded.prompt, loaded.enabled, loaded.etag) == (None, False, "")
    assert loaded.reason == "MEMD_DISABLE is set"
    assert shelf.made == []


async def test_a_directory_that_cannot_be_made_is_a_problem(shelf: Shelf) -> None:
    """The failure is told and the prompt comes all the same."""
    problem = "the directory cannot be made: read-only"
    shelf.problems = {"MEMORY.md": problem, "team/MEMORY.md": problem}
    loaded = await load(shelf, TEAM)
    assert loaded.problems == (problem,)
    assert loaded.prompt


async def test_a_team_has_both_indexes(shelf: Shelf) -> None:
    """With the team switched on both directories are made and both indexes shown."""
    team = f"{PROJECT.memory_dir}/team"
    shelf.indexes = {PROJECT.memory_dir: INDEX, team: b"- [Lint](lint.md) - all rules\n"}
    loaded = await load(shelf, TEAM)
    assert shelf.made == [PROJECT.memory_dir, team]
    text = str(loaded.prompt)
    assert text.index("freeze.md") < text.index(f"## {team}/MEMORY.md") < text.index("lint.md")
    assert loaded.index.bytes == len(INDEX) - 1


async def test_the_team_needs_its_switch(shelf: Shelf) -> None:
    """Asked for by name without its switch, the standard prompt comes."""
    assert await load(shelf, mode="team") == await load(shelf, mode="standard")
    assert await load(shelf, TEAM, mode="standard") == await load(shelf)


@pytest.mark.parametrize("enabled", ["auto", "true", "false"])
async def test_who_joined_has_the_team_by_itself(shelf: Shelf, enabled: str) -> None:
    """Where the setting says auto the directory's membership decides; else the setting does."""
    settings = Settings(team=TeamSettings(enabled=enabled))
    joined = Prompts(shelf, PROJECT.memory_dir.__eq__)
    loaded = await joined.load(PROJECT, settings, environment={})
    assert ("is shared" in str(loaded.prompt)) == (enabled != "false")
    elsewhere = structs.replace(PROJECT, memory_dir="/b/projects/-srv-other/memory")
    other = await joined.load(elsewhere, settings, environment={})
    assert ("is shared" in str(other.prompt)) == (enabled == "true")


async def test_the_shared_part_alone_follows_the_same_switches(shelf: Shelf) -> None:
    """It comes where the team prompt would, and nowhere else."""
    team = {f"{PROJECT.memory_dir}/team": b"- [Lint](lint.md) - all rules\n"}
    shelf.indexes = {**shelf.indexes, **team}
    prompts = Prompts(shelf)
    text = await prompts.shared(PROJECT, TEAM)
    assert "[Lint](lint.md)" in text
    assert "freeze.md" not in text
    daily = replace(TEAM, prompt=PromptSettings(daily_log=True))
    off = structs.replace(PROJECT, enabled=False, reason="MEMD_DISABLE is set")
    for project, settings in ((PROJECT, Settings()), (PROJECT, daily), (off, TEAM)):
        assert await prompts.shared(project, settings) == ""
    shelf.problems = {"team/MEMORY.md": "team is a link"}
    assert await prompts.shared(PROJECT, TEAM) == ""


async def test_a_prompt_without_room_goes_without_examples(shelf: Shelf) -> None:
    """Where a client takes no more, the indexes come before the examples."""
    whole = str((await load(shelf, TEAM)).prompt)
    fitting = (await load(shelf, TEAM, room=len(whole))).prompt
    short = str((await load(shelf, TEAM, room=len(whole) - 1)).prompt)
    assert fitting == whole
    assert "<examples>" in whole
    assert "<examples>" not in short
    assert short.endswith(whole[-200:])


async def test_a_team_folder_that_is_a_link_is_not_named(shelf: Shelf) -> None:
    """Nobody is told to write through a link: the standard prompt comes, with the problem."""
    shelf.problems = {"team/MEMORY.md": "team is a link"}
    loaded = await load(shelf, TEAM)
    assert loaded.prompt == (await load(shelf)).prompt
    assert loaded.problems == ("team is a link",)


async def test_daily_log_by_setting_and_by_name(shelf: Shelf) -> None:
    """The daily log wins over the team and can be asked for."""
    daily = replace(TEAM, prompt=PromptSettings(daily_log=True))
    assert "logs/YYYY/MM/YYYY-MM-DD.md" in str((await load(shelf, daily)).prompt)
    assert await load(shelf, daily) == await load(shelf, mode="daily_log")


@pytest.mark.parametrize(
    ("scope", "directory"),
    [
        ("", "/b/agent-memory/plugin-reviewer"),
        ("user", "/b/agent-memory/plugin-reviewer"),
        ("project", "/srv/shop/.claude/agent-memory/plugin-reviewer"),
        ("local", "/srv/shop/.claude/agent-memory-local/plugin-reviewer"),
    ],
)
async def test_an_agent_has_its_own_directory(shelf: Shelf, scope: str, directory: str) -> None:
    """Each scope has its directory, with the colon of the name replaced, and its hint."""
    loaded = await load(shelf, TEAM, mode="agent", agent="plugin:reviewer", scope=scope)
    assert (loaded.memory_dir, shelf.made) == (directory, [directory])
    assert "sub-agent `plugin:reviewer`" in str(loaded.prompt)


async def test_wrong_modes_are_refused(shelf: Shelf) -> None:
    """An unknown mode and an agent without a name are the caller's mistakes."""
    with pytest.raises(UnknownModeError, match="'weekly'"):
        await load(shelf, mode="weekly")
    with pytest.raises(AgentNameMissingError):
        await load(shelf, mode="agent")


async def test_the_first_guidelines_that_are_set_count(shelf: Shelf) -> None:
    """Parameter, then memd's variable, then the alias, then the settings."""
    settings = Settings(prompt=PromptSettings(extra_guidelines="four"))
    environment = {
        "MEMD_EXTRA_GUIDELINES": "two",
        "CLAUDE_COWORK_MEMORY_EXTRA_GUIDELINES": "three",
    }
    seen = []
    for wanted, variables in (
        ("one", environment),
        (" ", environment),
        ("", {"CLAUDE_COWORK_MEMORY_EXTRA_GUIDELINES": "three"}),
        ("", {}),
    ):
        loaded = await load(shelf, settings, extra_guidelines=wanted, environment=variables)
        seen.append(str(loaded.prompt).split("## Further guidelines\n\n")[1].split("\n")[0])
    assert seen == ["one", "two", "three", "four"]


async def test_the_wishes_reach_the_text(shelf: Shelf) -> None:
    """skip_index, the heading and the search switch change what is said."""
    settings = Settings(prompt=PromptSettings(display_name="Notes", search_past_context=False))
    text = str((await load(shelf, settings, skip_index=True)).prompt)
    assert text.startswith("# Notes\n")
    assert "Searching the past" not in text
    assert "freeze.md" not in text
