"""Where notes lie, and how they are read, replaced, listed and removed."""

import os
import stat
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest

from memd.core.errors import MemdError
from memd.core.values import Project
from memd.files.directory import FileTooLargeError, PathRefusedError, UnwrittenFileError
from memd.notes import errors, files
from memd.notes.sections import NotesCursor
from memd.projects.project import SessionRefusedError

TEMPLATE = resources.files("memd.notes").joinpath("templates/template.md").read_text("utf-8")
OLD = f"{TEMPLATE}{NotesCursor('s-1', 'm-1', 10, 'local', '2026-03-03T09:00:00Z').rendered()}\n"
NEW = OLD.replace("m-1", "m-2")
SESSION = "s-1"


def project(base: Path) -> Project:
    """Return a project whose notes lie below a folder."""
    return Project(
        cwd="/p/sub", root="/p", memory_dir="", source="", transcripts=str(base), enabled=True
    )


def own(base: Path, key: str = "-p-sub", session: str = SESSION) -> Path:
    """Return where memd's notes of a session lie."""
    return base / key / session / "session-memory" / "summary.md"


def foreign(base: Path, key: str = "-p-sub", session: str = SESSION) -> Path:
    """Return where another program's notes of a session lie."""
    return base / key / ".claude" / "session-memory" / f"{session}.md"


def put(path: Path, text: str = OLD) -> Path:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_notes_are_what_was_written_last(tmp_path: Path) -> None:
    """Notes come back with their hash, and only who knows it replaces them."""
    place = files.place(project(tmp_path), SESSION)
    assert files.read(place) is None
    first = files.replace(place, OLD, "")
    notes = files.read(place)
    assert notes is not None
    assert (notes.text, notes.hash, notes.foreign, notes.path) == (OLD, first, False, place.path)
    second = files.replace(place, NEW, first)
    for expected in ("", first):
        with pytest.raises(errors.NotesConflictError):
            files.replace(place, OLD, expected)
    notes = files.read(place)
    assert notes is not None
    assert (notes.hash, notes.text) == (second, NEW)
    assert os.listdir(os.path.dirname(place.path)) == ["summary.md"]


def test_only_their_owner_reads_notes(tmp_path: Path) -> None:
    """Folders that memd makes are 0700, and the file is 0600 also where it was open before."""
    place = files.place(project(tmp_path / "base"), SESSION)
    first = files.replace(place, OLD, "")
    os.chmod(place.path, 0o644)
    files.replace(place, NEW, first)
    assert stat.S_IMODE(os.stat(place.path).st_mode) == 0o600
    folder = os.path.dirname(place.path)
    while folder != str(tmp_path):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        folder = os.path.dirname(folder)


@pytest.mark.parametrize(
    "session",
    [
        "",
        "a/b",
        "..",
        ".",
        "../../x",
        "x" * 300,
        "x" * 129,
        "a\0b",
        "a b",
        "é",
        "a\n",
        "\ud800",
        "memory",
    ],
)
def test_a_session_s_id_is_a_plain_name(session: str, tmp_path: Path) -> None:
    """An id that could lead elsewhere, or be no file's name, is refused before any file is."""
    with pytest.raises(SessionRefusedError) as raised:
        files.place(project(tmp_path), session, f"{tmp_path}/-p/{session}.jsonl")
    assert raised.value.sentence.isprintable()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "session", ["a", "x" * 128, "-", "_", "7f3a1c9e-0b2d-4e5f-8a6b-1c2d3e4f5a6b"]
)
def test_ids_of_clients_are_taken(session: str, tmp_path: Path) -> None:
    """An id of letters, digits, dashes and underscores has notes of its own."""
    place = files.place(project(tmp_path), session)
    files.replace(place, OLD, "")
    assert own(tmp_path, session=session).read_text() == OLD


@pytest.mark.parametrize(
    ("transcript", "key"),
    [
        ("", "-p-sub"),
        ("{base}/-else/s-1.jsonl", "-else"),
        ("{base}/link/s-1.jsonl", "-else"),
        ("{base}/-else/../-else/s-1.jsonl", "-else"),
        ("{base}/-else/other.jsonl", "-p-sub"),
        ("{base}/-else/deep/s-1.jsonl", "-p-sub"),
        ("{base}/s-1.jsonl", "-p-sub"),
        ("/elsewhere/-else/s-1.jsonl", "-p-sub"),
        ("relative/s-1.jsonl", "-p-sub"),
        ("{base}/-el\0se/s-1.jsonl", "-p-sub"),
        ("{base}/-el\ud800se/s-1.jsonl", "-p-sub"),
        ("{base}/-p/s-1.jsonl", "-p"),
    ],
)
def test_new_notes_lie_beside_the_transcript(transcript: str, key: str, tmp_path: Path) -> None:
    """The transcript's folder is the one where it lies as clients put it, else that of cwd."""
    (tmp_path / "-else" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "-else")
    place = files.place(project(tmp_path), SESSION, transcript.format(base=tmp_path))
    assert place.path == str(own(tmp_path, key))


