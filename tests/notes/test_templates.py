"""The template and the prompt: built in, or a person's own."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memd.core.settings import NotesSettings
from memd.notes.sections import SessionNotes, is_empty, parse, rendered
from memd.notes.templates import FILE_BYTES, NotesTemplate, chosen_template, sizes

TITLES = [
    "Session Title",
    "Current State",
    "Task specification",
    "Files and Functions",
    "Workflow",
    "Errors & Corrections",
    "Codebase and System Documentation",
    "Learnings",
    "Key results",
    "Worklog",
]
OWN = "# Plan\n_What comes next._\n\n# Done\n"
SETTINGS = NotesSettings()


def put(folder: Path, name: str, content: bytes | str) -> str:
    """Write a person's own file where the client keeps it, and return its path."""
    path = folder / "session-memory" / "config" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def test_the_built_in_template_has_ten_sections(tmp_path: Path) -> None:
    """Ten titles, each with one italic line and nothing below it."""
    template = chosen_template(SETTINGS, str(tmp_path))
    notes = parse(template.text)
    assert [section.title for section in notes.sections] == TITLES
    assert all(section.guide and not section.content for section in notes.sections)
    assert notes.head == ""
    assert is_empty(notes, template.text)
    assert "{{currentNotes}}" in template.prompt
    assert template.problems == ()


def test_a_person_s_own_files_are_used(tmp_path: Path) -> None:
    """Files in the client's folder are used, and those that the settings name come before them."""
    put(tmp_path, "template.md", OWN)
    put(tmp_path, "prompt.md", b"\xef\xbb\xbfKeep {{notesPath}} short.\r\n")
    template = chosen_template(SETTINGS, str(tmp_path))
    assert template == NotesTemplate(OWN, "Keep {{notesPath}} short.\r\n")
    named = put(tmp_path / "named", "template.md", "# Other\n")
    settings = NotesSettings(template=named)
    assert chosen_template(settings, str(tmp_path)) == replace(template, text="# Other\n")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("No heading at all\n## Small\n", "1 to 20 headings"),
        ("# Twice\n_a_\n# Twice\n_b_\n", "1 to 20 headings"),
        ("# Twice\n# Twice \n", "1 to 20 headings"),
        ("".join(f"# Title {n}\n" for n in range(21)), "1 to 20 headings"),
        ("# Long\n" + "x" * 40 * 1024, f"at most {FILE_BYTES} are loaded"),
        (b"# Latin \xe9\n", "not UTF-8"),
        ("", "it is empty"),
        (" \n\t\n", "it is empty"),
    ],
)
def test_a_damaged_template_is_named_and_not_used(
    content: bytes | str, problem: str, tmp_path: Path
) -> None:
    """The built-in template stands in for one that is damaged, and the problem says where."""
    path = put(tmp_path, "template.md", content)
    template = chosen_template(SETTINGS, str(tmp_path))
    assert [section.title for section in parse(template.text).sections] == TITLES
    assert len(template.problems) == 1
    assert problem in template.problems[0]
    assert "template.md" in template.problems[0]
    assert "built-in" in template.problems[0]
    assert (
        chosen_template(NotesSettings(template=path), str(tmp_path)).problems == template.problems
    )


@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "socketless"])
def test_what_is_no_plain_file_is_no_prompt(kind: str, tmp_path: Path) -> None:
    """A link, a FIFO, a folder or a path that cannot be is named, and nobody waits for it."""
    path = Path(put(tmp_path, "prompt.md", ""))
    path.unlink()
    settings = SETTINGS
    if kind == "link":
        path.symlink_to(put(tmp_path / "other", "prompt.md", "mine"))
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        settings = NotesSettings(prompt="relative/prompt.md")
    template = chosen_template(settings, str(tmp_path))
    assert "{{currentNotes}}" in template.prompt
    assert len(template.problems) == 1
    assert template.problems[0].startswith("prompt.md (")


def test_a_named_file_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    """What the settings name has to be there; what lies in the client's folder need not be."""
    settings = NotesSettings(template=f"{tmp_path}/none.md", prompt=f"{tmp_path}/no/folder.md")
    problems = chosen_template(settings, str(tmp_path)).problems
    assert [problem.count("there is no such file") for problem in problems] == [1, 1]


def test_names_are_put_in_once() -> None:
    """What is put in is not searched again, and unknown names and group marks stay."""
    text = "# A\n_g_\n{{notesPath}} {{sizes}} $1 \\1 \\g<0> {{currentNotes}}\n"
    prompt = "{{notesPath}}|{{currentNotes}}|{{other}} {{ sizes }} {{Sizes}} $1 \\1|{{notesPath}}"
    filled = NotesTemplate("", prompt).filled_prompt(parse(text), "/n/{{sizes}}\\1")
    path = "/n/{{sizes}}\\1"
    assert filled == f"{path}|{text}|{{{{other}}}} {{{{ sizes }}}} {{{{Sizes}}}} $1 \\1|{path}"


@given(st.text(), st.text())
def test_any_notes_are_put_in_as_they_are(before: str, notes: str) -> None:
    """Notes stand in the prompt to the byte, whatever they say."""
    prompt = before.replace("{", "") + "{{currentNotes}}"
    shown = rendered(parse(notes), cursor=False)
    assert (
        NotesTemplate("", prompt).filled_prompt(parse(notes), "/n")
        == before.replace("{", "") + shown
    )


def test_sizes_name_what_is_too_large() -> None:
    """A line for each section over its size, one for all together, else that all fit."""
    notes = parse("# A\n_g_\n# B\n")
    assert sizes(notes) == "Every section is within its size."
    large = SessionNotes(
        "",
        tuple(
            section.filled("x" * 4 * size)
            for section, size in zip(notes.sections, (2_001, 9_999), strict=True)
        ),
    )
    assert sizes(large).split("\n") == [
        "- A: about 2001 tokens of 2000",
        "- B: about 9999 tokens of 2000",
    ]
    larger = replace(large, sections=(*large.sections, large.sections[0]))
    assert sizes(larger).split("\n")[-1] == "- All sections: about 14001 tokens of 12000"
