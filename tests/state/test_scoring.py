"""The order of the memories that an engine proposes."""

import math
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.state import scoring
from memd.state.asking import ask
from memd.state.scoring import Document, judge, keys, order, pack, terms
from memd.state.words import indexed


class Corpus:
    """Documents, and what an engine would know about them."""

    def __init__(self, *texts: str) -> None:
        self.documents = [_document(f"{at}.md", text, mtime_ns=at) for at, text in enumerate(texts)]

    @property
    def count(self) -> int:
        return len(self.documents)

    def holders(self, key: int) -> int:
        return sum(key in keys(document.words) for document in self.documents)


def _document(path: str, heading: str, body: str = "", *, mtime_ns: int = 0) -> Document:
    head = indexed(heading)
    return Document(path, mtime_ns, pack((*head, *indexed(body))), len(head))


def test_rare_words_weigh_more() -> None:
    """An engine is told the prompt's words in order, the rarer the heavier, common ones damped."""
    corpus = Corpus("quorum lease", "quorum shard", "quorum work")
    weights = terms(ask("does quorum work with a lease"), corpus)
    assert list(weights)[:3] == ["quorum", "work", "leas"]
    assert weights["leas"] > weights["quorum"]
    assert math.isclose(weights["work"], 0.6 * weights["leas"])


def test_what_stands_for_a_word_weighs_less() -> None:
    """An engine looks for synonyms and for the family of a word too, for less."""
    corpus = Corpus("deployment", "release", "rollout of the deploy")
    weights = terms(ask("deploy"), corpus)
    assert weights["deploy"] > weights["rollout"] > 0
    assert weights["^deplo"] < weights["deploy"]


def test_a_word_of_the_prompt_keeps_its_weight() -> None:
    """What stands for one word of the prompt and is another of its words weighs as that word."""
    corpus = Corpus("teach the teacher")
    both = terms(ask("teacher teach"), corpus)
    assert both["teach"] == terms(ask("teach"), corpus)["teach"]


def test_the_words_of_a_date_are_looked_for() -> None:
    """What a prompt calls yesterday is looked for as a memory spells it, and counts where found."""
    corpus = Corpus("2026-04-01 quorum chosen", "2026-05-01 quorum dropped")
    asked = ask("what about the quorum yesterday?", date(2026, 4, 2))
    assert {"2026", "april", "1"} <= terms(asked, corpus).keys()
    first, second = judge(asked, corpus, corpus.documents, 5, floor=True)
    assert (first.path, first.parts["date"], "april" in first.terms) == ("0.md", 2.0, True)
    assert "date" not in second.parts


def test_a_date_alone_finds() -> None:
    """A memory of the day that is asked for is found though it holds no other word."""
    corpus = Corpus("2026-04-01 quorum", "lease")
    (only,) = order(
        ask("what did we do yesterday?", date(2026, 4, 2)), corpus, corpus.documents, 5, floor=True
    )
    assert only.path == "0.md"


def test_whom_a_memory_is_about_counts() -> None:
    """Of two that name the same people, the one that begins with the name asked for comes first."""
    corpus = Corpus(
        "Priya took over the cluster from Tomas", "Tomas took over the cluster of Priya"
    )
    best = order(
        ask("when did Priya take over the cluster?"), corpus, corpus.documents, 2, floor=True
    )
    assert [ranked.path for ranked in best] == ["0.md", "1.md"]
    assert best[0].parts["subject"] == 1.0


def test_what_the_best_hold_lifts_others() -> None:
    """Words beside the prompt's in the best memories tell which of the rest belong to them."""
    corpus = Corpus(
        "gadget quorum for the zebra broker",
        "gadget and unrelated things",
        "gadget of the zebra",
    )
    judged = judge(ask("gadget quorum"), corpus, corpus.documents, 3, floor=True)
    assert [ranked.path for ranked in judged] == ["0.md", "2.md", "1.md"]
    assert judged[1].parts["feedback"] > judged[2].parts.get("feedback", 0.0)


def test_a_synonym_never_counts_beside_its_word() -> None:
    """A memory that holds a word and its synonym gains no more for the pair than for the word."""
    both, alone = Corpus("deploy release"), Corpus("deploy zebra")
    judged = [
        judge(ask("deploy"), corpus, corpus.documents, 1, floor=False)[0]
        for corpus in (both, alone)
    ]
    assert judged[0].parts["bm25"] == judged[1].parts["bm25"]


def test_a_score_is_the_sum_of_its_parts() -> None:
    """What explains a score adds up to it."""
    corpus = Corpus("quorum lease renewal", "quorum, then a lease")
    for ranked in judge(ask("quorum lease"), corpus, corpus.documents, 5, floor=True):
        assert ranked.score == pytest.approx(sum(ranked.parts.values()), abs=1e-5)