@pytest.mark.parametrize("key", ["-p-sub", "-p", "-else"])
def test_notes_that_are_there_are_the_notes(key: str, tmp_path: Path) -> None:
    """Notes under the key of cwd, root or transcript are found, and replaced where they lie."""
    path = put(own(tmp_path, key))
    place = files.place(project(tmp_path), SESSION, f"{tmp_path}/-else/{SESSION}.jsonl")
    notes = files.read(place)
    assert notes is not None
    assert notes.path == str(path)
    files.replace(place, NEW, notes.hash)
    assert path.read_text() == NEW
    assert sum(name == "summary.md" for _, _, names in os.walk(tmp_path) for name in names) == 1


@pytest.mark.parametrize(
    ("where", "text"),
    [
        (foreign, OLD),
        (foreign, "# Mine\n"),
        (own, TEMPLATE),
        (own, ""),
        (own, f"{OLD}a line that the client put below\n"),
    ],
)
def test_a_client_s_own_notes_are_read_and_never_written(
    where: Callable[[Path], Path], text: str, tmp_path: Path
) -> None:
    """Without memd's cursor, or at the other place, a file stays to the byte."""
    path = put(where(tmp_path), text)
    place = files.place(project(tmp_path), SESSION)
    notes = files.read(place)
    assert notes is not None
    assert (notes.foreign, notes.text, notes.path) == (True, text, str(path))
    for call in (lambda: files.replace(place, NEW, notes.hash), lambda: files.remove(place)):
        with pytest.raises(errors.ForeignNotesError):
            call()
    assert files.prune(str(tmp_path), 1e12) == 0
    assert path.read_text() == text


def test_memd_s_notes_come_before_the_client_s(tmp_path: Path) -> None:
    """The other place is looked at where there are no notes of memd under any key."""
    put(foreign(tmp_path), "# Theirs\n")
    path = put(own(tmp_path, "-p"))
    notes = files.read(files.place(project(tmp_path), SESSION))
    assert notes is not None
    assert notes.path == str(path)
    assert [found.path for found in files.newest_notes(str(tmp_path), ["-p"], 9)] == [str(path)]


def test_notes_that_are_no_text_are_not_written_over(tmp_path: Path) -> None:
    """What is not UTF-8 is read as far as possible and left as it is."""
    put(own(tmp_path)).write_bytes(b"# A\n\xff\xfe\n" + OLD.encode())
    notes = files.read(files.place(project(tmp_path), SESSION))
    assert notes is not None
    assert notes.foreign
    assert notes.text.startswith("# A\n\ufffd")


@pytest.mark.parametrize("kind", ["link", "hard link", "fifo", "folder", "linked folder", "large"])
def test_what_is_no_plain_file_is_neither_read_nor_written(kind: str, tmp_path: Path) -> None:
    """A link, a file of several names, a FIFO, a folder and a huge file are refused and stay."""
    base, other = tmp_path / "base", put(tmp_path / "other.md")
    path = own(base)
    path.parent.mkdir(parents=True)
    if kind == "link":
        path.symlink_to(other)
    elif kind == "hard link":
        path.hardlink_to(other)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "linked folder":
        path.parent.rmdir()
        put(tmp_path / "there" / "summary.md")
        path.parent.symlink_to(tmp_path / "there")
    else:
        path.write_text(OLD * 1_000)
    place = files.place(project(base), SESSION)
    refused = FileTooLargeError if kind == "large" else PathRefusedError
    before = os.lstat(path)
    for call in (
        lambda: files.read(place),
        lambda: files.replace(place, NEW, ""),
        lambda: files.remove(place),
    ):
        with pytest.raises(refused):
            call()
    assert files.newest_notes(str(base), None, 9) == ()
    assert os.lstat(path) == before
    assert other.read_text() == OLD


def test_notes_have_a_size(tmp_path: Path) -> None:
    """What is too large is not written, and the old notes stay."""
    place = files.place(project(tmp_path), SESSION)
    first = files.replace(place, OLD, "")
    with pytest.raises(errors.NotesTooLargeError):
        files.replace(place, "x" * (files.NOTES_BYTES + 1), first)
    assert own(tmp_path).read_text() == OLD


def test_half_a_character_is_written_as_a_question_mark(tmp_path: Path) -> None:
    """A lone surrogate, which a client's JSON may hold, keeps no notes from being written."""
    place = files.place(project(tmp_path), SESSION)
    first = files.replace(place, f"\ud800{OLD}", "")
    notes = files.read(place)
    assert notes is not None
    assert (notes.hash, notes.text[:2]) == (first, "?#")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """Where something else stands in the place of a folder, the reason is given."""
    (tmp_path / "-p-sub").write_text("a file")
    place = files.place(project(tmp_path), SESSION)
    with pytest.raises(MemdError) as raised:
        files.replace(place, OLD, "")
    assert "-p-sub" in raised.value.sentence
    with pytest.raises(UnwrittenFileError):
        files.replace(files.place(project(tmp_path / "-p-sub"), SESSION), OLD, "")


