"""Memories that other tools wrote themselves, as an import reads them."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memd.portable import kinds
from memd.portable.archive import open_source
from memd.portable.values import ImportReading, SourceKind
from tests.e2e.hooks import CODEX, CODEX_CONFIG
from tests.e2e.models import ResponsesServer
from tests.e2e.programs import HERE, environ, memctl, program, run
from tests.support.daemon import Home, daemon_process, throw_away_home
from tests.support.messages import MessagesServer, messages_server, structured, text, tools
from tests.support.steps import Hang, Raw, ReceivedMessage, Step

pytestmark = pytest.mark.e2e
CURL = ("curl", "--silent", "--show-error", "--fail")


@pytest.fixture
def home() -> Iterator[Home]:
    """Give each tool a home of its own."""
    with throw_away_home() as made:
        yield made


def _read(path: str | Path, kind: SourceKind, home: Home) -> ImportReading:
    """Return what is read of a folder or file, which must be recognised."""
    with open_source(str(path), home.path) as source:
        assert kinds.kind_of(source) is kind
        return kinds.read(kind, source)


def _imported(path: str | Path, home: Home, *options: str) -> list[str]:
    """Return the memories that ``memctl import`` makes of it, once, and not a second time."""
    project = home.project()
    command = ("import", str(path), "--accept", "--json", *options)
    with daemon_process(home):
        first, second = (json.loads(memctl(home, *command, cwd=project)) for _ in range(2))
    assert [folder["files"] for folder in second["projects"]] == [[] for _ in first["projects"]]
    return [file["path"] for folder in first["projects"] for file in folder["files"]]


def _memories(reading: ImportReading) -> dict[str, str]:
    return {
        memory.path: memory.content.decode()
        for project in reading.projects
        for memory in project.memories
    }


def test_basic_memory(home: Home) -> None:
    """Notes that Basic Memory wrote become a memory each, with type, tags and links."""
    # It looks for a model and for its own updates, and waits for the network that is not there.
    extra = {
        "HF_HUB_OFFLINE": "1",
        "BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED": "false",
        "BASIC_MEMORY_AUTO_UPDATE": "false",
        "BASIC_MEMORY_NO_PROMOS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    write = [program("basic-memory"), "tool", "write-note", "--folder", "design", "--title"]
    card = "# Card Format\n\n- [decision] Cards have 26 rows #cards\n\n- implements [[Rose]]\n"
    run([*write, "Card Format", "--tags", "loom"], home, extra, given=card)
    run([*write, "Review"], home, extra, given="- [preference] Reviews begin with the names\n")
    reading = _read(f"{home.path}/basic-memory", SourceKind.BASIC_MEMORY, home)
    memories = _memories(reading)
    assert list(memories) == ["project_card-format.md", "feedback_review.md"]
    assert "  tags: loom\n" in memories["project_card-format.md"]
    assert "- implements [[Rose]]" in memories["project_card-format.md"]
    assert reading.left_out == ()
    assert sorted(_imported(f"{home.path}/basic-memory", home)) == sorted(memories)


class _Embeddings(MessagesServer):
    """Answers POST …/embeddings as OpenAI does: a vector of 8 numbers for each text."""

    def decide(self, request: ReceivedMessage) -> Step:
        """Return the same vector for each text."""
        texts = (request.json or {})["input"]
        count = len(texts) if isinstance(texts, list) else 1
        data = [{"object": "embedding", "index": n, "embedding": [1.0] * 8} for n in range(count)]
        used = {"prompt_tokens": 1, "total_tokens": 1}
        return Raw(json.dumps({"object": "list", "data": data, "usage": used}).encode())


def test_mem0(home: Home) -> None:
    """What mem0's get_all prints becomes a memory each, but for its junk."""
    python = program("mem0-python")
    extra = {"MEM0_TELEMETRY": "False", "MEM0_DIR": home.path}
    with messages_server(text(""), kind=_Embeddings) as server:
        script = [python, str(HERE / "scripts" / "mem0_memories.py"), home.path, f"{server.url}/v1"]
        printed = run(script, home, extra)
    exported = Path(home.path) / "mem0.json"
    exported.write_text(printed)
    reading = _read(exported, SourceKind.MEM0, home)
    assert sorted(_memories(reading)) == [
        "mem0_cards-have-26-rows-grace-agreed-on-it.md",
        "user_ada-prefers-short-answers-with-one-example.md",
    ]
    assert ["junk" in file.reason for file in reading.left_out] == [True]
    assert sorted(_imported(exported, home)) == sorted(_memories(reading))


OBSERVATIONS = [
    {"type": "decision", "title": "Cards have 26 rows", "facts": '["A row has 40 holes"]'},
    {"type": "bugfix", "title": "The reader hung on rows", "narrative": "It counts them first."},
]
IMPORTED = {
    "sessions": [
        {
            "content_session_id": "c1",
            "memory_session_id": "m1",
            "project": "loom",
            "user_prompt": "compare cards",
            "started_at": "2026-03-02T09:00:00.000Z",
            "started_at_epoch": 1_772_442_000_000,
            "status": "completed",
        }
    ],
    "observations": [
        {
            "memory_session_id": "m1",
            "project": "loom",
            "created_at": "2026-03-02T09:00:00.000Z",
            "created_at_epoch": 1_772_442_000_000,
            "prompt_number": 1,
            **observation,
        }
        for observation in OBSERVATIONS
    ],
}


