"""Real cuts under load: what was acknowledged before the medium went is there afterwards."""

import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash import cuts
from tests.crash.conftest import FIGURE
from tests.crash.core import Core, open_core
from tests.crash.kit import INDEX, listed, tree

CUTS = 20
_NUMBER = re.compile(r"number (\d+)\s*\Z")


def one_cut(medium: cuts.Medium, root: Path, start: int, after: int) -> list[int]:
    """Let a process write, cut after so many writes, and return all that were acknowledged."""
    command = [sys.executable, "-B", cuts.__file__, str(root), str(start)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [int(process.stdout.readline()) for _ in range(after)]
        medium.cut()
        said += [int(line) for line in process.stdout]
    return said


def judge(core: Core, acknowledged: dict[str, int]) -> list[str]:
    """Recover and return what is lost or damaged."""
    core.recover()
    wrong = ["a set is still open"] if core.is_open() else []
    files = tree(core.path)
    if sorted(listed(files.get(INDEX, b""))) != sorted(set(files) - {INDEX}):
        wrong.append("index and files disagree")
    for name, number in acknowledged.items():
        results = _NUMBER.search(files.get(f"{name}.md", b"").decode())
        if results is None or int(results[1]) < number:
            wrong.append(f"{name}.md has {results and results[1]}, not {number}")
    return wrong


@pytest.mark.crash
@pytest.mark.parametrize("system", ["ext4", "xfs"])
def test_a_real_cut_loses_nothing_acknowledged(
    system: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Twenty times the medium goes away under load; what was acknowledged is there each time."""
    if cuts.missing(system):
        pytest.skip(cuts.missing(system))
    medium = cuts.Medium(system, tmp_path)
    dice = random.Random(system)  # noqa: S311 - the same moments in every run
    acknowledged: dict[str, int] = {}
    bad: list[str] = []
    number = 0
    for _ in range(CUTS):
        with medium.mounted() as root:
            if medium.refused:
                pytest.skip(f"nothing can be mounted here: {medium.refused}")
            said = one_cut(medium, root, number, dice.randrange(1, 25))
            acknowledged |= {cuts.slot(n): n for n in said}
            number = said[-1] + 1
        with medium.mounted() as root, open_core(root) as core:
            bad += judge(core, acknowledged)
    record_property(
        FIGURE,
        f"G4 {system}: {CUTS} cuts, {number} acknowledged writes, {len(bad)} lost or damaged",
    )
    assert bad == []
    assert number >= CUTS
