"""The deterministic pass."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.core import limits
from memd.core.names import INDEX
from memd.core.text import sha256
from memd.core.values import FileEdit, MemoryType
from memd.documents import document, index
from memd.dream.consolidate import Repeats, absolute, consolidate, fixed
from memd.dream.values import Merge, Wanted
from memd.text import dates
from tests.dream.shelf import MONDAY, NS, Shelf, judged

FACT = (
    "Deploys go out on Tuesday after the weekly review, and the on-call engineer of that week "
    "watches the dashboards for an hour before anybody else merges to the main branch again, "
    "and writes down whatever looked odd, so that the next one knows."
)


def _file(
    body: str,
    kind: MemoryType = MemoryType.REFERENCE,
    description: str = "How deploys go out",
    modified: str = "",
) -> bytes:
    return document.new("a-name", description, kind, body, session="", modified=modified)


def _pass(tree: Shelf) -> Wanted:
    wanted = consolidate(tree, dates.resolve)
    again = consolidate(tree.after(wanted), dates.resolve)
    assert again.edits == ()  # a second pass changes nothing
    assert judged(tree, wanted) == ()
    return wanted


def test_equal_memories_become_one() -> None:
    """Of memories that say the same one stays as it is, as new as the newest of them."""
    tree = Shelf(
        {"b.md": _file(FACT), "a.md": _file(FACT), "c.md": _file(FACT.upper())},
        {"a.md": MONDAY, "b.md": MONDAY + 50, "c.md": MONDAY + 9},
    )
    wanted = _pass(tree)
    assert set(wanted.merges) == {Merge("a.md", "b.md"), Merge("a.md", "c.md")}
    assert {edit.path for edit in wanted.edits} == {"b.md", "c.md"}
    assert all(edit.content is None for edit in wanted.edits)


def test_near_duplicates_keep_every_sentence() -> None:
    """The richer of two near-duplicates stays and gets the sentences that only the other had."""
    rich = f"{FACT}\n\n**Why:** a bad release once took the shop down for a day."
    poor = f"{FACT.replace('an hour', 'one hour')} Ana knows more."
    tree = Shelf({"poor.md": _file(poor), "rich.md": _file(rich)}, {"poor.md": MONDAY + 9})
    wanted = _pass(tree)
    assert wanted.merges == (Merge("rich.md", "poor.md"),)
    (edit,) = [edit for edit in wanted.edits if edit.content is not None]
    assert edit.path == "rich.md"
    assert edit.mtime_ns == int(MONDAY + 9) * NS
    assert edit.content is not None
    assert edit.content == tree.files["rich.md"] + f"\n{poor}\n".encode()


def test_a_description_is_a_sentence_too() -> None:
    """What only the description of the merged memory said is kept."""
    tree = Shelf({"a.md": _file(FACT), "b.md": _file(FACT, description="Ask Ana about exceptions")})
    (edit, _) = _pass(tree).edits
    assert edit.content == tree.files["a.md"] + b"\nAsk Ana about exceptions\n"


def test_line_ends_and_heads_stay() -> None:
    """What is appended has the line ends of the file, and the head stays byte for byte."""
    head = b"---\r\nname: x\r\ntype: reference\r\ndescription: Deploys go out\r\nodd:  1\r\n---\r\n"
    tree = Shelf(
        {
            "a.md": head + f"\r\n{FACT}\r\nWhole and longer than the other one is.\r\n".encode(),
            "b.md": _file(f"{FACT}\nWhole and longer than the other one is.\n- x\n- y"),
            "c.md": head + f"\r\n{FACT}\r\nWhole and longer than the other one is.\r\n".encode(),
        }
    )
    tree.files["a.md"] += b"\r\n- one\r\n- two\r\n- three\r\n"
    wanted = _pass(tree)
    assert {merge.into for merge in wanted.merges} == {"a.md"}
    (edit,) = [edit for edit in wanted.edits if edit.content is not None]
    assert edit.content == tree.files["a.md"] + b"\r\n- x\r\n\r\n- y\r\n"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (_file(FACT), _file(FACT, MemoryType.USER)),
        (_file(FACT), _file(FACT.replace("Tuesday", "Thursday"))),
        (_file(FACT), _file(FACT.replace("go out", "never go out"))),
        (_file(FACT), _file("Something else that nobody said before about anything at all.")),
        (_file("See above."), _file("See above.", description="Quite another thing")),
        (_file("", description="Ana leads the team"), _file("", description="Bob leads the team")),
        (_file("!"), _file("!", description="?")),
        (_file(FACT), FACT.encode()),
        (_file(FACT), _file(FACT).replace(b"reference", b"opinion")),
        (_file(FACT), _file(FACT) + b"\xff"),
        (_file(FACT), _file(FACT).replace(b"a-name", b"a\xffname")),
        (_file(FACT), _file(f"{FACT}\n\npassword = hunter2secretvalue99")),
        (_file(FACT), b"---\nname: x\ntype: reference\n\n" + FACT.encode()),
        (_file(f"{FACT}\n{'x ' * 20_000}"), _file(f"{FACT}\n{'x ' * 20_000}")),
        (_file(f"{FACT}\n```\nopen code that is long"), _file(f"{FACT}\nA new sentence.")),
    ],
)
def test_what_must_not_be_merged_stays(first: bytes, second: bytes) -> None:
    """Other types, contradictions, damaged, secret, huge and open-ended files stay untouched."""
    tree = Shelf({"a.md": first, "b.md": second})
    assert _pass(tree).edits == ()


@pytest.mark.parametrize("path", ["team/a.md", "ünï.md", "unreadable.md", "vanished.md"])
def test_files_that_are_not_ours_to_change_stay(path: str) -> None:
    """A team's memory, a name that memd never writes and an unreadable file are left alone."""
    tree = Shelf({path: _file(FACT), "b.md": _file(FACT)})
    assert consolidate(tree, dates.resolve).edits == ()


