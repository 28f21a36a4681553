"""Candidates beside the memories that are there."""

from datetime import UTC, datetime

import pytest

from memd.core.text import sha256
from memd.core.values import FileEdit, Header, MemoryFile, MemoryType
from memd.documents import document
from memd.documents.index import pointer_line
from memd.extract.candidates import Candidate
from memd.extract.merge import MergedDraft, finish, merge
from memd.extract.sameness import marked
from memd.extract.wording import word

AT = datetime(2026, 3, 4, 9, tzinfo=UTC).timestamp()
POLICY = "integration tests must hit a real database"


class Shelf:
    """A directory in memory."""

    def __init__(self) -> None:
        self.files: dict[str, MemoryFile] = {}
        self.lines: bytes | None = None

    def put(self, path: str, content: bytes) -> None:
        """Add a file and its line in the index."""
        parsed = document.parse(content, path)
        header = Header(
            path=path,
            name=parsed.name,
            description=parsed.description,
            type=parsed.type,
            mtime_ns=0,
            size=len(content),
            damaged=parsed.damaged,
            inode=1,
        )
        self.files[path] = MemoryFile(header, content, sha256(content), parsed.body)

    def headers(self) -> tuple[Header, ...]:
        """All memories."""
        return tuple(file.header for file in self.files.values())

    def read(self, path: str) -> MemoryFile | None:
        """One memory."""
        return self.files.get(path)

    def index(self) -> bytes | None:
        """Return the index."""
        return self.lines

    def take(self, edits: tuple[FileEdit, ...]) -> None:
        """Write what a draft wants."""
        for edit in edits:
            if edit.path == "MEMORY.md":
                self.lines = edit.content
            elif edit.content is not None:
                self.put(edit.path, edit.content)


def said(
    content: str, kind: MemoryType = MemoryType.FEEDBACK, why: str = "", language: str = "en"
) -> Candidate:
    """Return a candidate."""
    return Candidate(kind, content, why, "", language, AT, marked(content))


def run(shelf: Shelf, *candidates: Candidate) -> MergedDraft:
    """Merge and write."""
    merged = merge(candidates, shelf, session="s2", at=AT)
    shelf.take(merged.draft.edits)
    return merged


def body_of(shelf: Shelf, path: str) -> str:
    """Return a body."""
    return shelf.files[path].body


@pytest.fixture
def shelf() -> Shelf:
    """Return a directory that holds the test policy and one foreign memory."""
    shelf = Shelf()
    run(shelf, said(POLICY, why="mocked tests passed and the migration broke"))
    other = document.new("x", "Unrelated words", MemoryType.USER, "Y.", session="", modified="m")
    shelf.put("user_x.md", other)
    (path,) = (path for path in shelf.files if path.startswith("feedback"))
    shelf.lines = (pointer_line(path, word(said(POLICY)).pointer) + "\n").encode()
    return shelf


PATH = "feedback_integration-tests-must-hit-real-database.md"


def test_something_new_is_added() -> None:
    """A new memory is a valid file with a line for the index, based on there being none."""
    shelf = Shelf()
    merged = run(shelf, said("always sign commits"))
    (edit,) = merged.draft.edits
    assert (edit.base, merged.saved, merged.updated) == ("", (edit.path,), ())
    assert edit.content is not None
    assert document.validate(edit.content, edit.path).metadata["originSessionId"] == "s2"
    assert set(merged.draft.pointers) == {edit.path}


def test_what_is_known_changes_nothing(shelf: Shelf) -> None:
    """Saying the same again, or a part of it, gives no edit at all."""
    assert run(shelf, said(POLICY)) == MergedDraft(merge((), shelf, session="", at=AT).draft)
    assert not run(shelf, said("integration tests hit the real database")).draft.edits


def test_a_near_duplicate_updates(shelf: Shelf) -> None:
    """Saying more about the same rewrites the short memory and keeps the older reason."""
    merged = run(shelf, said("integration tests must always run against a real database in CI"))
    assert (merged.saved, merged.updated) == ((), (PATH,))
    body = body_of(shelf, PATH)
    assert body.startswith("Integration tests must always run against a real database in CI.")
    assert "**Why:** mocked tests passed and the migration broke." in body
    assert shelf.files[PATH].header.description.endswith("in CI")
    assert b"must always run" in (shelf.lines or b"")


def test_the_opposite_replaces_rule_and_reason(shelf: Shelf) -> None:
    """A contradiction updates the older memory; its reason goes with it."""
    merged = run(shelf, said("integration tests must never hit a real database"))
    assert merged.updated == (PATH,)
    assert "mocked tests passed" not in body_of(shelf, PATH)


