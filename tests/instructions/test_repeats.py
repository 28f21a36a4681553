"""Whether instruction files say a text already; ``said`` holds data that others wrote."""

import re
import time
from functools import cache
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memd.core.covered import Covered
from memd.instructions.repeats import covered
from memd.text.bounds import DENIAL
from memd.text.statements import Statement, statements

DATA = Path(__file__).with_name("said")
TEXTS = {path.name: path.read_text("utf-8") for path in sorted((DATA / "files").iterdir())}
HALVES = {"chosen by": 1, "held out": 0}  # the files by their number, odd or even
DENYING = re.compile(r"\b(?:nothing|instead|rather|avoid|dont|nichts)\b", re.IGNORECASE)
# The file says "Never push", too.
BESIDE = ("I push myself, usually late in the evening.",)
NOUNS = """
cache queue parser worker invoice token branch schema linter cluster widget retry report module
session kernel buffer socket
"""
WORDS = st.sampled_from(NOUNS.split())
NAMES = st.lists(WORDS, min_size=3, max_size=3, unique=True)


@cache
def of(*names: str) -> Covered:
    """Return what tells of some of the files."""
    return covered({name: TEXTS[name] for name in names})


def rows(name: str, half: int) -> list[list[str]]:
    """Return the rows of a table that are about one half of the files."""
    lines = (DATA / name).read_text("utf-8").splitlines()[1:]
    return [row for row in (line.split("\t") for line in lines) if int(row[0][:2]) % 2 == half]


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
def test_what_files_say_is_told_from_what_is_news(half: int) -> None:
    """At least 94 of 100 quotations and light paraphrases are known, of what is news none."""
    repeats, fresh = rows("repeats.tsv", half), rows("fresh.tsv", half)
    known = [row for row in repeats if of(row[0])(row[2])]
    assert len(known) >= 0.94 * len(repeats), (len(known), len(repeats))
    assert [row for row in fresh if of(row[0])(row[1])] == []


def test_all_files_together_say_no_more() -> None:
    """95 of 100 are known, and with all files at once hardly any news is taken for a repetition."""
    every = of(*TEXTS)
    repeats = [row for half in HALVES.values() for row in rows("repeats.tsv", half)]
    fresh = [row for half in HALVES.values() for row in rows("fresh.tsv", half)]
    assert sum(every(row[2]) == row[0] for row in repeats) >= 0.94 * len(repeats)
    assert sum(bool(every(row[2])) for row in repeats) >= 0.95 * len(repeats)
    assert sum(bool(every(row[1])) for row in fresh) <= 0.02 * len(fresh)


@pytest.mark.parametrize("name", TEXTS)
def test_a_file_says_its_own_sentences_and_not_their_opposite(name: str) -> None:
    """Each statement is known, and with a denial it is news; a number more makes it news, too."""
    for one in statements(TEXTS[name]):
        assert of(name)(one.raw) == name, one.raw
        plain = not DENYING.search(one.raw) and not one.raw.startswith(("#", "`", "|"))
        if plain and DENIAL not in one.limits and one.raw not in BESIDE:
            assert of(name)(f"Never {one.raw[:1].lower()}{one.raw[1:]}") == "", one.raw
        assert of(name)(f"{one.raw.rstrip('.')} and 4711 more.") == ""


@given(NAMES, st.sampled_from(["never", "not", "no longer", "by no means"]))
def test_a_negation_is_news(names: list[str], denial: str) -> None:
    """What a file says of three things is known; denied, or the other way round, it is not."""
    one, two, three = names
    said = covered({"/p/AGENTS.md": f"# Rules\n\n- The {one} must use the {two} of the {three}.\n"})
    assert said(f"The {one} must use the {two} of the {three}.") == "/p/AGENTS.md"
    assert said(f"the {one} should always use the {two} of the {three}") == "/p/AGENTS.md"
    assert said(f"The {one} must {denial} use the {two} of the {three}.") == ""
    denied = covered({"f": f"- The {one} must {denial} use the {two} of the {three}.\n"})
    assert denied(f"The {one} must use the {two} of the {three}.") == ""
    assert denied(f"The {one} must never use the {two} of the {three}.") == "f"


@given(NAMES, WORDS)
def test_another_value_is_news(names: list[str], other: str) -> None:
    """One word in the place of another, a number, or an exception is what the file does not say."""
    one, two, three = names
    assume(other not in names)
    said = covered({"f": f"The {one} goes to the {two} after the {three}, 5 times.\n"})
    for text in (
        f"The {other} goes to the {two} after the {three}.",
        f"The {one} goes to the {other} after the {three}.",
        f"The {one} goes to the {two} after the {other}.",
        f"The {one} goes to the {two} after the {three}, 6 times.",
        f"The {one} goes to the {two} after the {three}, except on the {other}.",
    ):
        assert said(text) == "", text


def test_what_stands_under_a_denial_is_denied() -> None:
    """The heading and the line above a list count for each of its items."""
    assert covered({"f": "Use pnpm here."})("Never, ever: use pnpm here!") == ""
    for above in ("## Never do this", "Do not:", "- Never:"):
        indent = "  " if above.startswith("-") else ""
        said = covered({"f": f"{above}\n\n{indent}- push to the main branch\n"})
        assert said("Push to the main branch.") == ""
        assert said("Never push to the main branch.") == "f"


def test_a_memory_is_known_where_all_that_it_states_is() -> None:
    """Evidence and reasons do not count; one sentence that no file has makes it news."""
    said = covered({"a": "Use pnpm for packages.", "b": "- Tests need a real database."})
    known = "Use pnpm for packages.\n\nTests need a real database.\n"
    assert said(known) == "a"
    assert said(f'{known}\n**Why:** It broke.\n\n**Said:** "use pnpm" (2026-03-03)\n') == "a"
    assert said(f"{known}\nThe registry is mirrored in Bergen.\n") == ""
    assert said('**Said:** "Use pnpm for packages."') == ""
    assert said("") == ""


@given(st.text(), st.text())
def test_junk_is_no_error(text: str, other: str) -> None:
    """Whatever files and candidates hold, there is an answer, and nothing says nothing."""
    said = covered({"f": text})
    assert said(other) in ("", "f")
    assert covered({})(text) == ""
    assert said("") == ""
    for one in statements(text):
        words = Statement(one.raw).words
        assert said(one.raw) in ("", "f") if words else True


@pytest.mark.parametrize(
    "piece",
    ["word ", "word, ", "a b c d e f ", "- x\n  ", "`", "# h\n", "not ", "1.", "\u4e0d", "|x|y|\n"],
)
def test_work_is_linear(piece: str) -> None:
    """A file and a candidate that are made to be compared again and again cost little."""
    text = piece * (30_000 // len(piece))
    begun = time.process_time()
    said = covered({"f": text, "g": "Use pnpm."})
    said(text)
    said(text[:60_000])
    assert said("Use pnpm.") == "g"
    assert time.process_time() - begun < 4
