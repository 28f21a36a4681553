"""What becomes of the sources of other tools: taken, left out, and why."""

import msgspec
import pytest

from memd.documents.document import parse, validate
from memd.portable import kinds
from memd.portable.values import ImportReading, SourceKind
from tests.portable.sources import SAMPLED_NS, Files, sample

U, F, P, R = "user", "feedback", "project", "reference"
SINGLE = "notes on single sessions"
TAKEN: dict[str, dict[str, str]] = {
    "claude-code": {
        "-home-ada-loom/MEMORY.md": "",
        "-home-ada-loom/Old note.md": "",
        "-home-ada-loom/release-day.md": F,
        "-home-ada-loom/team/server.md": R,
        "-home-ada-loom/user_role.md": U,
        "-home-ada-mill/water.md": P,
        "user's reviewer/MEMORY.md": "",
        "user's reviewer/style.md": F,
    },
    "repository": {"project/tester/flaky.md": P, "local/tester/port.md": R},
    "codex": {
        "feedback_when-cards-are-compared-the-user-corrected-show.md": F,
        "feedback_the-user-wants-tables-without-borders.md": F,
        "codex_the-compiler-reads-cards-from-left-to-right.md": "",
        "codex_a-card-with-23-holes-hangs-the-reader.md": "",
        "user_ada-designs-loom-patterns-and-reviews-every-card.md": U,
        "feedback_answer-in-british-english.md": F,
        "codex_run-the-card-checker-before-the-compiler.md": "",
    },
    "codex-earlier": {
        "codex_cards-are-numbered-from-one.md": "",
        "codex_the-level-is-read-at-noon.md": "",
    },
    "basic-memory": {
        "project_card-format.md": P,
        "reference_looms.md": R,
        "feedback_review-style.md": F,
        "user_ada.md": U,
    },
    "claude-mem": {
        "loom/project_cards-have-26-rows.md": P,
        "mill/reference_water-levels-are-published.md": R,
    },
    "mem0": {
        "user_ada-prefers-short-answers-with-one-example.md": U,
        "mem0_the-museum-in-bradford-has-a-list-of.md": "",
        "mem0_memory-c1f70d.md": "",
    },
    "claude-ai": {
        "user_work-context-ada-designs-loom-patterns-for-a.md": U,
        "user_work-context-she-reviews-every-card-by-hand.md": U,
        "user_personal-context-she-drinks-no-coffee-after-noon.md": U,
        "Pattern compiler/project_purpose-a-compiler-from-drawings-to-cards.md": P,
        "Pattern compiler/project_purpose-cards-have-26-rows-the.md": P,
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
    "cursor": {},
    "chats-chatgpt": {},
    "chats-claude": {},
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
        "raw_memories.md": SINGLE,
        "rollout_summaries/2026-03-02T09-00-00-rose.md": SINGLE,
        "skills/release/SKILL.md": "skills are no memories",
    },
    "codex-earlier": {
        "MEMORY.md:9": "skills are no memories",
        "memory_summary.md": "its first line is not v1",
    },
    "basic-memory": {
        ".obsidian/app.json": "no file .md",
        "loom.png": "no file .md",
        "Empty.md": "empty",
        "Person.md": "schema",
    },
    "claude-mem": {
        "loom.json: observations[2]": "a bugfix",
        "loom.json: observations[3]": "a change",
        "loom.json: observations[4]": "at `$.type`",
        "loom.json: sessions": "1 entries",
        "loom.json: summaries": "1 entries",
        "loom.json: prompts": "2 entries",
    },
    "mem0": {
        "ada.json[2]": "junk: it has fewer than 4 words",
        "ada.json[3]": "the same as ada.json[0]",
        "ada.json[4]": "at `$.memory`",
    },
    "claude-ai": {"conversations.json": "--learn", "users.json": "no memories"},
    "text": {
        "chatgpt.txt:1": "no entry of a list",
        "notes.md:1": "no entry of a list",
        "notes.md:10": "the same as notes.md:3",
    },
    "cursor": {".cursor/rules/release.mdc": "by description"},
    "chats-chatgpt": {
        "user.json": "no conversations",
        "conversations.json[1]": "says nothing",
        "conversations.json[2]": "at `$.mapping`",
    },
    "chats-claude": {},
}
KINDS = {"repository": SourceKind.CLAUDE_CODE, "codex-earlier": SourceKind.CODEX}


def _kind(folder: str) -> SourceKind:
    return KINDS.get(folder) or SourceKind(folder if "chats" not in folder else "chats")


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
    assert kinds.kind_of(source) is _kind(folder)
    reading = kinds.read(_kind(folder), source)
    assert _taken(reading) == TAKEN[folder]
    left = {file.name: file.reason for file in reading.left_out}
    assert left.keys() == LEFT_OUT[folder].keys()
    assert [name for name, why in LEFT_OUT[folder].items() if why not in left[name]] == []


