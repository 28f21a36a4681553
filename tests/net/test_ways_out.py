"""No name, link, race, FIFO or second name leads a read or write out of a memory directory."""

import gzip
import os
import socket
import subprocess
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import unquote

import pytest

from tests.net.kit import PYTHON, Project
from tests.net.recorder import Recorder, text, tool
from tests.net.test_frames import CORPORA
from tests.net.wire import Client, Json, RpcError

CANARY = "the-canary-that-nobody-may-see"
HEAD = {"name": "n", "description": "d", "type": "project", "body": "b"}
BAD = (
    "../canary.md", "a/../../canary.md", "/etc/passwd", "//etc/passwd.md", "a//b.md", "./a.md",
    "a/./b.md", "", ".", "..", "a", "a.txt", ".hidden.md", "a/.git/b.md", "-a.md", "a/-b.md",
    "a\\..\\b.md", "C:\\a.md", "c:a.md", "a\0.md", "a\n.md", "a\x1b[2J.md", "con.md", "NUL.md",
    "com1.md", "%2e%2e/canary.md", "%252e%252e%252fcanary.md", "..%2fcanary.md", "a b.md",
    "caf\u00e9.md", "\uff0e\uff0e/canary.md", "\u2024\u2024/canary.md", "a\uff0fb.md",
    "\u202ea.md", "a\u200b.md", "1/2/3/4/5.md", f"{'x' * 101}.md", f"{'x/' * 3}{'y' * 250}.md",
    "a.md/", "a.md/b.md/", "~/a.md", "$HOME.md", "a:b.md", "a*.md", "a.md\u0000.txt",
)  # fmt: skip


@pytest.mark.parametrize("method", ["memory.write", "memory.read", "memory.delete"])
def test_a_bad_name_is_refused(project: Project, method: str) -> None:
    """Such a name neither writes, reads nor removes anything."""
    project.write("mine.md", "Mine.")
    before = _outside(project)
    client = project.home.connect()
    for name in BAD:
        params = dict(_entries(name))[method]
        with pytest.raises(RpcError) as error:
            client.call(method, cwd=project.cwd, **params)
        assert error.value.code != -32603, name
    assert sorted(project.tree()) == ["MEMORY.md", "mine.md"]
    assert _outside(project) == before


def _entries(name: str) -> list[tuple[str, dict[str, Json]]]:
    return [
        ("memory.write", {"path": name, **HEAD}),
        ("memory.read", {"path": name}),
        ("memory.delete", {"path": name}),
    ]


def _tools(name: str) -> Iterator[dict[str, Json]]:
    given = {"path": f"/memories/{name}", "file_text": "x", "insert_line": 0, "insert_text": "x"}
    for command in ("create", "view", "insert", "str_replace", "delete"):
        yield {"command": command, **given, "old_str": "", "new_str": ""}
    yield {"command": "rename", "old_path": "/memories/mine.md", "new_path": given["path"]}
    yield {"command": "rename", "old_path": given["path"], "new_path": "/memories/got.md"}


def _outside(project: Project) -> dict[str, tuple[int, int]]:
    """Return inode and size of every file of the home but those of memories and of memd."""
    found = {}
    home = project.home
    own = (str(home.state), str(home.path / "h/.local/share/memd"))
    for folder, folders, files in os.walk(home.path / "h"):
        folders[:] = [f for f in folders if f"{folder}/{f}" not in own]
        for file in files:
            if "/memory" not in folder and "/agent-memory" not in folder:
                facts = os.lstat(f"{folder}/{file}")
                found[f"{folder}/{file}"] = (facts.st_ino, facts.st_size)
    return found


def test_the_memory_tool_refuses_a_bad_name(project: Project) -> None:
    """No command of the memory tool reaches anything outside by its path."""
    # Below /memories these are the directory itself or a plain name.
    plain = ("", ".", "./a.md", "a/./b.md", "a//b.md", "a.md/", "a.md/b.md/", "//etc/passwd.md")
    project.write("mine.md", "Mine.")
    before = _outside(project)
    client = project.home.connect()
    for name in BAD:
        for command in _tools(name) if name not in plain else ():
            with suppress(RpcError):
                answer = client.call("memory.tool", cwd=project.cwd, command=command)
                assert CANARY not in str(answer)
        assert [path for path in project.tree() if path not in ("MEMORY.md", "mine.md")] == []
    assert _outside(project) == before


