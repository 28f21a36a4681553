"""Two opinions become one order."""

from hypothesis import given, settings
from hypothesis import strategies as st

from memd.state.fusion import NEAR, answered, fuse
from memd.state.scoring import BELOW_FLOOR, BEYOND_LIMIT, FAR_BELOW_BEST, Ranked

PATHS = [f"{letter}.md" for letter in "abcdefgh"]
CUTS = st.sampled_from(("", "", "", BELOW_FLOOR, FAR_BELOW_BEST, BEYOND_LIMIT))
SCORES = st.floats(0.01, 50)


@st.composite
def judgements(draw: st.DrawFn) -> tuple[Ranked, ...]:
    """Return memories as the ranker by words judges them, the best first."""
    paths = draw(st.lists(st.sampled_from(PATHS), unique=True, max_size=6))
    scores = sorted((draw(SCORES) for _ in paths), reverse=True)
    return tuple(
        Ranked(path, score, ("word",), {"bm25": score}, draw(CUTS))
        for path, score in zip(paths, scores, strict=True)
    )


COSINES = st.dictionaries(st.sampled_from(PATHS), st.floats(-1, 1), max_size=8)


def _ranked(path: str, score: float, cut: str = "") -> Ranked:
    return Ranked(path, score, ("word",), {"bm25": score}, cut)


@given(judgements(), st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_without_vectors_words_decide(lexical: tuple[Ranked, ...], limit: int) -> None:
    """Where no memory has a vector the judgement by words comes out unchanged."""
    assert fuse(lexical, {}, limit) == lexical
    assert fuse(lexical, {}, limit, floor=False) == lexical


@given(judgements(), COSINES, st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_silence_stays_silence(
    lexical: tuple[Ranked, ...], near: dict[str, float], limit: int
) -> None:
    """Where words bring nothing to a prompt that carries on, meaning brings nothing either."""
    silent = tuple(
        _ranked(item.path, item.score, item.cut)
        for item in lexical
        if item.cut in {BELOW_FLOOR, FAR_BELOW_BEST}
    )
    assert answered(fuse(silent, near, limit)) == ()


@given(lexical=judgements(), near=COSINES, limit=st.integers(1, 5), opens=st.booleans())
@settings(max_examples=80, deadline=None)
def test_nobody_below_both_floors_is_answered(
    lexical: tuple[Ranked, ...], near: dict[str, float], limit: int, *, opens: bool
) -> None:
    """A memory that neither brings enough words nor is near enough never goes out."""
    judged = fuse(lexical, near, limit, opens=opens)
    weak = {item.path for item in lexical if item.cut == BELOW_FLOOR} | (
        set(near) - {item.path for item in lexical}
    )
    assert len(answered(judged)) <= max(limit, len(answered(lexical)))
    for item in answered(judged):
        assert item.path not in weak or near[item.path] >= NEAR


@given(judgements(), COSINES, st.data())
@settings(max_examples=80, deadline=None)
def test_nearer_is_never_later(
    lexical: tuple[Ranked, ...], near: dict[str, float], data: st.DataObject
) -> None:
    """A memory whose cosine grows never falls behind one that was after it."""
    if not near:
        return
    path = data.draw(st.sampled_from(sorted(near)))
    more = near | {path: data.draw(st.floats(near[path], 1))}
    before = [item.path for item in fuse(lexical, near, 5, floor=False)]
    after = [item.path for item in fuse(lexical, more, 5, floor=False)]
    if path in before:
        passed = set(before[before.index(path) + 1 :])
        assert path in after
        assert not passed & set(after[: after.index(path)])


@given(judgements(), COSINES, st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_parts_make_the_score(
    lexical: tuple[Ranked, ...], near: dict[str, float], limit: int
) -> None:
    """The parts of a score sum to it, and the order is that of the scores."""
    judged = fuse(lexical, near, limit, floor=False)
    assert all(abs(sum(item.parts.values()) - item.score) < 1e-4 for item in judged)
    scores = [item.score for item in judged]
    assert scores == sorted(scores, reverse=True)


def test_meaning_brings_a_memory_without_words() -> None:
    """Beside an answer by words a near memory that holds none of them comes too."""
    near = {"words.md": 0.2, "near.md": 0.8, "far.md": 0.34}
    judged = fuse((_ranked("words.md", 8.0),), near, 5)
    assert [(item.path, item.cut) for item in judged] == [("words.md", ""), ("near.md", "")]
    assert [dict(item.parts) for item in judged] == [
        {"lexical": 0.6, "semantic": 0.1},
        {"lexical": 0.0, "semantic": 0.4},
    ]


def test_meaning_answers_a_question_alone() -> None:
    """A prompt that asks gets near memories where words are too few; others stay cut."""
    lexical = (_ranked("weak.md", 2.0, BELOW_FLOOR), _ranked("strong.md", 1.0, BELOW_FLOOR))
    near = {"weak.md": 0.34, "strong.md": 0.5, "near.md": 0.36, "far.md": 0.1}
    judged = fuse(lexical, near, 5, opens=True)
    assert [item.path for item in answered(judged)] == ["strong.md", "near.md"]
    assert answered(fuse(lexical, near, 5)) == ()
    assert answered(fuse((), {"far.md": 0.34}, 5, opens=True)) == ()


def test_a_memory_without_vector_is_not_put_back() -> None:
    """What has no vector yet counts as if meaning agreed with the words."""
    judged = fuse((_ranked("new.md", 8.0), _ranked("old.md", 7.0)), {"old.md": 0.9}, 5)
    assert [item.path for item in judged] == ["new.md", "old.md"]


def test_cuts_have_reasons() -> None:
    """A memory far below the best, below both floors or beyond the limit says so."""
    lexical = (
        _ranked("a.md", 8.0),
        _ranked("b.md", 7.0),
        _ranked("c.md", 0.1),
        _ranked("d.md", 7.5, BELOW_FLOOR),
    )
    near = {"a.md": 0.9, "b.md": 0.8, "c.md": 0.0, "d.md": 0.1}
    assert {item.path: item.cut for item in fuse(lexical, near, 1)} == {
        "a.md": "",
        "b.md": BEYOND_LIMIT,
        "c.md": FAR_BELOW_BEST,
        "d.md": BELOW_FLOOR,
    }


def test_opposite_meanings_take_nothing_away() -> None:
    """Where every cosine is negative the order is that of the words."""
    lexical = (_ranked("a.md", 8.0), _ranked("b.md", 7.0))
    judged = fuse(lexical, {"a.md": -0.5, "b.md": -0.1}, 5)
    assert [item.path for item in answered(judged)] == ["a.md", "b.md"]