def test_a_new_date_is_a_correction_when_it_says_so() -> None:
    """Another freeze is another memory; one that was moved is the same on another day."""
    shelf = Shelf()
    freeze = "we're freezing merges after {}"
    run(shelf, said(freeze.format("Thursday (2026-03-05)"), MemoryType.PROJECT))
    other = run(shelf, said(freeze.format("Monday (2026-03-09)"), MemoryType.PROJECT))
    assert (len(other.saved), other.updated) == (1, ())
    moved = said(f"actually {freeze.format('Friday (2026-03-06)')}", MemoryType.PROJECT)
    merged = run(shelf, moved)
    assert (merged.saved, len(merged.updated)) == ((), 1)
    assert "2026-03-06" in body_of(shelf, merged.updated[0])
    assert not run(shelf, moved).draft.edits


def test_the_same_words_of_another_week_are_another_memory() -> None:
    """Only the date behind the words differs: two freezes."""
    shelf = Shelf()
    freeze = "we're freezing all merges next week (week of {})"
    run(shelf, said(freeze.format("2026-03-09"), MemoryType.PROJECT))
    merged = run(shelf, said(freeze.format("2026-03-16"), MemoryType.PROJECT))
    assert (len(merged.saved), merged.updated) == (1, ())


def test_an_elaborate_memory_keeps_every_line(shelf: Shelf) -> None:
    """What somebody worked on gets a dated paragraph, and its unknown keys stay."""
    content = shelf.files[PATH].content.replace(
        b"node_type: memory", b"node_type: memory\n  custom: kept"
    )
    shelf.put(PATH, content + b"\n- one detail\n- another\n")
    before = body_of(shelf, PATH)
    run(shelf, said("integration tests must never hit a real database"))
    after = shelf.files[PATH].content.decode()
    assert before.rstrip() in after
    assert "**Update 2026-03-04:** Integration tests must never" in after
    assert "custom: kept" in after


def test_another_type_is_another_memory(shelf: Shelf) -> None:
    """Only memories of the same type are compared."""
    merged = run(shelf, said(POLICY, MemoryType.PROJECT))
    assert (len(merged.saved), merged.updated) == (1, ())


def test_a_damaged_memory_is_never_touched(shelf: Shelf) -> None:
    """A memory that does not parse stays as it is; the candidate becomes a new one."""
    content = b"---\nname: [\ntype: feedback\ndescription: " + POLICY.encode() + b"\nmore\n\nX\n"
    shelf.files.clear()
    shelf.put("feedback_old.md", content)
    assert shelf.headers()[0].damaged
    merged = run(shelf, said(POLICY))
    assert merged.saved == (PATH,)
    assert shelf.files["feedback_old.md"].content == content


def test_a_file_whose_body_cannot_be_told_apart_is_left_alone(shelf: Shelf) -> None:
    """Foreign bytes in a body: nothing is rewritten."""
    shelf.put(PATH, shelf.files[PATH].content + b"caf\xe9\n")
    assert not run(shelf, said("integration tests must never hit a real database")).draft.edits


def test_a_huge_memory_is_not_made_longer(shelf: Shelf) -> None:
    """A memory near the limit stays as it is."""
    shelf.put(PATH, shelf.files[PATH].content + b"\n# More\n" + b"word " * 8000)
    assert not run(shelf, said("integration tests must never hit a real database")).draft.edits


def test_a_head_that_cannot_be_edited_is_left_alone(shelf: Shelf) -> None:
    """Metadata in a form that is not ours is not rewritten."""
    head = "---\nname: tests\ndescription: " + POLICY + "\nmetadata: {type: feedback}\n---\n\n"
    content = f"{head}{POLICY}\n".encode()
    shelf.put(PATH, content)
    merged = run(shelf, said("integration tests must never hit a real database"))
    assert shelf.files[PATH].content == content
    assert not merged.draft.edits


def test_a_memory_that_vanished_is_none(shelf: Shelf) -> None:
    """A file that is gone when it is read does not count as near."""

    class Gone(Shelf):
        def read(self, path: str) -> MemoryFile | None:  # noqa: ARG002 - nothing is there
            return None

    gone = Gone()
    gone.files = dict(shelf.files)
    assert merge((said(POLICY),), gone, session="", at=AT).saved != ()


def test_candidates_of_one_run_meet_each_other() -> None:
    """Twice the same in one conversation is one memory; a later word wins."""
    shelf = Shelf()
    merged = run(shelf, said(POLICY), said(POLICY), said(f"{POLICY} on the CI server"))
    assert (merged.saved, merged.updated) == ((PATH,), ())
    assert "on the CI server" in body_of(shelf, PATH)
    assert merged.draft.pointers[PATH].hook.endswith("on the…")


