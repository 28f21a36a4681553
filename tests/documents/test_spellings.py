"""Names that differ in case alone, found without going through all."""

from hypothesis import given
from hypothesis import strategies as st

from memd.core.names import clashes
from memd.documents.spellings import Spellings

_PARTS = st.sampled_from(["a", "A", "b", "ß", "ss", "a.md", "A.md", "aA.md"])
_PATHS = st.lists(_PARTS, min_size=1, max_size=3).map("/".join)


@given(st.sets(_PATHS, max_size=6), st.sets(_PATHS, max_size=6), _PATHS)
def test_they_know_what_going_through_all_finds(
    paths: set[str], gone: set[str], wanted: str
) -> None:
    """After any paths came and went the answer is that of the rule."""
    spellings = Spellings(paths | gone)
    for path in gone - paths:
        spellings.remove(path)
    assert spellings.meets(wanted, paths) == (clashes(wanted, paths) is not None)


def test_a_folder_is_there_as_long_as_something_lies_in_it() -> None:
    """What is left of a folder decides whether another spelling of it is refused."""
    spellings = Spellings(["Notes/a.md", "Notes/b.md"])
    spellings.remove("Notes/a.md")
    assert spellings.meets("notes/c.md", {"Notes/b.md"})
    spellings.remove("Notes/b.md")
    assert not spellings.meets("notes/c.md", set())
