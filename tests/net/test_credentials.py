"""Nothing that looks like a credential is stored, logged or answered."""

import gzip
import json
import time
from contextlib import suppress
from typing import Any

import pytest

from tests.net.kit import Project, differs
from tests.net.recorder import Recorder, tool
from tests.net.test_frames import CORPORA
from tests.net.wire import Json, RpcError

_RANDOM = "R4nd0mQw8ZtYuLpXcVbNmKjHgFdSaTq19EwZ"
TOKENS = {
    "GitHub": f"ghp_{_RANDOM}",
    "AWS": "AKIA" + "Q7XN5PLD2KWRJ3VB",
    "Slack": "xoxb-" + "749301826455-6017283945512-qZ8rTt2LwXk93VbPnMs7Yh4J",
    "private key": "-----BEGIN RSA PRIVATE " + "KEY-----\nMIIEpAIBAAKCAQEA7bq8\n",
    "password": "password = " + '"hUnt3r-Zk9!pQ"',
    "full width": "\uff47\uff48\uff50\uff3f" + _RANDOM,
    "invisible": f"ghp_\u200b{_RANDOM[:9]}\u200d{_RANDOM[9:]}",
}
HEAD = {"name": "n", "description": "d", "type": "project"}


def _nowhere(project: Project, token: str) -> None:
    """Assert that a token is in no file of memories, of memd's state or of its log."""
    parts = [token.encode(), token.replace("\u200b", "").replace("\u200d", "").encode()]
    for folder in (project.memory, project.home.state):
        for path in folder.rglob("*"):
            if path.is_file():
                data = path.read_bytes()
                assert not any(part in data for part in parts), path
    assert not any(part in project.home.log.read_bytes() for part in parts)


@pytest.mark.parametrize("kind", TOKENS)
def test_a_memory_with_a_credential_is_refused(project: Project, kind: str) -> None:
    """The refusal names rule and line and never the text, and nothing of it is kept."""
    token = TOKENS[kind]
    with pytest.raises(RpcError) as error:
        project.write("key.md", f"One line.\n\nThe key is {token} today.")
    assert (error.value.code, error.value.kind) == (1003, "secret")
    assert error.value.data["rule"]
    assert error.value.data["line"] > 0
    assert token not in str(error.value)
    _nowhere(project, token)


