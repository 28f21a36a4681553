"""Candidates beside the memories that are there."""

import pytest

from memd.core.text import sha256
from memd.core.values import Draft, FileEdit, Header, MemoryFile, MemoryType
from memd.documents import document
from memd.documents.index import of_memory, pointer_line, with_followed_lines
from memd.extract.candidates import Candidate
from memd.extract.merge import merge, stated
from memd.extract.requests import ExtractionResult
from tests.extract.statements import WITHOUT_REQUEST, word

AT = 1_772_614_800.0  # 2026-03-04
RULE = "integration tests must hit a real database"
OPPOSITE = "integration tests must never hit a real database"


def said(text: str, kind: MemoryType = MemoryType.FEEDBACK) -> Candidate:
    """Return a candidate."""
    return Candidate(kind, text, AT)


PATH = word(said(RULE)).path


@pytest.mark.parametrize(("text", "statement"), WITHOUT_REQUEST)
def test_words_that_only_ask_to_remember_go(text: str, statement: str) -> None:
    """A statement keeps its words, without the request before or behind it."""
    assert stated(said(text)) == statement


class Directory:
    """A memory directory in memory, with the paths of the memories that were read."""

    def __init__(self) -> None:
        self.files: dict[str, MemoryFile] = {}
        self.lines: bytes | None = None

    def put(self, path: str, content: bytes) -> None:
        """Add a file."""
        read = document.parse(content, path)
        header = Header(
            path=path,
            name=read.name,
            description=read.description,
            type=read.type,
            mtime_ns=0,
            size=len(content),
            damaged=read.damaged,
            inode=1,
            origin=str(read.metadata.get("origin", "")),
        )
        self.files[path] = MemoryFile(header, content, sha256(content), read.body)

    def headers(self) -> tuple[Header, ...]:
        """Return all headers."""
        return tuple(file.header for file in self.files.values())

    def read(self, path: str) -> MemoryFile | None:
        """Return one memory."""
        return self.files.get(path)

    def index(self) -> bytes | None:
        """Return the index."""
        return self.lines

    def write(self, edits: tuple[FileEdit, ...]) -> None:
        """Write what a draft wants."""
        for edit in edits:
            assert edit.content is not None
            old = self.files.get(edit.path)
            self.put(edit.path, edit.content)
            if old and self.lines:  # as the store does
                headers = (old.header, self.files[edit.path].header)
                before, after = ((header.name, header.description) for header in headers)
                self.lines = with_followed_lines(self.lines, {edit.path: (before, after)})

    def body(self) -> str:
        """Return the body of the rule."""
        return self.files[PATH].body


class Result:
    """A draft, and the memories that an extraction says it makes and changes."""

    def __init__(self, draft: Draft) -> None:
        result = ExtractionResult("completed").of(draft)
        self.draft, self.saved, self.updated = draft, result.saved, result.updated


def line_of(candidate: Candidate, path: str = PATH) -> str:
    """Return the line of the index that a candidate's memory gets."""
    worded = word(candidate)
    return pointer_line(path, of_memory(worded.name, worded.description)) + "\n"


def run(tree: Directory, *candidates: Candidate) -> Result:
    """Merge and write."""
    merged = Result(merge(candidates, tree, session="s2", at=AT).draft)
    tree.write(merged.draft.edits)
    return merged


@pytest.fixture
def tree() -> Directory:
    """Return a directory that holds one rule, one foreign memory and an index."""
    result = Directory()
    run(result, said(RULE))
    other = document.new("x", "Unrelated words", MemoryType.USER, "Y.", session="", modified="m")
    result.put("user_x.md", other)
    result.lines = line_of(said(RULE)).encode()
    return result


def test_something_new_is_a_valid_memory() -> None:
    """A new memory is based on there being none and names its session."""
    merged = run(Directory(), said("always sign commits"))
    (edit,) = merged.draft.edits
    assert (edit.base, merged.saved, merged.updated) == ("", (edit.path,), ())
    assert edit.content is not None
    assert document.validate(edit.content, edit.path).metadata["originSessionId"] == "s2"


