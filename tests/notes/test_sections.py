"""The text of session notes: parsing, rendering, local lines, what a model changed, shortening."""

from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memd.conversation.history import estimate_text
from memd.notes.sections import (
    NOTES_TOKENS,
    SECTION_TOKENS,
    NotesCursor,
    NotesSection,
    SessionNotes,
    checked_edit,
    is_empty,
    parse,
    redacted,
    rendered,
    section_tokens,
    shortened,
)

TEMPLATE = resources.files("memd.notes").joinpath("templates/template.md").read_text("utf-8")
KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"  # no key of anybody
CURSOR = "<!-- memd notes 2 session=s covers= tokens=1 engine=local hash=0123456789abcdef at= -->"
PIECES = ("# A", "# A\r", "# B ", "#", "# ", "_g_", "*g*\r", "__b__", "- x", "", " ", "\r", "## A")
FENCES = ("```", "```py", "~~~~", CURSOR, KEY, "x" * 60, "行" * 40)
LINES = st.lists(st.sampled_from(PIECES + FENCES) | st.text(max_size=9), max_size=12)
TEXTS = LINES.map("\n".join)


def notes_of(*contents: str) -> SessionNotes:
    """Return notes of the built-in template whose first sections have these contents."""
    notes = parse(TEMPLATE)
    filled = [s.filled(text) for s, text in zip(notes.sections, contents, strict=False)]
    return replace(notes, sections=(*filled, *notes.sections[len(filled) :]))


@given(TEXTS)
def test_what_was_parsed_is_rendered_to_the_byte(text: str) -> None:
    """Any text comes back as it was, but for blank lines below a cursor."""
    notes = parse(text)
    if notes.cursor is None:
        assert rendered(notes) == text
    assert parse(rendered(notes)) == replace(notes, changed=False)


@given(st.text(), st.text(), st.text(), st.integers(0, 10**9))
def test_a_cursor_is_one_line_whatever_ids_are(
    session: str, covers: str, at: str, tokens: int
) -> None:
    """Hostile ids end no comment and no line, and come back as they were."""
    cursor = NotesCursor(session or "s", covers, tokens, "model", at)
    line = cursor.rendered("0" * 16)
    assert line.count("\n") == 0
    assert line.isprintable()
    assert line.index("-->") == len(line) - 3
    text = rendered(replace(parse(TEMPLATE), cursor=cursor))
    again = parse(text)
    assert (again.cursor, again.changed) == (cursor, False)
    assert parse(text.replace("# Worklog", "# worklog")).changed


@pytest.mark.parametrize(
    "line",
    [
        CURSOR.replace("memd notes 2", "memd notes 3"),
        CURSOR.replace("local", "human"),
        CURSOR.replace("hash=01", "hash=+1"),
        CURSOR.replace("tokens=1", "tokens=x"),
        CURSOR.replace("covers=", "covers=%zz"),
        f"{CURSOR} and more",
        f"{CURSOR}\n- appended below",
    ],
)
def test_what_memd_did_not_write_so_is_no_cursor(line: str) -> None:
    """A damaged, a later version's or a covered cursor makes the notes somebody else's."""
    text = f"{TEMPLATE}\n{line}\n"
    assert parse(text).cursor is None
    assert rendered(parse(text)) == text


def test_a_cursor_is_not_shown() -> None:
    """The text for readers ends where the cursor begins."""
    assert rendered(parse(f"{TEMPLATE}{CURSOR}\n"), cursor=False) == TEMPLATE


def test_code_in_notes_is_no_heading() -> None:
    """A comment in a fence stays in its section, and a fence left open hides no section."""
    notes = notes_of("title", "```sh\n# install\nmake\n```")
    assert parse(rendered(notes)) == notes
    torn = rendered(notes).replace("make\n```", "make")
    assert [s.title for s in parse(torn).sections] == [s.title for s in notes.sections]
    assert notes_of("```\n# A\n_g_").sections[0].content == "```\n## A\n_g_\n```"
    tangled = notes_of("```\n# A\n_g_\n```\n# B\n")
    assert tangled.sections[0].content == "```\n## A\n_g_\n```\n## B"


