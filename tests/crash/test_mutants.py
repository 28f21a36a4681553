"""The tests are strong enough: a bug that is seeded is caught by one of them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.conftest import FIGURE
from tests.crash.core_mutants import MUTANTS
from tests.crash.mutants import OTHERS, Mutant

EVERY = (*MUTANTS, *OTHERS)
ROOT = Path(__file__).resolve().parents[2]


def copy(folder: Path) -> Path:
    """Copy what the tests need of the tree."""
    target = folder / "copy"
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
    for name in ("memd", "tests"):
        shutil.copytree(ROOT / name, target / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", target)
    return target


def run(tree: Path, tests: tuple[str, ...]) -> "subprocess.CompletedProcess[str]":
    """Run tests of a copy, until the first fails."""
    command = [sys.executable, "-B", "-m", "pytest", "-x", "--basetemp", str(tree / "temp"), *tests]
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COV"))}
    return subprocess.run(
        command, cwd=tree, env=environ, capture_output=True, text=True, check=False
    )


@pytest.mark.soak
@pytest.mark.parametrize("tests", sorted({mutant.tests for mutant in EVERY}))
def test_the_tests_pass_without_a_bug(tests: tuple[str, ...], tmp_path: Path) -> None:
    """The tests that are to catch the bugs pass in a copy without any."""
    done = run(copy(tmp_path), tests)
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.soak
@pytest.mark.parametrize("mutant", EVERY, ids=lambda mutant: mutant.name)
def test_a_seeded_bug_is_caught(
    mutant: Mutant, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """With the bug in the copy a test fails."""
    tree = copy(tmp_path)
    source = tree / mutant.path
    text = source.read_text()
    assert text.count(mutant.old) == 1, "the place of the bug is not there any more"
    source.write_text(text.replace(mutant.old, mutant.new))
    done = run(tree, mutant.tests)
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    by = failed[0].split(" - ")[0].removeprefix("FAILED ") if failed else "nothing"
    record_property(FIGURE, f"G18 {mutant.name}: caught by {by}")
    assert done.returncode == 1, done.stdout[-2000:]
