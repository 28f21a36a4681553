"""The model that the settings name, or why there is none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memd.state.meaning import Meaning
from tests.state.tiny_model import write_model

WORDS = {"car": (1.0, 0.0), "soup": (0.0, 1.0)}


def _libraries() -> None:
    for library in ("numpy", "onnxruntime", "tokenizers"):
        pytest.importorskip(library, reason="the extra [semantic] is not installed")


def test_without_a_setting_nothing_happens() -> None:
    """Where no folder is named there is no model, no note and no library in memory."""
    code = (
        "import sys; from memd.state.meaning import Meaning; m = Meaning(); m.use(''); "
        "assert m.load() is None and m.notes == (); "
        "print([n for n in ('numpy', 'onnxruntime', 'tokenizers') if n in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=os.getcwd()
    )
    assert ran.stdout.strip() == "[]"


def test_a_relative_folder_is_not_used() -> None:
    """A folder that depends on where the daemon was started is refused in words."""
    meaning = Meaning()
    meaning.use("models/mini")
    assert meaning.load() is None
    assert "absolute path" in meaning.notes[0]


def test_missing_libraries_are_a_note(tmp_path: Path) -> None:
    """Where the extra is not installed the note names it and ranking goes on by words."""
    write_model(tmp_path, WORDS)
    code = (
        "import sys\n"
        "sys.modules['onnxruntime'] = None\n"
        "from memd.state.meaning import Meaning\n"
        "m = Meaning(); m.use(sys.argv[1])\n"
        "assert m.load() is None\n"
        "print(m.notes[0])\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True
    )
    assert "memdir-daemon[semantic]" in ran.stdout


@pytest.mark.parametrize("name", ["model.onnx", "onnx/model.onnx"])
def test_a_model_is_there_once_it_is_loaded(tmp_path: Path, name: str) -> None:
    """Naming a folder costs nothing; loading it, in either layout, makes the model available."""
    _libraries()
    meaning = Meaning()
    meaning.use(str(write_model(tmp_path, WORDS, name)))
    before, loaded = meaning.model, meaning.load()
    assert before is None
    assert loaded is not None
    assert [meaning.model, meaning.load()] == [loaded, loaded]
    assert meaning.notes == ()


def test_what_is_wrong_is_told_and_tried_again_when_it_changes(tmp_path: Path) -> None:
    """A damaged model is a note; once its file is replaced it is loaded without a restart."""
    _libraries()
    write_model(tmp_path, WORDS)
    (tmp_path / "model.onnx").write_bytes(b"damaged")
    meaning = Meaning()
    meaning.use(str(tmp_path))
    assert meaning.load() is None
    assert "goes on by words" in meaning.notes[0]
    assert meaning.load() is None
    write_model(tmp_path, WORDS)
    assert meaning.load() is not None
    assert meaning.notes == ()


def test_another_setting_is_another_model(tmp_path: Path) -> None:
    """A changed setting lets go of the model at once; an empty one ends semantic ranking."""
    _libraries()
    meaning = Meaning()
    meaning.use(str(write_model(tmp_path / "a", WORDS)))
    first = meaning.load()
    meaning.use(str(write_model(tmp_path / "b", {**WORDS, "car": (1.0, 1.0)})))
    assert meaning.model is None
    second = meaning.load()
    assert first is not None
    assert second is not None
    assert first.identity != second.identity
    meaning.use("")
    assert meaning.load() is None


def test_a_model_that_fails_at_work_is_given_up(tmp_path: Path) -> None:
    """A model that failed is out of use with a note, until its files change."""
    _libraries()
    meaning = Meaning()
    meaning.use(str(write_model(tmp_path, WORDS)))
    model = meaning.load()
    assert model is not None
    meaning.give_up(model, "it broke")
    assert meaning.model is None
    assert meaning.notes == ("it broke; recall goes on by words",)
    meaning.give_up(model, "again")
    assert meaning.load() is None
    assert "it broke" in meaning.notes[0]


def test_an_outdated_answer_changes_nothing(tmp_path: Path) -> None:
    """What was learnt under an earlier setting does not reach the present one."""
    meaning = Meaning()
    before = meaning._state
    meaning.use(str(tmp_path))
    meaning._exchange(before, before)
    assert meaning._state.folder == str(tmp_path)


def test_vectors_that_cannot_be_kept_are_a_note() -> None:
    """The note names the file and says what it costs."""
    told: list[str] = []
    meaning = Meaning(told.append)
    for _ in range(2):
        meaning.cannot_keep(OSError(28, "No space left on device", "one.vectors"))
    assert tuple(told) == meaning.notes
    assert meaning.notes == (
        "vectors are computed again after a restart: one.vectors: No space left on device",
    )
