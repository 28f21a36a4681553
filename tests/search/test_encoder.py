"""The user's model turns texts into vectors."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memd.search.model_files import ModelUnusableError
from tests.search.tiny_model import graph, tokenizer, write_model

for library in ("onnxruntime", "tokenizers"):
    pytest.importorskip(library, reason="the extra [semantic] is not installed")
np = pytest.importorskip("numpy", reason="the extra [semantic] is not installed")

from memd.search.encoder import Encoder, Vectors  # noqa: E402 - only with its libraries

WORDS = {"car": (1.0, 0.0, 0.0), "automobile": (0.9, 0.1, 0.0), "soup": (0.0, 0.0, 2.0)}


def _load(folder: Path) -> Encoder:
    return Encoder(str(folder))


def _refused(folder: Path) -> str:
    with pytest.raises(ModelUnusableError) as caught:
        _load(folder)
    return caught.value.sentence


def _no(path: str) -> bool:
    return path == "nobody"


def _vectors(model: Encoder, texts: dict[str, str]) -> Vectors:
    vectors = Vectors(model)
    vectors.put(model.vectors(list(texts.values())), dict.fromkeys(texts, 1))
    return vectors


def test_near_texts_have_near_vectors(tmp_path: Path) -> None:
    """Texts of one matter are near each other without a word in common, others are not."""
    model = _load(write_model(tmp_path, WORDS))
    texts = {"a.md": "Automobile", "s.md": "soup soup", "n.md": "nothing known"}
    near = _vectors(model, texts).near(model.query("the car"), 5, (), _no)
    assert near["a.md"] > 0.98
    assert abs(near["s.md"]) < 0.01
    assert near["n.md"] == 0.0


def test_batches_change_nothing(tmp_path: Path) -> None:
    """A text has the same vector alone and among longer and shorter ones, in the texts' order."""
    model = _load(write_model(tmp_path, WORDS))
    texts = ["car soup " * count for count in range(1, 12)] + ["", "soup", "car"]
    together = model.vectors(texts)
    assert np.allclose(together, [model.vectors([text])[0] for text in texts])
    assert model.vectors([]).shape == (0, 3)


def test_long_and_strange_texts_are_bounded(tmp_path: Path) -> None:
    """Only the beginning of a text counts, and half of a character is no failure."""
    model = _load(write_model(tmp_path, WORDS))
    assert np.array_equal(
        model.vectors(["car " * 5000 + "soup", "\udcff car"]),
        model.vectors(["car " * 256, "car"]),
    )


def test_identity_tells_models_apart(tmp_path: Path) -> None:
    """The same files give the same identity, other weights or words another one."""
    first = _load(write_model(tmp_path / "a", WORDS)).identity
    assert _load(write_model(tmp_path / "b", WORDS)).identity == first
    assert _load(write_model(tmp_path / "c", {**WORDS, "car": (1, 1, 1)})).identity != first
    assert _load(write_model(tmp_path / "d", {**WORDS, "bike": (1, 0, 0)})).identity != first


def test_likeness_begins_where_unrelated_texts_are(tmp_path: Path) -> None:
    """In a model that finds everything alike only more than that counts."""
    plain = _load(write_model(tmp_path / "plain", WORDS))
    assert plain.likeness(0.4, "") == 0.4
    words = dict.fromkeys(("the", "in", "and", "of"), (9.0, 1.0)) | {"a": (1.0, 9.0)}
    narrow = _load(write_model(tmp_path / "narrow", words))
    assert narrow.likeness(0.4, "") < 0.1
    assert narrow.likeness(1.0, "") == pytest.approx(1.0)


def test_a_script_that_a_model_did_not_learn_counts_less(tmp_path: Path) -> None:
    """Where a model finds all Chinese texts alike, more is asked of a prompt in such a script."""
    model = _load(write_model(tmp_path, WORDS | {"。": (9.0, 1.0, 0.0)}))
    assert model.likeness(0.4, "where is the café, Đặng?") == 0.4
    assert model.likeness(0.4, "测试 car") < 0.1
    assert model.likeness(0.4, "где машина?") < 0.1
    assert model.likeness(1.0, "测试") == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.onnx", b""),
        ("model.onnx", b"not a graph"),
        ("model.onnx", graph([[1.0]], operator="NoSuchOperator")),
        ("model.onnx", graph([[1.0]], source="pixels")),
        ("model.onnx", graph([[1.0] * 1025])),
        ("model.onnx", graph([[1.0]], rank=1)),
        ("model.onnx", graph([[1.0]], kind=6)),
        ("tokenizer.json", b"{}"),
        ("tokenizer.json", b"[]"),
        ("tokenizer.json", b"\xff"),
        ("tokenizer.json", json.dumps(tokenizer({"car": 0})).encode()),
        ("tokenizer.json", json.dumps(tokenizer({"[UNK]": 9, "word": 8})).encode()),
    ],
)
def test_a_damaged_or_foreign_model_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    """Whatever is wrong with either file is said when it is loaded, with the file's path."""
    write_model(tmp_path, WORDS)
    (tmp_path / name).write_bytes(content)
    assert str(tmp_path) in _refused(tmp_path)


