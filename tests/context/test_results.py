"""Where results are stored, under which names, and what of them is refused."""

import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.context import results
from memd.context.errors import StoredResultTooLargeError
from memd.context.preview import stored_preview
from memd.context.values import StoredResult, StoredSizes
from memd.core import limits
from memd.core.errors import MemdError
from memd.core.values import Project
from memd.files.directory import UnwrittenFileError
from memd.projects.project import SessionRefusedError
from memd.testing.faults import Countdown, FaultyDisk
from tests.context import storing
from tests.context.storing import EMPTY, TEXT, names

FULL = ("create", "write", "fsync", "sync_folder")
FAULTS = {
    "EIO once": (errno.EIO, False, ()),
    "EIO for ever": (errno.EIO, True, ()),
    "ENOSPC": (errno.ENOSPC, True, FULL),
    "EROFS": (errno.EROFS, True, ()),
    "EMFILE": (errno.EMFILE, True, ("create", "sync_folder")),
}


def project(base: Path) -> Project:
    """Return a project whose sessions have their folders below a folder."""
    return Project(
        cwd="/p", root="/p", memory_dir="/m/notes", source="", transcripts=str(base), enabled=True
    )


@pytest.fixture
def place(tmp_path: Path) -> results.ResultsPlace:
    """Return where the results of a session lie."""
    return results.place(project(tmp_path), "s-1")


def test_a_result_comes_back_to_the_byte(place: results.ResultsPlace) -> None:
    """The file has the result's bytes, under the call's id, for its owner alone."""
    text = TEXT + "\r\n\ufeff\x00 end"
    stored = results.store(place, "toolu_1", text, used=EMPTY)
    assert stored.path == f"{place.base}/-p/s-1/tool-results/toolu_1.txt"
    assert Path(stored.path).read_bytes() == text.encode()
    assert (stored.size, stored.content) == (len(text.encode()), stored_preview(text, stored.path))
    assert stat.S_IMODE(os.stat(stored.path).st_mode) == 0o600
    for folder in (place.folder, os.path.dirname(place.folder)):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700


@given(st.text(max_size=200), st.text(max_size=50), st.text(max_size=50))
def test_every_id_has_files_of_its_own(tool_use_id: str, text: str, other: str) -> None:
    """Whatever an id holds, its results lie in the folder, one file for each text."""
    with TemporaryDirectory() as base:
        place = results.place(project(Path(base)), "s")
        stored = [results.store(place, tool_use_id, t, used=EMPTY) for t in (text, other, text)]
        for result, its in zip(stored, (text, other, text), strict=True):
            assert os.path.dirname(result.path) == place.folder
            assert Path(result.path).read_bytes() == its.encode()
        assert stored[0] == stored[2]
        assert len(names(place)) == len({text, other})


@pytest.mark.parametrize("tool_use_id", ["", "../x", "a/b", "a.b", "é", "x" * 129, "\ud800", "a\n"])
def test_an_id_that_is_no_name_is_hashed(tool_use_id: str, place: results.ResultsPlace) -> None:
    """An id with other characters, none or too many gives its hash to the file."""
    stored = results.store(place, tool_use_id, TEXT, used=EMPTY)
    assert len(os.path.basename(stored.path)) == len(".txt") + 64
    assert names(place) == [os.path.basename(stored.path)]


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        (json.dumps({"a": [1, None]}), ".json"),
        ("[]", ".json"),
        ("[" * 100_000, ".txt"),
        ("{'a': 1}", ".txt"),
        ("plain", ".txt"),
        ("", ".txt"),
        (f"[{' ' * 5_000_000}]", ".txt"),
    ],
    ids=["object", "list", "deep", "no json", "text", "empty", "huge"],
)
def test_json_is_known_by_its_name(text: str, suffix: str, place: results.ResultsPlace) -> None:
    """A result that parses as JSON is a .json file, unless it is too large to be parsed."""
    assert results.store(place, "a", text, used=EMPTY).path.endswith(suffix)


@pytest.mark.parametrize("beside", ["text", "link", "dangling", "folder", "pipe", "linked twice"])
def test_what_stands_at_a_name_stays(
    beside: str, place: results.ResultsPlace, tmp_path: Path
) -> None:
    """A result takes another name where anything but its own bytes stands, and changes nothing."""
    os.makedirs(place.folder)
    path, elsewhere = Path(place.folder, "a.txt"), tmp_path / "elsewhere"
    elsewhere.write_text(TEXT)
    match beside:
        case "text":
            path.write_text("other")
        case "link":
            path.symlink_to(elsewhere)
        case "dangling":
            path.symlink_to(tmp_path / "nowhere")
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "linked twice":
            os.link(elsewhere, path)
    before = path.lstat()
    stored = results.store(place, "a", TEXT, used=EMPTY)
    assert stored.path != str(path)
    assert stored.path.startswith(f"{place.folder}/a-")
    assert Path(stored.path).read_text() == elsewhere.read_text() == TEXT
    assert path.lstat() == before
    os.unlink(stored.path)
    Path(stored.path).write_text("taken too")
    with pytest.raises(UnwrittenFileError):
        results.store(place, "a", TEXT, used=EMPTY)


