"""What becomes of the sources of other tools: taken, left out, and why."""

import pytest

from memd.portable import kinds
from memd.portable.values import ImportReading, SourceKind
from memd.store.memory import parse, validate
from tests.portable.sources import SAMPLED_NS, Files, sample

TAKEN: dict[str, dict[str, str]] = {
    "claude-code": {
        "-home-ada-loom/MEMORY.md": "",
        "-home-ada-loom/Old note.md": "",
        "-home-ada-loom/release-day.md": "feedback",
        "-home-ada-loom/team/server.md": "reference",
        "-home-ada-loom/user_role.md": "user",
        "-home-ada-mill/water.md": "project",
        "user's reviewer/MEMORY.md": "",
        "user's reviewer/style.md": "feedback",
    },
    "repository": {
        "project/tester/flaky.md": "project",
        "local/tester/port.md": "reference",
    },
    "codex": {
        "feedback_when-cards-are-compared-the-user-corrected-show.md": "feedback",
        "feedback_the-user-wants-tables-without-borders.md": "feedback",
        "codex_the-compiler-reads-cards-from-left-to-right.md": "",
        "codex_a-card-with-23-holes-hangs-the-reader.md": "",
        "user_ada-designs-loom-patterns-and-reviews-every-card.md": "user",
        "feedback_answer-in-british-english.md": "feedback",
        "codex_run-the-card-checker-before-the-compiler.md": "",
    },
    "text": {
        "text_always-answer-in-british-english.md": "",
        "text_ada-designs-loom-patterns-for-a-museum.md": "",
        "text_2025-03-the-exhibition-opens-in-the-spring.md": "",
        "text_tables-have-no-borders.md": "",
        "text_cards-are-compared-from-left-to-right.md": "",
        "text_releases-are-on-thursdays.md": "",
        "text_the-mill-is-closed-in-winter.md": "",
        "text_x-ask-grace.md": "",
    },
}
LEFT_OUT: dict[str, dict[str, str]] = {
    "claude-code": {
        "projects/-home-ada-loom/memory/.consolidate-lock": "no memory",
        "projects/-home-ada-loom/memory/logs/2026/03/2026-03-02.md": "no memory",
        "projects/-home-ada-loom/session.jsonl": "outside the memory folders",
    },
    "repository": {},
    "codex": {
        "MEMORY.md:10": "Codex's own index (task 1: compile the rose pattern, done)",
        "MEMORY.md:14": "Codex's own index (task 1: compile the rose pattern, done)",
        "MEMORY.md:19": "the same as memory_summary.md:9",
        "memory_summary.md:18": "Codex's own index (what's in memory)",
        "memory_summary.md:23": "Codex's own index (what's in memory)",
        "raw_memories.md": "notes on single sessions",
        "rollout_summaries/2026-03-02T09-00-00-rose.md": "notes on single sessions",
        "skills/release/SKILL.md": "skills are no memories",
    },
    "text": {
        "chatgpt.txt:1": "no entry of a list",
        "notes.md:1": "no entry of a list",
        "notes.md:10": "the same as notes.md:3",
    },
}
KINDS = {
    "claude-code": SourceKind.CLAUDE_CODE,
    "repository": SourceKind.CLAUDE_CODE,
    "codex": SourceKind.CODEX,
    "text": SourceKind.TEXT,
}


def _taken(reading: ImportReading) -> dict[str, str]:
    """Return the type of each memory, by its project or agent and its path."""
    groups = [(project.name, project.memories) for project in reading.projects]
    groups += [pair for project in reading.projects for pair in project.agents.items()]
    groups += [(f"user's {agent}", memories) for agent, memories in reading.agents.items()]
    return {
        f"{group}/{memory.path}".lstrip("/"): parse(memory.content, memory.path).type or ""
        for group, memories in groups
        for memory in memories
    }


@pytest.mark.parametrize("folder", TAKEN)
def test_a_sample_is_recognised_and_read(folder: str) -> None:
    """Each sample is recognised, and what is taken and left out of it is what the table says."""
    source = sample(folder)
    assert kinds.kind_of(source) is KINDS[folder]
    reading = kinds.read(KINDS[folder], source)
    assert _taken(reading) == TAKEN[folder]
    left = {file.name: file.reason for file in reading.left_out}
    assert left.keys() == LEFT_OUT[folder].keys()
    assert [name for name, why in LEFT_OUT[folder].items() if why not in left[name]] == []