def test_a_tokenizer_of_pieces_needs_its_unknown_piece(tmp_path: Path) -> None:
    """A vocabulary with weights is taken with a piece for what it does not know, else refused."""
    write_model(tmp_path, WORDS)
    rest = {key: value for key, value in tokenizer({}).items() if key != "model"}
    pieces = [["[UNK]", 0.0], ["car", -1.0]]
    for unknown, sentence in ((None, "no token for unknown words"), (0, "")):
        kind = {"type": "Unigram", "vocab": pieces, "unk_id": unknown, "byte_fallback": False}
        (tmp_path / "tokenizer.json").write_text(json.dumps({**rest, "model": kind}))
        if sentence:
            assert sentence in _refused(tmp_path)
        else:
            assert _load(tmp_path).width == 3


def test_vectors_are_those_that_were_put_last(tmp_path: Path) -> None:
    """Rows are replaced and dropped without disturbing others, also over a file."""
    model = _load(write_model(tmp_path, WORDS))
    vectors = _vectors(model, {"a.md": "car", "b.md": "soup", "c.md": "soup"})
    vectors.put(model.vectors(["car", "soup"]), {"b.md": 2, "d.md": 2})
    for path in ("a.md", "d.md", "never.md"):
        vectors.drop(path)
    vectors.save(f"{tmp_path}/one.vectors")
    again = Vectors(model)
    again.load(f"{tmp_path}/one.vectors")
    for one in (vectors, again):
        near = one.near(model.query("car"), 5, (), _no)
        assert {path: round(at, 2) for path, at in near.items()} == {"b.md": 1.0, "c.md": 0.0}
        assert one.versions == {"b.md": 2, "c.md": 1}
        one.drop("b.md")
        one.drop("c.md")
        assert one.near(model.query("car"), 5, ("c.md",), _no) == {}


def test_the_nearest_are_found_past_those_that_are_skipped(tmp_path: Path) -> None:
    """Skipped memories take no place; asked-for ones come whatever their place is."""
    model = _load(write_model(tmp_path, WORDS))
    texts = {f"{number:03}.md": "car" if number < 90 else "soup" for number in range(100)}
    near = _vectors(model, texts).near(
        model.query("car"), 3, ("099.md", "other.md"), lambda path: path < "088.md"
    )
    assert {path for path, cosine in near.items() if cosine > 0.9} == {"088.md", "089.md"}
    assert "099.md" in near
    assert len(near) <= 4


def test_many_vectors_are_looked_at_in_blocks(tmp_path: Path) -> None:
    """Of several blocks every row has its own cosine."""
    vectors = Vectors(_load(write_model(tmp_path, WORDS)))
    rows = np.array([((number % 128) / 128, 0, 0) for number in range(3000)], np.float32)
    vectors.put(rows, {f"{number}.md": number for number in range(3000)})
    query = np.array([1.0, 0.0, 0.0], np.float32)
    near = vectors.near(query, 2, ("64.md", "2999.md"), _no)
    assert near["64.md"] == 0.5
    assert near["2999.md"] == (2999 % 128) / 128
    assert max(near.values()) == 127 / 128


def test_the_library_reports_to_nobody(tmp_path: Path) -> None:
    """Its reports begin with a file of their own among temporary ones, and there is none."""
    model, temporary = write_model(tmp_path / "model", WORDS), tmp_path / "temporary"
    temporary.mkdir()
    code = "import sys; from memd.search.encoder import Encoder; Encoder(sys.argv[1]).query('car')"
    environ = {"PATH": os.environ["PATH"], "TMPDIR": str(temporary)}
    command = [sys.executable, "-c", code, str(model)]
    subprocess.run(command, env=environ, cwd=os.getcwd(), check=True)
    assert os.listdir(temporary) == []
