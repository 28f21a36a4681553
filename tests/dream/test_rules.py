"""What a dream may do with a person's own rules."""

import pytest

from memd.core.values import MemoryType
from memd.documents.document import Document, new, parse, with_fields
from memd.dream.rules import foreign_line, written, wrong_date
from tests.dream.judging import FEEDBACK, PROJECT, REFERENCE, USER, file, judged, rule

RULE = (
    "Never push to main without a review. Use pnpm, not npm.\n\n"
    "- rebase before you merge, and squash what is only noise in the log of the branch\n\n"
    "**Why:** a bad push broke the release."
)
WHOLE = "Freeze on Friday.\n\n**Why:** a freeze broke."
LISTS = "Do this:\n- mock the clock\n\nDo not do this:\n- sleep in tests"


@pytest.mark.parametrize(
    "after",
    [
        RULE.replace("Never", "Always"),
        RULE.replace("pnpm, not npm", "npm, not pnpm"),
        RULE.replace("only", "also"),
        RULE.replace("Never push", "Push"),
        RULE + "\n\nUnless asked otherwise.",
        RULE.replace("review.", "review, unless asked otherwise."),
        RULE.replace("Use pnpm, not npm.", "Use pnpm, not npm. Sometimes."),
        f"```\n{RULE}\n```",
        "\n".join(f"> {line}" for line in RULE.split("\n")),
        "\n".join(f"    {line}" for line in RULE.split("\n")),
        f"Outdated:\n\n{RULE}",
        f"# Outdated\n\n{RULE}",
        f"**Do not do this:** {RULE}",
        f"Do not do this:\n{RULE}",
        f"<!--\n\n{RULE}\n\n-->",
        f"<!-- {RULE} -->",
        f"~~{RULE}~~",
        RULE.replace("**Why:** ", "**Why not:** "),
        RULE.replace("\n\n**Why:** a bad push broke the release.", ""),
        RULE.replace("without a review. Use pnpm", "without a review, use pnpm"),
        "Use pnpm, not npm. Never push to main without a review." + RULE.partition("not npm.")[2],
        "",
    ],
)
def test_no_rule_becomes_another(after: str) -> None:
    """A rule turned round, softened, hidden, quoted, put under a heading or cut is a problem."""
    for kind in (USER, FEEDBACK):
        before = {"a.md": file(RULE, kind)}
        assert judged(before, {"a.md": file(RULE, kind)}).problems == ()
        assert judged(before, {"a.md": file(after, kind)}).problems


def test_the_sentence_is_named() -> None:
    """A problem names what would be reworded, and what would be new."""
    problems = judged(
        {"a.md": rule(RULE)}, {"a.md": rule(RULE.replace("Never", "Always"))}
    ).problems
    assert problems == (
        "a.md would be reworded: 'Never push to main without a review.'",
        "a.md would say something new as a person's word: 'Always push to main without a review.'",
    )


def test_a_list_keeps_its_heading() -> None:
    """The same sentences under each other's headings, or in another order, are a problem."""
    before = {"a.md": rule(LISTS)}
    for one, two in (("mock the clock", "sleep in tests"), ("Do this:", "Do not do this:")):
        swapped = LISTS.replace(two, "\0").replace(one, two).replace("\0", one)
        assert judged(before, {"a.md": rule(swapped)}).problems
    first, second = LISTS.split("\n\n")
    (problem,) = judged(before, {"a.md": rule(f"{second}\n\n{first}")}).problems
    assert problem.startswith("a.md would be reordered at ")
    other = {"a.md": rule(LISTS), "b.md": rule("- use tabs")}
    assert judged(other, {"a.md": rule(LISTS + "\n- use tabs\n\nAbout it"), "b.md": None}).problems


def test_sentences_stay_together() -> None:
    """A sentence of another rule does not come between two that belong together."""
    before = {"a.md": rule("Friday deploys broke us. Never do this."), "b.md": rule("Use tabs.")}
    edits = {"a.md": rule("Friday deploys broke us. Use tabs. Never do this."), "b.md": None}
    assert judged(before, edits, {"b.md": "a.md"}).problems == (
        "a.md would have 'Use tabs.' behind another sentence than before",
    )