def test_a_hook_of_the_persons_own_stays(shelf: Shelf) -> None:
    """The index line is only rewritten where memd wrote it."""
    own = f"- [Mine]({PATH}) — my own words\n".encode()
    shelf.lines = own
    merged = run(shelf, said("integration tests must never hit a real database"))
    assert merged.updated == (PATH,)
    assert shelf.lines == own


def test_without_an_index_there_is_no_index_edit(shelf: Shelf) -> None:
    """An update without an index leaves the index to the store."""
    shelf.lines = None
    merged = run(shelf, said("integration tests must never hit a real database"))
    assert [edit.path for edit in merged.draft.edits] == [PATH]


def test_chinese_memories_are_compared_too() -> None:
    """The same rule in other words is found in Chinese as well."""
    shelf = Shelf()
    run(shelf, said("集成测试必须连接真实数据库", language="zh"))
    assert not run(shelf, said("集成测试必须连接真实数据库", language="zh")).draft.edits
    merged = run(shelf, said("集成测试不要连接真实数据库", language="zh"))
    assert len(merged.updated) == 1


def test_a_reason_is_learnt_later(shelf: Shelf) -> None:
    """The same words with a reason that the memory lacks bring it the reason, once."""
    rule = "always sign commits with a key"
    run(shelf, said(rule))
    merged = run(shelf, said(rule, why="the auditors ask for it"))
    (path,) = merged.updated
    assert "**Why:** the auditors ask for it." in body_of(shelf, path)
    assert not run(shelf, said(rule, why="the auditors ask for it")).draft.edits


def test_a_body_of_somebodys_own_is_never_rewritten(shelf: Shelf) -> None:
    """A second paragraph that memd did not write stays; the same correction again is nothing."""
    words = b"Integration tests must hit a real database.\n\nKim knows which one.\n"
    head = shelf.files[PATH].content.split(b"\n\n", 1)[0]
    shelf.put(PATH, head + b"\n\n" + words)
    opposite = said("integration tests must never hit a real database", why="it is slow")
    run(shelf, opposite)
    assert "Kim knows which one." in body_of(shelf, PATH)
    assert "**Update 2026-03-04:** Integration tests must never" in body_of(shelf, PATH)
    assert not run(shelf, opposite).draft.edits
    back = run(shelf, said(POLICY))
    assert back.updated == (PATH,)
    assert body_of(shelf, PATH).count("**Update") == 2
    assert not run(shelf, said(POLICY)).draft.edits


def test_what_speaks_of_something_else_is_not_read(shelf: Shelf) -> None:
    """Of many memories only those that may be restated are opened."""
    opened: list[str] = []

    class Watched(Shelf):
        def read(self, path: str) -> MemoryFile | None:
            opened.append(path)
            return super().read(path)

    watched = Watched()
    watched.files = shelf.files
    run(watched, said("unit tests must hit the cache"), said("always sign commits"))
    assert opened == []
    assert run(watched, said(POLICY)).saved == ()
    assert opened == [PATH]


def test_of_one_run_the_last_word_is_left() -> None:
    """What a later candidate corrects or repeats is gone before anything is written."""
    tabs, spaces = said("use tabs for indentation"), said("use spaces for indentation instead")
    assert finish((tabs, spaces, said(POLICY))) == (spaces, said(POLICY))
    assert finish((said(POLICY), said(POLICY, why="it broke"))) == (said(POLICY, why="it broke"),)
    assert finish((said(POLICY, why="old"), said(POLICY, why="new")))[0].why == "old"
    more = said(f"{POLICY} on the CI server")
    assert finish((said(POLICY, why="it broke"), more))[0].why == "it broke"
    assert finish((said(POLICY, why="old"), said(f"{POLICY} on the CI server", why="new")))[
        0
    ] == said(f"{POLICY} on the CI server", why="new")


def test_the_same_candidates_again_change_nothing() -> None:
    """A plan that ran before a crash leaves nothing to do for the one after it."""
    shelf = Shelf()
    candidates = finish(
        (
            said(POLICY, why="mocks lied"),
            said("we deploy to Europe on Tuesday", MemoryType.PROJECT),
            said("actually we deploy to Europe on Friday", MemoryType.PROJECT),
            said("集成测试必须连接真实数据库", language="zh"),
            said("集成测试不要连接真实数据库", language="zh"),
        )
    )
    assert len(run(shelf, *candidates).saved) == 3
    assert not run(shelf, *candidates).draft.edits
