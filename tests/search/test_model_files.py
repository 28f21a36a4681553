"""The files of the user's own encoder."""

import os
from pathlib import Path

import pytest

from memd.search.model_files import ModelUnusableError, find, read
from tests.search.tiny_model import write_model

WORDS = {"car": (1.0, 0.0), "soup": (0.0, 1.0)}


def _refused(folder: Path) -> str:
    with pytest.raises(ModelUnusableError) as caught:
        read(str(folder))
    return caught.value.sentence


@pytest.mark.parametrize("name", ["model.onnx", "onnx/model.onnx"])
def test_both_layouts_are_found(tmp_path: Path, name: str) -> None:
    """A model at the top of the folder or in its part for ONNX is found with its tokenizer."""
    folder = str(write_model(tmp_path, WORDS, name))
    assert find(folder) == f"{tmp_path}/{name}"
    (tmp_path / f"{name}.data").write_bytes(b"weights")
    (tmp_path / f"{name}.data").chmod(0o600)
    graph = (tmp_path / name).read_bytes()
    assert read(folder) == ((tmp_path / "tokenizer.json").read_bytes(), (graph, b"weights"))


def test_only_private_regular_files_are_read(tmp_path: Path) -> None:
    """A missing file, a pipe and a file that others may write are refused without waiting."""
    write_model(tmp_path, WORDS)
    (tmp_path / "model.onnx").chmod(0o666)
    assert "others may write" in _refused(tmp_path)
    (tmp_path / "model.onnx").chmod(0o600)
    (tmp_path / "model.onnx.data").write_bytes(b"weights")
    (tmp_path / "model.onnx.data").chmod(0o622)
    assert "model.onnx.data" in _refused(tmp_path)
    (tmp_path / "model.onnx").unlink()
    assert "No such file" in _refused(tmp_path)
    os.mkfifo(tmp_path / "model.onnx")
    assert "no regular file" in _refused(tmp_path)