def test_the_same_bytes_are_the_same_file(place: results.ResultsPlace) -> None:
    """A file that Claude Code has stored stands for a result of the same bytes, untouched."""
    os.makedirs(place.folder)
    path = Path(place.folder, "a.txt")
    path.write_text(TEXT)
    before = path.stat()
    countdown = Countdown()
    stored = results.store(place, "a", TEXT, used=EMPTY, disk=FaultyDisk(countdown))
    assert (stored.path, names(place)) == (str(path), ["a.txt"])
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert countdown.names == ["fsync", "close", "sync_folder"]


@pytest.mark.parametrize("part", ["", "-p", "-p/s-1", "-p/s-1/tool-results"])
def test_no_folder_of_results_is_a_link(
    part: str, place: results.ResultsPlace, tmp_path: Path
) -> None:
    """Nothing is stored where a folder below the base is a link; the base may be reached by one."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    linked = Path(f"{place.base}/base") if not part else Path(place.base, part)
    linked.parent.mkdir(parents=True, exist_ok=True)
    linked.symlink_to(elsewhere)
    if not part:
        stored = results.store(results.ResultsPlace(str(linked), "-p", "s"), "a", TEXT, used=EMPTY)
        assert Path(stored.path).read_text() == TEXT
        return
    with pytest.raises(UnwrittenFileError):
        results.store(place, "a", TEXT, used=EMPTY)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize(
    ("used", "text"),
    [
        (StoredSizes(limits.SESSION_RESULT_BYTES - 3, 0), "four"),
        (StoredSizes(0, limits.STORED_BYTES - 3), "four"),
        (EMPTY, "x" * (limits.RESULT_BYTES + 1)),
    ],
    ids=["session", "all", "result"],
)
def test_quotas_refuse_what_is_beyond_them(
    used: StoredSizes, text: str, place: results.ResultsPlace
) -> None:
    """A byte too much is refused by the limit's name, and a byte less is stored."""
    with pytest.raises(StoredResultTooLargeError) as raised:
        results.store(place, "a", text, used=used)
    assert str(raised.value.facts["limit"]) in raised.value.sentence
    assert names(place) == []
    assert results.store(place, "a", text[1:], used=used).size == len(text) - 1


def test_half_of_a_pair_is_not_stored(place: results.ResultsPlace) -> None:
    """A text that no file can hold is refused before anything is written."""
    with pytest.raises(UnwrittenFileError):
        results.store(place, "a", "x\ud800", used=EMPTY)
    assert names(place) == []


@pytest.mark.parametrize("session", ["", "..", "a/b", "memory", "notes", "é", "x" * 129, "a\n"])
def test_a_session_that_is_no_name_is_refused(session: str, tmp_path: Path) -> None:
    """A session's id is a plain name, and not that of the folder with memories."""
    with pytest.raises(SessionRefusedError):
        results.place(project(tmp_path), session)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_disk_that_fails_stores_nothing(fault: str, place: results.ResultsPlace) -> None:
    """Whatever call fails, the failure is named, nothing stays, and the next write works."""
    code, ever, only = FAULTS[fault]
    number, failed = 0, 0
    while True:
        number += 1
        countdown = Countdown(number, code, ever=ever, only=only)
        disk = FaultyDisk(countdown, portion=5_000)
        stored = stored_or_error(place, disk)
        if isinstance(stored, UnwrittenFileError):
            failed += 1
            assert os.strerror(code) in stored.sentence
            assert names(place) == [] or (ever and not only)  # nothing can be removed then
        else:
            assert Path(stored.path).read_text() == TEXT
        again = results.store(place, "a", TEXT, used=EMPTY)
        assert Path(again.path).read_text() == TEXT
        assert names(place) == ["a.txt"]
        if not countdown.reached:
            break
        results.remove(place.base, [again.path])
    assert failed > 1


def stored_or_error(
    place: results.ResultsPlace, disk: FaultyDisk
) -> StoredResult | UnwrittenFileError:
    """Return what storing gives, or how it fails."""
    try:
        return results.store(place, "a", TEXT, used=EMPTY, disk=disk)
    except UnwrittenFileError as error:
        return error


