"""The storm: a program saves a memory in five ways while memd writes it and is killed."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable

import pytest

from tests.soak import storming
from tests.soak.figures import FIGURE

_SHARED = "/dev/shm"  # where steps are cheap, for nothing waits for a medium
_PROCESSES = {"storm": 2, "hold": 6}


def play(rounds: int, mode: str) -> list[dict[str, object]]:
    """Play rounds in some processes beside each other; return what each counted."""
    count = min(_PROCESSES[mode], rounds)
    place = _SHARED if os.path.isdir(_SHARED) else None
    with tempfile.TemporaryDirectory(prefix="memd-storm-", dir=place) as folder:
        processes = [
            subprocess.Popen(
                [
                    *(sys.executable, "-B", storming.__file__, folder),
                    *(str(number), str(rounds // count), mode),
                ],
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(count)
        ]
        said = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * count
    return [json.loads(text) for text in said]


@pytest.mark.parametrize(
    ("mode", "rounds"),
    [
        ("storm", 6),
        ("hold", 1),
        pytest.param("storm", 400, marks=pytest.mark.soak),
        pytest.param("hold", 60, marks=pytest.mark.soak),
    ],
)
def test_no_save_and_no_acknowledged_write_is_lost(
    mode: str, rounds: int, record_property: Callable[[str, object], None]
) -> None:
    """Each is in the tree or in the history; no file is empty, nothing is open or left over."""
    results = play(rounds, mode)
    played, kills, acknowledged, saves = (
        sum(int(str(each[name])) for each in results)
        for name in ("rounds", "kills", "acknowledged", "saves")
    )
    bad = [wrong for each in results for wrong in each["bad"]]  # type: ignore[attr-defined]
    record_property(
        FIGURE,
        f"storm, {mode}: {played} rounds, {kills} kills, {acknowledged} acknowledged writes,"
        f" {saves} saves, {len(bad)} bad",
    )
    assert bad == []
    assert played == rounds
