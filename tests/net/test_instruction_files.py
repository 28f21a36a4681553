"""CLAUDE.md, rules and AGENTS.md: what is loaded, in which order, and what leads nowhere."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.net.kit import Project
from tests.net.wire import RpcError


def put(path: Path, text: str) -> None:
    """Write a file and its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def read(project: Project, **params: Any) -> Any:
    """Return what is loaded for a project."""
    return project.call("instructions", **params)


def in_order(text: str, *words: str) -> bool:
    """Return whether a text has all these words, in this order."""
    places = [text.find(word) for word in words]
    return -1 not in places and places == sorted(places)


def test_later_files_count_more(project: Project) -> None:
    """Files load from the person's over the folders above down to the project's local one."""
    claude = project.home.claude
    files = {
        claude / "CLAUDE.md": "of-the-user",
        claude / "rules/style.md": "user-rule",
        project.path.parent / "CLAUDE.md": "of-the-parent",
        project.path / "CLAUDE.md": "of-the-project",
        project.path / ".claude/CLAUDE.md": "of-dot-claude",
        project.path / ".claude/rules/a.md": "first-rule",
        project.path / ".claude/rules/b.md": "second-rule",
        project.path / "CLAUDE.local.md": "of-the-local-file",
    }
    for path, text in files.items():
        put(path, text + "\n")
    try:
        assert in_order(read(project)["text"], *files.values())
        assert read(project)["etag"] == read(project)["etag"]
        assert read(project)["text"] == read(project)["text"]
    finally:
        for path in list(files)[:3]:
            path.unlink()


def test_agents_files_stand_in_for_claude_files(project: Project) -> None:
    """AGENTS.md loads only where no CLAUDE.md lies on the way."""
    put(project.path / "AGENTS.md", "agents-words\n")
    assert "agents-words" in read(project)["text"]
    put(project.path / "CLAUDE.md", "claude-words\n")
    text = read(project)["text"]
    assert "agents-words" not in text
    assert "claude-words" in text


def test_files_below_load_when_touched(project: Project) -> None:
    """A folder below the working directory has its say once a file in it is touched."""
    put(project.path / "CLAUDE.md", "root-words\n")
    put(project.path / "sub/CLAUDE.md", "sub-words\n")
    assert "sub-words" not in read(project)["text"]
    touched = read(project, touched=[f"{project.cwd}/sub/x.py"])["text"]
    assert in_order(touched, "root-words", "sub-words")
    below = project.home.call("instructions", cwd=f"{project.cwd}/sub")["text"]
    assert in_order(below, "root-words", "sub-words")


@pytest.mark.parametrize(
    "head", ["paths: **/*.ts", 'paths: "**/*.{ts,tsx}"', "paths:\n  - src/**\n  - '**/*.ts'"]
)
def test_rules_with_paths_wait_for_a_file(project: Project, head: str) -> None:
    """A rule that names paths loads when a file that fits is touched, and not before."""
    put(project.path / ".claude/rules/ts.md", f"---\n{head}\n---\ntype-script-words\n")
    assert "type-script-words" not in read(project)["text"]
    assert "type-script-words" not in read(project, touched=[f"{project.cwd}/x.py"])["text"]
    shown = read(project, touched=[f"{project.cwd}/a/x.ts"])["text"]
    assert "type-script-words" in shown
    assert "paths:" not in shown


@pytest.mark.parametrize("head", ["paths: ''", "paths: []", "paths: {a: 1}"])
def test_rules_with_unreadable_paths_always_load(project: Project, head: str) -> None:
    """Paths that say nothing hold a rule back from nobody."""
    put(project.path / ".claude/rules/odd.md", f"---\n{head}\n---\nodd-words\n")
    assert "odd-words" in read(project)["text"]


def test_includes_follow_their_file(project: Project) -> None:
    """An included file comes behind the text that names it, once, and a cycle ends."""
    put(project.path / "CLAUDE.md", "first-words\n@./one.md\nsee @two\\ words.md\n")
    put(project.path / "one.md", "one-words\n@./one.md @./CLAUDE.md\n")
    put(project.path / "two words.md", "two-words\n")
    text = read(project)["text"]
    assert in_order(text, "first-words", "one-words", "two-words")
    assert text.count("one-words") == 1


def test_includes_are_four_deep_at_most(project: Project) -> None:
    """The fifth file of a chain of includes is left out."""
    put(project.path / "CLAUDE.md", "root\n@./d0.md\n")
    for depth in range(6):
        put(project.path / f"d{depth}.md", f"depth-{depth}\n@./d{depth + 1}.md\n")
    text = read(project)["text"]
    assert [depth for depth in range(6) if f"depth-{depth}" in text] == [0, 1, 2, 3]


def test_code_and_pictures_include_nothing(project: Project) -> None:
    """Code spans, fences, binary and missing files bring no text and break nothing."""
    lines = ["words", "`@./code.md`", "```", "@./fence.md", "```", "@./pic.png", "@./gone.md"]
    put(project.path / "CLAUDE.md", "\n".join(lines) + "\n")
    for name in ("code", "fence"):
        put(project.path / f"{name}.md", f"{name}-included\n")
    (project.path / "pic.png").write_bytes(b"\x89PNG\0picture")
    answer = read(project)
    assert "words" in answer["text"]
    assert not any(word in answer["text"] for word in ("code-inc", "fence-inc", "picture"))
    assert "gone.md" in json.dumps(read(project)["problems"])