def test_a_result_is_on_the_disk_before_it_is_told(place: results.ResultsPlace) -> None:
    """The file is flushed before it takes its name, and its folder before that is answered."""
    countdown = Countdown()
    results.store(place, "a", "text", used=EMPTY, disk=FaultyDisk(countdown))
    assert countdown.names == [
        *("create", "set_mode", "write", "fsync", "close", "move", "sync_folder", "unlink")
    ]


def test_a_killed_writer_loses_no_byte(tmp_path: Path) -> None:
    """Killed before any call, what has a name is whole, and the result is stored and read next."""
    done = subprocess.run(
        [sys.executable, storing.__file__, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    kills = [json.loads(line) for line in done.stdout.splitlines()]
    for kill in kills:
        other = {"a.txt": storing.OTHER} if kill["beside"] == "other" else {}
        stored = {
            name: text for name, text in kill["texts"].items() if (name, text) not in other.items()
        }
        assert other.items() <= kill["texts"].items()
        assert set(stored.values()) <= {TEXT}
        assert kill["again"] == TEXT
        assert len(kill["left"]) == len(other) + 1
    calls = {(kill["beside"], kill["before"]) for kill in kills}
    assert {("nothing", call) for call in ("mkdir", "write", "fsync", "move", "unlink")} < calls
    assert {("same", "fsync"), ("other", "move"), ("nothing", "")} < calls


def test_only_stored_results_are_removed(place: results.ResultsPlace, tmp_path: Path) -> None:
    """Other files stay, wherever a path leads; what a crash left goes, and folders empty then."""
    other = results.ResultsPlace(place.base, "-p", "t")
    one, two = (results.store(place, name, TEXT, used=EMPTY).path for name in ("a", "b"))
    three = results.store(other, "c", TEXT, used=EMPTY).path
    theirs, left = Path(place.folder, "hook.log"), Path(place.folder, ".memd-0123456789abcdef.tmp")
    secret = tmp_path / "-p" / "secret.txt"
    for path in (theirs, left, secret):
        path.write_text("x")
    (tmp_path / "linked").symlink_to(tmp_path / "-p")
    wrong = (
        str(theirs),
        str(secret),
        f"{place.folder}/../../secret.txt",
        f"{place.base}/linked/s-1/tool-results/b.txt",
        f"{place.folder}/..",
        "b.txt",
        "",
    )
    results.remove(place.base, (one, *wrong))
    assert names(place) == ["b.txt", "hook.log"]
    assert secret.exists()
    theirs.unlink()
    for _ in range(2):
        results.remove(place.base, (one, two))
        assert sorted(os.listdir(f"{place.base}/-p")) == ["secret.txt", "t"]
    results.remove(place.base, (two, three))
    assert sorted(os.listdir(f"{place.base}/-p")) == ["secret.txt"]


@pytest.mark.parametrize("number", [1, 2])
def test_a_disk_that_refuses_to_remove_is_named(number: int, place: results.ResultsPlace) -> None:
    """Where a result cannot be removed, or nobody knows whether it is, the caller learns it."""
    path = results.store(place, "a", TEXT, used=EMPTY).path
    with pytest.raises(UnwrittenFileError):
        results.remove(place.base, (path,), FaultyDisk(Countdown(number, errno.EROFS)))
    results.remove(place.base, (path,))
    assert names(place) == []


def test_a_client_s_file_gives_its_text(tmp_path: Path) -> None:
    """A text is what its bytes say in UTF-8; other bytes become the sign for that."""
    path = tmp_path / "result"
    path.write_bytes("\ufeffé行\r\n".encode() + b"\xff end")
    assert results.from_file(str(path)) == "\ufeffé行\r\n\ufffd end"


@pytest.mark.parametrize(
    "kind", ["link", "hard link", "folder", "pipe", "missing", "relative", "nul", "empty", "large"]
)
def test_a_file_that_may_be_another_s_is_refused(kind: str, tmp_path: Path) -> None:
    """A link, a file with several names, what is no file, and one that is too large are refused."""
    path, plain = tmp_path / "result", tmp_path / "plain"
    plain.write_text("x")
    match kind:
        case "link":
            path.symlink_to(plain)
        case "hard link":
            os.link(plain, path)
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "large":
            path.touch()
            os.truncate(path, limits.RESULT_BYTES + 1)
    name = {"relative": "plain", "nul": f"{plain}\0", "empty": ""}.get(kind, str(path))
    with pytest.raises(MemdError):
        results.from_file(name)
