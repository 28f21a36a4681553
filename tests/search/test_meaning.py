"""Ranking by meaning beside words, with the model that the settings name."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from memd.search.index import Entry, Index, vector_text, version_mark
from memd.search.meaning import NEAR, Meaning, Neighbours, VectorText, fuse
from memd.search.ranking import BELOW_FLOOR, BEYOND_LIMIT, Ranked, answered
from tests.search.tiny_model import write_model

WORDS = {
    "velk": (1.0, 0.0, 0.0),
    "drimmo": (0.9, 0.1, 0.0),
    "tosk": (0.3, 0.9, 0.0),
    "bralle": (0.0, 0.0, 1.0),
}
QUERY = "where do I tosk the velk?"
PROGRAM = (
    "import sys; from memd.search.meaning import Meaning; told = []; m = Meaning(told.append); "
)


@pytest.fixture
def libraries() -> None:
    """Skip where the extra is not installed."""
    for library in ("numpy", "onnxruntime", "tokenizers"):
        pytest.importorskip(library, reason="the extra [semantic] is not installed")


def _entry(path: str, description: str, version: int = 1, name: str = "") -> Entry:
    return Entry(path, (version, 0, 0), version, name, description, "", "")


class Desk:
    """An index that ranks by meaning, what it was given, and what was read for vectors."""

    def __init__(self, folder: Path, meaning: Meaning) -> None:
        self.entries: dict[str, Entry] = {}
        self.read_paths: list[str] = []
        self.near = Neighbours(meaning, str(folder / "vectors" / "one.vectors"))
        self.index = Index(None, self.near)
        self.give(
            _entry("words.md", "tosk shops nearby open on Sunday"),
            _entry("meaning.md", "drimmo mended by Anna"),
            _entry("other.md", "bralle with beans"),
        )

    def give(self, *entries: Entry) -> None:
        """Add or replace memories."""
        self.entries |= {entry.path: entry for entry in entries}
        self.index.update(entries)

    def known(self) -> Mapping[str, int]:
        """Return the versions of all memories."""
        return {path: version_mark(path, entry.fingerprint) for path, entry in self.entries.items()}

    def read(self, paths: Sequence[str]) -> list[VectorText]:
        """Return the texts of memories."""
        self.read_paths += paths
        return [vector_text(self.entries[path]) for path in paths if path in self.entries]

    def learn(self) -> None:
        """Compute all vectors."""
        while self.near.work(self.known, self.read, 2):
            pass

    def paths(self, query: str = QUERY) -> list[str]:
        """Return what a prompt brings."""
        return sorted(item.path for item in answered(self.index.rank(query, 5)))


def _meaning(folder: Path, reported: list[str] | None = None) -> Meaning:
    meaning = Meaning((reported if reported is not None else []).append)
    assert meaning.use(str(write_model(folder / "model", WORDS)))
    return meaning


def _run(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", PROGRAM + code, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=os.getcwd()
    ).stdout


def test_without_a_setting_nothing_happens() -> None:
    """Where no folder is named there is no model, no note and no library in memory."""
    assert not Meaning().use("")
    code = (
        "m.use(''); assert m.load() is None and not told; "
        "print([n for n in ('numpy', 'onnxruntime', 'tokenizers') if n in sys.modules])"
    )
    assert _run(code).strip() == "[]"


def test_missing_libraries_are_a_note(tmp_path: Path) -> None:
    """Where the extra is not installed the note names it and ranking goes on by words."""
    write_model(tmp_path, WORDS)
    code = "sys.modules['onnxruntime'] = None; m.use(sys.argv[1]); m.load(); print(told)"
    assert "memdir-daemon[semantic]" in _run(code, str(tmp_path))


def test_a_relative_folder_is_not_used() -> None:
    """A folder that depends on where the daemon was started is refused in words."""
    reported: list[str] = []
    meaning = Meaning(reported.append)
    meaning.use("models/mini")
    assert (meaning.load(), meaning.load()) == (None, None)
    assert len(reported) == 1
    assert "absolute path" in reported[0]


@pytest.mark.usefixtures("libraries")
def test_another_setting_is_another_model(tmp_path: Path) -> None:
    """A changed setting lets go of the model at once; an empty one ends semantic ranking."""
    meaning = _meaning(tmp_path)
    first = meaning.load()
    assert [meaning.load(), meaning.model] == [first, first]
    meaning.use(str(write_model(tmp_path / "b", {**WORDS, "car": (1.0, 1.0, 0.0)})))
    before, second = meaning.model, meaning.load()
    assert before is None
    assert first is not None
    assert second is not None
    assert first.identity != second.identity
    assert meaning.use("")
    assert meaning.load() is None
    assert not meaning.use("")


@pytest.mark.usefixtures("libraries")
def test_without_a_model_words_decide(tmp_path: Path) -> None:
    """Where no model is named, or none is loaded yet, the answers are those of the words."""
    plain = Index(None)
    for meaning in (Meaning(), _meaning(tmp_path)):
        desk = Desk(tmp_path, meaning)
        plain.update(desk.entries.values())
        assert desk.index.rank(QUERY, 5) == plain.rank(QUERY, 5)
    assert not Desk(tmp_path, Meaning()).near.work(dict, lambda _: [], 1)


@pytest.mark.usefixtures("libraries")
def test_meaning_adds_what_words_miss(tmp_path: Path) -> None:
    """A memory without a word of the prompt comes when it is near, and its parts say why."""
    desk = Desk(tmp_path, _meaning(tmp_path))
    assert desk.paths() == ["words.md"]
    desk.learn()
    assert desk.paths() == ["meaning.md", "words.md"]
    rows = {item.path: item for item in desk.index.rank(QUERY, 5)}
    assert rows["meaning.md"].parts["semantic"] > 0.3
    assert rows["meaning.md"].terms == ()
    results = desk.index.rank(QUERY, 5, lambda path: path == "meaning.md", floor=False)
    assert [item.path for item in answered(results)] == ["words.md"]


@pytest.mark.usefixtures("libraries")
def test_meaning_answers_only_who_asks(tmp_path: Path) -> None:
    """A question without a word of any memory gets what is near; what carries on gets nothing."""
    desk = Desk(tmp_path, _meaning(tmp_path))
    desk.learn()
    assert desk.paths("is there a velk?") == ["meaning.md"]
    assert desk.paths("again the velk") == []
    assert desk.paths("is there a zork?") == []


@pytest.mark.usefixtures("libraries")
def test_a_name_counts_where_there_is_no_description(tmp_path: Path) -> None:
    """A vector is made of the description, of the name only in its place, and of the body."""
    desk = Desk(tmp_path, _meaning(tmp_path))
    desk.give(_entry("first.md", "bralle", name="velk"), _entry("second.md", "", name="velk"))
    desk.learn()
    assert "second.md" in desk.paths("is there a drimmo?")
    assert "first.md" not in desk.paths("is there a drimmo?")


@pytest.mark.usefixtures("libraries")
def test_a_restart_computes_nothing_again(tmp_path: Path) -> None:
    """Kept vectors are read; only what changed is computed, and what is gone is forgotten."""
    Desk(tmp_path, _meaning(tmp_path)).learn()
    desk = Desk(tmp_path, _meaning(tmp_path))
    desk.give(_entry("other.md", "drimmo of old", 2))
    desk.learn()
    assert desk.read_paths == ["other.md"]
    assert desk.paths() == ["meaning.md", "other.md", "words.md"]
    del desk.entries["meaning.md"]
    desk.index.remove(["meaning.md"])
    desk.learn()
    assert desk.paths() == ["other.md", "words.md"]


@pytest.mark.usefixtures("libraries")
@pytest.mark.parametrize("content", [b"", b"PK damaged", None])
def test_a_damaged_file_of_vectors_is_begun_anew(tmp_path: Path, content: bytes | None) -> None:
    """Whatever lies where the vectors were kept: they are computed again, and no prompt fails."""
    Desk(tmp_path, _meaning(tmp_path)).learn()
    path = tmp_path / "vectors" / "one.vectors"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if content is None else content)
    desk = Desk(tmp_path, _meaning(tmp_path))
    desk.learn()
    assert len(desk.read_paths) == 3
    assert desk.paths() == ["meaning.md", "words.md"]
    assert path.read_bytes() == whole


@pytest.mark.usefixtures("libraries")
def test_vectors_of_another_model_do_not_count(tmp_path: Path) -> None:
    """With another model all vectors are computed anew."""
    Desk(tmp_path, _meaning(tmp_path)).learn()
    meaning = Meaning()
    meaning.use(str(write_model(tmp_path / "other", {**WORDS, "bike": (1.0, 0.0, 0.0)})))
    desk = Desk(tmp_path, meaning)
    desk.learn()
    assert len(desk.read_paths) == 3
    meaning.use("")
    assert desk.paths() == ["words.md"]
    desk.learn()
    assert desk.paths() == ["words.md"]


@pytest.mark.usefixtures("libraries")
def test_a_model_that_changes_in_use_computes_all_again(tmp_path: Path) -> None:
    """After a change of the setting every memory gets a vector of the new model."""
    meaning = _meaning(tmp_path)
    desk = Desk(tmp_path, meaning)
    desk.learn()
    meaning.use(str(write_model(tmp_path / "other", {**WORDS, "bike": (1.0, 0.0, 0.0)})))
    desk.learn()
    assert len(desk.read_paths) == 6
    assert desk.paths() == ["meaning.md", "words.md"]


@pytest.mark.usefixtures("libraries")
def test_what_cannot_be_read_stops_nobody(tmp_path: Path) -> None:
    """Memories that cannot be read, more than a slice of them, leave the others their vectors."""
    desk = Desk(tmp_path, _meaning(tmp_path))
    known = {f"gone{number}.md": number for number in range(5)} | dict(desk.known())
    while desk.near.work(lambda: known, desk.read, 2):
        pass
    assert desk.paths() == ["meaning.md", "words.md"]


@pytest.mark.usefixtures("libraries")
def test_what_changes_while_it_is_read_is_not_kept(tmp_path: Path) -> None:
    """A memory that is read in another version than is known waits for its next turn."""
    desk = Desk(tmp_path, _meaning(tmp_path))
    known = desk.known()
    desk.give(_entry("meaning.md", "bralle", 2))
    while desk.near.work(lambda: known, desk.read, 9):
        pass
    assert desk.paths() == ["words.md"]
    desk.learn()
    assert desk.read_paths.count("meaning.md") == 2


@pytest.mark.usefixtures("libraries")
@pytest.mark.parametrize("at_prompt", [True, False])
def test_a_model_that_breaks_costs_meaning_only(tmp_path: Path, *, at_prompt: bool) -> None:
    """A model that fails at a prompt or at work is given up with a note; words go on."""
    reported: list[str] = []
    meaning = _meaning(tmp_path, reported)
    tokens = tmp_path / "model" / "tokenizer.json"
    tokens.write_text(tokens.read_text().replace('"bralle": 4', '"bralle": 99'))
    desk = Desk(tmp_path, meaning)
    if at_prompt:
        desk.give(_entry("other.md", "beans"))
    desk.learn()
    results = desk.paths(f"{QUERY} and bralle")
    assert "words.md" in results
    assert "meaning.md" not in results
    assert "goes on by words" in reported[0]
    assert meaning.model is None
    desk.learn()


@pytest.mark.usefixtures("libraries")
def test_a_folder_that_takes_no_writes_costs_a_note(tmp_path: Path) -> None:
    """Where vectors cannot be kept they are used all the same, and a note says so."""
    (tmp_path / "vectors").write_text("a file in the folder's place")
    reported: list[str] = []
    desk = Desk(tmp_path, _meaning(tmp_path, reported))
    desk.learn()
    assert desk.paths() == ["meaning.md", "words.md"]
    assert "computed again after a restart" in reported[0]


def _ranked(path: str, score: float, cut: str = "") -> Ranked:
    return Ranked(path, score, (), {}, cut)


def test_both_opinions_make_one_order() -> None:
    """Each counts as a share of its best; one without a vector counts by its words alone."""
    lexical = (_ranked("a", 4.0), _ranked("b", 2.0), _ranked("c", 2.0))
    results = fuse(lexical, {"a": 0.1, "b": 0.8}, 5)
    assert [item.path for item in results] == ["b", "a", "c"]
    assert [item.score for item in results] == [0.7, 0.65, 0.5]


def test_the_nearest_needs_to_be_near() -> None:
    """What brings too few words needs a likeness of its own; the rest is cut and says why."""
    lexical = (_ranked("a", 4.0), _ranked("b", 3.0, BELOW_FLOOR), _ranked("c", 1.0, BELOW_FLOOR))
    near = {"a": 0.9, "b": NEAR - 0.01, "c": NEAR, "d": NEAR, "e": NEAR - 0.01}
    cuts = {item.path: item.cut for item in fuse(lexical, near, 2)}
    assert cuts == {"a": "", "b": BELOW_FLOOR, "c": "", "d": BELOW_FLOOR}
    cuts = {item.path: item.cut for item in fuse(lexical, near, 2, floor=False)}
    assert cuts == {"a": "", "b": BELOW_FLOOR, "c": "", "d": BEYOND_LIMIT}