@pytest.mark.parametrize("folder", ["codex", "text"])
def test_a_memory_has_the_form_that_memd_writes(folder: str) -> None:
    """What is made of another tool's text is a valid memory, but that it may lack a type."""
    for project in kinds.read(KINDS[folder], sample(folder)).projects:
        for memory in project.memories:
            content = memory.content.replace(b"node_type: memory\n  type:", b"type:")
            if b"\n  type:" not in content:
                content = content.replace(b"node_type: memory", b"type: user")
            assert memory.path.rpartition("_")[2] == f"{validate(content, memory.path).name}.md"
            assert parse(content, memory.path).origin == "import"
            assert memory.mtime_ns > 0


def test_a_memory_folder_comes_back_as_it_is() -> None:
    """Files of a memory folder keep their bytes and times."""
    source = sample("claude-code")
    loom = kinds.read(SourceKind.CLAUDE_CODE, source).projects[0]
    place = "projects/-home-ada-loom/memory"
    assert {m.path: m.content for m in loom.memories} == {
        m.path: source.read(f"{place}/{m.path}") for m in loom.memories
    }
    assert all(memory.exact and memory.mtime_ns == SAMPLED_NS for memory in loom.memories)


@pytest.mark.parametrize("prefix", ["", "memory/", "backup/memory/"])
def test_a_memory_folder_alone_is_read_wherever_it_lies(prefix: str) -> None:
    """The folder with the index is the memory folder, and what lies beside it is left out."""
    head = b"---\nname: a\ndescription: a\ntype: user\n---\n\na\n"
    files = {f"{prefix}{name}": head for name in ("MEMORY.md", "a.md", "team/MEMORY.md")}
    reading = kinds.read(SourceKind.CLAUDE_CODE, Files(files | {"x/y.md": head}))
    paths = [memory.path for memory in reading.projects[0].memories]
    assert paths == ["MEMORY.md", "a.md", "team/MEMORY.md", *(["x/y.md"] if not prefix else [])]


def test_an_entry_of_codex_knows_where_it_counts() -> None:
    """An entry of a task group says what the group covers; a preference for all tasks does not."""
    memories = kinds.read(SourceKind.CODEX, sample("codex")).projects[0].memories
    texts = {memory.path: memory.content for memory in memories}
    assert (
        b"applies_to: cwd=/home/ada/loom"
        in texts["codex_the-compiler-reads-cards-from-left-to-right.md"]
    )
    assert b"Scope" not in texts["feedback_the-user-wants-tables-without-borders.md"]


AMBIGUOUS: dict[str, dict[str, bytes]] = {
    "nothing": {},
    "a picture": {"a.png": b"PNG"},
    "prose": {"a.md": b"One sentence.\n"},
    "mem0": {"a.json": b'[{"memory": "x"}]'},
    "rules of Cursor": {".cursor/rules/a.mdc": b"---\nglobs: x\n---\nx"},
}


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_what_is_not_clear_is_asked(case: str) -> None:
    """A source that looks like nothing that memd reads has no kind."""
    assert kinds.kind_of(Files(AMBIGUOUS[case])) is None


def test_a_memory_folder_without_an_index_is_recognised() -> None:
    """Memories are known by their type, and a list among them makes them no other tool's."""
    head = b"---\nname: a\ndescription: a\nmetadata:\n  type: user\n---\n\na\n"
    source = Files({"a.md": head, "b.md": b"- an old list\n"})
    assert kinds.kind_of(source) is SourceKind.CLAUDE_CODE


def test_an_archive_of_memd_is_recognised() -> None:
    """A manifest of memd decides, whatever lies beside it."""
    manifest = b'{"format": "memd-export", "version": 9}'
    source = Files({"manifest.json": manifest, "projects/a/memory/MEMORY.md": b""})
    assert kinds.kind_of(source) is SourceKind.MEMD
