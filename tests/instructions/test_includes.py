"""What of a text includes a file, and what a model gets of it."""

import pytest

from memd.instructions import includes, rules


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("@a.md and @./b.md, (@c.md)\n@d.md#x x@e.md @@f.md", "a.md ./b.md, d.md"),
        ("`@a.md` `x @b.md y` ``x ` @c.md`` ` @d.md\n\n ` @e.md", "d.md e.md"),
        ("```\n@a.md\n~~~\n```x\n@b.md\n```\n@c.md\n- ~~~\n  @d.md\n  ~~~~\n@e.md", "c.md e.md"),
        ("> ```\n> @a.md\n> ```\n```x`y @b.md\n\n````\n```\n@c.md\n````\n@d.md\r", "b.md d.md"),
        ("<!-- @a.md\n\n@b.md --> @c.md\n<!-- @d.md", "c.md d.md"),
        ("@a\\ b.md @~/c @/d @\\e @a\\ b.md", "a|b.md ~/c /d"),
    ],
)
def test_what_includes_a_file(text: str, names: str) -> None:
    """A path counts after white space, and not in code or in a comment that is a block."""
    found = [name.replace(" ", "|") for name in includes.parsed(text).includes]
    assert " ".join(found) == names


@pytest.mark.parametrize(
    "text", ["<!--\n", "`a ``b ```", "> - ", "@a ", "```\n", "\\", "<!-- x\n-->", "[](", "\n>"]
)
@pytest.mark.parametrize("end", ["", "@x.md `", "-->"])
def test_long_texts_are_read(text: str, end: str) -> None:
    """A megabyte of whatever opens something is read to its end."""
    found = includes.parsed(text * (1_000_000 // len(text)) + end)
    assert len(found.text) <= 1_000_010


@pytest.mark.parametrize(
    ("glob", "fits", "passes"),
    [
        ("*.ts", "a.ts src/deep/a.ts SRC/A.TS", "a.tsx"),
        ("src/**", "src/a src/b/c", "lib/src/a"),
        ("**/*.{ts,tsx}", "a.tsx b/a.ts", "a.js"),
        ("docs/", "docs/a lib/docs/a", "docsy/a"),
        ("/src/*.py", "src/a.py", "src/b/a.py lib/src/a.py"),
    ],
)
def test_what_a_condition_fits(glob: str, fits: str, passes: str) -> None:
    """Globs are of paths below the rule's folder; one without a slash is a name in any folder."""
    (matcher,) = rules.head(f"---\npaths: {glob}\n---\n").matchers
    assert [name for name in f"{fits} {passes}".split() if matcher(name)] == fits.split()


def test_a_condition_that_cannot_be_read_is_none() -> None:
    """A glob that is too long counts not, is named, and the others hold."""
    head = rules.head(f"---\npaths: [{'x' * 600}, a.ts]\n---\n")
    assert (len(head.matchers), len(head.problems)) == (1, 1)
    assert rules.head("---\npaths: null\n---\n").problems
