"""memctl call reaches every method (chapter 7.1)."""

import json

import pytest

from tests.net.kit import Project


def test_call_reaches_any_method(project: Project) -> None:
    """Values are text or JSON as the method takes them, and the project is added."""
    project.write("queue.md", "Port 9912.", description="the staging queue and its port")
    newest = json.loads(project.memctl("call", "memory.list", "limit=1").stdout)
    assert len(newest["memories"]) == 1
    path = newest["memories"][0]["path"]
    read = json.loads(project.memctl("call", "memory.read", f"path={path}").stdout)
    assert read["content"] == project.read(path)
    words = ("path=7.md", "name=7", "description=12", "type=project", "body=13")
    written = json.loads(project.memctl("call", "memory.write", *words).stdout)
    assert (written["path"], written["status"]) == ("7.md", "created")
    assert project.read("7.md").endswith("13\n")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["memory.lst"], "memory.list"),
        (["unheard.of"], "rpc.discover"),
        (["memory.list", "limit"], "NAME=VALUE"),
        (["memory.list", "limit=many"], "integer"),
        (["memory.list", "limit=0"], "limit"),
        (["memory.list", "colour=red"], "colour"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_wrong_call_is_answered_with_a_sentence(
    project: Project, words: list[str], hint: str
) -> None:
    """An unknown method, a wrong value or parameter is named with what would be right."""
    done = project.memctl("call", *words)
    assert done.returncode != 0
    assert done.stdout == ""
    assert hint in done.stderr
    assert "Traceback" not in done.stderr
