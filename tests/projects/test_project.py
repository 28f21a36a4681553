"""Which directory keeps a project's memories, and whether memory is on."""

from pathlib import Path

import pytest

from memd.core.names import NameRefusedError
from memd.core.settings import Settings
from memd.core.values import Project
from memd.files.directory import PathRefusedError
from memd.projects.claude_code import ClientMemory
from memd.projects.project import (
    NoProjectError,
    UnknownScopeError,
    agent_directory,
    find_project,
    locate,
    slug,
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Make a home with one git project in it."""
    (tmp_path / "home" / "work" / "proj" / ".git").mkdir(parents=True)
    (tmp_path / "home" / "work" / "proj" / "sub").mkdir()
    return tmp_path / "home"


def project(home: Path, settings: Settings | None = None, **client: str) -> Project:
    """Return the project of the one repository for a client with these variables."""
    cwd = str(home / "work" / "proj" / "sub")
    return find_project(
        locate(cwd), settings or Settings(), (client, {}), str(home), ClientMemory()
    )


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/a/b.c_d", "-a-b-c-d"),
        ("/home/a/ünï-目录", "-home-a--n----"),
        ("/home/a/u\u0308", "-home-a--"),
        ("/tmp/🚀", "-tmp---"),
        ("/A1z", "-A1z"),
        ("/" + "x" * 199, "-" + "x" * 199),
        ("/a\udcff", "-a-"),
    ],
)
def test_the_slug_is_the_one_of_claude_code(path: str, name: str) -> None:
    """Each UTF-16 unit that is no ASCII letter or digit is one dash."""
    assert slug(path) == name


@pytest.mark.parametrize("path", ["/" + "x" * 200, "/" + "ab/" * 90, "/" + "目🚀" * 100])
def test_a_long_slug_ends_in_a_hash(path: str) -> None:
    """Beyond 200 units the hash of the whole path tells two of them apart."""
    name = slug(path)
    head, _, tail = name.rpartition("-")
    assert len(head) == 200
    assert slug(path[:150] + "y" + path[151:]).rpartition("-")[2] != tail
    value = 0  # the hash as Java has it, written the other way round
    units = path.encode("utf-16-le")
    for at in range(0, len(units), 2):
        value = value * 31 + int.from_bytes(units[at : at + 2], "little")
    signed = (value + 2**31) % 2**32 - 2**31
    assert int(tail, 36) == abs(signed)


def test_the_first_defined_source_wins(home: Path) -> None:
    """Overrides, trusted settings and the bases are asked in the order of the specification."""
    sources = [
        ("MEMD_MEMORY_PATH", "/x/path", "/x/path"),
        ("CLAUDE_COWORK_MEMORY_PATH_OVERRIDE", "/x/alias/", "/x/alias"),
        ("auto_memory_directory", "~/mine", f"{home}/mine"),
        ("CLAUDE_CODE_REMOTE_MEMORY_DIR", "/x/remote", None),
        ("MEMD_BASE_DIR", "/x/base", None),
        ("base_dir", "~/set", None),
        ("CLAUDE_CONFIG_DIR", "/x/config", None),
    ]
    name = slug(str(home / "work" / "proj"))
    while sources:
        given = {source: value for source, value, _ in sources}
        settings = Settings(
            base_dir=given.pop("base_dir", ""),
            auto_memory_directory=given.pop("auto_memory_directory", ""),
        )
        results = project(home, settings, **given)
        source, value, directory = sources.pop(0)
        base = value.replace("~", str(home))
        assert results.source == source
        assert results.memory_dir == (directory or f"{base}/projects/{name}/memory")
        assert results.problems == ()
        if directory is None:
            assert results.transcripts == f"{base}/projects"
    assert project(home).source == "default"


def test_the_daemons_own_environment_answers_where_the_client_is_silent(home: Path) -> None:
    """A base may come from the daemon's environment; a full path only from the client's."""
    daemon = {"MEMD_BASE_DIR": "/x/daemon", "MEMD_MEMORY_PATH": "/x/never"}
    cwd = str(home / "work" / "proj")
    name = slug(cwd)
    results = find_project(locate(cwd), Settings(), ({}, daemon), str(home), ClientMemory())
    assert results.memory_dir == f"/x/daemon/projects/{name}/memory"
    results = find_project(
        locate(cwd), Settings(), ({"MEMD_BASE_DIR": "/x/client"}, daemon), str(home), ClientMemory()
    )
    assert results.memory_dir == f"/x/client/projects/{name}/memory"


@pytest.mark.parametrize(
    "value",
    [
        *("relative", "./a", "/", "/a", "/a/", "//host/share", "C:\\a", "c:/a", "C:", "\\\\h\\s"),
        *("a\0b", "/a\0b", "/a\ud800b", "~", "~/", "~/.", "~/..", "~/a/..", "~other/a"),
        *("{home}", "{home}/", "{home}/x/..", "{home}/..", "{link}", "/a/b/../.."),
    ],
)
def test_a_dangerous_path_falls_to_the_next_source(home: Path, tmp_path: Path, value: str) -> None:
    """A configured path that is relative, foreign, too short or a home is refused in words."""
    (tmp_path / "link").symlink_to(home)
    value = value.replace("{home}", str(home)).replace("{link}", f"{tmp_path}/link")
    results = project(home, Settings(auto_memory_directory=value, base_dir=value))
    assert results.source == "default"
    assert [problem.split(":")[0] for problem in results.problems] == [
        "base_dir",
        "auto_memory_directory",
    ]
    assert all(problem.isprintable() for problem in results.problems)
    results = project(home, Settings(auto_memory_directory="/x/next"), MEMD_MEMORY_PATH=value)
    assert (results.source, len(results.problems)) == ("auto_memory_directory", 1)


def test_a_home_has_a_memory_and_no_model_reads_it(home: Path) -> None:
    """A conversation in the home, or above it, is remembered; its files are nobody's material."""
    for cwd in (home, home.parent, Path("/")):
        results = find_project(locate(str(cwd)), Settings(), ({}, {}), str(home), ClientMemory())
        assert (results.root, results.readable) == (str(cwd), "")
    assert project(home).readable == project(home).root


def test_a_setting_keeps_memory_out_of_the_home(home: Path) -> None:
    """The home, what lies above it, and a repository that is the home get a clear answer."""
    settings = Settings(allow_home=False)
    for cwd in (home, home.parent, Path("/")):
        with pytest.raises(NoProjectError, match="home directory") as caught:
            find_project(locate(str(cwd)), settings, ({}, {}), str(home), ClientMemory())
        assert caught.value.code == 1009
    (home / ".git").mkdir()
    (home / "notes").mkdir()
    with pytest.raises(NoProjectError, match="allow_home"):
        find_project(locate(str(home / "notes")), settings, ({}, {}), str(home), ClientMemory())


@pytest.mark.parametrize("cwd", ["", "relative", "{tmp}/no", "{tmp}/file", "/\0", "/\ud800"])
def test_a_directory_that_is_none_gets_a_clear_answer(tmp_path: Path, cwd: str) -> None:
    """Relative, missing, impossible: the sentence says which, and stays printable."""
    (tmp_path / "file").touch()
    with pytest.raises(NoProjectError) as caught:
        locate(cwd.replace("{tmp}", str(tmp_path)))
    assert caught.value.sentence.isprintable()


def test_an_agents_directory(home: Path) -> None:
    """Each scope has its place; the name's colon becomes a dash."""
    results = project(home, MEMD_BASE_DIR="/x/base")
    root = results.root
    assert agent_directory(results, "a:b", "user", {}) == "/x/base/agent-memory/a-b"
    assert agent_directory(results, "a", "project", {}) == f"{root}/.claude/agent-memory/a"
    assert agent_directory(results, "a", "local", {}) == f"{root}/.claude/agent-memory-local/a"
    remote = {"CLAUDE_CODE_REMOTE_MEMORY_DIR": "/x/remote/"}
    assert agent_directory(results, "a", "local", remote) == (
        f"/x/remote/projects/{slug(root)}/agent-memory-local/a"
    )


def test_an_agents_directory_cannot_be_led_elsewhere(home: Path, tmp_path: Path) -> None:
    """Names, scopes, remote paths and links in a repository are checked."""
    results = project(home)
    for agent in ("", "../a", "a/b", ".a", "con", "ä", "a\0"):
        with pytest.raises(NameRefusedError):
            agent_directory(results, agent, "user", {})
    with pytest.raises(UnknownScopeError):
        agent_directory(results, "a", "global", {})
    for value in ("relative", "~/x", "/"):
        with pytest.raises(PathRefusedError):
            agent_directory(results, "a", "local", {"CLAUDE_CODE_REMOTE_MEMORY_DIR": value})
    (Path(results.root) / ".claude").symlink_to(tmp_path)
    with pytest.raises(PathRefusedError, match="link"):
        agent_directory(results, "a", "project", {})
