"""The built wheel, installed with pipx and with uv on a bare Python of each version, and used.

``make packages`` builds it and brings what it needs into ``build/wheels``, so that nothing here
asks a network. A Python is ``python3.12`` on the PATH or one that MEMD_PYTHONS names, which holds
paths with colons between.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from memd import __version__
from tests.e2e.programs import ROOT
from tests.support.daemon import Home, throw_away_home
from tools import manual

pytestmark = pytest.mark.e2e
WHEELS = ROOT / "build" / "wheels"
PAGES = manual.pages()
VERSIONS = ("3.11", "3.12", "3.13")
TELLS = "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)"
# What the installers keep for themselves, and the user's data.
STAYS = (
    ".cache",
    ".claude",
    ".config/uv",
    ".local/share/man",
    ".local/share/memd",
    ".local/share/pipx",
    ".local/share/uv",
    ".local/state",
    "project",
    "run",
)


@dataclass(frozen=True)
class Installer:
    """A program that installs: its command lines, and where it keeps what it installed."""

    install: tuple[str, ...]
    uninstall: tuple[str, ...]
    folder: str
    environ: Mapping[str, str]


INSTALLERS = {
    "pipx": Installer(
        ("pipx", "install", "--python"),
        ("pipx", "uninstall", "memdir-daemon"),
        ".local/share/pipx/venvs",
        {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(WHEELS), "PIPX_DEFAULT_BACKEND": "pip"},
    ),
    "uv": Installer(
        ("uv", "tool", "install", "--python"),
        ("uv", "tool", "uninstall", "memdir-daemon"),
        ".local/share/uv/tools",
        {"UV_OFFLINE": "1", "UV_NO_INDEX": "1", "UV_FIND_LINKS": str(WHEELS)},
    ),
}


@pytest.fixture(scope="session")
def wheel() -> str:
    """Return the wheel that ``make dist`` built."""
    found = sorted((ROOT / "dist").glob("*.whl"))
    if not found or not WHEELS.is_dir():
        pytest.skip("no wheel is built: make packages does it")
    return str(found[-1])


@pytest.fixture(scope="session")
def tools(wheel: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a folder with pipx and uv, in an environment that is thrown away."""
    assert wheel
    place = tmp_path_factory.mktemp("tools")
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    pip = [str(place / "bin" / "pip"), "install", "-q", "--no-index", "-f", str(WHEELS)]
    subprocess.run([*pip, "pipx", "uv"], check=True)
    return str(place / "bin")


@pytest.fixture
def home(tools: str) -> Iterator[Home]:
    """Give a home on whose PATH are the tools, the system, and what is installed."""
    with throw_away_home() as made:
        path = f"{made.path}/.local/bin:{tools}:/usr/local/bin:/usr/bin:/bin"
        yield replace(made, environ={**made.environ, "PATH": path})


def python(version: str) -> str:
    """Return an interpreter of a version, or skip the test where there is none."""
    named = os.environ.get("MEMD_PYTHONS", "").split(os.pathsep)
    for name in filter(None, [*named, shutil.which(f"python{version}")]):
        done = subprocess.run([name, "-c", TELLS], capture_output=True, text=True, check=False)
        found, _, path = done.stdout.strip().partition(" ")
        if found == version:
            return path
    pytest.skip(f"there is no Python {version}: neither on the PATH nor in MEMD_PYTHONS")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", INSTALLERS)
def test_an_installed_memd_works_and_goes_again(
    home: Home, wheel: str, name: str, version: str
) -> None:
    """It is installed, remembers, explains itself, completes, and leaves the user's data alone."""
    installer, interpreter = INSTALLERS[name], python(version)
    home = replace(home, environ={**home.environ, **installer.environ})
    _run(home, *installer.install, interpreter, wheel)
    try:
        _works(home, Path(home.path, installer.folder), version)
    finally:
        _run(home, "memctl", "stop")
    _run(home, "memctl", "setup", "--remove")
    _run(home, *installer.uninstall)
    assert _left(home) == []
    assert list(Path(home.path, ".claude/projects").rglob("fridays.md"))
    assert not [p.pid for p in psutil.process_iter() if home.path in " ".join(_words(p))]


