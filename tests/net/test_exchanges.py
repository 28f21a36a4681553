"""The wire as clients know it: recorded exchanges, compared by shape and meaning.

``MEMD_RECORD=1 make net`` writes the answers of the running memd into the files. Do that only in a
commit that quotes the line of the specification which asks for the new answer.
"""

import difflib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.net.kit import Home
from tests.net.player import Player

FOLDER = Path(__file__).parent / "exchanges"
FILES = sorted(path.stem for path in FOLDER.glob("*.json"))


@pytest.fixture
def player(own: Home) -> Iterator[Player]:
    """Return a player in a home of its own."""
    own.start()
    player = Player(own)
    yield player
    player.close()


SLOW = {"memctl"}  # it runs sixty programs


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.full if name in SLOW else ()) for name in FILES]
)
def test_exchanges_keep_their_shape_and_meaning(name: str, player: Player) -> None:
    """Each recorded request gets the recorded answer, but for times, ids, sizes and wording."""
    path = FOLDER / f"{name}.json"
    recorded = json.loads(path.read_text())
    played = [{**step, "answer": player.play(step)} for step in recorded]
    if os.environ.get("MEMD_RECORD"):
        steps = ",\n".join(json.dumps(step, ensure_ascii=False) for step in played)
        path.write_text(f"[\n{steps}\n]\n")
        return
    pair = (_lines(recorded), _lines(played))
    difference = "\n".join(difflib.unified_diff(*pair, "recorded", "played", n=8, lineterm=""))
    assert not difference, difference


def test_there_are_enough_exchanges() -> None:
    """Some three hundred exchanges are recorded, with every client that has hooks."""
    steps = [step for name in FILES for step in json.loads((FOLDER / f"{name}.json").read_text())]
    assert len([step for step in steps if step["answer"] is not None or "hook" in step]) > 300
    clients = {step["hook"][0] for step in steps if "hook" in step}
    assert clients == {"claude-code", "codex", "gemini"}  # OpenCode's plugin calls methods


def _lines(steps: list[dict[str, Any]]) -> list[str]:
    return json.dumps(steps, indent=1, ensure_ascii=False).splitlines()
