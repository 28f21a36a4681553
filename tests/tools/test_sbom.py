"""The licences of what comes with memd."""

from typing import Any

import pytest

from tools import sbom


@pytest.mark.parametrize(
    ("licences", "said"),
    [
        ([{"license": {"id": "MIT"}}], []),
        ([{"expression": "MIT OR GPL-3.0-only"}], []),
        ([{"expression": "BSD-3-Clause AND 0BSD AND MIT"}], []),
        ([{"license": {"id": "MPL-2.0"}}], []),
        ([{"license": {"name": "License :: OSI Approved :: BSD License"}}], []),
        ([{"license": {"id": "GPL-3.0-only"}}], ["x: GPL-3.0-only"]),
        ([{"expression": "MIT AND AGPL-3.0-only"}], ["x: MIT AND AGPL-3.0-only"]),
        ([{"license": {"id": "MIT"}}, {"license": {"name": "Ours"}}], ["x: MIT, Ours"]),
        ([], ["x: no licence is told"]),
    ],
)
def test_a_licence_that_may_not_go_along_is_named(
    licences: list[dict[str, Any]], said: list[str]
) -> None:
    """What is permissive, or a library under its own terms, goes; all else is for a person."""
    component = {"name": "x", "version": "1", "licenses": licences}
    assert sbom.problems({"components": [component]}) == said