@pytest.mark.parametrize("folder", [name for name in TAKEN if _kind(name) != "claude-code"])
def test_a_memory_has_the_form_that_memd_writes(folder: str) -> None:
    """What is made of another tool's text is a valid memory, but that it may lack a type."""
    for project in kinds.read(_kind(folder), sample(folder)).projects:
        for memory in project.memories:
            content = memory.content.replace(b"node_type: memory\n  type:", b"type:")
            if b"\n  type:" not in content:
                content = content.replace(b"node_type: memory", b"type: user")
            assert memory.path.rpartition("_")[2] == f"{validate(content, memory.path).name}.md"
            assert parse(content, memory.path).origin == "import"
            assert memory.mtime_ns > 0


def test_a_memory_folder_comes_back_as_it_is() -> None:
    """Files of a memory folder keep their bytes and times, and what they say of their origin."""
    source = sample("claude-code")
    loom = kinds.read(SourceKind.CLAUDE_CODE, source).projects[0]
    place = "projects/-home-ada-loom/memory"
    assert {m.path: m.content for m in loom.memories} == {
        m.path: source.read(f"{place}/{m.path}") for m in loom.memories
    }
    assert all(memory.exact and memory.mtime_ns == SAMPLED_NS for memory in loom.memories)
    assert [memory.origin for memory in loom.memories] == ["", "", "", "", "user"]


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


def test_the_last_branch_of_a_chat_is_learned_from() -> None:
    """Of a tree the branch that the person saw last counts, without tools and hidden messages."""
    talks = kinds.read(SourceKind.CHATS, sample("chats-chatgpt")).talks
    assert [(talk.id, [message.text for message in talk.messages]) for talk in talks] == [
        ("c-1", ["Cards have 26 rows, please remember.", "Noted: 26 rows."]),
        ("c-4", ["The margin is ignored."]),
    ]
    assert [message.origin for message in talks[0].messages] == ["user", "assistant"]


def test_an_attachment_of_a_chat_is_nobodys_words() -> None:
    """Of claude.ai's messages the texts count, and neither attachments, thinking nor tools."""
    (talk,) = kinds.read(SourceKind.CHATS, sample("chats-claude")).talks
    texts = ["The mill is closed in winter.", "I will plan around that."]
    assert [message.text for message in talk.messages] == texts


def test_rules_of_cursor_become_a_diff() -> None:
    """Rules become a diff against the rules that are there, with globs as paths."""
    reading = kinds.read(SourceKind.CURSOR, sample("cursor"))
    assert reading.projects == ()
    for line in (
        "--- a/.claude/rules/language.md\n",
        "-Answer in German.\n+Answer in British English.\n",
        "--- /dev/null\n+++ b/.claude/rules/web/tables.md\n",
        '+paths:\n+  - web/**/*.{ts,tsx}\n+  - "**/*.css"\n',
        "+++ b/.claude/rules/cursorrules.md\n",
    ):
        assert line in reading.diff


GLOBS = {
    "**/*.ts": ["**/*.ts"],
    "[*.ts, *.js]": ["*.ts", "*.js"],
    '["a/*.ts", "b"]': ["a/*.ts", "b"],
    "\n- src/**\n- x": ["src/**", "x"],
    "{a,b}/*.{ts,js},c": ["{a,b}/*.{ts,js}", "c"],
    '"*.py"': ["*.py"],
    "[ab]*.ts": ["[ab]*.ts"],
    "}},a": ["}}", "a"],
    "{a,b": ["{a,b"],
}


@pytest.mark.parametrize("written", GLOBS)
def test_globs_of_cursor_are_read_as_cursor_does(written: str) -> None:
    """A list of globs is read with commas, as YAML, and where it is no YAML."""
    rule = f"---\nglobs: {written}\n---\n\nText.\n".encode()
    diff = kinds.read(SourceKind.CURSOR, Files({"a.mdc": rule})).diff
    paths = [line[5:].strip('"') for line in diff.splitlines() if line.startswith("+  - ")]
    assert paths == GLOBS[written]


AMBIGUOUS: dict[str, dict[str, bytes]] = {
    "nothing": {},
    "a picture": {"a.png": b"PNG"},
    "prose": {"a.md": b"One sentence.\n"},
    "two kinds": {"a.json": b'[{"memory": "x"}]', ".cursorrules": b"x"},
    "other JSON": {"a.json": b'{"name": "x"}', "b.json": b"[1]", "c.json": b"[", "d.json": b"[]"},
}


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_what_is_not_clear_is_asked(case: str) -> None:
    """A source that looks like nothing, or like two things, has no kind."""
    assert kinds.kind_of(Files(AMBIGUOUS[case])) is None


def test_a_memory_folder_without_an_index_is_recognised() -> None:
    """Memories are known by their type, and a list among them makes them no other tool's."""
    head = b"---\nname: a\ndescription: a\nmetadata:\n  type: user\n---\n\na\n"
    source = Files({"a.md": head, "b.md": b"- an old list\n"})
    assert kinds.kind_of(source) is SourceKind.CLAUDE_CODE


def test_an_archive_of_memd_is_recognised() -> None:
    """A manifest of memd decides, whatever lies beside it."""
    manifest = msgspec.json.encode({"format": "memd-export", "version": 9})
    source = Files({"manifest.json": manifest, "projects/a/memory/MEMORY.md": b""})
    assert kinds.kind_of(source) is SourceKind.MEMD
