"""memd beside the programs that install it: their files, and the packages that they left out."""

import os
from pathlib import Path

import pytest

from tests.net.kit import PYTHON, Home
from tests.net.wire import BIN

EXTRAS = {"jinja2", "markdown_it", "starlette", "uvicorn", "anthropic", "h11", "httpx2", "psycopg"}
PAGE = "'memdir-daemon[ui]'"


@pytest.mark.full
def test_completion_that_pipx_linked_is_no_fault(own: Home, tmp_path: Path) -> None:
    """Doctor reports no file of another installer, and setup neither writes nor removes it."""
    data = own.path / "h/.local/share"
    paths = (data / "zsh/site-functions/_memctl", data / "bash-completion/completions/memctl")
    for shell, path in zip(("zsh", "bash"), paths, strict=True):
        assert own.memctl("--no-start", "setup", shell).returncode == 0
        installed = tmp_path / path.name
        installed.write_bytes(path.read_bytes())
        assert own.memctl("--no-start", "setup", shell, "--remove").returncode == 0
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(installed)
    shell_of = {"environ": {"SHELL": "/bin/zsh"}}
    for setup in ((), ("setup", "zsh"), ("setup", "bash")):
        if setup:
            assert own.memctl("--no-start", *setup).returncode == 0
        rows = own.memctl("--no-start", "doctor", **shell_of).stdout
        assert "warning" not in rows, rows
        assert "  bash: " in rows
    assert (own.path / "h/.zshrc").exists()
    assert own.memctl("--no-start", "setup", "--remove").returncode == 0
    for path in paths:
        assert path.is_symlink()
        assert path.read_bytes()
    assert not (own.path / "h/.zshrc").exists()


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment with the tried memd and all it needs, without its extras."""
    home = Home(tmp_path_factory.mktemp("bare"))
    places = home.run(PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    path = home.path / "memdir-daemon"
    assert home.run(PYTHON, "-m", "venv", "--without-pip", str(path)).returncode == 0
    shown = home.run(
        f"{path}/bin/python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"
    )
    target = Path(shown.stdout.strip())
    for entry in Path(places.stdout.strip()).iterdir():
        if entry.name.partition(".")[0].partition("-")[0] not in EXTRAS | {"pip"}:
            (target / entry.name).symlink_to(entry)
    return path


INSTALLERS = {
    "pipx": ("pipx_metadata.json", "pipx inject memdir-daemon {package}"),
    "uv tool": ("uv-receipt.toml", "uv tool install {package}"),
    "uv": ("", "uv pip install --python {python} {package}"),
    "pip": ("pip", "{python} -m pip install {package}"),
}


@pytest.mark.full
@pytest.mark.parametrize("installer", INSTALLERS)
def test_a_missing_extra_names_the_command_that_fits(own: Home, bare: Path, installer: str) -> None:
    """A page without its packages ends with 78 and the command of memd's own installer."""
    mark, command = INSTALLERS[installer]
    python = f"{bare}/bin/python"
    if mark == "pip":
        marked = next(bare.glob("lib/python*/site-packages")) / "pip.py"
    else:
        marked = bare / (mark or "nothing")
    marked.write_text("")
    try:
        done = own.run(python, f"{BIN}/memctl", "--no-start", "ui")
        wanted = command.format(package=PAGE, python=python)
        assert done.returncode == 78, done.stderr
        assert done.stderr.endswith(f"which is not installed\n  {wanted}\n"), done.stderr
        data = {"MEMD_TEAM_DATA": str(own.path / "team")}
        serve = ("serve", "--listen", "127.0.0.1:0")
        server = own.run(python, f"{BIN}/memd-team", *serve, environ=data)
        assert server.returncode == 78, server.stderr
        assert wanted.replace("[ui]", "[team-server,team-postgres]") in server.stderr
    finally:
        os.unlink(marked)