def test_equal_descriptions_alone_are_duplicates() -> None:
    """Two memories without a body are the same when their descriptions are."""
    tree = Shelf(
        {"a.md": _file("", description="Ana leads"), "b.md": _file("", description="ana leads.")}
    )
    assert _pass(tree).merges == (Merge("a.md", "b.md"),)


def test_dates_become_absolute() -> None:
    """A project memory's relative dates get the date they meant when it was written."""
    project = _file(
        "Freeze starts Thursday.\n\n```\nsay Thursday\n```\n\nThursday it is.",
        MemoryType.PROJECT,
        "Freeze from Thursday",
        "2026-03-02T10:00:00.000Z",
    )
    other = _file("Freeze starts Thursday.")
    content = (
        b"# Index\n- [Freeze](a.md) \xe2\x80\x94 from Thursday\n- [O](b.md) \xe2\x80\x94 Thursday\n"
    )
    tree = Shelf({"a.md": project, "b.md": other, "MEMORY.md": content}, {"a.md": MONDAY + 9e6})
    wanted = _pass(tree)
    assert [edit.path for edit in wanted.edits] == ["a.md", "MEMORY.md"]
    memory = document.parse(wanted.edits[0].content or b"", "a.md")
    assert memory.description == "Freeze from Thursday (2026-03-05)"
    assert memory.body == (
        "Freeze starts Thursday (2026-03-05).\n\n```\nsay Thursday\n```\n\n"
        "Thursday (2026-03-05) it is.\n"
    )
    assert wanted.edits[0].mtime_ns == int(MONDAY + 9e6) * NS
    hooks = {entry.path: entry.hook for entry in index.entries(wanted.edits[1].content or b"")}
    assert hooks == {"a.md": "from Thursday (2026-03-05)", "b.md": "Thursday"}