def test_names_that_differ_in_case_are_one(project: Project) -> None:
    """A second name that differs in case only is refused, on every system."""
    project.write("Port.md", "The first.")
    with pytest.raises(RpcError):
        project.write("port.md", "The second.")
    assert "The first." in project.read("Port.md")


@pytest.mark.full
def test_no_payload_of_a_corpus_leads_out(project: Project) -> None:
    """Traversals of a public list, decoded up to three times, read and write nothing outside."""
    file = CORPORA / "paths/all_traversals.txt.gz"
    if not file.exists():
        pytest.skip("no list of traversals; MEMD_CORPORA names the folder of corpora")
    payloads = gzip.decompress(file.read_bytes()).decode("utf-8", "surrogateescape").splitlines()
    project.write("mine.md", "Mine.")
    folder = project.memory
    while folder != project.home.path:
        folder = folder.parent
        (folder / "canary.md").write_text(CANARY)
    before = _outside(project)
    client = project.home.connect()
    for payload in payloads[::150]:
        name = payload.replace("{FILE}", "canary.md")
        for form in {name, unquote(name), unquote(unquote(name)), name.replace("\\", "/"),
                     unicodedata.normalize("NFKC", name)}:  # fmt: skip
            _try_all(client, project, form.encode("utf-8", "replace").decode())
    assert _outside(project) == before


def _try_all(client: Client, project: Project, name: str) -> None:
    tools = [("memory.tool", {"command": command}) for command in _tools(name)]
    agents: list[tuple[str, dict[str, Json]]] = [
        ("memory.read", {"path": "canary.md", "agent": name, "scope": "user"}),
        ("memory.write", {"path": "a.md", **HEAD, "agent": name, "scope": "user"}),
    ]
    for method, params in [*_entries(name), *tools, *agents]:
        answer = ""
        try:
            answer = str(client.call(method, cwd=project.cwd, **params))
        except RpcError as error:
            code = error.code
        else:
            code = 0
        assert code != -32603, (method, params)
        assert CANARY not in answer, (method, params)
        assert "root:x:0" not in answer, (method, params)


TRAPS = ("link", "dangling link", "link to a folder", "FIFO", "socket", "directory")


def _trap(project: Project, kind: str) -> str:
    """Put something that is no plain file into the memory directory; return its name."""
    outside = project.path / "outside"
    outside.mkdir(exist_ok=True)
    (outside / "canary.md").write_text(f"---\nname: c\ndescription: {CANARY}\n---\n{CANARY}\n")
    place = project.memory / "trap.md"
    if kind == "link":
        place.symlink_to(outside / "canary.md")
    elif kind == "dangling link":
        place.symlink_to(outside / "new.md")
    elif kind == "link to a folder":
        (project.memory / "trap").symlink_to(outside)
        return "trap/canary.md"
    elif kind == "FIFO":
        os.mkfifo(place)
    elif kind == "socket":
        here = os.getcwd()
        os.chdir(project.memory)
        try:
            with socket.socket(socket.AF_UNIX) as made:
                made.bind("trap.md")
        finally:
            os.chdir(here)
    else:
        place.mkdir()
    return "trap.md"


@pytest.mark.parametrize("kind", TRAPS)
def test_only_plain_files_are_opened(project: Project, kind: str) -> None:
    """A link, FIFO, socket or directory is never read, written through, or waited for."""
    project.write("mine.md", "Mine.")
    name = _trap(project, kind)
    project.put("MEMORY.md", f"{project.read()}- [Trap]({name}) \u2014 look here\n")
    outside = {path: path.read_text() for path in (project.path / "outside").iterdir()}
    calls = [
        *_entries(name),
        ("memory.search", {"query": CANARY}),
        ("memory.list", {}),
        ("prefetch", {"session_id": "s", "query": f"what is {CANARY} about"}),
        ("memory.tool", {"command": {"command": "view", "path": f"/memories/{name}"}}),
        ("memory.tool", {"command": {"command": "view", "path": "/memories"}}),
        ("load_prompt", {}),
    ]
    for method, params in calls:
        with suppress(RpcError):
            assert CANARY not in str(project.call(method, **params)).replace(str(params), "")
    dest = project.home.path / f"export-{project.path.name}"
    project.call("export", dest=str(dest))
    exported = "".join(p.read_text() for p in dest.rglob("*") if p.is_file())
    assert CANARY not in exported
    assert {p: p.read_text() for p in (project.path / "outside").iterdir()} == outside


