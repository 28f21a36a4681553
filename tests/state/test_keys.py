"""Words as numbers."""

from hypothesis import given
from hypothesis import strategies as st

from memd.state import keys as module
from memd.state.keys import key, keys, pack, pack_key


def test_a_key_is_the_same_in_every_process() -> None:
    """What an index on disk has stored is still the word's number tomorrow."""
    assert (key("freez"), key("部署")) == (4146074604, 649712689)


@given(st.lists(st.text(min_size=1, max_size=5)))
def test_packing_keeps_every_word_in_its_place(found: list[str]) -> None:
    """The packed numbers are those of the words, in their order."""
    assert list(keys(pack(found))) == [key(word) for word in found]


def test_packed_words_are_remembered_within_bounds() -> None:
    """Endless different words do not fill the memory, and a word's number stays."""
    before = pack(["freez"])
    pack(f"w{number:x}" for number in range(module._KEPT + 1))
    assert len(module._packed) <= module._KEPT
    assert pack(["freez"]) == before


def test_a_number_is_packed_as_its_word() -> None:
    """A number alone and its word give the same bytes."""
    assert pack_key(key("freez")) == pack(["freez"])
