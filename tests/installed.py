"""memd as another version: a copy of the package in a virtual environment of its own."""

import shutil
import sysconfig
import venv
from pathlib import Path

import memd


def installed(folder: Path, version: str) -> str:
    """Install memd as a version into a new folder; return its Python."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    shutil.copytree(Path(memd.__file__).parent, site / "memd")
    upgrade(folder, version)
    return f"{folder}/bin/python"


def package(folder: Path) -> Path:
    """Return the package of an installation."""
    (site,) = folder.glob("lib/python*/site-packages")
    return site / "memd"


def upgrade(folder: Path, version: str) -> None:
    """Make an installation another version, in its place, as an installer does."""
    init = package(folder) / "__init__.py"
    draft = init.with_suffix(".new")
    draft.write_text(f'"""memd"""\n\n__version__ = "{version}"\n')
    draft.rename(init)
    shutil.rmtree(init.parent / "__pycache__", ignore_errors=True)
