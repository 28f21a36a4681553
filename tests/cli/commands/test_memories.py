"""list, show, search, add and rm."""

from typing import Any

import pytest

from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.support.scripted_daemon import ScriptedDaemon, ScriptedRefusal

MEMORY: dict[str, Any] = {
    "path": "a.md",
    "name": "a",
    "description": "what\x1b[2J it says",
    "type": "user",
    "mtime": "2026-11-21T00:00:00.000Z",
    "age": "today",
    "damaged": False,
    "size": 1,
}
LISTED: dict[str, Any] = {
    "memory_dir": "/m",
    "memories": [MEMORY, {**MEMORY, "path": "broken.md", "type": None, "damaged": True}],
    "index": {"lines": 300, "bytes": 9, "cut": "lines"},
    "problems": ["x.md cannot be read"],
}
WRITTEN = {"path": "a.md", "hash": "h", "change": "c1", "status": "created"}


def test_a_list_of_several_pages_is_one_list(home: Home) -> None:
    """Each page is asked for until none follows; what is printed has the memories of all."""

    def listed(params: dict[str, Any]) -> dict[str, Any]:
        number = int(params.get("after", 0))
        memories = [{**MEMORY, "path": f"{number}.md"}]
        return {**LISTED, "memories": memories, "next": str(number + 1) if number < 2 else None}

    with ScriptedDaemon(home.places.socket, {"memory.list": listed}):
        ran = memctl(home, "list", "--json")
    assert [memory["path"] for memory in ran.json["memories"]] == ["0.md", "1.md", "2.md"]
    assert ran.json["next"] is None


def test_a_memory_is_shown_to_the_byte(home: Home) -> None:
    """A pipe gets the file as it is, a terminal no control character, a program the facts."""
    read = {**MEMORY, "content": "a\r\n\x1b[2Jb", "hash": "h"}
    with ScriptedDaemon(home.places.socket, {"memory.read": read}) as daemon:
        assert memctl(home, "show", "a.md").out == "a\r\n\x1b[2Jb"
        assert memctl(home, "show", "a.md", terminal=True).out == "a\\u000d\n\\u001b[2Jb"
        assert memctl(home, "show", "a.md", "--json").json == read
    assert daemon.params("memory.read") == {"cwd": home.cwd, "path": "a.md"}


@pytest.mark.parametrize("name", ["user_role.md", "user_role", "role", "team/role.md"])
def test_a_memory_is_named_as_a_person_would(home: Home, name: str) -> None:
    """The path, the file's name without its suffix and the memory's own name all find it."""
    paths = {"user_role.md": "the-role", "team/tabs.md": "tabs"}
    listed = [{**MEMORY, "path": path, "name": name} for path, name in paths.items()]
    listed += [{**MEMORY, "path": "a/role.md", "name": "role"}]
    script = {
        "memory.list": {**LISTED, "memories": listed},
        "memory.read": {**MEMORY, "content": "x", "hash": "h"},
    }
    with ScriptedDaemon(home.places.socket, script) as daemon:
        assert memctl(home, "show", name).out == "x"
        wanted = {"role": "a/role.md", "user_role": "user_role.md"}.get(name, name)
        assert daemon.params("memory.read")["path"] == wanted


def test_what_two_memories_are_called_is_not_guessed(home: Home) -> None:
    """Two of one name are both said, and nothing is asked of the daemon."""
    listed = [{**MEMORY, "path": path, "name": "role"} for path in ("b/x.md", "a/role.md")]
    with ScriptedDaemon(home.places.socket, {"memory.list": {**LISTED, "memories": listed}}):
        ran = memctl(home, "rm", "role")
    assert (ran.status, ran.err) == (
        1,
        "memctl: role may be a/role.md or b/x.md\n  name its path\n",
    )


def test_the_nearest_memory_is_named(home: Home) -> None:
    """A name that is nearly right is answered with what it may have been, by its path."""
    missing = ScriptedRefusal(1001, "there is no memory", {"kind": "not_found"})
    listed = [{**MEMORY, "path": path, "name": ""} for path in ("user_role.md", "tabs.md")]
    script = {"memory.list": {**LISTED, "memories": listed}, "memory.read": missing}
    with ScriptedDaemon(home.places.socket, script):
        ran = memctl(home, "show", "user_rule")
    assert ran.status == 1
    assert ran.err.splitlines()[0].endswith("user_rule.md; the nearest: user_role.md")


def test_a_search_shows_where_it_hit(home: Home) -> None:
    """Hits come with their snippet; none is status 1, as with grep."""
    hit = {"path": "a.md", "name": "a", "description": "d", "score": 1.0, "snippet": "one\ntwo"}
    script = {"memory.search": lambda params: {"hits": [hit] if params["query"] == "b c" else []}}
    with ScriptedDaemon(home.places.socket, script) as daemon:
        ran = memctl(home, "search", "b", "c", "--limit", "2")
        assert daemon.params("memory.search") == {"cwd": home.cwd, "query": "b c", "limit": 2}
        none = memctl(home, "search", "x")
    assert (ran.status, ran.out) == (0, "a.md: d\n    one\n    two\n")
    assert (none.status, none.out, none.err) == (1, "", "no memory has these words\n")