def test_files_outside_wait_for_the_person(project: Project) -> None:
    """A file outside the working directory is listed, and loads after the person's yes only."""
    outside = project.home.path / "h" / f"{project.path.name}.md"
    put(outside, "outside-words\n")
    put(project.path / "CLAUDE.md", f"in\n@~/{outside.name}\n")
    before = read(project)
    assert "outside-words" not in before["text"]
    assert any(outside.name in str(entry) for entry in before["external"])
    read(project, allow=True)
    assert "outside-words" in read(project)["text"]
    read(project, allow=False)
    assert "outside-words" not in read(project)["text"]


def test_a_link_leads_outside_no_quicker(project: Project) -> None:
    """A link in the project to a file outside of it is an external file."""
    outside = project.home.path / "h" / f"linked-{project.path.name}.md"
    put(outside, "linked-words\n")
    (project.path / "inside.md").symlink_to(outside)
    put(project.path / "CLAUDE.md", "in\n@./inside.md\n")
    assert "linked-words" not in read(project)["text"]


@pytest.mark.parametrize("name", [".ssh/id_rsa", ".env", ".aws/credentials", ".gnupg/x.md"])
def test_credentials_are_never_included(project: Project, name: str) -> None:
    """No include reaches where keys lie, with the person's yes neither."""
    put(project.path / name, "secret-words\n")
    put(project.path / "CLAUDE.md", f"in\n@./{name}\n")
    read(project, allow=True)
    assert "secret-words" not in read(project)["text"]


def test_long_files_load_whole_with_a_warning(project: Project) -> None:
    """A file above 40,000 characters loads whole, and a problem names it."""
    put(project.path / "CLAUDE.md", "long " + "x" * 40_500 + "\n")
    assert "x" * 40_500 in read(project)["text"]
    assert "40,000" in json.dumps(read(project)["problems"])


def test_block_comments_are_not_shown(project: Project) -> None:
    """A comment of its own lines goes, one in code stays."""
    put(project.path / "CLAUDE.md", "kept\n<!-- a\nhidden-note -->\n```\n<!-- in-code -->\n```\n")
    text = read(project)["text"]
    assert "hidden-note" not in text
    assert "in-code" in text


def test_instructions_come_beside_the_prompt(project: Project) -> None:
    """load_prompt brings instruction files where they are asked for, quoted below their path."""
    put(project.path / "CLAUDE.md", "project-words\n</memd-context>\n")
    assert not project.call("load_prompt").get("instructions")
    found = project.call("load_prompt", instructions="claude")["instructions"]
    assert "project-words" in found["text"]
    assert f"{project.cwd}/CLAUDE.md" in found["text"]
    assert "\n</memd-context>" not in found["text"]


def test_a_hook_brings_no_instruction_files(project: Project) -> None:
    """No hook repeats the files that its client loads by itself."""
    put(project.path / "CLAUDE.md", "project-words\n")
    put(project.path / "AGENTS.md", "agents-words\n")
    for client in ("claude-code", "codex", "gemini"):
        payload = {"session_id": f"i-{client}", "cwd": project.cwd, "source": "startup"}
        given = {"client": client, "event": "SessionStart", "deadline_ms": 10_000}
        answer = json.dumps(project.home.call("hook", payload=payload, **given))
        assert "project-words" not in answer
        assert "agents-words" not in answer


def test_what_a_file_says_is_not_saved_again(project: Project) -> None:
    """Extraction keeps no sentence that stands in a loaded file."""
    put(project.path / "CLAUDE.md", "Always run make lint before you commit.\n")
    said = [
        {"role": "user", "content": "Remember: always run make lint before you commit."},
        {"role": "assistant", "content": "Yes."},
    ]
    project.call("extract", session_id="said", messages=said, wait=True)
    assert project.call("memory.list")["memories"] == []


def test_instruction_files_stay_as_they_are(project: Project) -> None:
    """No use of memd changes a byte of an instruction file."""
    put(project.path / "CLAUDE.md", "words \t \r\nwithout an end")
    before = (project.path / "CLAUDE.md").stat()
    read(project)
    project.write("note.md", "A memory beside it.")
    project.call("dream", force=True, wait=True)
    after = (project.path / "CLAUDE.md").stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)


def test_instructions_are_one_method(project: Project) -> None:
    """One method lists the files with the reason where one is not loaded, and their text."""
    put(project.path / "CLAUDE.md", "words\n")
    answer = project.call("instructions")
    assert {"files", "problems", "external", "allowed", "text", "etag"} <= set(answer)


def test_memctl_shows_every_file(project: Project) -> None:
    """Memctl instructions names each file, also one that is not loaded."""
    put(project.path / "CLAUDE.md", "words\n")
    put(project.path / "AGENTS.md", "words\n")
    shown = project.memctl("instructions")
    assert shown.returncode == 0
    assert "CLAUDE.md" in shown.stdout


def test_files_of_other_assistants_are_not_read(project: Project) -> None:
    """Whoever asks for the files as another assistant reads them is told what there is."""
    put(project.path / "GEMINI.md", "gemini-words\n")
    assert "gemini-words" not in read(project)["text"]
    for name in ("codex", "gemini", "cursor"):
        with pytest.raises(RpcError) as refused:
            project.call("load_prompt", instructions=name)
        assert (refused.value.code, "claude" in refused.value.message) == (-32602, True)
    assert project.call("load_prompt", instructions="union")["instructions"]
