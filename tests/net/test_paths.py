"""Which project a directory belongs to, and which directory keeps its memories (1.1, 1.2)."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.net.kit import Home, Project, until
from tests.net.wire import RpcError


def keeper(project: Project, cwd: str | Path = "", **environ: str) -> str:
    """Return the memory directory that a client with these variables is given for a directory."""
    with project.home.connect(environ=environ) as client:
        return str(client.call("load_prompt", cwd=str(cwd) or project.cwd)["memory_dir"])


def worktree(project: Project, name: str) -> tuple[Path, Path]:
    """Make a linked worktree as git does; return it and its git directory."""
    tree, private = project.path.parent / name, project.path / ".git/worktrees" / name
    tree.mkdir()
    private.mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {private}\n")
    (private / "commondir").write_text("../..\n")
    (private / "gitdir").write_text(f"{tree}/.git\n")
    return tree, private


def slug(path: str) -> str:
    """Return the folder name of a root, computed as the specification says."""
    data = path.encode("utf-16-le", "surrogatepass")
    units = [data[i] + 256 * data[i + 1] for i in range(0, len(data), 2)]
    name = "".join(chr(u) if u < 128 and chr(u).isalnum() else "-" for u in units)
    if len(name) <= 200:
        return name
    number = 0
    for unit in units:
        number = (31 * number + unit) & 0xFFFFFFFF
    number = min(number, 2**32 - number)
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return f"{name[:200]}-{digits}"


def test_memories_lie_where_claude_code_keeps_them(project: Project) -> None:
    """The directory is ~/.claude/projects/<slug>/memory, for the root and for what is below."""
    below = project.path / "src/deep"
    below.mkdir(parents=True)
    assert keeper(project) == keeper(project, below) == str(project.memory)


def test_outside_git_the_project_is_the_directory(home: Home, project: Project) -> None:
    """A directory without a repository above it is a project of its own."""
    plain = project.path.parent / f"{project.path.name}-plain"
    plain.mkdir()
    assert keeper(project, plain) == f"{home.claude}/projects/{slug(str(plain))}/memory"


def test_worktrees_and_submodules_of_git_itself(project: Project) -> None:
    """Worktrees that git made share the memory of their repository; a submodule has its own."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    main, other = (project.path / name for name in ("main", "other"))
    person = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")

    def git(where: Path, *words: str) -> None:
        command = ("git", "-C", str(where), *person, *words)
        subprocess.run(command, check=True, capture_output=True, env=project.home.environ)

    for path in (main, other):
        path.mkdir()
        git(path, "init", "-q")
        git(path, "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "worktree", "add", "-q", str(project.path / "linked"))
    git(main, "submodule", "--quiet", "add", str(other), "sub")
    assert keeper(project, project.path / "linked") == keeper(project, main)
    own = slug(str(main / "sub"))
    own = slug(str(main / "sub"))
    assert keeper(project, main / "sub") == f"{project.home.claude}/projects/{own}/memory"


CLAIMS = {  # what a hostile checkout says of itself
    "known, but of another checkout": "gitdir: {private}\n",
    "the repository itself": "gitdir: {main}/.git\n",
    "points back from outside the repository": "gitdir: fake\n",
    "leads nowhere": "gitdir: /nowhere\n",
    "NUL": "gitdir: \0",
    "no pointer": "nonsense",
    "empty": "",
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_forged_worktree_is_a_project_of_its_own(project: Project, claim: str) -> None:
    """A checkout that claims another project's git directory does not reach its memories."""
    tree, private = worktree(project, f"{project.path.name}-tree")
    evil = project.path.parent / f"{project.path.name}-evil"
    (evil / "fake").mkdir(parents=True)
    (evil / "fake/commondir").write_text(f"{project.path}/.git")
    (evil / "fake/gitdir").write_text(f"{evil}/.git")
    (evil / ".git").write_text(CLAIMS[claim].format(private=private, main=project.path))
    assert keeper(project, tree) == str(project.memory)
    assert keeper(project, evil) == f"{project.home.claude}/projects/{slug(str(evil))}/memory"


@pytest.mark.parametrize("kind", ["link to a worktree's", "link to a repository", "FIFO"])
def test_a_git_that_is_no_file_proves_nothing(project: Project, kind: str) -> None:
    """A .git that is a link or a FIFO gives no other project's memories and hangs nothing."""
    tree, private = worktree(project, f"{project.path.name}-tree")
    evil = project.path.parent / f"{project.path.name}-evil"
    evil.mkdir()
    if kind == "FIFO":
        os.mkfifo(evil / ".git")
    else:
        (evil / ".git").symlink_to(project.path / ".git" if "repo" in kind else tree / ".git")
    os.rename(private / "gitdir", private / "kept")
    os.mkfifo(private / "gitdir")
    for each in (evil, tree):
        assert keeper(project, each) != str(project.memory)


@pytest.mark.parametrize("name", ["a b_c.d", "über", "emoji-😀", "数据库", "x" * 180])
def test_slugs(project: Project, name: str) -> None:
    """Each UTF-16 unit that is no ASCII letter or digit is a dash; long roots end in a hash."""
    root = project.path.parent / f"{project.path.name}-{name}"
    (root / ".git").mkdir(parents=True)
    assert keeper(project, root) == f"{project.home.claude}/projects/{slug(str(root))}/memory"


def test_a_root_is_taken_in_nfc(project: Project) -> None:
    """A decomposed letter is one unit of a slug, as the composed one."""
    root = project.path.parent / f"{project.path.name}-cafe\u0301-x"
    (root / ".git").mkdir(parents=True)
    assert keeper(project, root).endswith(f"{project.path.name}-caf--x/memory")


def one_slug(project: Project) -> list[str]:
    """Use two roots whose slugs are the same; return them in the order of their use."""
    roots = [project.path.parent / f"{project.path.name}-a{mark}b" for mark in ".-"]
    for root in roots:
        (root / ".git").mkdir(parents=True)
        keeper(project, root)
    return [str(root) for root in roots]


def doctor_names(project: Project, other: str, cwd: str) -> bool:
    """Return whether a check of doctor for one root that is not ok names the other root."""
    checks = project.home.call("doctor", cwd=cwd)["checks"]
    return any(other in check["detail"] for check in checks if check["state"] != "ok")


def test_the_second_root_with_one_slug_is_named(project: Project) -> None:
    """Doctor for the root that came second names the root with which it shares a directory."""
    first, second = one_slug(project)
    assert doctor_names(project, first, cwd=second)


def test_the_first_root_with_one_slug_is_told(project: Project) -> None:
    """Doctor for the root that came first names the other as well."""
    first, second = one_slug(project)
    assert doctor_names(project, second, cwd=first)


def test_the_chain_of_directories(project: Project) -> None:
    """Each source wins over those behind it; the full path needs no slug."""
    home = project.home
    place = home.path / "h"
    variables = [  # the strongest first, with what each gives
        ("MEMD_MEMORY_PATH", "one", "one"),
        ("CLAUDE_COWORK_MEMORY_PATH_OVERRIDE", "two", "two"),
        ("CLAUDE_CODE_REMOTE_MEMORY_DIR", "three", f"three/projects/{slug(project.cwd)}/memory"),
        ("MEMD_BASE_DIR", "four", f"four/projects/{slug(project.cwd)}/memory"),
        ("CLAUDE_CONFIG_DIR", "five", f"five/projects/{slug(project.cwd)}/memory"),
    ]
    environ = {name: f"{place}/{value}" for name, value, _ in variables}
    for name, _, expected in variables:
        assert keeper(project, **environ) == f"{place}/{expected}"
        del environ[name]
    assert keeper(project) == str(project.memory)


def test_settings_choose_a_directory(project: Project) -> None:
    """Memd's own setting, then Claude Code's, then the base; a variable with a path beats all."""
    home = project.home
    place, claude = home.path / "h", home.claude / "settings.json"
    claude.parent.mkdir(exist_ok=True)
    claude.write_text(json.dumps({"autoMemoryDirectory": "~/of-claude"}))
    home.configure('auto_memory_directory = "~/of-memd"\nbase_dir = "~/base"\n')
    assert keeper(project, MEMD_MEMORY_PATH=f"{place}/path") == f"{place}/path"
    assert keeper(project, MEMD_BASE_DIR=f"{place}/other") == f"{place}/of-memd"
    home.configure('base_dir = "~/base"\n')
    assert keeper(project) == f"{place}/of-claude"
    claude.unlink()
    expected = f"{place}/base/projects/{slug(project.cwd)}/memory"
    assert keeper(project, CLAUDE_CONFIG_DIR=f"{place}/cc") == expected
    assert keeper(project, MEMD_BASE_DIR=f"{place}/b").startswith(f"{place}/b/projects/")


REFUSED = ("rel/path", "/", "/a", "C:", "C:\\", "\\\\srv\\share", "//srv/x", "/x\0y", "~", "~/")
HOMES = ("~/..", "~/.", "{home}", "{home}/", "{home}/x/..", "{home}/../..")


@pytest.mark.parametrize("path", REFUSED + HOMES)
def test_a_refused_path_is_named_and_passed_over(project: Project, path: str) -> None:
    """Relative, short, foreign and too high paths are a problem, and the next source counts."""
    given = path.format(home=project.home.environ["HOME"])
    with project.home.connect(environ={"CLAUDE_COWORK_MEMORY_PATH_OVERRIDE": given}) as client:
        answer = client.call("load_prompt", cwd=project.cwd)
    assert answer["memory_dir"] == str(project.memory)
    assert any("CLAUDE_COWORK_MEMORY_PATH_OVERRIDE" in problem for problem in answer["problems"])


@pytest.mark.parametrize("path", ["rel/path", "~", "/a", "//srv/x"])
def test_a_refused_setting_is_passed_over(project: Project, path: str) -> None:
    """What no variable may say is refused in memd.toml as well, with a problem."""
    project.home.configure(f'auto_memory_directory = "{path}"\n')
    answer = project.call("load_prompt")
    assert answer["memory_dir"] == str(project.memory)
    assert answer["problems"]


def trust(project: Project) -> Path:
    """Let the person trust the project's folder in Claude Code; return the file that says so."""
    file = project.home.path / "h/.claude.json"
    file.write_text(json.dumps({"projects": {project.cwd: {"hasTrustDialogAccepted": True}}}))
    return file


@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
def test_an_untrusted_repository_chooses_no_directory(project: Project, name: str) -> None:
    """No file of a repository that the person does not trust says where memories lie."""
    (project.path / ".claude").mkdir()
    (project.path / ".claude" / name).write_text('{"autoMemoryDirectory": "~/chosen"}')
    (project.path / ".memd.toml").write_text('auto_memory_directory = "~/chosen"\n')
    assert keeper(project) == str(project.memory)


def trusted_choice(project: Project, name: str) -> str:
    """Return the memory directory of a trusted project one of whose files chooses ~/chosen."""
    (project.path / ".claude").mkdir()
    (project.path / ".claude" / name).write_text('{"autoMemoryDirectory": "~/chosen"}')
    file = trust(project)
    try:
        return keeper(project)
    finally:
        file.unlink()


def test_a_trusted_folder_may_choose_by_its_local_settings(project: Project) -> None:
    """settings.local.json of a folder that the person trusts in Claude Code is believed."""
    assert trusted_choice(project, "settings.local.json") == f"{project.home.path}/h/chosen"


def test_committed_settings_choose_no_directory(project: Project) -> None:
    """settings.json, which a repository brings, chooses no directory, trusted or not."""
    assert trusted_choice(project, "settings.json") == str(project.memory)


def test_a_repository_switches_no_memory_on(project: Project) -> None:
    """Whatever a repository says, memory that the person switched off stays off."""
    project.home.configure("enabled = false\n")
    (project.path / ".claude").mkdir()
    (project.path / ".claude/settings.json").write_text(json.dumps({"autoMemoryEnabled": True}))
    (project.path / ".memd.toml").write_text("enabled = true\n")
    answer = project.call("load_prompt")
    assert (answer["enabled"], answer["prompt"]) == (False, None)


def test_memory_can_be_kept_out_of_the_home_directory(home: Home, project: Project) -> None:
    """The home directory is a project; with allow_home = false it and what is above are none."""
    place = home.environ["HOME"]
    assert keeper(project, place) == f"{home.claude}/projects/{slug(place)}/memory"
    home.configure("allow_home = false\n")
    for cwd in (place, str(home.path)):
        with pytest.raises(RpcError, match="no_project"):
            home.call("memory.list", cwd=cwd)
    assert keeper(project) == str(project.memory)


def test_the_directory_is_made_before_a_prompt_names_it(project: Project) -> None:
    """A prompt's directory exists; directories and files of memd's are for their owner only."""
    assert os.path.isdir(project.call("load_prompt")["memory_dir"])
    project.write("area/x.md", "text")
    modes = {str(path): path.stat().st_mode & 0o777 for path in project.memory.rglob("*.md")}
    assert set(modes.values()) == {0o600}
    folders = (project.memory, project.memory / "area")
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}


def test_existing_modes_stay(project: Project) -> None:
    """A directory and a file that another program made keep their modes through a write."""
    file = project.put("shared.md", "---\nname: shared\ndescription: d e\ntype: user\n---\n\na\n")
    file.chmod(0o644)
    project.memory.chmod(0o755)
    project.call("memory.write", path="shared.md", body="b")
    assert file.read_text().endswith("b\n")
    assert file.stat().st_mode & 0o777 == 0o644
    assert project.memory.stat().st_mode & 0o777 == 0o755


def test_hidden_temporary_files_go(project: Project) -> None:
    """What memd puts beside a file for a change goes by itself and is never listed."""
    for number in range(3):
        project.write("a.md", f"text {number}")
    assert [memory["path"] for memory in project.call("memory.list")["memories"]] == ["a.md"]
    until(lambda: {p.name for p in project.memory.iterdir()} == {"a.md", "MEMORY.md"})
