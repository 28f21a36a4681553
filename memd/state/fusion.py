"""Two opinions on which memories fit a prompt become one order: by words and by meaning. Pure.

Rules of this file
- A memory that brings too few words, or none, needs a likeness of ``NEAR``: some memory is always
  the nearest to whatever is said.
- Where no memory passes the floor of ``scoring``, such a one is an answer only to a prompt that
  asks or begins a piece of work. Those that carry on stay without one: they are near to anything.
- Each opinion counts as a share of its best. That sum was better than reciprocal ranks when
  measured (0.759 and 0.742 of recall@5), because it keeps how sure each one is.
- A memory whose vector is not computed yet counts by its words alone, as if meaning agreed with
  them; without any vector the order is that of the words, unchanged.
- The nearer a memory, all else equal, the earlier it comes.
"""

from collections.abc import Iterable, Mapping, Sequence

from memd.state.scoring import BELOW_FLOOR, BEYOND_LIMIT, FAR_BELOW_BEST, Ranked

# Of the way from unrelated texts to the same text. Of the prompts that nothing helps with, those
# that ask came as near as 0.31; a floor of 0.4 loses what meaning alone finds.
NEAR = 0.35
_MEANING = 0.4  # of the fused score; 0.35 to 0.5 differ by chance
_RELATIVE = 0.25  # of the best fused score, as among words alone


def fuse(
    lexical: Sequence[Ranked],
    near: Mapping[str, float],
    limit: int,
    *,
    floor: bool = True,
    opens: bool = False,
) -> tuple[Ranked, ...]:
    """Return what both opinions weigh, the best first, and why some of it is cut.

    ``lexical`` is the judgement by words, in its order; ``near`` holds the likeness of every memory
    in it that has a vector, and of the nearest ones beside it. ``opens`` says that the prompt asks
    or begins a piece of work.
    """
    stands = opens or any(ranked.cut in {"", BEYOND_LIMIT} for ranked in lexical)
    if not near or (floor and not stands):
        return tuple(lexical)
    known = {ranked.path for ranked in lexical}
    beside = sorted(
        path for path, likeness in near.items() if path not in known and likeness >= NEAR
    )
    pool = (*lexical, *(Ranked(path, 0.0, (), {}, BELOW_FLOOR) for path in beside))
    strongest = max((ranked.score for ranked in pool), default=0.0) or 1.0
    nearest = max(near.values())
    fused = [_fused(ranked, near.get(ranked.path), strongest, nearest) for ranked in pool]
    fused.sort(key=lambda ranked: -ranked.score)  # stable: equal ones keep the order by words
    return tuple(_cut(fused, near, limit, floor=floor))


def answered(judged: Iterable[Ranked]) -> tuple[Ranked, ...]:
    """Return what is not cut."""
    return tuple(ranked for ranked in judged if not ranked.cut)


def _fused(ranked: Ranked, likeness: float | None, strongest: float, nearest: float) -> Ranked:
    words = ranked.score / strongest
    meaning = words if likeness is None else max(likeness, 0.0) / nearest if nearest > 0 else 0.0
    parts = {
        "lexical": round((1 - _MEANING) * words, 6),
        "semantic": round(_MEANING * meaning, 6),
    }
    score = round(sum(parts.values()), 6)
    return Ranked(ranked.path, score, ranked.terms, parts, ranked.cut)


def _cut(
    fused: Sequence[Ranked], near: Mapping[str, float], limit: int, *, floor: bool
) -> Iterable[Ranked]:
    room = limit
    best = fused[0].score if fused else 0.0
    for ranked in fused:
        if ranked.cut == BELOW_FLOOR and near.get(ranked.path, -1.0) < NEAR:
            cut = BELOW_FLOOR
        elif floor and ranked.score < _RELATIVE * best:
            cut = FAR_BELOW_BEST
        elif not room:
            cut = BEYOND_LIMIT
        else:
            cut = ""
            room -= 1
        yield Ranked(ranked.path, ranked.score, ranked.terms, ranked.parts, cut)
