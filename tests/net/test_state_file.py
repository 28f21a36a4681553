"""The state file: who reads leaves it as it is, and its errors say whose they are."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from tests.net.kit import Home, Project, until
from tests.net.wire import Json, RpcError

_CLIENTS = ("memctl", pytest.param("claude-code", marks=pytest.mark.full))
# Methods that read, with their parameters beside ``cwd``.
_PROJECT: tuple[tuple[str, dict[str, Json]], ...] = (
    ("doctor", {}),
    ("report", {}),
    ("load_prompt", {}),
    ("load_prompt", {"mode": "agent", "agent": "reviewer"}),
    ("prefetch", {"session_id": "e", "query": "which port has the broker", "explain": True}),
    ("job.list", {}),
    ("dream.status", {}),
    ("memory.list", {}),
    ("memory.read", {"path": "port.md"}),
    ("memory.search", {"query": "broker"}),
    ("memory.history", {}),
    ("memory.diff", {"path": "port.md"}),
    ("memory.why", {"path": "port.md"}),
    ("notes.list", {}),
    ("agent.list", {}),
    ("rule.list", {}),
    ("rule.test", {"tool": "Bash", "input": {"command": "ls"}}),
)
_REST: tuple[tuple[str, dict[str, Json]], ...] = (
    ("hello", {}),
    ("status", {}),
    ("doctor", {}),
    ("report", {}),
    ("job.list", {}),
    ("job.wait", {"job": "j1"}),
    ("rpc.discover", {}),
)


@contextmanager
def _state(home: Home) -> Iterator[sqlite3.Connection]:
    """Open the daemon's state file as a person's own SQLite does."""
    path = f"file:{home.state}/state.db?mode=rw"
    with closing(sqlite3.connect(path, uri=True, isolation_level=None)) as connection:
        yield connection


@pytest.mark.parametrize("client", _CLIENTS)
def test_methods_that_read_write_no_state(own: Home, client: str) -> None:
    """No method that reads commits anything to the state file, nor lets its log grow."""
    project = own.start(clock=True).project()
    project.write("port.md", "The broker listens on port 9911.")
    said = [{"role": "user", "content": "Remember: always use tabs."}]
    project.call("extract", session_id="s", messages=said, wait=True)
    calls = [(method, {"cwd": project.cwd, **params}) for method, params in _PROJECT]
    log = own.state / "state.db-wal"

    def answer_all() -> list[str]:
        """Call each method; return those after which the file is another."""
        wrote = []
        for method, params in (*calls, *_REST):
            before = (state.execute("PRAGMA data_version").fetchone(), log.stat().st_size)
            connection.call(method, **params)
            after = (state.execute("PRAGMA data_version").fetchone(), log.stat().st_size)
            wrote += [method] if after != before else []
        return wrote

    with own.connect(name=client) as connection, _state(own) as state:
        until(lambda: answer_all() == [], "what the start does in the background is done")
        own.pass_time(seconds=60)
        assert answer_all() == []


@pytest.mark.parametrize("statement", ["INSERT", "UPDATE"])
def test_a_fault_of_memd_is_no_full_disk(home: Home, project: Project, statement: str) -> None:
    """A row that the state file's own rules refuse is an internal error, which the log has."""
    project.write("port.md", "The broker listens on port 9911.")
    refuse = "BEGIN SELECT RAISE(ABORT, 'no'); END"
    with _state(home) as state:
        state.execute(f"CREATE TRIGGER refuse BEFORE {statement} ON change {refuse}")
        try:
            with pytest.raises(RpcError) as caught:
                project.write("host.md", "The broker runs on pine.")
        finally:
            state.execute("DROP TRIGGER refuse")
    error = caught.value
    assert (error.code, error.kind, error.data["retryable"]) == (-32603, "internal", False)
    assert "disk" not in json.dumps([error.message, error.data])
    entries = [json.loads(line) for line in home.log.read_text().splitlines()]
    assert [entry["event"] for entry in entries if entry.get("id") == error.data["error"]] == [
        "fault"
    ]
    if statement == "INSERT":  # of the change, before any file; the update says that it is done
        assert list(project.tree()) == ["MEMORY.md", "port.md"]
    assert project.write("host.md", "The broker runs on oak.")["status"] in {"created", "updated"}
    assert "oak" in project.read("host.md")


@pytest.mark.full
def test_a_state_file_that_others_hold_is_storage(own: Home) -> None:
    """While another program holds the file a write is refused as storage, and may be repeated."""
    project = own.start().project()
    with _state(own) as state:
        state.execute("BEGIN IMMEDIATE")
        with pytest.raises(RpcError) as caught:
            project.write("port.md", "The broker listens on port 9911.")
        state.execute("ROLLBACK")
    assert (caught.value.code, caught.value.data["retryable"]) == (1012, True)
    assert project.write("port.md", "The broker listens on port 9911.")["status"] == "created"