def _works(home: Home, folder: Path, version: str) -> None:
    """See that the programs are those of this folder and Python, and do what they promise."""
    cwd = home.project()
    assert _run(home, "memctl", "--version") == f"memctl {__version__}\n"
    assert _run(home, "memd", "--version") == f"memd {__version__}\n"
    assert "COMMAND" in _run(home, "memctl", "--help")
    assert "--uds" in _run(home, "memd-team", "serve", "--help")
    said = ("--description", "never deploy on a Friday", "--body", "Deploys wait for Monday.")
    _run(home, "memctl", "add", "--name", "fridays", "--type", "feedback", *said, cwd=cwd)
    assert "Monday" in _run(home, "memctl", "prefetch", "may I deploy on Friday?", cwd=cwd)
    status = json.loads(_run(home, "memctl", "status", "--json"))
    daemon = psutil.Process(status["pid"]).cmdline()[0]
    assert Path(daemon).is_relative_to(folder), daemon
    checks = json.loads(_run(home, "memctl", "doctor", "--json", cwd=cwd))["checks"]
    assert [check for check in checks if check["state"] == "failed"] == []
    assert list(folder.glob(f"memdir-daemon/lib/python{version}/site-packages/memd/py.typed"))
    _run(home, "memctl", "setup", "bash")
    completes = '. "$1"; complete -p memctl; COMP_WORDS=(memctl hist); COMP_CWORD=1; _shtab_memctl'
    script = f"{home.path}/.local/share/bash-completion/completions/memctl"
    bash = ("bash", "-c", f'{completes}; echo "${{COMPREPLY[@]}}"', "bash", script)
    assert _run(home, *bash).splitlines()[-1].strip() == "history"
    assert "plugin/memd.lua" in _run(home, "memctl", "setup", "neovim", "--diff")
    _manual(home, folder / "memdir-daemon" / "share" / "man")


def _manual(home: Home, folder: Path) -> None:
    """See that each page is there, and that man shows one; pipx links them to where man looks."""
    assert sorted(path.name for path in folder.rglob("*.[15]")) == sorted(PAGES)
    if shutil.which("man") is None:
        return
    assert "memctl review" in _run(home, "man", "-l", str(folder / "man1/memctl-review.1"))
    if "pipx" in folder.parts:
        assert _run(home, "man", "-w", "memctl").endswith("man1/memctl.1\n")


@pytest.mark.parametrize("name", sorted(PAGES))
def test_manual_pages_are_clean(name: str, tmp_path: Path) -> None:
    """Neither groff nor mandoc has anything to say about a page; that it has no date is known."""
    tried, page = 0, tmp_path / name
    page.write_text(PAGES[name], encoding="utf-8")
    if shutil.which("groff"):
        done = subprocess.run(
            ["groff", "-ww", "-man", "-Tutf8", page], capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        tried += 1
    if shutil.which("mandoc"):
        done = subprocess.run(
            ["mandoc", "-T", "lint", "-W", "warning", page],
            capture_output=True,
            text=True,
            check=False,
        )
        assert [line for line in done.stdout.splitlines() if "missing date" not in line] == []
        tried += 1
    if not tried:
        pytest.skip("there is neither groff nor mandoc here")


def _run(home: Home, *command: str, cwd: str = "") -> str:
    """Return what a command printed; it has to end with 0."""
    done = subprocess.run(
        command,
        env={**home.environ, "MANPAGER": "cat", "MANWIDTH": "80"},
        cwd=cwd or home.path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def _left(home: Home) -> list[str]:
    """Return what is left below a home, but for data, caches and empty folders."""
    root = Path(home.path)
    paths = [path for path in root.rglob("*") if path.is_symlink() or not path.is_dir()]
    names = [str(path.relative_to(root)) for path in paths]
    packages = [name for name in names if "site-packages/memd" in name]
    return packages + [name for name in names if not name.startswith(STAYS)]


def _words(process: psutil.Process) -> Sequence[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return ()
