"""The tables of cues."""

import pytest

from memd.extract import cues
from memd.extract.conditions import _CONDITIONS


def test_every_language_has_every_part() -> None:
    """The languages have the same forbidding reasons, kinds and words for a body."""
    english, chinese = (cues.language(name) for name in ("en", "zh"))
    assert english.forbid.keys() == chinese.forbid.keys()
    assert english.wording.keys() == chinese.wording.keys()
    for language in (english, chinese):
        kinds = {cue.kind for cue in language.cues}
        assert kinds == {"explicit", "feedback", "user", "project", "reference"}


@pytest.mark.parametrize("name", ["en", "zh"])
def test_every_cue_can_be_used(name: str) -> None:
    """Each pattern names what it keeps and needs only conditions that there are."""
    for cue in cues.language(name).cues:
        assert "content" in cue.pattern.groupindex
        assert cue.needs in _CONDITIONS


def test_a_text_is_read_in_its_language() -> None:
    """One Chinese character makes a text Chinese."""
    assert cues.of("always use tabs").name == "en"
    assert cues.of("记住 we use pnpm").name == "zh"


def test_gerunds_are_made_from_verbs() -> None:
    """Both spellings are made, and a final e goes."""
    assert cues._gerunds("write") == ("writing", "writeeing")
    assert cues._gerunds("stub") == ("stubing", "stubbing")
    assert cues._gerunds("agree")[0] == "agreeing"


def test_an_empty_list_matches_nothing() -> None:
    """A language without such words never meets them."""
    assert cues._words([], whole=True).search("anything") is None