def test_each_cut_has_its_reason() -> None:
    """What is not answered says why; what holds no word of the prompt is not weighed."""
    corpus = Corpus(
        "quorum lease shard renewal for the broker",
        "quorum lease shard renewal for another broker",
        "the lease",
        "unrelated",
    )
    documents = corpus.documents
    asked = ask("how does the broker renew the quorum lease of a shard?")
    judged = judge(asked, corpus, documents, 1, floor=True)
    assert [(ranked.path, ranked.cut) for ranked in judged] == [
        ("1.md", ""),
        ("0.md", scoring.BEYOND_LIMIT),
        ("2.md", scoring.FAR_BELOW_BEST),
    ]
    assert order(asked, corpus, documents, 1, floor=True) == judged[:1]
    weak = judge(ask("thanks, the lease"), corpus, documents, 5, floor=True)
    assert {ranked.cut for ranked in weak} == {scoring.BELOW_FLOOR}


def test_what_reaches_the_floor_brings_others() -> None:
    """Beside a memory that reaches the floor a weaker one may come; alone it stays away."""
    corpus = Corpus("quorum lease shard", "broker", "shard of the broker", "shard again")
    asked = ask("the quorum lease of a shard, thanks")
    assert len(order(asked, corpus, corpus.documents, 5, floor=True)) > 1
    assert order(asked, corpus, corpus.documents[1:], 5, floor=True) == ()


def test_a_store_about_one_thing_answers_questions_about_it() -> None:
    """A word that most memories hold brings the best of them when it is all that is asked for."""
    corpus = Corpus(*(f"release step {at}" for at in range(30)), "lease")
    for query in ("what did we say about the release", "when is the release?"):
        found = order(ask(query), corpus, corpus.documents, 5, floor=True)
        assert [ranked.path for ranked in found] == [f"{at}.md" for at in range(29, 24, -1)]
    assert order(ask("thanks for the release"), corpus, corpus.documents, 5, floor=True) == ()


def test_words_that_no_memory_holds_do_not_lift_the_floor() -> None:
    """A question with everyday words beside the one that counts is answered all the same."""
    corpus = Corpus("Freezing all merges after Thursday", "lease", "quorum", "shard", "broker")
    asked = ask("When can I merge my pull request to main this week?")
    assert [it.path for it in order(asked, corpus, corpus.documents, 5, floor=True)] == ["0.md"]


def test_common_words_reach_no_floor() -> None:
    """Words that everybody uses, and bare numbers, do not make a memory worth a prompt."""
    corpus = Corpus("the file of 16", "16 quorum files", "16 files of a lease")
    assert order(ask("now 16 in the file"), corpus, corpus.documents, 5, floor=True) == ()
    assert len(order(ask("now 16 in the file"), corpus, corpus.documents, 5, floor=False)) == 3


def test_a_number_that_stands_across_two_words_is_no_match() -> None:
    """Only whole words match, wherever the bytes of a number turn up."""
    word = pack(["quorum"])
    across = Document("a", 0, b"\0\0" + word + b"\0\0", 0)
    corpus = Corpus("quorum")
    assert judge(ask("quorum"), corpus, [across], 5, floor=False) == ()


_TEXT = st.lists(
    st.sampled_from(["quorum", "lease", "shard", "renewal", "broker"]), min_size=1, max_size=6
).map(" ".join)


@settings(max_examples=50)
@given(st.lists(_TEXT, min_size=1, max_size=6), _TEXT, st.data())
def test_the_order_of_proposals_does_not_matter(
    texts: list[str], query: str, data: st.DataObject
) -> None:
    """The same documents give the same answer in whatever order they come; none is lost."""
    corpus = Corpus(*texts)
    shuffled = data.draw(st.permutations(corpus.documents))
    judged = judge(ask(query), corpus, corpus.documents, 3, floor=True)
    assert judge(ask(query), corpus, shuffled, 3, floor=True) == judged
    assert sum(not ranked.cut for ranked in judged) <= 3


@settings(max_examples=100)
@given(st.lists(_TEXT, min_size=1, max_size=12), _TEXT, st.integers(0, 4), st.booleans())
def test_what_is_not_worth_the_look_is_not_answered(
    texts: list[str],
    query: str,
    limit: int,
    floor: bool,  # noqa: FBT001 - drawn
) -> None:
    """Whoever wants the answer alone gets what an explanation of all of it says is answered."""
    corpus = Corpus(*texts)
    judged = judge(ask(query), corpus, corpus.documents, limit, floor=floor)
    answered = order(ask(query), corpus, corpus.documents, limit, floor=floor)
    assert answered == tuple(ranked for ranked in judged if not ranked.cut)
