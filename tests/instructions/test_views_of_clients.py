"""memd's views load what the real clients loaded of the same tree (``tests/e2e/instructions.py``).

Where memd decides otherwise, ``DIFFERENCES`` says so, and docs/decisions.md says why.
"""

from pathlib import Path

import pytest

from memd.instructions.values import View
from tests.instructions.fixture_tree import (
    CASES,
    Case,
    expected,
    make_tree,
    view_marks,
)

# By view and case: marks that the client sent and memd does not load.
DIFFERENCES: dict[tuple[View, str], set[str]] = {
    (View.CLAUDE, "links"): {"MARK-links-out-md"},
    (View.CLAUDE, "allowed"): {"MARK-home-allowed-ssh-id-rsa", "MARK-home-allowed-env"},
    (View.CODEX, "links"): {"MARK-codex-out-md"},
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the tree."""
    base = tmp_path_factory.mktemp("tree").resolve()
    make_tree(base)
    return base


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.view}: {case.name}")
def test_a_view_loads_what_the_client_loaded(case: Case, tree: Path) -> None:
    """The marks of the view, at the start and with each file that is touched, are the client's."""
    left_out = DIFFERENCES.get((case.view, case.name), set())
    seen = expected(case.view)[case.name]
    assert left_out <= {mark for marks in seen for mark in marks}
    wanted = [[mark for mark in marks if mark not in left_out] for marks in seen]
    assert view_marks(case, tree) == wanted
