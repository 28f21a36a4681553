"""What a dream did to the memories, and whether it may stand."""

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memd.core import limits
from memd.core.values import FileEdit, MemoryType
from memd.documents.document import parse
from memd.dream.judge import judge
from memd.dream.values import Contradiction, JudgeResult, Merge, Removal, Wanted
from memd.dream.verbatim import Verbatim
from tests.dream.judging import FEEDBACK, PROJECT, USER, file, judged, rule, wanted

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
WHY = "Tests hit a real database.\n\n**Why:** mocks passed and the migration broke."
REASON = "out of date"


def test_what_happened_is_computed() -> None:
    """A memory is created, changed, merged into one that says all it said, or removed."""
    before = {name: file(f"Fact {name}.") for name in ("a.md", "b.md", "c.md", "d.md", "e.md")}
    both = file("Fact a.md.\n\nFact b.md.")
    edits = {"a.md": both, "b.md": None, "c.md": None, "d.md": before["d.md"]}
    edits["new.md"] = file(WHY)
    assert judged(before, edits, {"b.md": "a.md"}, REASON) == JudgeResult(
        created=("new.md",),
        changed=("a.md",),
        merged=(Merge("a.md", "b.md"),),
        removed=(Removal("c.md", REASON),),
        lost=len(before["c.md"]),
    )


def test_nothing_wanted_is_no_problem() -> None:
    """A dream that wants nothing, or to remove what is not there, does nothing."""
    assert judge({}, Wanted()) == JudgeResult()
    assert judged({}, {"gone.md": None}, {"gone.md": "a.md"}) == JudgeResult()


def test_where_a_memory_went_need_not_be_said() -> None:
    """What exactly one memory carries that the dream wrote went there, whatever was said."""
    before = {"a.md": file("Known one."), "b.md": file("Known two.")}
    one = {"b.md": None, "a.md": file("Known one.\n\nKnown two.")}
    assert judged(before, one).merged == (Merge("a.md", "b.md"),)
    assert judged(before, one).problems == ()
    two = one | {"c.md": file("Known two.")}
    assert judged(before, two).merged == ()
    assert judged(before, two).problems == ("b.md would go without a reason",)
    moved = {"b.md": None, "new/b.md": before["b.md"]}
    assert judged(before, moved).merged == (Merge("new/b.md", "b.md"),)
    assert judged(before, {"b.md": None}).problems  # a.md says it not


def test_a_merge_into_what_is_gone_is_none() -> None:
    """A memory cannot go into itself or into one that is removed as well."""
    before = {"a.md": file("Same."), "b.md": file("Same.")}
    result = judged(before, {"a.md": None, "b.md": None}, {"a.md": "b.md", "b.md": "b.md"})
    assert result.merged == ()
    assert result.problems == (
        "a.md is said to be in b.md, which is not there",
        "b.md is said to be in b.md, which is not there",
    )


def test_a_claim_that_is_not_true_names_what_is_missing() -> None:
    """The problem of an untrue claim names both files and one sentence, cut."""
    before = {"a.md": file("Known."), "b.md": file(f"Known. {'Unheard word ' * 30}.")}
    result = judged(before, {"b.md": None}, {"b.md": "a.md"}, REASON)
    assert result.removed == (Removal("b.md", REASON),)
    (problem,) = result.problems
    assert problem.startswith("b.md is said to be in a.md, where this is missing: 'Unheard word")
    assert len(problem) < 200


def test_links_may_be_led_on() -> None:
    """A memory that goes is carried with its links led on, and nothing is contradicted by that."""
    before = {
        "a.md": file("Deploy on Friday."),
        "b.md": file("See [the other](b1.md) of them, and `b1.md`."),
        "b1.md": file("Port 5432."),
    }
    led = "See [the other](a.md) of them, and `b1.md`."
    for said in (led, "See [the other](b1.md) of them, and `b1.md`."):
        after = file(f"Deploy on Friday.\n\n{said}\n\nPort 5432.")
        edits = {"a.md": after, "b.md": None, "b1.md": None}
        result = judged(before, edits, {"b.md": "a.md", "b1.md": "a.md"})
        assert result.problems == ()
        assert len(result.merged) == 2
        assert result.contradictions == ()
    wrong = file("Deploy on Friday.\n\nSee [the other](c7.md) of them.\n\nPort 5432.")
    assert judged(before, {"a.md": wrong, "b.md": None, "b1.md": None}, {"b.md": "a.md"}).problems