def test_notes_are_listed_newest_first(tmp_path: Path) -> None:
    """Sessions of some keys or of all come by their last change, up to a limit."""
    places = [own(tmp_path, "-p", "a"), own(tmp_path, "-q", "b"), foreign(tmp_path, "-p", "c")]
    for age, path in enumerate(places):
        put(path)
        os.utime(path, (1_000 - age, 1_000 - age))
    put(tmp_path / "-p" / "no session" / "session-memory" / "summary.md", "# by somebody\n")
    os.utime(tmp_path / "-p" / "no session" / "session-memory" / "summary.md", (1, 1))
    put(tmp_path / "-p" / "a.jsonl", "{}")
    listed = files.newest_notes(str(tmp_path), None, 3)
    assert [(found.session, found.mtime) for found in listed] == [
        ("a", 1e3),
        ("b", 999),
        ("c", 998),
    ]
    assert [found.session for found in files.newest_notes(str(tmp_path), ["-p"], 2)] == ["a", "c"]
    assert [
        found.session for found in files.newest_notes(str(tmp_path), ["-q", "[-]p", "../x"], 2)
    ] == ["b"]
    assert files.newest_notes(str(tmp_path / "none"), None, 9) == ()


def test_what_is_removed_leaves_nothing_of_memd(tmp_path: Path) -> None:
    """Notes go with their empty folders, and what else lies there stays."""
    place = files.place(project(tmp_path), SESSION)
    files.replace(place, OLD, "")
    put(own(tmp_path).parent / ".memd-0123456789abcdef.tmp", "left by a crash")
    assert files.remove(place)
    assert not files.remove(place)
    assert list(tmp_path.iterdir()) == []
    files.replace(place, OLD, "")
    title = put(tmp_path / "-p-sub" / SESSION / "custom-title.json", "{}")
    assert files.remove(place)
    assert list(title.parent.iterdir()) == [title]


def test_old_notes_are_pruned(tmp_path: Path) -> None:
    """Notes of memd that did not change since a time go; younger and foreign ones stay."""
    old, young = own(tmp_path, "-p", "old"), own(tmp_path, "-p", "young")
    other, theirs = own(tmp_path, "-q", "other"), foreign(tmp_path, "-q", "old")
    for path, at in ((old, 10), (young, 20), (other, 10), (theirs, 10)):
        put(path)
        os.utime(path, (at, at))
    assert files.prune(str(tmp_path), 20) == 2
    assert [path.exists() for path in (old, young, other, theirs)] == [False, True, False, True]
    assert not old.parent.parent.exists()
    assert files.prune(str(tmp_path / "none"), 20) == 0
    left = [put(path.with_name(".memd-0123456789abcdef.tmp")) for path in (old, young)]
    for path in left:
        os.utime(path, (10, 10))
    assert files.prune(str(tmp_path), 20) == 0
    assert [path.exists() for path in (*left, old.parent.parent, young)] == [
        False,
        True,
        False,
        True,
    ]


def test_the_bytes_of_notes_are_those_on_the_disk(tmp_path: Path) -> None:
    """Notes come once a session, memd's first; what cannot be read is told, odd names are none."""
    folders = [str(tmp_path / "-p-sub"), str(tmp_path / "-p")]
    put(foreign(tmp_path), "another program's")
    put(own(tmp_path, "-p"), "memd's\r\n").write_bytes(b"memd's\r\n\xff")
    os.utime(own(tmp_path, "-p"), ns=(1, 1_234_567_890))
    put(foreign(tmp_path, session="s-2"), "foreign")
    put(own(tmp_path, session="odd name"), "x")
    linked = put(own(tmp_path, session="s-3"))
    os.link(linked, tmp_path / "second name")
    large = put(own(tmp_path, session="s-4"), "x" * (files.NOTES_BYTES + 1))
    assert large.stat().st_size > files.NOTES_BYTES
    found = {each.session: each for each in files.contents(folders)}
    assert found.keys() == {"s-1", "s-2", "s-3", "s-4"}
    assert (found["s-1"].content, found["s-1"].mtime_ns) == (b"memd's\r\n\xff", 1_234_567_890)
    assert found["s-2"].content == b"foreign"
    assert "hard links" in found["s-3"].problem
    assert found["s-4"].problem
    assert (found["s-3"].content, found["s-4"].content) == (b"", b"")
    assert files.contents([f"{tmp_path}/nowhere/-p"]) == ()
