"""Which memories become one, and what becomes of their words."""

import pytest

from memd.core import limits
from memd.core.values import MemoryType
from memd.documents import document
from memd.dream.material import Memory, gather
from memd.dream.merging import carries, merge_all
from memd.dream.values import Merge
from tests.dream.shelf import Shelf

LINES = (
    "Deploys go out on Tuesday after the weekly review.",
    "The on-call engineer watches the dashboards for an hour.",
    "Whatever looked odd is written down for the next one.",
    "Nobody merges to the main branch before that.",
)
TEXT = " ".join(LINES)


def _file(body: str, kind: MemoryType = MemoryType.REFERENCE) -> bytes:
    return document.new("deploys", "How deploys go out", kind, body, session="", modified="")


def _memories(*files: bytes) -> tuple[Memory, ...]:
    return gather(Shelf({f"m{number}.md": file for number, file in enumerate(files)})).memories


def _bodies(*files: bytes, room: int = 100, hook: str = "") -> list[str]:
    hooks = {f"m{number}.md": hook for number in range(len(files))}
    kept, _ = merge_all(_memories(*files), room, hooks)
    return [memory.body for memory in kept]


@pytest.mark.parametrize("kind", [MemoryType.PROJECT, MemoryType.USER])
@pytest.mark.parametrize(
    "variant",
    [
        TEXT,
        TEXT.upper(),
        " ".join(reversed(LINES)),
        "* " + "\n* ".join(LINES),
        TEXT.replace("weekly", "**weekly**").replace("odd", "*odd*"),
        TEXT.replace(" after", ", after").replace(".", "!"),
        f"{TEXT} Ana knows more about it.",
        f"{TEXT}\n\n(noted 2026-03-02)",
    ],
)
def test_near_duplicates_become_one(variant: str, kind: MemoryType) -> None:
    """What differs in order, bullets, emphasis, case, marks or by one sentence is one memory."""
    kept, merges = merge_all(_memories(_file(TEXT, kind), _file(variant, kind)), 10, {})
    assert len(merges) == 1
    assert carries(kept[0])


@pytest.mark.parametrize(
    "variant",
    [
        TEXT.replace("Tuesday", "Thursday"),
        TEXT.replace("an hour", "two hours"),
        TEXT.replace("Nobody merges", "Somebody merges"),
        TEXT.replace("main branch", "release branch"),
        TEXT.replace("is written", "is never written"),
        f"# Staging\n\n{TEXT}",
    ],
)
def test_contradictions_stay_apart(variant: str) -> None:
    """A word that each has for itself, a "not" or another heading keeps two memories apart."""
    assert len(_bodies(_file(TEXT), _file(variant))) == 2


def test_what_is_added_must_mean_the_same_there() -> None:
    """Under headings, in tables and below items nothing is moved; whole texts still merge."""
    under = f"# Do\n\n{TEXT}"
    assert len(_bodies(_file(f"{under}\n\n- mock"), _file(f"{under}\n\n- lint more and more"))) == 2
    assert len(_bodies(_file(under), _file(f"{under} Ana knows."))) == 1
    below = f"{TEXT}\n\n- a b c d"
    assert len(_bodies(_file(f"{below}\n- one of it all"), _file(f"{below}\n  - two"))) == 2
    assert len(_bodies(_file(f"{below}\n- one of it all"), _file(f"{below}\n- two"))) == 1


def test_rules_move_in_whole_paragraphs() -> None:
    """Of a person's rule nothing is taken out of its paragraph."""
    rich, poor = f"{TEXT}\n\nOne more that is long.", f"{TEXT} Never on Friday."
    (rule,) = _bodies(_file(rich, MemoryType.FEEDBACK), _file(poor, MemoryType.FEEDBACK))
    assert rule == f"{rich}\n\n{poor}\n"
    (fact,) = _bodies(_file(rich), _file(poor))
    assert fact == f"{rich}\n\nNever on Friday.\n"


def test_what_the_index_says_must_stand_there() -> None:
    """A hook with a number, a name or a "not" that no memory says keeps its memory."""
    twice = (_file(TEXT), _file(TEXT))
    assert len(_bodies(*twice, hook="how deploys are done")) == 1
    for hook in ("deploys on port 5432", "deploys with Ana", "never deploys"):
        assert len(_bodies(*twice, hook=hook)) == 2


def test_what_would_be_hidden_stays_apart() -> None:
    """Two memories that recall shows whole do not become one that it cuts."""
    own = "".join(f"Mirror {number} settles by night. " for number in range(130))
    body = f"{own}{TEXT} "
    fits = _file(body + "o" * (limits.SURFACED_BYTES - len(body) - 5))
    assert len(_bodies(fits, _file(f"{TEXT} Ana knows more about it."))) == 2
    assert len(_bodies(fits, _file(TEXT))) == 1


def test_merging_ends_where_the_change_set_is_full() -> None:
    """Each merge may touch two files; what has no room waits for the next pass."""
    files = [_file(TEXT)] * 5
    assert [len(_bodies(*files, room=room)) for room in (0, 1, 2, 3, 4, 100)] == [5, 5, 4, 4, 3, 1]


def test_who_took_in_another_one_may_go_itself() -> None:
    """A merge names where the text is in the end."""
    second = TEXT.replace("an hour", "one hour")
    files = (
        _file(f"{TEXT} Ana knows."),
        _file(f"{second} Ana knows. Bob too."),
        _file(f"{second} Ana knows. Bob too. So does Cy, and often."),
    )
    _, merges = merge_all(_memories(*files), 100, {})
    assert set(merges) == {Merge("m2.md", "m0.md"), Merge("m2.md", "m1.md")}


def test_a_memory_carries_its_sources() -> None:
    """A text that lacks a sentence of what went in does not carry it."""
    kept, _ = merge_all(_memories(_file(TEXT), _file(f"{TEXT} Ana knows.")), 100, {})
    assert carries(kept[0])
    assert not carries(kept[0].with_text("Something else."))