def test_a_memory_is_added_from_its_parts(home: Home) -> None:
    """The name decides the path, no file is expected there, and a retry would be known."""
    with ScriptedDaemon(home.places.socket, {"memory.write": WRITTEN}) as daemon:
        ran = memctl(
            home, "add", "--name", "a", "--description", "d", "--type", "user", "--body", "b",
            "--title", "t", "--hook", "h", "--session", "s",
        )  # fmt: skip
    assert (ran.status, ran.out) == (0, "created a.md; undo with: memctl undo c1\n")
    params = daemon.params("memory.write")
    assert len(params.pop("request_id")) == 32
    assert params == {
        "cwd": home.cwd,
        "path": "a.md",
        "name": "a",
        "description": "d",
        "type": "user",
        "body": "b",
        "title": "t",
        "hook": "h",
        "session_id": "s",
        "base_hash": "",
    }


@pytest.mark.parametrize(
    "arguments", [["--description", "d"], ["a.md", "--file", "f", "--type", "user"]]
)
def test_an_unclear_memory_is_a_wrong_command_line(home: Home, arguments: list[str]) -> None:
    """Without a path or name, or with a file and parts, nothing is asked."""
    ran = memctl(home, "add", *arguments)
    assert (ran.status, ran.out) == (2, "")


def test_a_memory_is_never_replaced_by_adding(home: Home) -> None:
    """A conflict tells that the memory exists; other bases speak for themselves."""
    conflict = ScriptedRefusal(1002, "it changed", {"retryable": True})
    with ScriptedDaemon(home.places.socket, {"memory.write": conflict}):
        ran = memctl(home, "add", "a.md", "--body", "b")
        based = memctl(home, "add", "a.md", "--body", "b", "--base-hash", "h")
    assert (ran.status, based.status) == (1, 75)
    assert "there is a memory a.md already" in ran.err
    assert based.err == "memctl: it changed\n"


def test_the_command_that_takes_back_works_from_where_it_is_read(home: Home) -> None:
    """What takes a write back names the project and the sub-agent that were given."""
    with ScriptedDaemon(home.places.socket, {"memory.write": WRITTEN}):
        ran = memctl(
            home, "--cwd", "/a b", "add", "--name", "a", "--agent", "rev", "--scope", "project",
            "--update",
        )  # fmt: skip
    undo = "memctl --cwd '/a b' undo c1 --agent rev --scope project"
    assert ran.out == f"created a.md; undo with: {undo}\n"


def test_a_memory_is_deleted(home: Home) -> None:
    """Deleting says how to take it back."""
    with ScriptedDaemon(home.places.socket, {"memory.delete": {"change": "c2"}}) as daemon:
        ran = memctl(home, "rm", "a.md", "--base-hash", "h")
    assert (ran.status, ran.out) == (0, "deleted a.md; undo with: memctl undo c2\n")
    params = daemon.params("memory.delete")
    assert (params["path"], params["base_hash"]) == ("a.md", "h")


@pytest.mark.parametrize(
    ("words", "scope"),
    [
        (("team/a.md",), "team"),
        (("a.md", "--scope", "team"), "team"),
        (("a.md", "--scope", "private"), "private"),
        (("a.md",), None),
    ],
)
def test_a_path_or_an_option_says_whom_a_memory_is_for(
    home: Home, words: tuple[str, ...], scope: str | None
) -> None:
    """What lies below team/ is written for the team, as --scope says it of any path."""
    written = {"path": "a.md", "hash": "h", "change": "c1", "status": "created"}
    with ScriptedDaemon(home.places.socket, {"memory.write": written}) as daemon:
        assert memctl(home, "add", *words, "--name", "a", "--body", "b").status == 0
    assert daemon.params("memory.write").get("scope") == scope


def test_the_memory_of_a_sub_agent_is_named_by_options(home: Home) -> None:
    """What is asked of the daemon has the agent and the scope, also where names are looked up."""
    listed = {**LISTED, "memories": [MEMORY], "problems": []}
    read = {**MEMORY, "content": "x", "hash": "h"}
    script = {"memory.list": listed, "memory.read": read, "memory.write": WRITTEN}
    about = {"cwd": home.cwd, "agent": "reviewer", "scope": "project"}
    words = ("--agent", "reviewer", "--scope", "project")
    with ScriptedDaemon(home.places.socket, script) as daemon:
        memctl(home, "list", *words)
        assert daemon.params("memory.list") == about
        memctl(home, "show", "a", *words)
        assert daemon.params("memory.list") == about
        assert daemon.params("memory.read") == {**about, "path": "a.md"}
        memctl(home, "add", "team/a.md", *words, "--body", "x")
    assert daemon.params("memory.write")["scope"] == "project"


def test_what_was_adopted_is_named_with_its_undo(home: Home) -> None:
    """One memory is looked up by name, all are asked for by --all; nothing to do is no error."""
    adopted = {"paths": ["a.md"], "change": "c4"}
    listed = {**LISTED, "memories": [MEMORY], "problems": []}
    script = {"memory.list": listed, "memory.adopt": adopted}
    with ScriptedDaemon(home.places.socket, script) as daemon:
        assert memctl(home, "adopt", "a").out == "a.md is yours\nundo with: memctl undo c4\n"
        assert daemon.params("memory.adopt")["path"] == "a.md"
        assert memctl(home, "adopt", "--all").status == 0
        assert daemon.params("memory.adopt")["all"] is True
    lines: dict[str, Any] = {"paths": [], "change": "c5"}
    with ScriptedDaemon(home.places.socket, {"memory.adopt": lines}):
        assert "memctl undo c5" in memctl(home, "adopt", "--all").out
    nothing: dict[str, Any] = {"paths": [], "change": None}
    with ScriptedDaemon(home.places.socket, {"memory.adopt": nothing}):
        assert memctl(home, "adopt", "--all").out == "no import brought anything here\n"
