"""What a dream did to the memories, and whether it may stand."""

import pytest

from memd.core.values import FileEdit, MemoryType
from memd.dream.judge import judge
from memd.dream.verdict import Merge, Removal, Verdict, Wanted
from memd.store.document import new

WHY = "Tests hit a real database.\n\n**Why:** mocks passed and the migration broke."


def _file(
    body: str, kind: MemoryType = MemoryType.REFERENCE, description: str = "About it"
) -> bytes:
    return new("a-name", description, kind, body, session="", modified="2026-01-02T00:00:00Z")


def _gone(path: str) -> FileEdit:
    return FileEdit(path, None, "hash")


def test_what_happened_is_computed() -> None:
    """A memory is changed, merged into one that says all it said, or removed for a reason."""
    before = {name: _file(f"Fact {name}.") for name in ("a.md", "b.md", "c.md", "d.md")}
    both = _file("Fact a.md.\n\nFact b.md.")
    wanted = Wanted(
        (FileEdit("a.md", both), _gone("b.md"), _gone("c.md"), FileEdit("MEMORY.md", b"")),
        (Merge("a.md", "b.md"),),
        {"c.md": "out of date"},
    )
    assert judge(before, 9, wanted) == Verdict(
        changed=("a.md",),
        merged=(Merge("a.md", "b.md"),),
        removed=(Removal("c.md", "out of date"),),
    )
    assert judge({}, 9, Wanted((FileEdit("new.md", both, ""),))).changed == ("new.md",)


@pytest.mark.parametrize(
    ("body", "description", "merged"),
    [
        ("Known one. Known two.", "About it", True),
        ("Known two", "Known one.", True),
        ("Known one. Unheard.", "About it", False),
        ("Known one.", "About something else", False),
        ("Known one.", "one about two", True),
        ("Due Friday", "About it", True),
        ("Due Friday (2026-03-06)", "About it", True),
        ("Due Friday (2026-03-13)", "About it", False),
    ],
)
def test_a_claimed_merge_is_checked(body: str, description: str, *, merged: bool) -> None:
    """A merge counts only when each sentence is there and every word of the description is."""
    before = {
        "a.md": _file("Known one.\n\n- known two\n\nDue Friday (2026-03-06)."),
        "b.md": _file(body, description=description),
    }
    verdict = judge(before, 9, Wanted((_gone("b.md"),), (Merge("a.md", "b.md"),)))
    assert bool(verdict.merged) is merged
    assert bool(verdict.problems) is not merged


def test_a_merge_into_what_is_gone_is_none() -> None:
    """A memory cannot go into one that is removed as well."""
    before = {"a.md": _file("Same."), "b.md": _file("Same.")}
    wanted = Wanted((_gone("a.md"), _gone("b.md")), (Merge("a.md", "b.md"), Merge("b.md", "a.md")))
    verdict = judge(before, 9, wanted)
    assert verdict.merged == ()
    assert len(verdict.problems) == 2


@pytest.mark.parametrize("kind", [MemoryType.USER, MemoryType.FEEDBACK])
def test_what_people_said_never_just_goes(kind: MemoryType) -> None:
    """A user or feedback memory is not removed for any reason that does not name a target."""
    before = {"a.md": _file("Prefers tabs.", kind)}
    verdict = judge(before, 9, Wanted((_gone("a.md"),), (), {"a.md": "looks old"}))
    assert verdict.removed == (Removal("a.md", "looks old"),)
    assert len(verdict.problems) == 1


def test_nothing_evaporates() -> None:
    """A memory that goes without a word of why is a problem."""
    verdict = judge({"a.md": _file("A fact.")}, 9, Wanted((_gone("a.md"),)))
    assert verdict.problems == ("a.md would go without a reason",)


@pytest.mark.parametrize(
    ("total", "gone", "problems"), [(3, 3, 0), (4, 1, 0), (4, 2, 1), (6, 2, 0), (6, 3, 1)]
)
def test_no_dream_drops_more_than_a_third(total: int, gone: int, problems: int) -> None:
    """Of four memories or more, more than a third is too many, whatever the reasons."""
    paths = [f"m{number}.md" for number in range(gone)]
    before = {path: _file(f"Fact {path}.") for path in paths}
    wanted = Wanted(tuple(map(_gone, paths)), (), dict.fromkeys(paths, "old"))
    assert len(judge(before, total, wanted).problems) == problems


def test_a_reason_is_not_lost() -> None:
    """A memory that says why still says why afterwards."""
    before = {"a.md": _file(WHY)}
    assert judge(before, 9, Wanted((FileEdit("a.md", _file("Shorter.")),))).problems
    assert not judge(before, 9, Wanted((FileEdit("a.md", _file(WHY + " Yes.")),))).problems


@pytest.mark.parametrize("content", [None, b"mended"])
def test_a_damaged_file_is_not_touched(content: bytes | None) -> None:
    """A file whose head does not parse is neither changed nor removed."""
    before = {"a.md": b"---\nname: a\nno end\n"}
    wanted = Wanted((FileEdit("a.md", content),), (), {"a.md": "broken"})
    assert "a.md is damaged and would be touched" in judge(before, 9, wanted).problems