@given(TEXTS)
def test_content_put_in_makes_no_section(text: str) -> None:
    """Whatever a section is filled with, the notes have the same titles and italic lines."""
    before = notes_of()
    for section in before.sections:
        changed = (section.filled(text) if s == section else s for s in before.sections)
        after = parse(rendered(replace(before, sections=tuple(changed))))
        assert form(after) == form(before)


def test_notes_like_the_template_are_empty() -> None:
    """Notes without content are empty, also those of another template."""
    assert is_empty(notes_of(), TEMPLATE)
    assert is_empty(notes_of(), "# Own\n_mine_\n- [ ] check\n")
    assert is_empty(parse("above\n# Own\n_mine_\n- [ ] check\n"), "above\n# Own\n- [ ] check")
    assert not is_empty(notes_of("a title"), TEMPLATE)
    assert not is_empty(parse("above all\n"), TEMPLATE)


def test_a_title_is_what_the_first_section_says() -> None:
    """A title is shown without the marks of the line that it stands in."""
    assert notes_of("Mend the parser\nmore").title == "Mend the parser"
    assert notes_of("- `mend the parser`").title == "mend the parser"
    assert notes_of().title == parse("").title == ""


def form(notes: SessionNotes) -> list[tuple[str, str]]:
    """Return what of notes never changes."""
    return [(section.title, section.guide) for section in notes.sections]


EDITS = st.lists(
    st.tuples(st.integers(0, 900), st.integers(0, 200), st.just("") | TEXTS), max_size=4
)


@given(EDITS, st.lists(TEXTS, max_size=4))
def test_a_model_changes_no_form(edits: list[tuple[int, int, str]], contents: list[str]) -> None:
    """Whatever a model does to the text, titles, italic lines, head and cursor are as before."""
    before = replace(notes_of(*contents), cursor=parse(CURSOR).cursor)
    text = rendered(before, cursor=False)
    for start, length, new in edits:
        text = text[:start] + new + text[start + length :]
    after, faults = checked_edit(before, text)
    again = parse(rendered(after))
    assert (form(again), again.head, again.cursor) == (form(before), "", before.cursor)
    assert KEY not in rendered(after) or any(KEY in s.body for s in before.sections)
    assert all(section_tokens(section) <= 3_010 for section in again.sections)
    assert checked_edit(after, rendered(after, cursor=False)) == (after, ())
    assert faults or again.sections or not edits


def test_an_edited_section_is_taken() -> None:
    """New content is taken as it is, and sections that were not touched stay to the byte."""
    before = notes_of("old title", "now", "the task")
    text = rendered(before).replace("now", "- later\n  - deeper").replace("old title", "")
    after, faults = checked_edit(before, text)
    assert faults == ()
    assert [s.content for s in after.sections[:3]] == ["", "- later\n  - deeper", "the task"]
    assert after.sections[2:] == before.sections[2:]


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("# Current State\n", "# Current Status\n", "heading or italic line"),
        ("# Current State\n", "# current State\n", "heading or italic line"),
        ("# Current State\n", "", "heading or italic line"),
        ("_The point reached:", "_What is going on:", "heading or italic line"),
        ("the task", f"- token {KEY}", "looks like a credential"),
        ("the task", "- a long line of it\n" * 2_000, "over 3000 tokens"),
        ("the task", "x" * 40_000, "over 3000 tokens"),
        ("# Workflow\n", "# Worklog\n", "heading or italic line"),
    ],
)
def test_what_a_model_must_not_do_is_not_taken(old: str, new: str, fault: str) -> None:
    """A section whose form changed keeps its old text, and each fault is named."""
    before = notes_of("a title", "now", "the task", "files")
    after, faults = checked_edit(before, rendered(before).replace(old, new))
    assert any(fault in sentence for sentence in faults)
    assert form(after) == form(before)
    assert [s.content for s in after.sections[:2]] == ["a title", "now"]
    assert after.sections[3] == before.sections[3]
    assert section_tokens(after.sections[2]) <= 3_000