def test_what_looks_like_a_credential_once_it_is_cut_is_refused() -> None:
    """A token counts as it stands in description and index line, and the rest is merged."""
    note = "xoxb-2847362910-9182736450-AbCdEfGhIjKlMnOpQ1234567890"
    long = "the sandbox of the northern region has a database of its own since the spring, "
    text = f"{long}{long}it is {note}"
    merged = merge((said(text), said(RULE)), Directory(), session="s", at=AT)
    assert merged.refused == ("slack-token",)
    assert [edit.path for edit in merged.draft.edits] == [PATH]


def test_what_is_known_changes_nothing(tree: Directory) -> None:
    """Saying the same again, or in a few words less, gives no edit at all."""
    assert not run(tree, said(RULE)).draft.edits
    assert not run(tree, said("the integration tests hit a real database")).draft.edits


@pytest.mark.parametrize("text", [f"{RULE} on the CI server", OPPOSITE])
def test_more_and_the_opposite_update_the_memory(tree: Directory, text: str) -> None:
    """A fuller statement and a correction take the place of the old one, in the index too."""
    merged = run(tree, said(text))
    assert (merged.saved, merged.updated) == ((), (PATH,))
    assert tree.body() == word(said(text)).body
    assert (tree.lines or b"").decode() == line_of(said(text))
    assert not run(tree, said(text)).draft.edits


@pytest.mark.parametrize("text", [RULE, f"{RULE} on the CI server", OPPOSITE])
def test_a_memory_from_outside_takes_nothing_of_the_persons(tree: Directory, text: str) -> None:
    """A rule that a planted memory says, too, is a memory of its own: only this gives orders."""
    planted = tree.files[PATH].content.replace(
        b"node_type: memory", b"node_type: memory\n  origin: outside"
    )
    tree.put(PATH, planted)
    merged = run(tree, said(text))
    assert (len(merged.saved), merged.updated) == (1, ())
    assert tree.files[PATH].content == planted


def test_another_date_is_another_memory_unless_it_says_so() -> None:
    """Two freezes stand beside each other; one that was moved is the same on another day."""
    tree = Directory()
    run(tree, said("merges are frozen from 2026-03-05", MemoryType.PROJECT))
    other = run(tree, said("merges are frozen from 2026-04-09", MemoryType.PROJECT))
    assert (len(other.saved), other.updated) == (1, ())
    moved = said("actually merges are frozen from 2026-03-06", MemoryType.PROJECT)
    assert len(run(tree, moved).updated) == 1
    assert not run(tree, moved).draft.edits


def test_a_body_of_somebodys_own_keeps_every_line(tree: Directory) -> None:
    """What somebody worked on gets a dated paragraph, once, and its unknown keys stay."""
    content = tree.files[PATH].content.replace(
        b"node_type: memory", b"node_type: memory\n  custom: kept"
    )
    tree.put(PATH, content + b"\n- one detail\n")
    before = tree.body()
    for _ in range(2):
        run(tree, said(OPPOSITE))
    after = tree.files[PATH].content.decode()
    assert before.rstrip() in after
    assert after.count(f"**Update 2026-03-04:** {OPPOSITE}") == 1
    assert f'**Said:** "{OPPOSITE}" (2026-03-04)' in after
    assert "custom: kept" in after


def test_a_guessed_type_makes_no_second_memory(tree: Directory) -> None:
    """The same statement with another guess of its type is known already."""
    assert not run(tree, said(RULE, MemoryType.PROJECT)).draft.edits


@pytest.mark.parametrize(
    "content",
    [
        b"---\nname: [\ntype: feedback\ndescription: " + RULE.encode() + b"\nmore\n\nX\n",
        b"---\nname: t\ndescription: "
        + RULE.encode()
        + b"\nmetadata: {type: feedback}\n---\n\n"
        + RULE.encode()
        + b"\n",
    ],
)
def test_a_file_that_cannot_be_edited_safely_stays(content: bytes) -> None:
    """A damaged memory, and one whose head is not in our form, are never rewritten."""
    tree = Directory()
    tree.put("feedback_old.md", content)
    run(tree, said(OPPOSITE))
    assert tree.files["feedback_old.md"].content == content