@pytest.mark.parametrize("stamp", ["", "some day", "2026-03-02", "2026-03-02T10:00:00"])
def test_the_time_of_a_memory_without_a_full_stamp(stamp: str) -> None:
    """Without a stamp that can be read a memory is as old as its file; one without zone is UTC."""
    body = _file("Done tomorrow.", MemoryType.PROJECT, modified=stamp)
    (edit,) = _pass(Shelf({"a.md": body})).edits
    assert b"Done tomorrow (2026-03-03)." in (edit.content or b"")


def test_a_head_that_cannot_be_edited_keeps_its_words() -> None:
    """Where the description cannot be changed in place the body still gets its dates."""
    content = b"---\n{name: x, description: by Thursday, type: project}\n---\n\nBy Thursday.\n"
    tree = Shelf({"a.md": content}, {"a.md": MONDAY})
    wanted = consolidate(tree, dates.resolve)
    assert [edit.content for edit in wanted.edits] == [
        content.replace(b"By Thursday.", b"By Thursday (2026-03-05).")
    ]
    assert _pass(Shelf({"a.md": content.replace(b"By Thursday.", b"Done.")})) == Wanted()


def test_dates_that_would_not_be_stable_stay() -> None:
    """A text that a second look would change again is left as it was."""
    assert absolute("a b", 0.0, lambda text, _: text + "!") == "a b"
    assert absolute("a ~~~\n~~~\na\n```\n~~~\na", 0.0, lambda text, _: text.replace("a", "b")) == (
        "b ~~~\n~~~\na\n```\n~~~\nb"
    )


def test_a_chain_of_merges_ends_in_what_stays() -> None:
    """Where three become one step by step, each is told to be in the one that is still there."""
    second = FACT.replace("an hour", "one hour")
    tree = Shelf(
        {
            "c.md": _file(f"{FACT} Ana knows."),
            "b.md": _file(f"{second} Ana knows. Bob too."),
            "a.md": _file(f"{second} Ana knows. Bob too. So does Cy, and often."),
        }
    )
    wanted = _pass(tree)
    assert {merge.into for merge in wanted.merges} == {"a.md"}
    assert len(wanted.merges) == 2


def test_a_change_set_has_its_bounds() -> None:
    """No pass wants more files than one change set may have, and the next one goes on."""
    dated = {
        f"p{n}.md": _file(f"Number {n} is due tomorrow.", MemoryType.PROJECT) for n in range(20)
    }
    tree = Shelf(dated | {f"m{n}.md": _file(FACT) for n in range(300)})
    wanted = consolidate(tree, dates.resolve)
    assert len(wanted.edits) <= limits.CHANGE_FILES
    assert len(wanted.merges) > 200
    rest = consolidate(tree.after(wanted), dates.resolve)
    assert len(wanted.merges) + len(rest.merges) == 299
    many = {
        f"p{n}.md": _file(f"Number {n} is due tomorrow.", MemoryType.PROJECT) for n in range(600)
    }
    assert len(consolidate(Shelf(many), dates.resolve).edits) == limits.CHANGE_FILES - 1


def _repeats(done: Wanted) -> Repeats:
    """Return what tells the edits of a pass that was taken back."""
    made = {(edit.path, edit.base, edit.content) for edit in done.edits}
    return lambda edits: {
        edit.path for edit in edits if (edit.path, edit.base, edit.content) in made
    }


def _never(_: Sequence[FileEdit]) -> set[str]:
    return set()


def test_what_was_taken_back_stays_so() -> None:
    """The same texts are not merged again; once one of them is another text, they may be."""
    tree = Shelf({"a.md": _file(f"{FACT} Ana knows."), "b.md": _file(f"{FACT} Bob too.")})
    done = fixed(tree, dates.resolve, _never)
    assert len(done.merges) == 1
    assert done.left == ()
    again = fixed(tree, dates.resolve, _repeats(done))
    assert (again.edits, again.merges) == ((), ())
    assert {left.path for left in again.left} == {"a.md", "b.md"}
    edited = {path: content + b"\nCy as well.\n" for path, content in tree.files.items()}
    assert fixed(Shelf(edited), dates.resolve, _repeats(done)).merges == done.merges


