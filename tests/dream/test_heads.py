"""What may stand in the head of a person's rule after a dream."""

import pytest

from memd.documents.document import parse
from memd.dream.heads import foreign
from tests.dream.judging import judged, rule

RULE = rule("Never push.", "Never push")


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
    after = RULE.replace(old, new, 1) if old else RULE
    assert foreign(after, parse(after, "a.md"), [rule("Other.", "Other")]) == line
    assert foreign(after, parse(after, "a.md"), [after]) == ""


def test_what_has_no_head_says_nothing_in_it() -> None:
    """A file without frontmatter has no line to look at."""
    assert foreign(b"Text.", parse(b"Text.", "a.md"), []) == ""


def test_the_judge_asks() -> None:
    """A comment in the head of a rule keeps a dream back."""
    (problem,) = judged({"a.md": RULE}, {"a.md": RULE.replace(b"name", b"# old\nname", 1)}).problems
    assert problem == "a.md would say in its head: '# old'"