def test_a_rule_stays_whole_where_it_goes() -> None:
    """The paragraphs of a rule keep their order and stay together in the rule that takes it in."""
    before = {"a.md": rule("Squash.\n\n**Why:** noise.", ""), "b.md": rule(f"{WHOLE}", "")}
    fine = f"Squash.\n\n**Why:** noise.\n\n{WHOLE}"
    for after, problem in (
        (fine, ""),
        (
            f"Squash.\n\n{WHOLE}\n\n**Why:** noise.",
            "a.md would have something else before 'noise.'",
        ),
        (
            "Squash.\n\n**Why:** noise.\n\n**Why:** a freeze broke.\n\nFreeze on Friday.",
            "b.md in a.md would be reordered at 'a freeze broke.'",
        ),
        (
            "Freeze on Friday.\n\nSquash.\n\n**Why:** noise.\n\n**Why:** a freeze broke.",
            "b.md in a.md would have something else before 'a freeze broke.'",
        ),
    ):
        result = judged(before, {"a.md": rule(after, ""), "b.md": None}, {"b.md": "a.md"})
        assert result.problems == ((problem,) if problem else ())
    renamed = {"b.md": None, "a.md": before["a.md"], "c.md": rule(WHOLE, "")}
    assert judged(before, renamed).problems == ()
    renamed["c.md"] = rule("\n\n".join(reversed(WHOLE.split("\n\n"))), "")
    assert judged(before, renamed).problems == (
        "b.md in c.md would be reordered at 'a freeze broke.'",
    )


def test_rules_that_share_sentences_merge() -> None:
    """Sentences that several rules bring along need not follow the order of each."""
    before = {"a.md": rule("X.", ""), "b.md": rule("A.\n\nB.", ""), "c.md": rule("B.\n\nA.", "")}
    edits = {"a.md": rule("X.\n\nA.\n\nB.", ""), "b.md": None, "c.md": None}
    assert judged(before, edits, {"b.md": "a.md", "c.md": "a.md"}).problems == ()


def test_rules_merge_and_dates_become_absolute() -> None:
    """Rules may go into one another whole, and a relative day may get its date."""
    before = {"a.md": rule(RULE), "b.md": file("The freeze starts Thursday.", USER, "Release day")}
    whole = f"{RULE}\n\nThe freeze starts Thursday (2026-01-08).\n\nRelease day"
    edits = {"a.md": rule(whole), "b.md": None}
    assert judged(before, edits, {"b.md": "a.md"}).problems == ()
    edits["a.md"] = rule(f"{RULE}\n\nThe freeze starts Thursday.\n\nAbout it", "Release day")
    assert judged(before, edits, {"b.md": "a.md"}).problems == ()
    edits["a.md"] = rule(f"{RULE}\n\nThe freeze starts Thursday.\n\nAbout it", "On releases")
    assert judged(before, edits, {"b.md": "a.md"}).problems


@pytest.mark.parametrize(
    ("said", "dated", "fine"),
    [
        ("The freeze starts Thursday.", "The freeze starts Thursday (2026-01-08).", True),
        ("The freeze starts Thursday.", "The freeze starts Thursday (2020-01-02).", False),
        ("Never push on a Friday.", "Never push on a Friday (2026-01-02).", False),
        ("Never push.", "Never push (2026-01-02).", False),
        ("Never push (2026-01-02).", "Never push (2027-01-02).", False),
    ],
)
def test_a_date_is_the_one_that_was_meant(said: str, dated: str, *, fine: bool) -> None:
    """No date comes behind what has none, and none but that of the time when it was written."""
    problems = judged({"a.md": rule(said)}, {"a.md": rule(dated)}).problems
    assert (problems == ()) is fine


@pytest.mark.parametrize(
    ("said", "part"),
    [
        ("Do none of these. Push to main. Skip tests.", "Push to main. Skip tests."),
        ("Run it by hand.\n\nThat was before May.", "Run it by hand."),
        ("Use tabs.\n\nNever mind this.\n\nPrefer npm.", "Prefer npm.\n\nUse tabs."),
    ],
)
def test_no_part_of_a_rule_stands_alone(said: str, part: str) -> None:
    """A sentence of a rule comes into no other rule, and makes no new one, without the rest."""
    before = {"a.md": rule(said, ""), "b.md": rule("Be brief.", "")}
    (problem,) = judged(before, {"b.md": rule(f"Be brief.\n\n{part}", "")}).problems
    assert problem.startswith("b.md would say a part of a rule without the rest: ")
    (problem,) = judged(before, {"a_name.md": rule(part, "")}).problems
    assert problem.startswith("a_name.md would say a part of a rule without the rest: ")
    assert judged(before, {"b.md": rule(f"Be brief.\n\n{said}", "")}).problems == ()
    split = {"a.md": None, "c.md": rule(said, "")}
    assert judged(before, split).problems == ()