def test_what_was_refused_stays_so() -> None:
    """An edit that a person refused for this very text is not wanted again; the rest is."""
    tree = Shelf({name: _file(FACT) for name in ("a.md", "b.md", "c.md")})
    refused = {("b.md", sha256(tree.files["b.md"])), ("c.md", "another text")}
    wanted = fixed(tree, dates.resolve, _never, refused)
    assert wanted.merges == (Merge("a.md", "c.md"),)
    assert [left.path for left in wanted.left] == ["b.md"]


def test_an_index_that_was_taken_back_is_left_alone() -> None:
    """Of the index what it began with decides; it is told so that not even pointers are mended."""
    files = {"a.md": _file("By Thursday.", MemoryType.PROJECT), INDEX: b"- [A](a.md) - Thursday\n"}
    wanted = fixed(Shelf(files), dates.resolve, lambda edits: {e.path for e in edits} & {INDEX})
    assert [edit.path for edit in wanted.edits] == ["a.md"]
    assert [left.path for left in wanted.left] == [INDEX]


def test_rounds_have_an_end() -> None:
    """Where each way of doing it was taken back, nothing is done."""
    tree = Shelf({f"m{number}.md": _file(FACT) for number in range(20)})
    wanted = fixed(tree, dates.resolve, lambda edits: {edits[0].path})
    assert wanted.edits == ()
    assert wanted.left


def test_broken_heads_are_mended_and_nothing_else() -> None:
    """A head that only memd reads becomes one that all read; the time stays."""
    broken = b"---\nname: x\ndescription: a: b\ntype: user\n---\n\n*Body*\n"
    (edit,) = _pass(Shelf({"a.md": broken})).edits
    assert edit.content == broken.replace(b"a: b", b'"a: b"')
    assert edit.mtime_ns == int(MONDAY) * NS


def test_links_lead_to_what_took_in() -> None:
    """A link to a memory that was merged away leads to the one that it is in now."""
    tree = Shelf(
        {
            "a.md": _file(FACT),
            "b.md": _file(FACT),
            "c.md": _file("See [deploys](b.md) and [[b]] for it."),
            "d.md": _file("See [deploys](a.md) and [[a]] for it."),
        }
    )
    wanted = _pass(tree)
    assert set(wanted.merges) == {Merge("a.md", "b.md"), Merge("c.md", "d.md")}
    (edit, *_) = [edit for edit in wanted.edits if edit.content is not None]
    assert edit.path == "c.md"
    assert document.parse(edit.content or b"", "").body == "See [deploys](a.md) and [[a]] for it.\n"


def test_a_reason_with_a_link_is_no_other_reason() -> None:
    """A "Why" whose link is led on is not lost, and of two pointers the first one counts."""
    tree = Shelf({"m0.md": _file(FACT), "m1.md": _file(f"{FACT}\n\n**Why:** it broke [[m0]].")})
    assert _pass(tree).merges == (Merge("m1.md", "m0.md"),)
    lines = f"- [A](m0.md) — {FACT}\n- [A](m0.md) — {FACT} On Friday it is.\n".encode()
    assert _pass(Shelf(tree.files | {INDEX: lines})).merges == (Merge("m1.md", "m0.md"),)


def test_links_have_room_in_the_change_set() -> None:
    """Where so many links would have to be led on that a change set is full, both stay."""
    linked = {f"m{n}.md": _file(f"a{n} b{n} c{n} d{n} [[b]]") for n in range(limits.CHANGE_FILES)}
    assert _pass(Shelf(linked | {"a.md": _file(FACT), "b.md": _file(FACT)})).merges == ()


def test_a_rule_is_not_reworded_for_a_link() -> None:
    """What a person's rule links to keeps its name, however rich the other text is."""
    rule = _file("See [deploys](poor.md).", MemoryType.USER)
    tree = Shelf({"rich.md": _file(f"{FACT} Ana knows."), "poor.md": _file(FACT), "rule.md": rule})
    assert _pass(tree).merges == (Merge("poor.md", "rich.md"),)


