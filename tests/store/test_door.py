"""What a change set may contain."""

import pytest
from hypothesis import strategies as st

from memd.core import limits
from memd.core.names import INDEX, NameRefusedError
from memd.core.values import FileEdit
from memd.store import door
from memd.store.door import (
    NameClashError,
    SecretRefusedError,
    TooLargeError,
    TooManyFilesError,
)

# Put together here, so that no scanner takes this file for a leak.
LEAK = "aws_secret_access_key = '" + "wJalrXUtnFEMIK7MDENG" + "bPxRfiCYzQ1Xv8T2mLpK'"


@pytest.mark.parametrize(
    "path", ["../a.md", "/a.md", "a.txt", ".a.md", "logs/a.md", "sub/MEMORY.md", "memory.md", INDEX]
)
def test_only_topic_files_pass(path: str) -> None:
    """Names outside, of other kinds, of logs and of other indexes are refused."""
    with pytest.raises(NameRefusedError):
        door.check_edits([FileEdit(path, b"x")])


def test_a_set_has_a_bounded_number_of_files() -> None:
    """Five hundred files pass, one more does not."""
    many = [FileEdit(f"f{number}.md", b"x") for number in range(limits.CHANGE_FILES + 1)]
    door.check_edits(many[:-1])
    with pytest.raises(TooManyFilesError):
        door.check_edits(many)


def test_a_body_has_a_bounded_size() -> None:
    """A memory of exactly the limit passes, one byte more does not."""
    door.check_size("a.md", b"x" * limits.MEMORY_BYTES)
    with pytest.raises(TooLargeError):
        door.check_size("a.md", b"x" * (limits.MEMORY_BYTES + 1))


def test_a_new_secret_is_refused_without_being_told() -> None:
    """A refusal names rule and line of a secret and never its value."""
    with pytest.raises(SecretRefusedError) as caught:
        door.check_secrets("a.md", b"first\n", f"first\n{LEAK}\n".encode())
    assert caught.value.facts["line"] == 2
    assert "wJalr" not in str(caught.value)
    assert "wJalr" not in str(caught.value.facts)


def test_of_a_large_index_only_what_differs_is_looked_at() -> None:
    """A new secret is found wherever it is put; one that stood there already stays writable."""
    large = b"".join(b"- [%d](%d.md)\n" % (number, number) for number in range(6000))
    leak = f"{LEAK}\n".encode()
    at = large.index(b"- [3000]")
    with pytest.raises(SecretRefusedError) as caught:
        door.check_secrets("MEMORY.md", large, large[:at] + leak + large[at:])
    assert caught.value.facts["line"] == 3001
    with pytest.raises(SecretRefusedError):
        door.check_secrets("MEMORY.md", None, large + leak)
    door.check_secrets("MEMORY.md", leak + large, leak + large + b"- [a](a.md)\n")
    door.check_secrets("MEMORY.md", large + leak, large + b"- [a](a.md)\n" + leak)


def test_a_name_holds_no_secret() -> None:
    """A new file is not called by a secret, and the refusal names neither; an old one stays."""
    path = "db-password-hunter2-prod-9981.md"
    with pytest.raises(door.SecretInNameError) as caught:
        door.check_secrets(path, None, b"plain\n")
    assert path not in caught.value.sentence
    assert path not in caught.value.facts.values()
    door.check_secrets(path, b"plain\n", b"other\n")


_TEXTS = st.lists(st.sampled_from(["a", "b", "ab", ""]), max_size=8).map("\n".join)


def test_one_file_is_edited_once() -> None:
    """Two edits of one file contradict each other."""
    with pytest.raises(NameClashError):
        door.check_edits([FileEdit("a.md", b"x"), FileEdit("a.md", None)])
