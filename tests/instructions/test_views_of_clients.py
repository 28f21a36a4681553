"""memd's views load what the real clients loaded of the same tree (``tests/e2e/instructions.py``).

Where memd decides otherwise, ``DIFFERENCES`` says so, and docs/decisions.md says why.
"""

from pathlib import Path

import pytest

from memd.instructions.disk import RealDisk
from memd.instructions.values import View
from memd.instructions.views import VIEWS
from tests.instructions.fixture_files import PLAIN, files
from tests.instructions.fixture_tree import (
    CASES,
    Case,
    expected,
    make_tree,
    request,
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


@pytest.mark.parametrize("view", View)
def test_each_file_has_its_text_or_a_reason(view: View, tree: Path) -> None:
    """In every folder of the tree each file is listed once, with a text or why it has none."""
    disk = RealDisk()
    for cwd in sorted({case.cwd for case in CASES} | {str(Path(path).parent) for path in files()}):
        case = Case("", view, cwd, PLAIN)
        resolution = VIEWS[view](request(case, tree, len(PLAIN)), disk)
        loaded = {file.path: file.chars for file in resolution.files if file.loaded}
        texts = {path: len(resolution.texts[path]) for path in loaded}
        assert loaded == texts
        assert all(file.why_not for file in resolution.files if not file.loaded)
        reals = [disk.real(file.path) for file in resolution.files]
        assert len(set(reals)) == len(reals)