def test_a_memory_may_be_split() -> None:
    """Several claims for one memory are true when the targets carry it together."""
    before = {"a.md": file("Uses tabs.\n\nHas pnpm.", PROJECT, "Uses tabs.")}
    tabs, pnpm = file("Uses tabs.", PROJECT, "Uses tabs."), file("Has pnpm.", PROJECT, "")
    edits = {"a.md": None, "b.md": tabs, "c.md": pnpm}
    merges = (Merge("b.md", "a.md"), Merge("c.md", "a.md"))
    split = Wanted(tuple(FileEdit(path, content) for path, content in edits.items()), merges)
    assert judge(before, split, total=9).merged == merges
    assert judge(before, split, total=9).problems == ()
    less = Wanted(split.edits[:2], (merges[0], Merge("gone.md", "a.md")))
    assert len(judge(before, less, total=9).problems) == 2
    worse = Wanted((*split.edits[:2], FileEdit("c.md", file("Uses tabs.", PROJECT, ""))), merges)
    assert len(judge(before, worse, total=9).problems) == 2


def test_what_has_no_type_may_be_a_persons_word() -> None:
    """A memory without a type is not removed for a reason and keeps each sentence."""
    before = {"a.md": b"Always use tabs. Be brief.\n", "b.md": file("Ovens bake.", PROJECT)}
    gone = "a.md has no type and may be a person's rule, but would go"
    assert judged(before, {"a.md": None}, reason="of no use").problems == (gone,)
    cut = "a.md has no type and may be a person's rule, but would lose 'Be brief.'"
    assert judged(before, {"a.md": file("Always use tabs.", PROJECT)}).problems == (cut,)
    both = file("Always use tabs. Be brief.", PROJECT)
    assert judged(before, {"a.md": both}).problems == ()
    whole = file("Ovens bake.\n\nAlways use tabs. Be brief.", PROJECT)
    assert judged(before, {"a.md": None, "b.md": whole}, {"a.md": "b.md"}).problems == ()
    less = file("Ovens bake.\n\nAlways use tabs, and be brief.", PROJECT)
    assert judged(before, {"a.md": None, "b.md": less}, {"a.md": "b.md"}).problems


@pytest.mark.parametrize("kind", [PROJECT, FEEDBACK])
def test_what_takes_others_in_is_shown_whole(kind: MemoryType) -> None:
    """Memories are not merged into one that recall shows in part where each was shown whole."""
    short, long = "Gates close at nine.", "Mirrors settle by night. " * 160
    before = {"a.md": file(short, kind), "b.md": file(long, kind)}
    both = file(f"{short}\n\n{long}\n\nAbout it", kind)
    said = "a.md would be longer than what is shown of it: 4096 bytes"
    assert judged(before, {"a.md": both, "b.md": None}, {"b.md": "a.md"}).problems == ()
    before["c.md"] = file("Ovens bake at noon. " * 20, kind)
    more = file(f"{short}\n\n{long}\n\n{'Ovens bake at noon. ' * 20}\n\nAbout it", kind)
    merges = {"b.md": "a.md", "c.md": "a.md"}
    assert judged(before, {"a.md": more, "b.md": None, "c.md": None}, merges).problems == (said,)
    merges = dict.fromkeys(before, "new.md")
    edits = dict.fromkeys(before) | {"new.md": more}
    assert judged(before, edits, merges).problems[0].startswith("new.md would be longer than")
    before["a.md"] = file(f"{short}{' ' * 5000}Ever.", kind)
    assert judged(before, {"a.md": before["a.md"].replace(b"Gates", b"gates")}).problems == ()
    hidden = {"a.md": file("Gates  close" + "\n" * 5000 + "at nine.", kind)}
    assert bool(judged({"a.md": file(short, kind)}, hidden).problems) is (kind is FEEDBACK)


@pytest.mark.parametrize("kind", [USER, FEEDBACK])
def test_what_people_said_never_just_goes(kind: MemoryType) -> None:
    """A user or feedback memory is not removed for any reason that names no target."""
    before = {"a.md": file("Prefers tabs.", kind)}
    result = judged(before, {"a.md": None}, reason="it looks old")
    assert result.removed == (Removal("a.md", "it looks old"),)
    assert result.problems == (f"a.md is a {kind} memory and would go without going into another",)