def test_a_heading_in_the_content_goes_one_level_down() -> None:
    """A heading that a model writes into a section stays there as a smaller one."""
    before = notes_of("a title", "now")
    after, faults = checked_edit(
        before, rendered(before).replace("now", "now\n# next\n_mine_\n- mend")
    )
    assert faults == ()
    assert after.sections[1].content == "now\n## next\n_mine_\n- mend"


def test_sections_in_another_order_are_not_doubled() -> None:
    """A section that a model moved is as it was, and no other one takes its text in."""
    before = notes_of("a title", "now", "the task", "files")
    moved = replace(before, sections=(*before.sections[:1], *before.sections[3:0:-1]))
    moved = replace(moved, sections=(*moved.sections, *before.sections[4:]))
    after, faults = checked_edit(before, rendered(moved))
    assert after == before
    assert len(faults) == 2


def test_a_key_of_several_lines_goes_whole() -> None:
    """Of a credential that takes several lines nothing is left but the rule's name."""
    kind = "OPENSSH PRIVATE " + "KEY"
    inner = "\n".join(f"b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ{n}" for n in range(4))
    text = f"- before\n-----BEGIN {kind}-----\n{inner}\n-----END {kind}-----\n\n- behind {KEY}"
    clean = redacted(text)
    assert "b3Blbn" not in clean
    assert KEY not in clean
    assert clean.startswith("- before\n[removed: ")
    assert clean.count("[removed: ") == 2
    assert redacted("- nothing\n\n- here") == "- nothing\n\n- here"


LONG = st.integers(0, 400).map(lambda count: "- a line that says something\n" * count)
WIDE = st.integers(0, 9_000).map(lambda count: "记录" * count)


@given(st.lists(LONG | WIDE | TEXTS, min_size=10, max_size=10), st.integers(0, 20_000))
def test_shortened_notes_have_their_sizes(contents: list[str], characters: int) -> None:
    """No section and not all of them are too long, titles stay, and what is cut says so."""
    notes = notes_of(*contents)
    shown = parse(shortened(notes, "/notes.md"))
    whole = {s.title: s.content for s in notes.sections}
    assert [s.title for s in shown.sections] == [s.title for s in notes.sections]
    assert all(section_tokens(s) <= SECTION_TOKENS + 60 for s in shown.sections)
    assert sum(map(section_tokens, shown.sections)) <= NOTES_TOKENS + 60
    cut = [s.title for s in shown.sections if " more lines]" in s.content]
    assert bool(cut) == ("[What was cut is in /notes.md]" in shown.sections[-1].content)
    for section in shown.sections[:-1]:
        text = f"{section.guide}{section.body}".strip("\n")
        text = text.rpartition("[")[0].rstrip("…\n") if section.title in cut else text
        assert whole[section.title].startswith(text)
    assert len(shortened(notes, "/notes.md", characters=characters)) <= characters


def test_the_log_goes_before_the_state() -> None:
    """Where room is short, the worklog is cut first and the current state last."""
    notes = notes_of(*["- a line that says something\n" * 200] * 10)
    shown = parse(shortened(notes, "/n", characters=9_500))
    sizes = {s.title: estimate_text(s.content) for s in shown.sections}
    assert len(shortened(notes, "/n", characters=9_500)) > 9_000
    assert sizes["Current State"] > 1_000 > sizes["Worklog"] > 50


def test_a_text_without_headings_is_shown() -> None:
    """Notes of another form are shortened and shown as well."""
    notes = SessionNotes("free text\n" * 2_000, (NotesSection("T", "", "\nbody\n"),))
    assert "# T\nbody" in shortened(notes, "/n")
    assert len(shortened(notes, "/n", characters=700)) <= 700


def test_thousands_of_sections_are_shortened_at_once() -> None:
    """A file that is all headings costs no more than its length."""
    notes = parse("# A\n- b\n" * 20_000)
    assert len(notes.sections) == 20_000
    assert len(shortened(notes, "/n", characters=9_500)) == 9_500
