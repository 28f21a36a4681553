"""How much of the memories a dream takes away."""

import pytest

from memd.dream.judge import judge
from tests.dream.judging import PROJECT, file, wanted

REASON = "out of date"


@pytest.mark.parametrize(
    ("total", "gone", "lately", "problems"),
    [
        (3, 3, 0, 0),
        (4, 1, 0, 0),
        (4, 2, 0, 1),
        (6, 2, 0, 0),
        (6, 3, 0, 1),
        (9, 1, 3, 0),
        (9, 2, 3, 1),
        (9, 0, 9, 0),
    ],
)
def test_no_dream_drops_more_than_a_third(
    total: int, gone: int, lately: int, problems: int
) -> None:
    """Of four memories or more, more than a third is too many, what went lately included."""
    paths = [f"m{number}.md" for number in range(gone)]
    before = {path: file(f"Fact {path}.") for path in paths}
    requested = wanted(dict.fromkeys(paths), {}, REASON)
    assert len(judge(before, requested, total=total, gone_lately=lately).problems) == problems


def test_a_third_of_the_bytes_is_too_much_as_well() -> None:
    """One memory that is most of what there is may not go with a reason."""
    before = {"a.md": file("Fact. " * 99)}
    requested = wanted({"a.md": None}, {}, REASON)
    size = len(before["a.md"])
    assert judge(before, requested, total=9, total_bytes=3 * size).problems == ()
    (problem,) = judge(before, requested, total=9, total_bytes=3 * size - 1).problems
    assert problem.startswith(f"{size} of {3 * size - 1} bytes")


def test_what_many_memories_lose_counts_as_well() -> None:
    """A part of every memory is a part of all: tonight, or with what went lately."""
    paths = [f"m{number}.md" for number in range(9)]
    before = {path: file("Staging Helsinki mirrors nightly.", PROJECT, "") for path in paths}
    total = sum(map(len, before.values()))
    half = wanted(dict.fromkeys(paths, file("Staging Helsinki.", PROJECT, "")))
    said = f"{total // 2} of {total} bytes would be dropped or rewritten"
    judged = judge(before, half, total=9, total_bytes=total)
    assert judged.problems == (f"{said}: more than a third",)
    assert judged.lost == total // 2
    less = wanted(dict.fromkeys(paths, file("Staging Helsinki mirrors.", PROJECT, "")))
    assert judge(before, less, total=9, total_bytes=total).problems == ()
    (problem,) = judge(before, less, total=9, total_bytes=total, lost_lately=total // 4).problems
    assert problem.endswith(f"rewritten, {total // 4} went lately: more than a third")
    wordless = {"a.md": file("...", PROJECT, "")}
    assert judge(wordless, wanted({"a.md": None}, {}, REASON)).lost == len(wordless["a.md"])
    assert judge(wordless, wanted({"a.md": file("!!!", PROJECT, "")})).lost == 0


def test_rewritten_counts_like_removed() -> None:
    """A project memory with less than half of its words left is rewritten, unless they went on."""
    body = "Staging deploys wait behind Helsinki mirrors until nightly replication settles."
    before = {f"{name}.md": file(body, PROJECT) for name in "ab"}
    other = file("Quite other thoughts about lunch.", PROJECT, "Lunch")
    edits: dict[str, bytes | None] = {"a.md": other, "b.md": other}
    (problem,) = judge(before, wanted(edits), total=5).problems
    assert problem == "0 of 5 memories would be dropped and 2 rewritten: more than a third"
    went = wanted(edits | {"new.md": file(body, PROJECT)}, {"a.md": "new.md", "b.md": "new.md"})
    assert judge(before, went, total=5).problems == ()
    shorter = file("Staging deploys wait behind Helsinki mirrors.", PROJECT)
    assert judge(before, wanted({"a.md": shorter, "b.md": shorter}), total=5).problems == ()
