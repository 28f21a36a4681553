"""Surgical changes of frontmatter."""

import pytest

from memd.documents.frontmatter import split
from memd.documents.frontmatter_edit import edit

STAMPED = """---
name: a
description: old
metadata:
  node_type: memory
  type: user
  tags: x
  originSessionId: s
  modified: m
---

body
"""


def changed(content: str, fields: dict[str, str]) -> str:
    """Return a text with its frontmatter edited."""
    raw = content.encode()
    fenced = split(raw)
    assert fenced is not None
    return edit(raw, fenced, fields).decode()


@pytest.mark.parametrize(
    ("before", "field", "after"),
    [
        ("type: user\n", "metadata.type", "type: new\n"),
        ("x: 1\n", "metadata.modified", "x: 1\nmetadata:\n  modified: new\n"),
        ("x: 1\n", "name", "name: new\nx: 1\n"),
        ("x: 1\n", "description", "description: new\nx: 1\n"),
        ("name: a\nx: 1\n", "description", "name: a\ndescription: new\nx: 1\n"),
        ("x: 1\n", "y", "x: 1\ny: new\n"),
        ("metadata:\n", "metadata.type", "metadata:\n  type: new\n"),
        ("metadata: # mine\n   # c\n   z: 1\n", "metadata.z", None),
        ("metadata:\n    z: 1\n", "metadata.type", "metadata:\n    type: new\n    z: 1\n"),
        ('"description": >\n  two\n\n  lines\n\n# c\nx: 1\n', "description", None),
        ("tags:\n- a\n-\n- b\nx: 1\n", "tags", "tags: new\nx: 1\n"),
        ("a: 1\na: 2\n", "a", "a: 1\na: new\n"),
        ("ab: 1\n", "a", "ab: 1\na: new\n"),
    ],
)
def test_other_layouts(before: str, field: str, after: str | None) -> None:
    """Flat and nested forms, long values, comments and repeated keys are met line by line."""
    wanted = {
        "metadata.z": "metadata: # mine\n   # c\n   z: new\n",
        "description": "description: new\n\n# c\nx: 1\n",
    }
    expected = wanted[field] if after is None else after
    assert changed(f"---\n{before}---\nbody", {field: "new"}) == f"---\n{expected}---\nbody"