@pytest.fixture
def worker(home: Home) -> Iterator[str]:
    """Run claude-mem's worker and return its address."""
    command = [program("claude-mem-worker")]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    extra = {
        "CLAUDE_MEM_DATA_DIR": f"{home.path}/claude-mem",
        "CLAUDE_MEM_WORKER_PORT": str(port),
        "CLAUDE_MEM_CHROMA_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }
    with subprocess.Popen(
        command,
        env=environ(home, extra),
        cwd=home.path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            url = f"http://127.0.0.1:{port}/api"
            retry = ("--retry", "40", "--retry-connrefused", "--retry-delay", "1")
            run([*CURL, *retry, f"{url}/health"], home)
            yield url
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_claude_mem(home: Home, worker: str) -> None:
    """What claude-mem's worker finds for its export becomes a memory for each decision."""
    post = [*CURL, "-H", "Content-Type: application/json", "-d", "@-"]
    run([*post, f"{worker}/import"], home, given=json.dumps(IMPORTED))
    saved = {"text": "The office publishes rows at noon", "title": "Rows", "project": "mill"}
    run([*post, f"{worker}/memory/save"], home, given=json.dumps(saved))
    # Its script for exports, which is not in the package, asks for this and adds the totals.
    query = "query=rows&format=json&limit=999999"
    answer = json.loads(run([*CURL, f"{worker}/search?{query}"], home))
    found = {name: answer[name] for name in ("observations", "prompts")}
    export = {**found, "summaries": answer["sessions"], "sessions": [], "totalObservations": 3}
    exported = Path(home.path) / "export.json"
    exported.write_text(json.dumps(export))
    reading = _read(exported, SourceKind.CLAUDE_MEM, home)
    assert {project.id: [m.path for m in project.memories] for project in reading.projects} == {
        "loom": ["project_cards-have-26-rows.md"],
        "mill": ["reference_rows.md"],
    }
    assert "- A row has 40 holes" in _memories(reading)["project_cards-have-26-rows.md"]
    assert ["a bugfix" in file.reason for file in reading.left_out] == [True]
    assert reading.problems == ()
    (path,) = _imported(exported, home, "--project", f"loom={home.project()}")
    assert path == "project_cards-have-26-rows.md"


CODEX_MEMORIES = """\
[features]
memories = true
[memories]
min_rollout_idle_hours = 1
extract_model = "gpt-5.2-codex"
consolidation_model = "gpt-5.2-codex"
"""
SUMMARY = """\
v1

## User Profile

Ada designs loom patterns.

## User preferences

- Ada wants tables without borders.

## General Tips

- Count the rows of a card first.

## What's in Memory

### loom

#### 2026-03-02

- rollout_summaries/cards.md — how cards are counted; thread_id=1
"""


def _codex_s_memory_writer(request: ReceivedMessage) -> Step:
    """Answer as the models behind Codex's background worker: one extracts, one writes."""
    body = request.body.decode()
    if "Your job is to extract information" in body:
        return structured({"rollout_summary": "Cards have 26 rows.", "rollout_slug": "cards"})
    if "Consolidate the supplied rollout summaries" not in body:
        # The worker ends with the conversation in which it works, so that one takes its time.
        reply = text("Understood.")
        return Hang(reply, seconds=10) if "WAIT" in body else reply
    if "function_call_output" in body:
        return text("Done.")
    command = f"cat > memory_summary.md <<'END'\n{SUMMARY}END\n"
    return tools(("exec_command", {"cmd": command}))


def test_codex(home: Home) -> None:
    """What Codex's memory worker wrote and checked is read, and its reports are passed over."""
    folder = Path(home.path) / ".codex"
    folder.mkdir()
    command = [program("codex"), *CODEX]
    key = {"LOCAL_KEY": "dummy"}
    with messages_server(_codex_s_memory_writer, kind=ResponsesServer) as server:
        (folder / "config.toml").write_text(CODEX_CONFIG.format(url=server.url) + CODEX_MEMORIES)
        run([*command, "Cards have 26 rows, please remember."], home, key)
        # It learns from conversations that a person had some time ago.
        (state,) = folder.glob("state_*.sqlite")
        with closing(sqlite3.connect(state)) as database, database:
            database.execute(
                "UPDATE threads SET source = 'cli', updated_at = updated_at - 86400,"
                " updated_at_ms = updated_at_ms - 86400000"
            )
        printed = run(["sh", "-c", '"$@" 2>&1', "sh", *command, "WAIT"], home, key)
    assert "artifacts are invalid" not in printed
    (memories,) = (path.parent for path in folder.rglob("memory_summary.md"))
    reading = _read(memories, SourceKind.CODEX, home)
    assert list(_memories(reading)) == [
        "user_ada-designs-loom-patterns.md",
        "feedback_ada-wants-tables-without-borders.md",
        "codex_count-the-rows-of-a-card-first.md",
    ]
    reasons = [file.reason for file in reading.left_out if "rollout_summaries/" in file.name]
    assert ["single sessions" in reason for reason in reasons] == [True]
    assert sorted(_imported(memories, home)) == sorted(_memories(reading))
