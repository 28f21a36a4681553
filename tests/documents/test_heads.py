"""The head of a memory as memd writes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.core.values import MemoryType
from memd.documents import document, heads

SIGNS = (
    "",
    "*",
    "-",
    "@",
    "!",
    "&",
    "%",
    "?",
    "#",
    "|",
    ">",
    "[",
    "{",
    "`",
    '"',
    "'",
    ":",
    "- ",
    "? ",
)
PARTS = st.sampled_from(
    (
        "#channel",
        "a: b",
        "use 'x'",
        'say "y"',
        "\U0001f600",
        "key:",
        " #",
        "{a}",
        "[b]",
        "~",
        "\\n",
        "é",
        "中文",
    )
)
LINES = st.builds(
    "{}{}{}".format,
    st.sampled_from(SIGNS),
    st.lists(PARTS | st.text(st.characters(exclude_categories=("C", "Z")), min_size=1)).map(
        " ".join
    ),
    st.sampled_from(("", "x", "y" * 300)),
).filter(lambda text: text.strip() and not _odd(text))


def _odd(text: str) -> bool:
    """Return whether a line is wholly in quotes, or says that its value stands below."""
    bare = text.strip()
    paired = bare[0] == bare[-1] and bare[0] in "\"'"
    return paired or heads._VALUE_BELOW.fullmatch(bare) is not None


def read(head: str, base: bytes | None = None) -> document.Document:
    """Return what is read of a memory with such a head once memd has written it."""
    content = document.with_standard_head(
        f"---\n{head}\n---\n\nThe body: # as it was\n".encode(), base, "my_rule.md"
    )
    assert document.with_standard_head(content, base, "my_rule.md") == content
    result = document.validate(content, "my_rule.md")
    assert result.body == "The body: # as it was\n"
    return result


@given(LINES, LINES)
def test_no_line_is_cut_or_refused(description: str, other: str) -> None:
    """Whatever a description holds is read back whole, and so is a key that memd does not know."""
    head = f"name: rule\ndescription: {description}\nmetadata:\n  type: feedback\n  note: {other}"
    result = read(head)
    assert result.description == " ".join(description.split())
    assert result.metadata["note"] == " ".join(other.split())
    assert (result.name, result.type) == ("rule", MemoryType.FEEDBACK)
    assert (
        read(f"description: {description}\nname: rule\ntype: feedback").description
        == result.description
    )


@given(st.text(), st.text())
def test_parts_are_written_as_they_are(name: str, description: str) -> None:
    """A memory made of parts is valid whatever name and line it is given."""
    slug = document.slug(name, "a/My file.md")
    content = document.new(slug, f"x{description}", MemoryType.USER, "b", session="", modified="1")
    result = document.validate(content, "m.md")
    expected = " ".join(f"x{description}".encode("utf-8", "replace").decode().split())
    assert result.name == slug
    assert result.description.replace("\ufffd", "?") == expected.replace("\ufffd", "?")


@pytest.mark.parametrize(
    ("head", "name", "description"),
    [
        ("name: My Rule!\ndescription: 'quoted'\ntype: feedback", "my-rule", "quoted"),
        ('name: x\ndescription: "a \\"b\\""\ntype: FEEDBACK', "x", 'a "b"'),
        (
            "description: >-\n  two\n  lines: here\nmetadata:\n  type: feedback",
            "my-rule",
            "two lines: here",
        ),
        ("name: 规则\ndescription: a\n  goes on\ntype: feedback", "my-rule", "a goes on"),
        ("name: Größe\ndescription: 'a' and 'b'\ntype: feedback", "grosse", "'a' and 'b'"),
        ("name: x\n# a comment\ndescription: a\ntype: feedback", "x", "a"),
    ],
)
def test_what_people_write_is_understood(head: str, name: str, description: str) -> None:
    """Quotes, blocks, long lines and names in any writing are read as they are meant."""
    result = read(head)
    assert (result.name, result.description, result.type) == (
        name,
        description,
        MemoryType.FEEDBACK,
    )


def test_what_stood_there_stays() -> None:
    """A head that was not touched keeps its bytes; keys that are not said again are kept."""
    base = (
        b"---\nname: x\ndescription: a # b\ntags: [one]\nmetadata:\n  type: user\n  origin: user\n"
        b"  modified: 2026-01-01T00:00:00.000Z\n---\n\nold\n"
    )
    edited = base.replace(b"old", b"new")
    assert document.with_standard_head(edited, base, "x.md") == edited
    anew = document.with_standard_head(
        b"---\nname: x\ndescription: c\ntype: user\n---\n\nnew\n", base, "x.md"
    )
    fields = document.parse(anew, "x.md").metadata
    assert list(fields) == ["node_type", "type", "tags", "origin", "modified"]
    assert document.with_standard_head(b"no head\n", base, "x.md") == b"no head\n"
