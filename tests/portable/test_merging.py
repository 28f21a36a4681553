"""What becomes of each file of an import beside what is there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base import limits
from memd.base.names import INDEX, TEAM_INDEX
from memd.portable.marking import marked
from memd.portable.merging import plan_import
from memd.portable.plan import ImportPlan, Incoming
from memd.portable.values import ReadFile
from memd.store.memory import parse
from tests.portable.trees import Desk, memory

DAY = 86_400 * 10**9
NOW = 20_000 * DAY
SECRET = b"the token is ghp" + b"_16C7e42F292c6912E7710c838347Ae178B4a\n"


def brought(path: str, content: bytes, mtime_ns: int = 3, **more: bool) -> ReadFile:
    """Return a file of an archive of memd."""
    return ReadFile(path, content, mtime_ns, **{"exact": True} | more)


def plan(
    desk: Desk,
    *files: ReadFile,
    joined: bool = False,
) -> ImportPlan:
    """Return what an import of these files makes of a desk."""
    return plan_import(Incoming(files, NOW, desk.was_imported, joined), desk)


def actions(made: ImportPlan) -> dict[str, str]:
    """Return what becomes of each path."""
    return {file.edit.path: file.action for file in made.files}


def mark(content: bytes) -> bytes:
    """Return a memory with the mark of an import."""
    result = marked(content, "a.md")
    assert result is not None
    return result


A, B, C = (memory(body) for body in ("We ship on Mondays.", "The port is 8080.", "Ana owns it."))


def test_a_new_file_comes_with_its_mark_and_its_time() -> None:
    """A memory that nobody has is written with the mark of an import and its old time."""
    desk = Desk()
    made = plan(desk, brought("a.md", A, 77))
    (file,) = made.files
    assert (file.edit.content, file.edit.base, file.edit.mtime_ns) == (mark(A), "", 77)
    assert parse(mark(A), "").origin == "import"


def test_no_time_of_the_future_makes_a_memory_the_newest_for_good() -> None:
    """A time that is far ahead of the clock is cut; none stays none."""
    made = plan(Desk(), brought("a.md", A, 10 * NOW), brought("b.md", B, 0))
    assert [file.edit.mtime_ns for file in made.files] == [NOW + DAY, None]


@pytest.mark.parametrize("live", [A, mark(A)])
def test_what_is_there_is_nothing_new(live: bytes) -> None:
    """The same bytes, or the same with the mark, are left alone."""
    made = plan(Desk({"a.md": live}), brought("a.md", A))
    assert (made.files, made.same, made.left_out) == ((), 1, ())


def test_two_texts_of_one_name_both_stay() -> None:
    """A name that another text has gets a number; the numbered one is found again."""
    desk = Desk({"a.md": A})
    made = plan(desk, brought("a.md", B))
    assert actions(made) == {"a-2.md": "beside"}
    desk.apply(made)
    assert actions(plan(desk, brought("a.md", C))) == {"a-3.md": "beside"}
    assert plan(desk, brought("a.md", B)).files == ()


def test_what_an_import_wrote_is_updated_by_the_next_one() -> None:
    """While nobody has changed the file, another text takes its place; then both stay."""
    desk = Desk()
    desk.apply(plan(desk, brought("a.md", A, 50)))
    (file,) = plan(desk, brought("a.md", B, 60)).files
    assert (file.action, file.edit.content) == ("updated", mark(B))
    desk.save("a.md", desk.files["a.md"] + b"mine\n")
    assert actions(plan(desk, brought("a.md", B, 60))) == {"a-2.md": "beside"}


FACT = "The staging database listens on port 5433 behind the bastion."
MORE = f"{FACT}\n\nIts owner is Priya Raman, who rotates the certificates in May."


REFUSED = [
    ("../a.md", A, "no memory"),
    ("a\\b.md", A, "elsewhere"),
    ("x\n.md", A, "control"),
    ("logs/a.md", A, "no memory"),
    ("B.md", A, "case"),
    ("b.md/c.md", A, "folder"),
    ("secret.md", A + SECRET, "secret"),
    ("large.md", b"x" * (limits.READ_BYTES + 1), "bytes"),
    ("claims.md", b"---\nmetadata: {origin: user, x: &a 1, y: *a}\ntype: feedback\n---\n", ""),
]


@pytest.mark.parametrize(("path", "content", "why"), REFUSED)
def test_one_refused_file_leaves_the_rest(path: str, content: bytes, why: str) -> None:
    """What may not come is listed with its reason, and everything else comes."""
    desk = Desk({"b.md": B})
    made = plan(desk, brought(path, content), brought("c.md", C))
    if why:
        assert actions(made) == {"c.md": "created"}
        assert [left.name for left in made.left_out] == [path]
        assert why in made.left_out[0].reason
    for file in made.files:
        assert parse(file.edit.content or b"", "").origin in ("", "import")


def test_other_tools_bring_no_odd_names_and_sizes() -> None:
    """Only archives of memd and memory folders have names and sizes of a person's own."""
    files = [brought("an odd name.md", A), brought("big.md", A + b"x" * limits.MEMORY_BYTES)]
    assert len(plan(Desk(), *files).files) == 2
    others = [brought(file.path, file.content, exact=False) for file in files]
    made = plan(Desk(), *others)
    assert (made.files, len(made.left_out)) == ((), 2)


