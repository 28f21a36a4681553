"""Which paths a model may name."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.agent import places
from memd.agent.places import MEMORY, PROJECT, TRANSCRIPTS, Root
from memd.agent.refusals import NotReachableError
from tests.corpora import folder

ROOTS = (
    Root(MEMORY, "/home/u/.claude/projects/p/memory", "/data/claude/projects/p/memory"),
    Root(PROJECT, "/home/u/p", "/home/u/p"),
    Root(TRANSCRIPTS, "/home/u/.claude/projects/p", "/data/claude/projects/p"),
)


@pytest.mark.parametrize(
    ("path", "kind", "name"),
    [
        ("a.md", MEMORY, "a.md"),
        ("./sub//a.md", MEMORY, "sub/a.md"),
        (".", MEMORY, ""),
        ("/data/claude/projects/p/memory/a.md", MEMORY, "a.md"),
        ("/home/u/.claude/projects/p/memory", MEMORY, ""),
        ("/home/u/.claude/projects/p/s.jsonl", TRANSCRIPTS, "s.jsonl"),
        ("/home/u/p/src/x.py", PROJECT, "src/x.py"),
        ("credentials.md", MEMORY, "credentials.md"),
    ],
)
def test_paths_below_the_roots_are_found(path: str, kind: str, name: str) -> None:
    """A path is relative to the memory directory, or below the longest root that it begins with."""
    results = places.locate(path, ROOTS)
    assert (results.root.kind, results.name) == (kind, name)
    assert results.path == (f"{results.root.real}/{name}" if name else results.root.real)


@pytest.mark.parametrize(
    "path",
    ["", "/", "/etc/passwd", "/home/u/p-evil/x", "/home/u", "..", "a/../b", "/home/u/p/../x", "~/x",
     "a\\b", "a\0b", "a\nb", "x\ud800", ".hidden", "sub/.x/a", "/home/u/p/.env", "x" * 5000,
     "/home/u/p/credentials.json", "/home/u/p/deploy/ID_RSA", "/home/u/p/x.PEM",
     "/home/u/p/secrets/x", "/home/u/p/prod.env", "/home/u/p/terraform.tfstate.backup"],
)  # fmt: skip
def test_everything_else_is_refused(path: str) -> None:
    """What lies outside, goes up, is hidden or holds credentials is refused in words."""
    with pytest.raises(NotReachableError, match="cannot be read: "):
        places.locate(path, ROOTS)


@given(st.text(alphabet="./ab~\\\0\u2025\uff0e%", max_size=30))
def test_what_is_found_lies_below(path: str) -> None:
    """Whatever a path is made of, its name below the root has plain visible parts alone."""
    try:
        results = places.locate(path, ROOTS)
    except NotReachableError:
        return
    assert all(
        part and not part.startswith(".") for part in results.name.split("/") if results.name
    )


def test_published_traversals_stay_below() -> None:
    """No payload of the corpus leads out, appended to a root or alone."""
    packed = folder("paths") / "all_traversals.txt.gz"
    payloads = gzip.decompress(packed.read_bytes()).decode("utf-8", "replace").split("\n")
    assert len(payloads) > 20_000
    for payload in payloads[::7]:
        for path in (payload, f"{ROOTS[1].path}/{payload}"):
            try:
                results = places.locate(path, ROOTS)
            except NotReachableError:
                continue
            assert ".." not in results.name.split("/")


def test_the_whole_system_is_no_root() -> None:
    """A project at the top of the disk, or in the kernel's own folders, is not read at all."""
    assert places.may_be_root("/home/u/p")
    assert not any(map(places.may_be_root, ("/", "//", "", "p", "/proc/1", "/sys", "/dev/shm/x")))
