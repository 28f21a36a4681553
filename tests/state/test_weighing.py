"""One memory against one prompt."""

from datetime import date

from memd.state.asking import ask
from memd.state.keys import pack
from memd.state.weighing import (
    Document,
    Rarities,
    Weighed,
    feed_back,
    most_feedback,
    plan,
    saturate,
    weigh,
)
from memd.state.words import indexed


class Known:
    """Statistics of a store in which few words are known."""

    count = 10

    def __init__(self) -> None:
        self.asked: list[int] = []

    def holders(self, key: int) -> int:
        self.asked.append(key)
        return 1


def _weigh(query: str, heading: str, body: str = "", today: date | None = None) -> Weighed | None:
    head = indexed(heading)
    document = Document("a.md", 0, pack((*head, *indexed(body))), len(head))
    return weigh(plan(ask(query, today), Rarities(Known())), document)


def _bm25(query: str, heading: str, body: str = "") -> float:
    weighed = _weigh(query, heading, body)
    return 0.0 if weighed is None else weighed.bm25


def test_a_memory_without_a_word_of_the_prompt_is_not_weighed() -> None:
    """What holds nothing of the prompt is left out at once."""
    assert _weigh("quorum", "lease") is None
    assert _weigh("", "lease") is None


def test_what_the_body_holds_brings_less() -> None:
    """Heading and body gain the same, but the body counts less towards the floor."""
    head, body = _weigh("quorum", "quorum"), _weigh("quorum", "lease", "quorum")
    assert head is not None
    assert body is not None
    assert head.bm25 == body.bm25
    assert head.brings > body.brings > 0


def test_repeating_a_word_gains_ever_less() -> None:
    """A word that stands twice gains more than once, never twice as much."""
    once, twice = _bm25("quorum", "quorum"), _bm25("quorum", "quorum and quorum")
    assert once < twice < 2 * once
    assert saturate(1) == 1.0


def test_neighbours_gain() -> None:
    """Two words of the prompt gain more side by side, in the prompt's order."""
    beside, turned = _weigh("quorum lease", "quorum lease"), _weigh("quorum lease", "lease quorum")
    assert beside is not None
    assert turned is not None
    assert beside.pairs > turned.pairs == 0


def test_a_date_is_told_by_all_its_words() -> None:
    """A memory of the day asked for gains, and says which words it was."""
    asked = ("what did we do last week?", "2026-04-01 chose the quorum", "", date(2026, 4, 6))
    found = _weigh(*asked)
    assert found is not None
    assert found.date > 0
    assert found.terms == ("2026", "april", "1")
    other = _weigh("what was on 2026-04-01?", "2026 had no first of April")
    assert other is not None
    assert other.date == 0


def test_a_number_across_two_words_is_passed_over() -> None:
    """Bytes that only look like a word are skipped, the word behind them counts."""
    word = pack(["quorum"])
    planned = plan(ask("quorum"), Rarities(Known()))
    weighed = weigh(planned, Document("a", 0, b"\0\0" + word + b"\0\0" + word, 3))
    assert weighed is not None
    assert weighed.bm25 == _bm25("quorum", "quorum")


def test_neighbours_across_words_are_passed_over() -> None:
    """Bytes that only look like two neighbours do not make a pair."""
    both = pack(["quorum", "leas"])
    planned = plan(ask("quorum lease"), Rarities(Known()))
    apart = pack(["leas"]) + b"\0\0" + both + b"\0\0" + pack(["quorum"])
    weighed = weigh(planned, Document("a", 0, apart, 6))
    assert weighed is not None
    assert (weighed.terms, weighed.pairs) == (("quorum", "leas"), 0)


def test_feedback_needs_words_beside_the_prompts() -> None:
    """Without any other word in the best memories nothing is added."""
    weighed = _weigh("quorum", "quorum")
    assert weighed is not None
    feed_back(plan(ask("quorum"), Rarities(Known())), Rarities(Known()), [weighed])
    assert weighed.feedback == 0
    assert weighed.rank[0] == -weighed.parts["bm25"]


def test_a_long_prompt_finds_the_same() -> None:
    """Many words of a prompt that a memory does not hold change nothing of what it gains."""
    more = " ".join(f"zebra{number:x}q" for number in range(60))
    alone, among = (
        _weigh("quorum", "a quorum", "quorum"),
        _weigh(f"quorum {more}", "a quorum", "quorum"),
    )
    assert alone is not None
    assert among is not None
    assert (among.bm25, among.brings, among.terms) == (alone.bm25, alone.brings, alone.terms)


def test_feedback_stays_below_its_bound() -> None:
    """No memory gains more by feedback than is said; one below the least score gains nothing."""
    planned, rarities = plan(ask("quorum lease"), Rarities(Known())), Rarities(Known())
    texts = ("quorum lease zebra gadget", "quorum zebra gadget " * 9)
    documents = [Document("a", 0, pack(indexed(text)), 4) for text in texts]
    for least in (0.0, 99.0):
        weighed = [item for document in documents if (item := weigh(planned, document))]
        feed_back(planned, rarities, weighed, least)
        for item in weighed:
            assert (0 < item.feedback <= most_feedback(planned)) is (least == 0)


def test_each_word_is_looked_up_once() -> None:
    """Statistics may be slow: no number is asked for twice in a prompt."""
    known = Known()
    rarities = Rarities(known)
    plan(ask("deploy the release, then deploy again"), rarities)
    plan(ask("deploy the release"), rarities)
    assert len(known.asked) == len(set(known.asked))
