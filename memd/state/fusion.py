"""Two opinions on which memories fit a prompt become one order: by words and by meaning. Pure.

Rules of this file
- Silence is decided by the words alone. Where no memory passes the floor of ``scoring``, meaning
  brings none: some memory is always the nearest to whatever is said.
- Beside an answer by words a memory that brings too few of them, or none, needs a floor of its
  own: a likeness of ``NEAR``.
- Each opinion counts as a share of its best, half and half. That sum was better than reciprocal
  ranks when measured (0.757 and 0.741 of recall@5), because it keeps how sure each one is.
- A memory whose vector is not computed yet counts by its words alone, as if meaning agreed with
  them; without any vector the order is that of the words, unchanged.
- The nearer a memory, all else equal, the earlier it comes.
"""

from collections.abc import Iterable, Mapping, Sequence

from memd.state.scoring import BELOW_FLOOR, BEYOND_LIMIT, FAR_BELOW_BEST, Ranked

NEAR = 0.3  # of the way from unrelated texts to the same text; chosen, not measured
_MEANING = 0.5  # of the fused score
_RELATIVE = 0.25  # of the best fused score, as among words alone


def fuse(
    lexical: Sequence[Ranked], near: Mapping[str, float], limit: int, *, floor: bool = True
) -> tuple[Ranked, ...]:
    """Return what both opinions weigh, the best first, and why some of it is cut.

    ``lexical`` is the judgement by words, in its order; ``near`` holds the likeness of every memory
    in it that has a vector, and of the nearest ones beside it.
    """
    stands = any(ranked.cut in {"", BEYOND_LIMIT} for ranked in lexical)
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
