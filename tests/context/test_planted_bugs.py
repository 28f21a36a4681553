"""The properties are strong enough: each bug that is planted is noticed by one of them."""

import subprocess
import sys

import pytest

from tests.context.mutants import MUTANTS, Mutant
from tests.context.planted import ROOT

STORIES = 400  # at most; most bugs are noticed in the first ten


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_bug_is_noticed(mutant: Mutant) -> None:
    """With the bug in the program, a property fails that is about it."""
    text = (ROOT / mutant.path).read_text("utf-8")
    assert text.count(mutant.old) == 1, "the place of the bug is not there any more"
    command = [sys.executable, "-m", "tests.context.planted", str(MUTANTS.index(mutant))]
    done = subprocess.run(
        [*command, str(STORIES)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.startswith(mutant.caught_by), done.stdout or "nobody noticed"
