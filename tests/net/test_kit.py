"""The kit itself: it knows nothing of memd's code, and its parts work."""

import ast
from itertools import count
from pathlib import Path

from tests.net.kit import Home, Project, until
from tests.net.recorder import Recorder, text


def test_nothing_of_memd_is_imported() -> None:
    """No file of these tests imports the program, or a test's helper that does."""
    imported = {
        name
        for path in Path(__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [n.name for n in node.names]
        )
    }
    assert [name for name in imported if name.split(".")[0] == "memd"] == []
    assert [name for name in imported if name.startswith("tests") and ".net" not in name] == []


def test_hours_pass_by_the_test_clock(own: Home) -> None:
    """A daemon with the test clock says a memory's age by the moved time."""
    project = own.start(clock=True).project()
    project.write("port.md", "The broker listens on port 9911.")
    own.pass_time(days=3)
    assert project.call("memory.read", path="port.md")["age"] == "3 days ago"


def test_the_clock_is_no_setting(own: Home) -> None:
    """Help, environment and settings offer no test clock."""
    assert "test-clock" not in own.run(f"{own.environ['PATH'].split(':')[0]}/memd", "--help").stdout
    own.configure('test_clock = "x"\n')
    own.path.joinpath("clock").write_text("864000")
    project = own.start(environ={"MEMD_TEST_CLOCK": str(own.path / "clock")}).project()
    project.write("port.md", "The broker listens on port 9911.")
    assert project.call("memory.read", path="port.md")["age"] == "today"


def test_the_recorder_is_asked(project: Project, model: Recorder) -> None:
    """A model that the settings name is asked for the memories that matter."""
    project.write("port.md", "The broker listens on port 9911.", description="broker port")
    model.script = lambda _: [text('{"selected_memories": ["port.md"]}')]
    sessions = map(str, count())

    def asked() -> bool:  # a daemon that has just started answers without the model
        given = {"session_id": next(sessions), "query": "which port has the broker"}
        found = project.call("prefetch", **given, strategy="model", deadline_ms=10_000)
        assert [memory["name"] for memory in found["memories"]] == ["port"]
        return bool(model.requests)

    until(asked)
    assert model.requests[0]["max_tokens"] == 256