@pytest.mark.parametrize("origin", ["user", "assistant", "team", "outside", "agent", "import"])
@pytest.mark.parametrize(
    "form",
    [
        "---\nname: a\ndescription: b\nmetadata:\n  type: feedback\n  origin: {}\n---\n\nx\n",
        "---\nname: a\ntype: feedback\norigin: {}\n---\nx\n",
        "---\nname: a\nmetadata: {{type: feedback, origin: {}}}\n---\nx\n",
        "---\nmetadata: {{type: feedback}}\norigin: {}\n---\nx\n",
        "---\norigin: {}\norigin: user\ntype: feedback\nmetadata:\n- x\n---\nx\n",
        "---\ntype: feedback\norigin: {}\nno end\n",
        "x without a head, origin: {}\n",
        "\ufeff---\r\ntype: feedback\r\norigin: {}\r\n---\r\nx\r\n",
    ],
)
def test_whatever_a_memory_says_of_itself_it_comes_as_an_import(form: str, origin: str) -> None:
    """No form of a head makes an import a person's words; the less trusted stays so."""
    made = plan(Desk(), brought("a.md", form.format(origin).encode()))
    for file in made.files:
        read = parse(file.edit.content or b"", "")
        assert read.origin in ("", "import", "outside", "agent")
        claim = parse(form.format(origin).encode(), "").origin
        assert read.origin == claim or claim not in ("outside", "agent", "import")


def test_a_team_that_decides_itself_gets_nothing() -> None:
    """Where the project joined a team, an archive's team memories are listed and stay out."""
    files = (brought("team/a.md", A), brought(TEAM_INDEX, b"Ours\n"), brought("b.md", B))
    assert set(actions(plan(Desk(), *files))) == {"team/a.md", TEAM_INDEX, "b.md"}
    made = plan(Desk(), *files, joined=True)
    assert (set(actions(made)), len(made.left_out)) == ({"b.md"}, 2)
    team = plan(Desk(), brought("team/a.md", memory("x", origin="team"))).files[0]
    assert parse(team.edit.content or b"", "").origin == "import"


def test_an_index_comes_whole_where_there_is_none() -> None:
    """Into an empty directory the index comes whole, and its own lines say whence they are."""
    lines = b"# Mine\n- [Alpha](a.md)\nA line of my own\n"
    made = plan(Desk(), brought("a.md", A), brought(INDEX, lines, 8))
    assert made.left_out == ()
    index = next(file for file in made.files if file.edit.path == INDEX)
    told = b"# Mine (outside)\n- [Alpha](a.md)\nA line of my own (outside)\n"
    assert (index.edit.content, index.edit.mtime_ns, index.edit.base) == (told, 8, "")
    secret = plan(Desk(), brought("a.md", A), brought(INDEX, lines + SECRET))
    assert (set(actions(secret)), len(secret.left_out)) == ({"a.md"}, 1)


def test_an_index_brings_its_own_lines_once() -> None:
    """Beside an index that is there, a person's lines and the hooks of new memories come, once."""
    desk = Desk({"b.md": B, INDEX: b"Here\n- [B](b.md)\n"})
    files = (brought("a.md", A), brought(INDEX, b"There\n- [Alpha](a.md) \xe2\x80\x94 hook\n"))
    made = plan(desk, *files)
    assert made.pointers["a.md"].title == "Alpha"
    desk.apply(made)
    assert all(line in desk.files[INDEX] for line in (b"Here", b"There", b"(b.md)", b"(a.md)"))
    assert plan(desk, *files).files == ()


def test_one_import_is_bounded() -> None:
    """Ten thousand memories come, and what is beyond is listed."""
    files = [brought(f"m{number}.md", b"") for number in range(limits.IMPORT_FILES + 2)]
    made = plan(Desk(), *files)
    assert (len(made.files), len(made.left_out)) == (limits.IMPORT_FILES, 2)


PATHS = st.sampled_from(["a.md", "b.md", "a-2.md", "x/a.md", "team/a.md", "A.md", "an odd.md"])
BODIES = st.lists(st.sampled_from(["One.", "Two.", "Three 3.", "Not four."]), max_size=4)
TEXTS = BODIES.map(lambda lines: memory("\n\n".join(lines))) | st.sampled_from(
    [b"", b"no head\n", b"---\nbroken: [\n---\nx\n", b"\xff\xfe", mark(A), A]
)
TREES = st.dictionaries(PATHS, TEXTS, max_size=5)


@given(live=TREES, archives=st.lists(TREES, min_size=1, max_size=3), edits=TREES)
def test_importing_twice_is_importing_once(
    live: dict[str, bytes], archives: list[dict[str, bytes]], edits: dict[str, bytes]
) -> None:
    """Whatever is there and was imported, the same archive again changes nothing."""
    desk = Desk(live)
    for number, archive in enumerate(archives):
        files = [brought(path, content, 3 + number) for path, content in archive.items()]
        desk.apply(plan(desk, *files))
        assert plan(desk, *files).files == ()
        for path, content in edits.items():
            if path in desk.files:
                desk.save(path, desk.files[path] + content[-4:])


@given(live=TREES, archive=TREES)
def test_nothing_that_is_there_is_lost(live: dict[str, bytes], archive: dict[str, bytes]) -> None:
    """A file that somebody wrote stays as it is; only an index gets more lines."""
    desk = Desk(live)
    desk.apply(plan(desk, *(brought(path, content) for path, content in archive.items())))
    assert {path: desk.files[path] for path in live} == live
