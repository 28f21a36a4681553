"""A prompt, analysed once."""

from datetime import date

from memd.state.asking import ask
from memd.state.stance import Stance


def test_words_keep_their_order_and_count() -> None:
    """Distinct words come in the prompt's order, common ones count less, neighbours are pairs."""
    asked = ask("quorum lease, then work on the quorum lease")
    assert dict(asked.factors) == {"quorum": 1.0, "leas": 1.0, "work": 0.6}
    assert asked.pairs == (("quorum", "leas"), ("leas", "work"), ("work", "quorum"))


def test_what_may_stand_for_a_word_counts_less() -> None:
    """Synonyms and the family of a word have a share below one."""
    others = ask("deployment of the counsellor").others
    assert 0 < others["deploy"]["releas"] < 1
    assert 0 < others["counsellor"]["^counse"] < 1
    assert "counse" in others["counsellor"]


def test_names_stand_inside_a_prompt() -> None:
    """A capital letter names somebody unless it only opens the prompt; acronyms are no names."""
    assert ask("Where does Priya keep the API keys of Tomas?").names == ("priya", "toma")
    assert ask("The").names == ()


def test_dates_come_as_words() -> None:
    """A date that the prompt means is given as a memory holds its words."""
    assert ask("since 2026-05-02").dates == (("2026", "may", "2"),)
    assert ask("yesterday", date(2026, 2, 1)).dates == (("2026", "januari", "31"),)
    assert ask("yesterday").dates == ()


def test_what_a_prompt_is_for() -> None:
    """What a prompt is after is told with it."""
    assert ask("how do we deploy?").stance is Stance.OPENS
    assert ask("thanks").stance is Stance.CARRIES_ON