_GITHUB = TOKENS["GitHub"]
PLACES: dict[str, tuple[str, dict[str, Json]]] = {
    "content": ("memory.write", {"path": "k.md", "content":
                f"---\nname: n\ndescription: d\ntype: project\n---\n\n{_GITHUB}\n"}),
    "description": ("memory.write", {"path": "k.md", **HEAD, "description": _GITHUB, "body": "b"}),
    "index line": ("memory.write", {"path": "k.md", **HEAD, "hook": _GITHUB, "body": "b"}),
    "file name": ("memory.write", {"path": f"{_GITHUB}.md", **HEAD, "body": "b"}),
    "memory tool": ("memory.tool", {"command": {"command": "create", "path": "/memories/k.md",
                    "file_text": f"---\nname: n\ndescription: d\n---\n\n{_GITHUB}\n"}}),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_a_credential_is_refused_in_every_place(project: Project, place: str) -> None:
    """Body, head, index line, file name and memory tool are searched alike."""
    project.write("other.md", "Another.")
    method, params = PLACES[place]
    answer: Any = None
    try:
        answer = project.call(method, **params)
    except RpcError as error:
        answer = str(error)
    assert _GITHUB not in str(answer)
    assert sorted(project.tree()) == ["MEMORY.md", "other.md"]
    _nowhere(project, _GITHUB)


@differs("8.3", "a credential as a name is written in lower case")
def test_a_credential_is_no_name(project: Project) -> None:
    """A name is searched as it came, before it is brought into the form of names."""
    with suppress(RpcError):
        project.write("k.md", "b", name=_GITHUB)
    assert _GITHUB.lower().replace("_", "-") not in str(project.tree())


def test_a_message_with_a_credential_is_refused(project: Project) -> None:
    """Body and summary of a message are searched before it is stored."""
    client = project.home.connect()
    keys = [client.call("agent.register", cwd=project.cwd, name=n)["key"] for n in ("one", "two")]
    for part in ("body", "summary"):
        given = {"body": "fine", part: f"use {_GITHUB}"}
        with pytest.raises(RpcError):
            client.call("message.send", to="two", key=keys[0], **given)
    assert client.call("message.receive", key=keys[1])["messages"] == []
    _nowhere(project, _GITHUB)


def test_what_a_model_writes_is_searched(project: Project, model: Recorder) -> None:
    """A model that saves a token hears that it was refused; the token stays nowhere."""
    body = f"---\nname: k\ndescription: k\ntype: reference\n---\n\nThe key is {_GITHUB}.\n"
    model.play([tool("Write", file_path=str(project.memory / "k.md"), content=body)])
    told = project.conversation().user(f"The key is {_GITHUB}, by the way.").assistant("Noted.")
    given = {"session_id": told.session, "transcript_path": str(told.path), "wait": True}
    done = project.call("extract", **given)
    assert done["saved"] == []
    assert "k.md" not in project.tree()
    _nowhere(project, _GITHUB)


def test_a_session_that_looks_like_a_credential_is_kept_as_a_hash(project: Project) -> None:
    """Session ids and client names are stored in history, but not if they look like a token."""
    client = project.home.connect(name=_GITHUB)
    client.call("memory.write", cwd=project.cwd, path="p.md", **HEAD, body="b", session_id=_GITHUB)
    assert _GITHUB not in json.dumps(project.call("memory.history"))
    _nowhere(project, _GITHUB)


def test_only_what_a_write_adds_counts(project: Project) -> None:
    """A token that an editor saved does not keep a person from changing the rest of the file."""
    head = "---\nname: k\ndescription: k\ntype: project\n---\n\n"
    project.put("k.md", f"{head}The key is {_GITHUB}.\n")
    given = {"content": f"{head}The key is {_GITHUB}.\n\nAnd port 9911.\n"}
    read = project.call("memory.read", path="k.md")
    project.call("memory.write", path="k.md", base_hash=read["hash"], **given)
    assert "9911" in project.read("k.md")


FINE = ("the token is in the vault", "password: see 1Password", "sha256 of the file: " + "ab" * 32,
        "api_key = os.environ['API_KEY']", "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "uuid 123e4567-e89b-12d3-a456-426614174000")  # fmt: skip


@pytest.mark.parametrize("words", FINE)
def test_ordinary_words_pass(project: Project, words: str) -> None:
    """Hashes, ids and the words around a credential are no credential."""
    project.write("fine.md", f"We know that {words}.")
    assert words in project.read("fine.md")


def test_long_hostile_text_takes_linear_time(project: Project) -> None:
    """Four times the text takes no more than some eight times as long."""
    for piece in (
        "a" * 60,
        "password" * 8,
        "-----BEGIN ",
        "ghp_",
        "AKIA",
        "= ",
        "\u200b",
        "https://",
    ):
        seconds = []
        for size in (12_000, 48_000):
            begun = time.perf_counter()
            content = (piece * size)[:size]
            with suppress(RpcError):
                project.call("memory.write", path="long.md", **HEAD, body=content)
            seconds.append(time.perf_counter() - begun)
        assert seconds[1] <= 5


@pytest.mark.full
def test_a_published_corpus_is_found(project: Project) -> None:
    """At least 99 % of its tokens are refused, and at most 6 % of its false ones."""
    file = CORPORA / "secrets/tps_fps.json.gz"
    if not file.exists():
        pytest.skip("no corpus of credentials; MEMD_CORPORA names the folder of corpora")
    rules = json.loads(gzip.decompress(file.read_bytes()))
    client = project.home.connect()

    def refused(words: str) -> bool:
        try:
            given = {"path": "c.md", **HEAD, "body": words}
            client.call("memory.write", cwd=project.cwd, **given)
        except RpcError as error:
            return error.kind == "secret"
        return False

    true = [words for rule in rules for words in rule["tps"]][::4]
    false = [words for rule in rules for words in rule["fps"]][::4]
    assert sum(map(refused, true)) >= 0.99 * len(true)
    assert sum(map(refused, false)) <= 0.06 * len(false)