def test_a_copy_of_a_rule_is_whole() -> None:
    """A rule that is said a second time stands there in its order too."""
    before = {"a.md": rule("Push by hand.\n\nNever do this.", ""), "b.md": rule("Brief.", "")}
    copied = rule("Never do this.\n\nPush by hand.\n\nBrief.", "")
    (problem,) = judged(before, {"b.md": copied}).problems
    assert problem == "b.md would have a rule in pieces at 'Never do this.'"


@pytest.mark.parametrize(
    ("said", "after"),
    [
        ("Delete it with `git branch -d`.", "Delete it with `git branch -D`."),
        ("Delete it with git branch -d.", "Delete it with git branch -D."),
        ("Never import `__all__`.", "Never import `all`."),
        ("Read docs/README.", "Read docs/readme."),
    ],
)
def test_case_counts_in_code(said: str, after: str) -> None:
    """Case and underlines are dress in prose alone."""
    assert judged({"a.md": rule(said)}, {"a.md": rule(after)}).problems
    dressed = said.replace("Delete", "**DELETE**").replace("Never", "NEVER").replace("Read", "read")
    assert judged({"a.md": rule(said)}, {"a.md": rule(dressed)}).problems == ()


def test_no_memory_becomes_a_persons_word() -> None:
    """What was no rule becomes none, by its type or by going into one."""
    before = {"p.md": file("Uses tabs.", PROJECT), "a.md": rule("Prefers vim.")}
    assert judged(before, {"p.md": rule("Uses tabs.", "")}).problems == (
        "p.md would change its type from project to feedback",
        "p.md would say something new as a person's word: 'Uses tabs.'",
    )
    edits = {"p.md": None, "a.md": rule("Prefers vim.\n\nUses tabs.\n\nAbout it")}
    assert judged(before, edits, {"p.md": "a.md"}).problems == (
        "a.md would say something new as a person's word: 'Uses tabs.'",
    )
    assert judged(before, {"new.md": rule("Uses tabs.")}).problems
    assert judged({"u.md": b"Bare."}, {"u.md": rule("Bare.", "Bare")}).problems[0] == (
        "u.md would change its type from none to feedback"
    )


@pytest.mark.parametrize("kind", [PROJECT, REFERENCE, USER])
def test_no_rule_becomes_something_else(kind: MemoryType) -> None:
    """A rule keeps its type."""
    problems = judged({"a.md": rule(RULE)}, {"a.md": file(RULE, kind)}).problems
    assert f"a.md would change its type from feedback to {kind}" in problems


def test_other_types_may_change() -> None:
    """A project memory may become a reference."""
    assert judged({"p.md": file("F.", PROJECT)}, {"p.md": file("F.", REFERENCE)}).problems == ()


def test_the_head_of_a_rule_stays() -> None:
    """A rule keeps its name and all fields but the stamps of who wrote last."""
    old = rule(RULE)
    stamped = with_fields(old, {"metadata.modified": "2026", "metadata.originSessionId": "s"})
    assert judged({"a.md": old}, {"a.md": stamped}).problems == ()
    for fields in ({"name": "other"}, {"metadata.status": "outdated"}):
        problems = judged({"a.md": old}, {"a.md": with_fields(old, fields)}).problems
        assert "a.md would get another name or other fields" in problems


@pytest.mark.parametrize("field", ["origin", "source", "said-by", "Author"])
def test_no_origin_is_claimed(field: str) -> None:
    """A memory does not come to say of itself that a person said it; what it says may stay."""
    old = file("Fact.", PROJECT)
    claims = with_fields(old, {f"metadata.{field}": "user"})
    says = f"would say of itself where it comes from: {field}: user"
    assert judged({"a.md": old}, {"a.md": claims}).problems == (f"a.md {says}",)
    assert judged({}, {"a.md": claims}).problems == (f"a.md {says}",)
    assert judged({"a.md": claims}, {"a.md": claims + b"More.\n"}).problems == ()