def test_what_people_said_goes_into_no_other_kind() -> None:
    """A person's rule that goes into a project memory word for word is a problem all the same."""
    before = {"a.md": rule("Prefers tabs."), "p.md": file("A fact.", PROJECT)}
    edits = {"a.md": None, "p.md": file("A fact.\n\nPrefers tabs. About it", PROJECT)}
    says = "a.md is a feedback memory and would go into p.md, which is none"
    assert judged(before, edits, {"a.md": "p.md"}, REASON).problems == (says,)
    assert judged(before, edits, reason=REASON).merged == ()
    assert judged(before, edits, reason=REASON).problems


@pytest.mark.parametrize(
    ("reason", "fine"), [("", False), ("old", False), ("  ", False), ("过时", True), (REASON, True)]
)
def test_nothing_evaporates(reason: str, *, fine: bool) -> None:
    """A memory that goes without a reason of two words is a problem."""
    problems = judged({"a.md": file("A fact.")}, {"a.md": None}, reason=reason).problems
    assert problems == (() if fine else ("a.md would go without a reason",))


def test_a_reason_is_not_lost() -> None:
    """A memory that says why still says why afterwards, or where it went does."""
    before = {"a.md": file(WHY), "b.md": file("Other.")}
    says = "a.md would lose its reason: 'why: mocks passed and the migration broke.'"
    assert judged(before, {"a.md": file("Tests hit a real database.")}).problems == (says,)
    assert judged(before, {"a.md": file(WHY.replace("mocks", "**Why:** other"))}).problems == ()
    emptied = file("Tests hit a real database.\n\n**Why:** because.")
    assert judged(before, {"a.md": emptied}).problems == (says,)
    assert judged(before, {"a.md": file(WHY + " Yes.")}).problems == ()
    split = {"a.md": file("Tests hit a real database."), "b.md": file("Other.\n\n" + WHY)}
    assert judged(before, split, {"a.md": "b.md"}).problems == ()


@pytest.mark.parametrize("path", ["a.md", "new.md", "MEMORY.md"])
def test_no_secret_comes_in(path: str) -> None:
    """A new text with a secret is a problem that names rule and line; nothing quotes it."""
    said = f"# Token\n\nThe token is {SECRET}, a person's word."
    edits: dict[str, bytes | None] = {path: rule(said) if path == "a.md" else said.encode()}
    result = judged({"a.md": rule("The token is secret.")}, edits)
    assert result.secrets == (path,)
    assert "would hold what looks like a secret in line" in result.problems[0]
    assert SECRET[8:20] not in repr(result)


def test_a_secret_that_was_there_is_no_news() -> None:
    """A file that held a secret may change elsewhere, but may not get another one."""
    before = {"a.md": file(f"Token {SECRET}\n\nA long fact.")}
    after = file(f"New line.\n\nToken {SECRET}\n\nA long fact.")
    assert judged(before, {"a.md": after}).secrets == ()
    other = after.replace(SECRET.encode(), SECRET[::-1].replace("_phg", "").encode() + b"xY")
    other = other.replace(b"Token ", b"Token ghp_")
    assert judged(before, {"a.md": other}).secrets == ("a.md",)
    reason = judged({"a.md": file("Fact.")}, {"a.md": None}, reason=f"holds {SECRET}").removed
    assert SECRET not in reason[0].reason


BROKEN = b"---\nname: a\ndescription: one\nno key\ntype: user\n---\n\nText.\n"
READ = b"---\nname: a\ndescription: note: one\ntype: user\n---\n\nText.\n"


@pytest.mark.parametrize("content", [None, b"mended", BROKEN.replace(b"no key\n", b"")])
def test_a_damaged_file_is_not_touched(content: bytes | None) -> None:
    """A file whose head does not parse is neither changed nor removed, nor made."""
    result = judged({"a.md": BROKEN}, {"a.md": content}, reason=REASON)
    assert "a.md is damaged and would be touched" in result.problems
    assert judged({"a.md": BROKEN}, {"a.md": BROKEN}) == JudgeResult()
    assert "a.md would be damaged" in judged({"a.md": READ}, {"a.md": BROKEN}).problems


