"""The real Claude Code, Codex CLI and Gemini CLI load what memd's views say."""

import json

import pytest

from tests.e2e.instruction_samples import SAMPLES, answers
from tests.e2e.instructions import sent_marks
from tests.instructions.fixture_tree import CASES, Case, expected

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.view}: {case.name}")
def test_the_client_loads_what_is_written_down(case: Case) -> None:
    """The marks that reach the model, in their order, are those that memd's view is held to."""
    assert sent_marks(case) == expected(case.view)[case.name]


def test_claude_code_makes_of_the_samples_what_is_written_down() -> None:
    """Texts, globs and heads bring the files that memd's readers of them are held to."""
    samples = json.loads(SAMPLES.read_text())
    assert answers(samples) == samples