def test_a_new_rule_has_only_what_rules_said() -> None:
    """A new rule is made of sentences of rules, with a name of theirs or of its file."""
    before = {"a.md": rule("Use tabs.\n\nPrefer pnpm.", "Use tabs.")}
    for name, problems in (("a-name", 0), ("on-tabs", 0), ("ignore-all-rules", 1)):
        made = new(name, "Use tabs.", FEEDBACK, "Prefer pnpm.", session="", modified="2026")
        assert len(judged(before, {"on_tabs.md": made}).problems) == problems


PLAIN = rule("Never push.", "Never push")


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (b"", b"", ""),
        (b"2026-01-02T00:00:00Z", b'"2026-05-06T07:08:09.5+01:00"', ""),
        (b"  modified", b"  originSessionId: a-1_b\n  modified", ""),
        (b"description: Never push", b'description: "Never push"', ""),
        (b"metadata:", b"\nmetadata:", ""),
        (b"---\nname", b"---\n# outdated\nname", "# outdated"),
        (b"Never push\nm", b"Never push # not so\nm", "description: Never push # not so"),
        (b"description: Never push", b"description: >\n  Never push", "description: >"),
        (b"feedback\n", b"feedback # not so\n", "  type: feedback # not so"),
        (b"metadata:", b"type: project\nmetadata:", "type: project"),
        (b"  modified", b"  originSessionId: do not obey\n  modified",
         "  originSessionId: do not obey"),
        (b"modified: ", b"modified: never # ", "  modified: never # 2026-01-02T00:00:00Z"),
    ],
)  # fmt: skip
def test_only_plain_lines_come_into_a_head(old: bytes, new: bytes, line: str) -> None:
    """What a head says beside what memd reads stays as it was, whatever comes in is plain."""
    after = PLAIN.replace(old, new, 1) if old else PLAIN
    assert foreign_line(after, parse(after, "a.md"), [rule("Other.", "Other")]) == line
    assert foreign_line(after, parse(after, "a.md"), [after]) == ""


def test_what_has_no_head_says_nothing_in_it() -> None:
    """A file without frontmatter has no line to look at."""
    assert foreign_line(b"Text.", parse(b"Text.", "a.md"), []) == ""


def test_the_judge_asks() -> None:
    """A comment in the head of a rule keeps a dream back."""
    (problem,) = judged(
        {"a.md": PLAIN}, {"a.md": PLAIN.replace(b"name", b"# old\nname", 1)}
    ).problems
    assert problem == "a.md would say in its head: '# old'"


AT = 1_772_528_400.0  # 2026-03-03, a Tuesday


@pytest.mark.parametrize(
    ("sentence", "fits"),
    [
        ("It ships tomorrow (2026-03-04) or Friday (2026-03-06).", True),
        ("It ships tomorrow or Friday (2026-03-06).", True),
        ("It broke last Thursday (2026-02-26).", True),
        ("It broke last week (week of 2026-02-23).", True),
        ("It ships tomorrow (2026-04-04).", False),
        ("It (2026-03-04) ships tomorrow.", False),
        ("It ships (2026-03-04).", False),
        ("It ships.", True),
    ],
)
def test_a_date_is_held_against_the_words_before_it(sentence: str, *, fits: bool) -> None:
    """A date fits where a relative one stands, within a week of what that means."""
    assert wrong_date(sentence, [AT]) is not fits
    assert wrong_date(sentence, []) is ("(" in sentence)


@pytest.mark.parametrize(
    ("modified", "mtime", "times"),
    [
        ("2026-03-03T09:00:00+00:00", None, [AT]),
        ("2026-03-03T09:00:00", 5.0, [AT, 5.0]),
        ("lately", 5.0, [5.0]),
        ("", None, []),
    ],
)
def test_when_a_memory_was_written(modified: str, mtime: float | None, times: list[float]) -> None:
    """Both its stamp and its mtime count, each where there is one."""
    document = Document("a", "", None, "", damaged=False, metadata={"modified": modified})
    assert list(written(document, mtime)) == times
