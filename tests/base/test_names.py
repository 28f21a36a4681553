"""The strict rule for names from outside, and the lenient one for a disk's."""

import unicodedata
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base import names
from memd.base.errors import Refused
from memd.base.names import check_name, check_odd_name, clash, in_catalogue
from tests.corpora import PLACE

PAYLOADS = PLACE / "paths" / "all_traversals.txt.gz"

REFUSED = [
    *("", "a.md/", "./a.md", "a//b.md", "a/./b.md", "a/../a.md", ".md", "..md", "a.md."),
    *("a.md ", " a.md", "a.md:x", "CON.md", "aux.md", "COM1.md", "LPT9.md", "NUL", "nul.x.md"),
    *("a\\b.md", "C:a.md", "\\\\?\\C:\\a.md", "//host/a.md", "file:///a.md", "~/a.md"),
    *("~root/a.md", "$HOME/a.md", "${HOME}", "%HOME%", "%2e%2e%2fa.md", "%252e%252e%252fa.md"),
    *("%c0%ae.md", "..%00/a.md", "a%00.md", "a\n.md", "a\r.md", "a\t.md", "\x1b[2J.md"),
    *("\x7f.md", "\x80.md", "a\0.md", "\uff0e\uff0e\uff0fa.md", "\u2025.md", "\u2024.md"),
    *("a\u2215b.md", "a\u29f8b.md", "\ufe52.md", "a\u200b.md", ".g\u200cit.md", "\u202ea.md"),
    *("\ufeffa.md", "\u0130.md", "\u1e9e.md", "\ufb01.md", "\u00e9.md", "e\u0301.md"),
    *("\ud800.md", "\udc80.md", "x" * 98 + ".md", "a/" * 4 + "a.md", "a/" * 100 + "a.md"),
    *("x" * 4097 + ".md", "-rf.md", "--help", "*.md", "[a].md", "{a,b}.md", "`id`.md"),
    *("$(id).md", ";id.md", "'.md", '".md', "<a>.md", "a](x).md", "a%20b.md", "/a.md"),
    *("a..b.md", "a./b.md", "a.txt", "a.MD", "a", "MEMORY.md", "memory.md", "team/MEMORY.md"),
    *("MEMORY.md/a.md", "a/memory.MD/b.md"),
    *(".consolidate-lock", ".memd/a.md", "a/.b.md", "com0.md", "prn.md"),
]


@pytest.mark.parametrize("name", REFUSED)
def test_anything_else_is_refused_with_a_rule(name: str) -> None:
    """A name outside the rule is refused in printable words that say which rule it breaks."""
    with pytest.raises(Refused) as caught:
        check_name(name)
    assert caught.value.sentence.isprintable()
    assert caught.value.facts["rule"]
    assert caught.value.code == 1006


MISLEADING = [
    *("", "/a.md", "../a.md", "a/../b.md", "a//b.md", "./a.md", "a\\b.md", "%2e%2e%2fa.md"),
    *("a\n.md", "\x1b[2J.md", "a\0.md", "\x80.md", "\uff0e\uff0e\uff0fa.md", "a\uff3cb.md"),
    *(
        "%252e%252e%252fa.md",
        "\u2025/a.md",
        ".a.md",
        "a/.b/c.md",
        "a.txt",
        "logs/a.md",
        "\ud800.md",
    ),
]
ODD = [
    *("MEMORY.md", "team/MEMORY.md", "a.md", "an odd name.md", "\u00fc.md", "-rf.md", "con.md"),
    *("a/" * 9 + "b.md", "x" * 200 + ".md", "a..b.md", "to do\u2026.md", "a:b.md", "100%.md"),
]


@pytest.mark.parametrize("name", MISLEADING)
def test_no_archive_brings_a_name_that_misleads(name: str) -> None:
    """What leads out, may be taken for a path, or is no memory's name comes from no archive."""
    with pytest.raises(Refused):
        check_odd_name(name)


@pytest.mark.parametrize("name", ODD)
def test_an_archive_may_bring_what_a_person_chose(name: str) -> None:
    """Spaces, letters of any script, depth and length are a person's own business."""
    assert check_odd_name(name) == name


def test_only_the_keeper_of_the_index_may_name_it() -> None:
    """MEMORY.md passes where the caller asks for an index, and in no other spelling."""
    assert check_name("MEMORY.md", index=True) == "MEMORY.md"
    assert check_name("team/MEMORY.md", index=True) == "team/MEMORY.md"
    with pytest.raises(Refused):
        check_name("Memory.md", index=True)


@given(st.text(max_size=60))
def test_what_passes_is_boring(name: str) -> None:
    """A name that passes is plain ASCII which no decoding and no normalising changes."""
    try:
        check_name(name)
    except Refused:
        return
    assert name.isascii()
    assert unquote(name) == name == unicodedata.normalize("NFKC", name)
    assert not {"", ".", ".."} & set(name.split("/"))


@pytest.mark.parametrize(
    ("name", "existing", "results"),
    [
        ("a.md", ["b.md", "a.md"], None),
        ("a.md", ["b.md", "A.md"], "A.md"),
        ("Sub/a.md", ["sub/b.md"], "sub/b.md"),
        ("sub/a.md", ["sub/b.md", "x/A.md"], None),
        ("sub/a.md", ["sub/A.md"], "sub/A.md"),
        ("Notes/c.md", ["notes"], "notes"),
        ("Straße/a.md", ["STRASSE/b.md"], "STRASSE/b.md"),
        ("a.md", ["b.md", "A.md.md"], None),
        ("sub/a.md", ["Sub-b/a.md", "sub/c.md"], None),
        ("sub/a.md", ["sub/b.md", "x.md", "sub/A.md", "sub/a.md"], "sub/A.md"),
    ],
)
def test_names_that_are_one_on_some_systems_clash(
    name: str, existing: list[str], results: str | None
) -> None:
    """A difference in case alone, of a file or a folder, is reported with the other name."""
    assert clash([name], existing) == (None if results is None else (name, results))
    many = [f"{number}.md" for number in range(100)]
    assert clash([*many, name], [*many, *existing]) == (results and (name, results))


@pytest.mark.parametrize(
    ("path", "is_memory"),
    [
        ("Über mich (neu).md", True),
        ("目录/笔记.md", True),
        ("a/b/c/d/e/f.md", True),
        ("sub/logs/a.md", True),
        ("memory.md", True),
        ("MEMORY.md", False),
        ("team/MEMORY.md", False),
        ("logs/2026/10/2026-10-01.md", False),
        (".hidden.md", False),
        (".obsidian/a.md", False),
        ("a.txt", False),
        ("a.md.swp", False),
        ("a.md~", False),
        ("\udcff.md", False),
        ("/a.md", False),
    ],
)
def test_a_persons_own_files_are_memories(path: str, *, is_memory: bool) -> None:
    """Any visible .md file is a memory, except an index and the daily logs."""
    assert in_catalogue(path) is is_memory


def test_a_shown_name_is_printable_and_short() -> None:
    """A hostile name in a message neither moves the cursor nor fills the screen."""
    shown = names.printable("\x1b[2J\u202e" + "x" * 1000)
    assert shown.isprintable()
    assert len(shown) < 200