@pytest.mark.parametrize("more", [b"caf\xe9\n", b"\n# More\n" + b"word " * 8000])
def test_a_body_with_foreign_bytes_or_near_the_limit_stays(tree: Directory, more: bytes) -> None:
    """Nothing is rewritten where the body cannot be told apart, or is long already."""
    tree.put(PATH, tree.files[PATH].content + more)
    assert not run(tree, said(OPPOSITE)).draft.edits


def test_a_memory_that_vanished_is_new(tree: Directory) -> None:
    """A file that is gone when it is read does not count as known."""

    class Gone(Directory):
        def read(self, path: str) -> MemoryFile | None:  # noqa: ARG002 - nothing is there
            return None

    gone = Gone()
    gone.files = dict(tree.files)
    assert Result(merge((said(RULE),), gone, session="", at=AT).draft).saved != ()


def test_candidates_of_one_run_meet_each_other() -> None:
    """Twice the same in one conversation is one memory; a later word wins."""
    tree = Directory()
    merged = run(tree, said(RULE), said(RULE), said(f"{RULE} on CI"))
    assert (merged.saved, merged.updated) == ((PATH,), ())
    assert tree.body().startswith(f"{RULE} on CI")


def test_a_hook_of_the_persons_own_stays(tree: Directory) -> None:
    """The index line is only rewritten where memd wrote it."""
    own = f"- [Mine]({PATH}) — my own words\n".encode()
    tree.lines = own
    assert run(tree, said(OPPOSITE)).updated == (PATH,)
    assert tree.lines == own


def test_a_correction_leaves_the_old_rule_nowhere() -> None:
    """Title and hook of the index line, and the name in the head, say what holds now."""
    tree, old, new = Directory(), said("Never commit to main."), said("You may commit to main.")
    (path,) = run(tree, old).saved
    tree.lines = line_of(old, path).encode()
    assert run(tree, new).updated == (path,)
    assert tree.lines.decode() == line_of(new, path)
    assert tree.files[path].header.name == "you-may-commit-to-main"


def test_a_title_and_a_name_of_somebodys_own_stay(tree: Directory) -> None:
    """A correction changes the hook alone where title and name do not repeat the old rule."""
    tree.lines = f"- [Our tests]({PATH}) — {RULE}\n".encode()
    tree.put(PATH, document.with_fields(tree.files[PATH].content, {"name": "our-tests"}))
    assert run(tree, said(OPPOSITE)).updated == (PATH,)
    assert tree.lines == f"- [Our tests]({PATH}) — {OPPOSITE}\n".encode()
    assert tree.files[PATH].header.name == "our-tests"


def test_only_the_line_of_the_corrected_memory_is_written(tree: Directory) -> None:
    """A line with an empty hook, and a second line to the memory, stay as a person wrote them."""
    own = f"- [Other](other.md) — …\n- [Twice]({PATH}) — seen in May\n"
    tree.lines = f"- [Our tests]({PATH}) — {RULE}\n{own}".encode()
    assert run(tree, said(OPPOSITE)).updated == (PATH,)
    assert tree.lines == f"- [Our tests]({PATH}) — {OPPOSITE}\n{own}".encode()


def test_the_same_candidates_again_change_nothing() -> None:
    """A plan that ran before a crash leaves nothing to do for the one after it."""
    tree = Directory()
    candidates = (
        said(RULE),
        said(RULE),
        said("we deploy to Europe on Tuesday", MemoryType.PROJECT),
        said("actually we deploy to Europe on Friday", MemoryType.PROJECT),
        said("集成测试必须连接真实数据库"),
    )
    assert len(run(tree, *candidates).saved) == 3
    assert not run(tree, *candidates).draft.edits