def test_a_head_may_be_mended() -> None:
    """What memd reads and others refuse may be written so that everybody reads it."""
    mended = READ.replace(b"note: one", b'"note: one"')
    assert judged({"a.md": READ}, {"a.md": mended}) == JudgeResult(changed=("a.md",))
    assert judged({"a.md": READ}, {"a.md": mended.replace(b"note", b"not")}).problems


def test_a_memory_keeps_a_type_and_its_size() -> None:
    """No memory loses its type, and none becomes larger than memories may be."""
    before = {"a.md": file("Fact.")}
    assert "a.md would lose its type" in judged(before, {"a.md": b"Fact. About it"}).problems
    (problem,) = judged(before, {"a.md": file("Fact. " * 20_000)}).problems
    assert problem.startswith("a.md would have 120")


@pytest.mark.parametrize("path", ["logs/2026/03/a.md", ".hidden.md", "sub/MEMORY.md", "a.txt"])
def test_a_memory_goes_where_memories_are(path: str) -> None:
    """A rule that moves to where nothing is recalled is a problem."""
    before = {"a.md": rule("Use tabs.")}
    problems = judged(before, {"a.md": None, path: before["a.md"]}, {"a.md": path}).problems
    assert problems == (f"{path} is no place for a memory",)


def test_what_contradicts_is_told() -> None:
    """A sentence that went and one that stays and denies it are shown, at most twenty, cut."""
    before = {"a.md": file("The port is 5432 on staging.\n\nCoffee is at nine.")}
    result = judged(before, {"a.md": file("The port is 5433 on staging.")})
    gone, stays = "The port is 5432 on staging.", "The port is 5433 on staging."
    assert result.contradictions == (Contradiction("a.md", gone, stays),)
    assert result.problems == ()
    many = {"a.md": file("\n\n".join(f"The port of {n} is {n}{'x' * 300}." for n in range(30)))}
    other = file("\n\n".join(f"The port of {n} is {n}{'y' * 300}." for n in range(30)))
    results = judged(many, {"a.md": other}).contradictions
    assert len(results) == 20
    assert max(len(item.gone) for item in results) <= 200
    removed = judged(before, {"a.md": None, "b.md": file("The port is 5433 on staging.")})
    assert [item.stays for item in removed.contradictions] == [stays]


_WORDS = st.sampled_from(["never", "use", "tabs", "always", "pnpm,", "npm", "the", "5432", "Ana"])
_SENTENCES = st.lists(_WORDS, min_size=1, max_size=5).map(lambda words: " ".join(words) + ".")
_LINES = _SENTENCES | st.sampled_from(
    ["- item. Two.", "Do not:", "# Head", "> quoted", "**Why:** it broke.", "**Never** so.", ""]
)
_BODIES = st.lists(_LINES, min_size=1, max_size=6).map("\n\n".join)


@settings(max_examples=150, deadline=None)
@given(st.lists(_BODIES, min_size=1, max_size=3), st.lists(_BODIES | st.none(), max_size=3))
def test_no_dream_loses_a_sentence_of_a_person(old: list[str], new: list[str | None]) -> None:
    """Whatever a dream does: where there is no problem, each sentence stands as it did."""
    before = {f"{n}.md": rule(body) for n, body in enumerate(old)}
    edits = {f"{n}.md": None if body is None else rule(body) for n, body in enumerate(new)}
    merges = {path: "0.md" for path, content in edits.items() if content is None}
    result = judged(before, edits, merges, REASON)
    after = {path: content for path, content in (before | edits).items() if content is not None}
    forms = [Verbatim(parse(content, path)).forms for path, content in after.items()]
    for path, content in before.items():
        for said in Verbatim(parse(content, path)).sentences:
            assert result.problems or any(said.stand in there for there in forms)


