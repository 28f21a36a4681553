"""What a dream wants, and what became of it, as values."""

from memd.dream.values import DirectorySize, JudgeResult, Wanted, in_the_end, quoted


def test_nothing_wanted_is_nothing_done() -> None:
    """A dream that wants nothing is empty throughout, and so is the verdict on it."""
    assert Wanted() == Wanted(edits=(), merges=(), reasons={}, left=(), listed=())
    assert JudgeResult() == JudgeResult(changed=(), merged=(), removed=(), problems=())
    assert DirectorySize() == DirectorySize(0, 0, 0, 0)


def test_a_sentence_is_shown_cut_and_without_secrets() -> None:
    """What a problem quotes stands on one line, is cut, and holds no credential, not even half."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    assert quoted("one\n two") == "one two"
    assert len(quoted("x " * 200)) == 120
    assert len(quoted("x " * 200, 9)) <= 9
    assert "ghp_" not in quoted(f"{'x ' * 55}{secret}")


def test_a_memory_is_in_the_last_one_that_took_it_in() -> None:
    """Who took a memory in may have gone into another one; claims in a circle have an end."""
    assert in_the_end({"a": "b", "b": "c"}, "a") == "c"
    assert in_the_end({"a": "b"}, "x") == "x"
    assert in_the_end({"a": "b", "b": "a"}, "a") == "b"
