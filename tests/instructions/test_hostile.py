"""Trees that somebody made to do harm: nothing from outside loads, and the work is bounded."""

import os
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.instructions.disk import RealDisk
from memd.instructions.loading import NEVER
from memd.instructions.values import (
    FOLDER_ENTRIES,
    LISTED_FILES,
    LOADED_CHARACTERS,
    TOUCHED_FILES,
    DiskEntry,
    DiskText,
)
from tests.instructions.trees import InstructionTree, Seen, make_tree

_SECRETS = (
    ".ssh/id_ed25519",
    ".ssh/config",
    ".aws/credentials",
    ".gnupg/ring.txt",
    ".kube/config",
    ".env",
    ".env.local/x.md",
    ".netrc",
    ".config/key.PEM",
    "work/server.key",
    "work/id_rsa",
    ".docker/config.json",
    ".claude/.credentials.json",
    ".claude.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".config/gh/hosts.yml",
    ".config/memd/memd.toml",
    ".cargo/credentials.toml",
)
# Names of instruction files, through which links lead away.
_PLACES = (
    "CLAUDE.md",
    ".claude/CLAUDE.md",
    "CLAUDE.local.md",
    "AGENTS.md",
    ".claude/rules/a.md",
)


class CountingDisk(RealDisk):
    """A disk that counts how often each file is read from it and each question is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: Counter[str] = Counter()
        self.questions = 0

    def read(self, path: str) -> DiskText:
        """Count the question."""
        self.questions += 1
        return super().read(path)

    def entries(self, folder: str) -> tuple[DiskEntry, ...]:
        """Count the question."""
        self.questions += 1
        return super().entries(folder)

    def real(self, path: str) -> str:
        """Count the question."""
        self.questions += 1
        return super().real(path)

    def _fresh(self, real: str) -> DiskText:
        self.opened[real] += 1
        return super()._fresh(real)


@pytest.fixture
def disk() -> CountingDisk:
    """Make a disk that counts."""
    return CountingDisk()


@pytest.fixture
def tree(tmp_path: Path, disk: CountingDisk) -> InstructionTree:
    """Make an empty tree on a disk that counts."""
    return InstructionTree(make_tree(tmp_path).top, disk)


def _has_secret(seen: Seen) -> bool:
    return any("SECRET" in text for text in seen.resolution.texts.values())


@pytest.mark.parametrize("external", [False, True])
def test_credentials_are_never_read(
    tree: InstructionTree, disk: CountingDisk, *, external: bool
) -> None:
    """Neither includes nor links bring credentials, with the yes or without it."""
    for name in _SECRETS:
        tree.write(str(tree.home / name), "SECRET")
    names = " ".join(f"@~/{name} @l{number}.md" for number, name in enumerate(_SECRETS))
    for place in _PLACES[:4]:
        tree.write(place, f"{place} {names} @/proc/self/environ @/dev/zero")
    for number, name in enumerate(_SECRETS):
        (tree.repo / f"l{number}.md").symlink_to(tree.home / name)
    (tree.repo / ".claude/rules").symlink_to(tree.home / ".ssh")
    seen = tree.resolve(tree.request(external=external))
    assert seen.loaded
    assert not _has_secret(seen)
    assert not any(re.search(NEVER, path) for path in disk.opened)


@pytest.mark.parametrize("place", _PLACES)
def test_links_out_of_the_tree_wait_for_a_yes(place: str, tree: InstructionTree) -> None:
    """A link from the project to a file of the user's is not followed before they allow it."""
    tree.write(str(tree.home / "diary.md"), "SECRET")
    path = tree.repo / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(tree.home / "diary.md")
    tree.write("sub/file")
    for cwd in ("", "sub"):
        assert not _has_secret(tree.resolve(tree.request(cwd, ["file"])))


def test_folders_that_are_links_wait_for_a_yes(tree: InstructionTree) -> None:
    """A folder of rules that leads out of the project is named, and entered with the yes."""
    tree.write(str(tree.home / "shared/a.md"), "SECRET")
    tree.write("CLAUDE.md")
    (tree.repo / ".claude").mkdir()
    (tree.repo / ".claude/rules").symlink_to(tree.home / "shared")
    seen = tree.resolve()
    assert not _has_secret(seen)
    assert "leads out of the project" in seen.resolution.problems[0]
    assert _has_secret(tree.resolve(tree.request(external=True)))


def test_a_circle_of_folders_ends(tree: InstructionTree) -> None:
    """Links among folders of rules that lead back are walked once."""
    tree.write(".claude/rules/a/r.md")
    for name in ("b", "a/c"):
        (tree.repo / ".claude/rules" / name).symlink_to(tree.repo / ".claude/rules")
    assert tree.resolve().loaded == [".claude/rules/a/r.md"]


def test_what_is_no_text_has_a_reason(tree: InstructionTree) -> None:
    """A FIFO, a device and a file of 1 GiB are listed with the reason, and nobody waits."""
    for place in _PLACES[:3]:
        path = tree.repo / place
        path.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(path)
    (tree.repo / "AGENTS.md").symlink_to("/dev/zero")
    for place in _PLACES[4:]:
        path = tree.repo / place
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.truncate(1 << 30)
    seen = tree.resolve()
    assert seen.loaded == []
    assert seen.refused
    assert all(seen.refused.values())