@settings(max_examples=100, deadline=None)
@given(st.lists(_BODIES, min_size=2, max_size=4))
@example(["Do not:\n\n- item. Two.", "never use tabs."])
def test_merging_by_concatenation_is_let_through(bodies: list[str]) -> None:
    """A project memory that takes others in by appending all they say carries them."""
    before = {f"{n}.md": file(body, PROJECT) for n, body in enumerate(bodies)}
    whole = file("\n\n".join(bodies), PROJECT)
    edits = dict.fromkeys(before) | {"0.md": whole}
    result = judged(before, edits, dict.fromkeys(list(before)[1:], "0.md"))
    assert result.problems == ()
    assert len(result.merged) == len(bodies) - 1


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(_SENTENCES, min_size=1, max_size=4), min_size=2, max_size=4))
def test_rules_may_be_put_together(bodies: list[list[str]]) -> None:
    """Rules without headings go into one another by appending all they say."""
    before = {f"{n}.md": rule("\n\n".join(said)) for n, said in enumerate(bodies)}
    edits: dict[str, bytes | None] = dict.fromkeys(before)
    edits["0.md"] = rule("\n\n".join(line for said in bodies for line in said))
    assert judged(before, edits, dict.fromkeys(list(before)[1:], "0.md")).problems == ()


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 9), st.data())
def test_no_deletion_without_a_reason_passes(total: int, data: st.DataObject) -> None:
    """Removing any of some memories that say different things without a word is a problem."""
    before = {f"{n}.md": file(f"Fact number {n}.") for n in range(total)}
    gone = data.draw(st.lists(st.sampled_from(sorted(before)), min_size=1, unique=True))
    problems = judge(before, wanted(dict.fromkeys(gone)), total=total).problems
    assert len(problems) >= len(gone)


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(st.sampled_from(["a.md", "b.md"]), st.binary(max_size=80)),
    st.dictionaries(st.sampled_from(["a.md", "c.md", "MEMORY.md"]), st.binary() | st.none()),
    st.dictionaries(st.sampled_from(["a.md", "c.md"]), st.text(max_size=5)),
    st.binary() | st.none(),
)
def test_no_bytes_are_too_odd(
    before: dict[str, bytes],
    edits: dict[str, bytes | None],
    merges: dict[str, str],
    index: bytes | None,
) -> None:
    """Whatever the bytes are, there is a judged."""
    head = b"---\ntype: feedback\n---\n"
    for front in (b"", head):
        old = {path: front + content for path, content in before.items()}
        requested = wanted(edits, merges, "x y")
        assert isinstance(judge(old, requested, index=index, total=9, total_bytes=9), JudgeResult)


def _seconds(before: dict[str, bytes], edits: dict[str, bytes | None], source: str) -> float:
    """Return the least of three times that judging takes of the processor."""
    requested = wanted(edits, {source: "0.md"}, REASON)
    times = []
    for _ in range(3):
        began = time.process_time()
        judge(before, requested, index=b"- x\n", total=150, total_bytes=150_000)
        times.append(time.process_time() - began)
    return min(times)


@pytest.mark.soak
def test_judging_is_quick() -> None:
    """A dream that writes 150 memories of 1 KB is judged in 0.3 s, 64 KiB of anything in 2 s."""
    sentence = "Word{} of team {} waits behind the review of branch {} until somebody has seen it."
    texts = [
        " ".join(sentence.format(n * k % 997, k % 7, n + k) for k in range(13)) for n in range(150)
    ]
    kinds = (USER, FEEDBACK, PROJECT, PROJECT)
    before = {f"{n}.md": file(text, kinds[n % 4]) for n, text in enumerate(texts)}
    shorter = [text[: 40 + len(text) * 3 // 4] for text in texts]
    edits = {f"{n}.md": file(text, kinds[n % 4]) for n, text in enumerate(shorter)}
    assert _seconds(before, {**edits, "149.md": None}, "149.md") < 0.3
    size = limits.MEMORY_BYTES - 200
    odd = [
        " ".join(f"S{n}." for n in range(10_000)),
        "Port 1 on it. " * 5000,
        "- **a:** b. c\n" * 5000,
    ]
    odd += ["<!--\n\n" * 9999, "# h\n## i\n" * 7000, "```\n" * 20_000, "word " * 13_000]
    odd += [
        " ".join(f"Port {n} is on it." for n in range(4000)),
        "\n".join(" " * n + "- a:" for n in range(350)),
    ]
    for text in (text[:size] for text in odd):
        for kind in (PROJECT, FEEDBACK):
            large = {"0.md": file(text, kind), "1.md": file(text.replace("o", "a"), kind)}
            after = file(text.replace("1", "2") + " x", kind)
            assert _seconds(large, {"0.md": after, "1.md": None}, "1.md") < 2