def test_the_directory_itself_may_be_a_link(project: Project) -> None:
    """A person may keep the memory directory elsewhere, behind a link."""
    elsewhere = project.path / "memories"
    elsewhere.mkdir()
    project.folder.mkdir(parents=True, exist_ok=True)
    project.memory.symlink_to(elsewhere)
    project.write("port.md", "Port 9911.")
    assert "9911" in (elsewhere / "port.md").read_text()
    assert "9911" in project.call("memory.read", path="port.md")["content"]


def test_a_second_name_of_a_file_keeps_its_text(project: Project) -> None:
    """A file with two names is replaced, so the text under its other name stays."""
    written = project.write("port.md", "Port 9911.")
    other = project.path / "other-name.md"
    os.link(project.memory / "port.md", other)
    project.write("port.md", "Port 9912.", base_hash=written["hash"])
    assert "9911" in other.read_text()
    assert "9912" in project.read("port.md")


def test_a_models_tools_stay_in_the_directory(project: Project, model: Recorder) -> None:
    """A model that writes everywhere, runs programs and reads others' files gets refusals."""
    project.write("mine.md", "Mine.")
    secret = project.path / "secret.txt"
    secret.write_text(CANARY)
    os.link(secret, project.memory / "hard.md")
    (project.memory / "soft.md").symlink_to(secret)
    marks = project.home.path / f"marks-{project.path.name}"
    body = "---\nname: out\ndescription: out\ntype: reference\n---\n\nOut.\n"
    outside = [str(project.path / "out.md"), "/etc/memd-out.md", "../out.md",
               f"{project.memory}/../out.md", f"{project.memory}/../../../CLAUDE.md"]  # fmt: skip
    tried = [
        *(tool("Write", file_path=path, content=body) for path in outside),
        tool("Bash", command=f"echo x > {marks}"),
        tool("Bash", command=f"ls; touch {marks}"),
        tool("Bash", command=f"cat $(touch {marks})"),
        tool("Read", file_path=str(project.memory / "hard.md")),
        tool("Read", file_path=str(project.memory / "soft.md")),
        tool("Edit", file_path=str(secret), old_string="the", new_string="no"),
        tool("Glob", pattern="/etc/pass*"),
        tool("Agent", prompt="do it for me"),
    ]
    model.play(tried, [text("done")])
    told = project.conversation().user("The broker moved to 9911, as asked.").assistant("Noted.")
    before = _outside(project)
    given = {"session_id": told.session, "transcript_path": str(told.path), "wait": True}
    assert project.call("extract", **given)["status"] == "completed"
    results = str(model.requests[1]["messages"][-1]["content"])
    assert results.count("is_error") >= len(tried) - 1
    assert CANARY not in results
    assert (_outside(project).items() ^ before.items(), marks.exists()) == (set(), False)
    assert secret.read_text() == CANARY


SWAPPER = """
import os, sys
os.chdir(sys.argv[1])
print("swapping", flush=True)
while os.getppid() == int(sys.argv[2]):
    for _ in range(1000):
        for name, evil in (("sub", "evil"), ("a.md", "evil.md")):
            os.rename(name, "spare"); os.rename(evil, name)
            os.rename(name, evil); os.rename("spare", name)
"""


@pytest.mark.full
def test_no_race_with_a_link_is_won(project: Project) -> None:
    """A file and a folder that become links all the time never give away what they point to."""
    outside = project.path / "outside"
    outside.mkdir()
    canary = f"---\nname: c\ndescription: c\n---\n{CANARY}\n"
    (outside / "a.md").write_text(canary)
    project.put("sub/a.md", "ours")
    project.put("a.md", "ours")
    (project.memory / "evil").symlink_to(outside)
    (project.memory / "evil.md").symlink_to(outside / "a.md")
    command = [PYTHON, "-c", SWAPPER, str(project.memory), str(os.getpid())]
    client = project.home.connect()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as swapper:
        try:
            assert swapper.stdout is not None
            swapper.stdout.readline()
            for number in range(200):
                for path in ("a.md", "sub/a.md"):
                    with suppress(RpcError):
                        answer = client.call("memory.read", cwd=project.cwd, path=path)
                        assert CANARY not in answer["content"]
                    if number % 20 == 0:
                        with suppress(RpcError):
                            client.call("memory.write", cwd=project.cwd, path=path, **HEAD)
        finally:
            swapper.kill()
    assert (outside / "a.md").read_text() == canary
    assert [path.name for path in outside.iterdir()] == ["a.md"]