def test_include_bombs_are_bounded(tree: InstructionTree, disk: CountingDisk) -> None:
    """Files that include all others are each read once, and the mentions that count are bounded."""
    count = 300
    everything = "".join(f"@f{number}.md\n" for number in range(count))
    for number in range(count):
        tree.write(f"f{number}.md", everything)
    tree.write("CLAUDE.md", everything)
    seen = tree.resolve()
    assert "20,000 mentions" in seen.resolution.problems[-1]
    assert len(seen.resolution.problems) == 21
    assert max(disk.opened.values()) == 1
    assert disk.questions < 2 * 3 * 20_000
    assert len(seen.loaded) == len(set(seen.loaded))


def test_thousands_of_rules_are_bounded(tree: InstructionTree, disk: CountingDisk) -> None:
    """Of more rules than are listed the first that is not is named, and no other is read."""
    folder = tree.repo / ".claude/rules"
    folder.mkdir(parents=True)
    for number in range(LISTED_FILES + 500):
        (folder / f"{number:05}.md").write_text(f"---\npaths: x{number}/**\n---\nText.")
    seen = tree.resolve(tree.request(touched=["x1/a", "x400/a", "x501/a"]))
    assert len(seen.resolution.files) == LISTED_FILES
    assert seen.loaded == [f".claude/rules/{number:05}.md" for number in (1, 400)]
    assert "500 globs" in seen.refused[".claude/rules/00501.md"]
    assert any(f"{LISTED_FILES:05}.md" in problem for problem in seen.resolution.problems)
    assert max(disk.opened.values()) <= 2
    assert len(disk.opened) == LISTED_FILES


def test_all_files_together_are_bounded(tree: InstructionTree) -> None:
    """Files that are too much together are listed with that reason."""
    for number in range(4):
        tree.write(f".claude/rules/{number}.md", "x" * (LOADED_CHARACTERS // 2 - number))
    seen = tree.resolve()
    assert sum(map(len, seen.resolution.texts.values())) <= LOADED_CHARACTERS
    assert [why.split(" have")[0] for why in seen.refused.values()] == ["the files before it"] * 2


def test_folders_and_touched_files_are_bounded(tree: InstructionTree) -> None:
    """Of too many entries, or too many touched files, the place is named where memd stopped."""
    folder = tree.repo / ".claude/rules"
    folder.mkdir(parents=True)
    for number in range(FOLDER_ENTRIES):
        (folder / f"{number}.txt").touch()
    tree.write(".claude/rules/later/rule.md")
    names = [f"{number}.ts" for number in range(TOUCHED_FILES + 2)]
    seen = tree.resolve(tree.request(touched=names))
    entries, touched = seen.resolution.problems
    assert "20,000 entries" in entries
    assert f"/{TOUCHED_FILES}.ts" in touched


def test_odd_names_are_listed_or_named(tree: InstructionTree) -> None:
    """Line ends and control characters of a name come in no sentence; no UTF-8 is named alone."""
    tree.write(".claude/rules/a\nb\x1b[31m.md", "x" * 40_001)
    (tree.repo / ".claude/rules" / os.fsdecode(b"\xff.md")).write_text("Text.")
    tree.write("CLAUDE.md", "@od\x07d.md @" + "y" * 5000)
    tree.write("od\x07d.md")
    seen = tree.resolve()
    assert seen.loaded == ["CLAUDE.md", "od\x07d.md", ".claude/rules/a\nb\x1b[31m.md"]
    assert len(seen.resolution.problems) == 2
    assert all(problem.isprintable() for problem in seen.resolution.problems)


_PIECES = st.sampled_from(
    [
        *(
            "@a.md ",
            "@b/c.md\n",
            "@~/.ssh/id_rsa ",
            "@../out.md ",
            "@/etc/hostname ",
            "@link/x.md ",
        ),
        *("---\n", "paths: **/*.ts\n", "- ", "`", "<!--", "-->", "x" * 50, "é", "\n", "\r\n", "\t"),
    ]
)
_BYTES = st.one_of(
    st.binary(max_size=40), st.lists(_PIECES, max_size=12).map(lambda each: "".join(each).encode())
)
_NAMES = st.sampled_from(
    [*_PLACES, "a.md", "b/c.md", "link/x.md", "sub/CLAUDE.md", "sub/AGENTS.md"]
)


@settings(max_examples=60)
@given(
    files=st.dictionaries(_NAMES, _BYTES, max_size=8),
    links=st.dictionaries(
        _NAMES, st.sampled_from([*_PLACES, "..", "a.md", "/etc", "b"]), max_size=3
    ),
    external=st.booleans(),
)
def test_any_tree_resolves(
    tmp_path_factory: pytest.TempPathFactory,
    files: dict[str, bytes],
    links: dict[str, str],
    *,
    external: bool,
) -> None:
    """Of any bytes and links each real file is listed once, loaded or with a reason."""
    tree = make_tree(tmp_path_factory.mktemp("tree"))
    tree.write(str(tree.home / ".ssh/id_rsa"), "SECRET")
    tree.write("../out.md", "OUT")
    for name, target in links.items():
        path = tree.repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
    for name, content in files.items():
        if not os.path.lexists(tree.repo / name) and "link" not in name:
            tree.write(name, content)
    seen = tree.resolve(tree.request(touched=["sub/a.ts"], external=external))
    listed = seen.resolution.files
    reals = [os.path.realpath(file.path) for file in listed]
    assert len(set(reals)) == len(reals)
    loaded = {file.path: file for file in listed if file.loaded}
    assert all(bool(file.why_not) != file.loaded for file in listed)
    assert set(seen.resolution.texts) <= set(loaded)
    assert all(len(text) == loaded[path].chars for path, text in seen.resolution.texts.items())
    assert not _has_secret(seen)
    assert not any(re.search(NEVER, path) for path in reals if path in loaded)
    if not external:
        assert not any("OUT" in text for text in seen.resolution.texts.values())