def test_long_index_lines_are_cut_where_nothing_is_lost() -> None:
    """A hook that its memory says is shortened; one with words of its own stays."""
    lines = f"# By hand\n- [A](a.md) — {FACT}\n- [B](b.md) — {FACT} Cy\n- [Gone](gone.md)\n"
    other = _file("Something else that is said here.")
    wanted = _pass(Shelf({"a.md": _file(FACT), "b.md": other, INDEX: lines.encode()}))
    ((path, content),) = [(edit.path, (edit.content or b"").decode()) for edit in wanted.edits]
    assert path == INDEX
    head, first, second, *_ = content.splitlines()
    assert head == "# By hand"
    assert len(first) <= limits.INDEX_LINE_CHARACTERS
    assert first.endswith("…")
    assert second == lines.splitlines()[2]


def test_an_index_beyond_its_limits_never_grows() -> None:
    """Where very many memories have lines, a date that would make it longer is left out."""
    files = {f"m{n}.md": _file(f"Number {n}.", description=f"about {n}") for n in range(230)}
    files["p.md"] = _file("Due tomorrow.", MemoryType.PROJECT)
    lines = [f"- [M{number}](m{number}.md)" for number in range(230)]
    content = "\n".join([*lines, "- [P](p.md) — due tomorrow", ""]).encode()
    wanted = _pass(Shelf(files | {INDEX: content}))
    assert [edit.path for edit in wanted.edits] == ["p.md"]
    longer = content + f"- [M0](m0.md) — {FACT}\n".encode()
    files["m0.md"] = _file(FACT)
    longer = longer.replace(b"- [M0](m0.md)\n", b"", 1)
    edits = {e.path: e.content for e in _pass(Shelf(files | {INDEX: longer})).edits}
    assert len(edits[INDEX] or b"") < len(longer)


_SENTENCES = st.sampled_from(
    [
        FACT,
        FACT.replace("an hour", "one hour"),
        FACT.replace("an hour", "two hours"),
        FACT.upper(),
        "Ana knows.",
        "Bob leads. Never on his own.",
        "- item\n  - below",
        "Due Friday.",
        "# Head",
        "```\ncode by Friday\n```",
        "See [that](m1.md) and [[m2]].",
        "**Why:** it broke [[m0]].",
        "部署在周二评审之后。",
    ]
)
_BODIES = st.lists(_SENTENCES, max_size=4).map("\n\n".join)
_FILES = st.builds(
    _file,
    _BODIES,
    st.sampled_from([MemoryType.PROJECT, MemoryType.USER, MemoryType.REFERENCE]),
    st.sampled_from(["How deploys go out", "Who knows what by Friday", "note: a: b"]),
)
_BROKEN = st.tuples(_FILES, st.booleans()).map(
    lambda made: made[0].replace(b'"note: a: b"', b"note: a: b") if made[1] else made[0]
)
_INDEX_LINES = st.sampled_from(
    [
        "# By hand",
        "- [One](m1.md) — by Friday",
        f"- [Two](m2.md) — {FACT}",
        f"- [Two](m2.md) — {FACT} on Friday",
        "- [Gone](gone.md)",
        "See [[m0]].",
    ]
)
_INDICES = st.lists(_INDEX_LINES, max_size=5).map(lambda lines: "\n".join(lines).encode())


@settings(max_examples=60, deadline=None)
@given(st.lists(_BROKEN, max_size=6), st.none() | _INDICES)
def test_a_pass_is_safe_and_needed_once(files: list[bytes], content: bytes | None) -> None:
    """Whatever the memories and the index, the judge agrees and a second pass does nothing."""
    shelf = {f"m{number}.md": file for number, file in enumerate(files)}
    _pass(Shelf(shelf if content is None else shelf | {INDEX: content}))
