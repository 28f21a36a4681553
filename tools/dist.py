"""``make dist``: the sdist and the wheel of the last commit, the same bytes wherever they are made.

The commit is unpacked into an empty folder, so neither what lies in ``build/`` nor what is not
committed gets into a package. There the references are written as ``make docs`` does, and the wheel
is made from the sdist. Times are those of the commit,
modes and owners are fixed; setuptools is the version of constraints.txt.

``make dist-check`` does it in two clones that differ in all else that could leave a trace, compares
the bytes, and looks whether each file is where it belongs.
"""

import argparse
import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = (".ci/", ".gitignore")  # of no use without the repository
WRITTEN = ("docs/reference/", "docs/man/")  # by tools.documents, not tracked
MADE = ("PKG-INFO", "setup.cfg")  # what setuptools adds to an sdist, beside its egg-info
_HOOK = "import sys; from setuptools import build_meta; build_meta.build_{}(sys.argv[1])"
_PROGRAM_MODE, _FILE_MODE = 0o755, 0o644
# What must leave no trace: permissions of new files, time zone, language, order of sets, the home.
_SETTINGS: tuple[tuple[int, dict[str, str]], ...] = (
    (0o022, {"TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "1"}),
    (0o077, {"TZ": "Asia/Kathmandu", "LC_ALL": "C", "PYTHONHASHSEED": "2", "HOME": "/nonexistent"}),
)


@dataclass(frozen=True, slots=True)
class Dist:
    """The two packages."""

    sdist: Path
    wheel: Path


def build(repository: Path, to: Path) -> Dist:
    """Build both packages of the last commit into a folder."""
    epoch = commit_time(repository)
    with tempfile.TemporaryDirectory() as folder:
        source, unpacked = Path(folder, "commit"), Path(folder, "sdist")
        _unpack(_git(repository, "archive", "HEAD"), source)
        _write_references(source)
        sdist = _hook("sdist", source, Path(folder, "1"), epoch)
        sdist.write_bytes(repacked(sdist.read_bytes(), epoch))
        _unpack(gzip.decompress(sdist.read_bytes()), unpacked)
        (inner,) = unpacked.iterdir()
        wheel = _hook("wheel", inner, Path(folder, "2"), epoch)
        to.mkdir(parents=True, exist_ok=True)
        return Dist(Path(shutil.copy(sdist, to)), Path(shutil.copy(wheel, to)))


def repacked(sdist: bytes, epoch: int) -> bytes:
    """Return an archive with the same contents, in one order, of one time and of nobody."""
    result = BytesIO()
    with (
        tarfile.open(fileobj=BytesIO(sdist)) as old,
        gzip.GzipFile("", "wb", 9, result, mtime=epoch) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            plain = tarfile.TarInfo(member.name)
            plain.type, plain.size, plain.mtime = member.type, member.size, epoch
            program = member.mode & 0o100
            plain.mode = _PROGRAM_MODE if program or member.isdir() else _FILE_MODE
            new.addfile(plain, old.extractfile(member) if member.isfile() else None)
    return result.getvalue()


def problems(dist: Dist, tracked: Sequence[str], project: Mapping[str, object]) -> list[str]:
    """Return what is missing in the packages of these files, or too much; empty if nothing is."""
    with zipfile.ZipFile(dist.wheel) as wheel:
        in_wheel = set(wheel.namelist())
    with tarfile.open(dist.sdist) as sdist:
        files = (member.name for member in sdist if not member.isdir())
        in_sdist = {name.partition("/")[2] for name in files}
    top = "-".join(dist.wheel.name.split("-")[:2])
    written = [name for name in in_sdist if name.startswith(WRITTEN)]
    wanted = {name for name in tracked if name.startswith("memd/")}
    wanted |= {f"{top}.data/data/{name}" for name in data_files((*tracked, *written), project)}
    wanted |= {f"{top}.dist-info/licenses/LICENSE"}
    inner = {name for name in in_wheel if name.startswith(f"{top}.dist-info/")}
    source = {name for name in tracked if not name.startswith(LEFT_OUT)} | set(written)
    folders = {name for name in WRITTEN if not any(path.startswith(name) for path in written)}
    made = {name for name in in_sdist if name in MADE or ".egg-info/" in name}
    return [
        *(f"the wheel lacks {name}" for name in sorted(wanted - in_wheel)),
        *(f"the wheel has {name}" for name in sorted(in_wheel - wanted - inner)),
        *(f"the sdist lacks {name}" for name in sorted((source | folders) - in_sdist)),
        *(f"the sdist has {name}" for name in sorted(in_sdist - source - made)),
    ]


def data_files(tracked: Sequence[str], project: Mapping[str, object]) -> set[str]:
    """Return where the data files of a pyproject.toml are to be below a prefix."""
    tables: object = project
    for key in ("tool", "setuptools", "data-files"):
        tables = tables[key] if isinstance(tables, dict) else {}
    patterns = tables.items() if isinstance(tables, dict) else ()
    return {
        f"{folder}/{os.path.basename(name)}"
        for folder, names in patterns
        for pattern in names
        for name in tracked
        if fnmatchcase(name, pattern)
    }


def commit_time(repository: Path) -> int:
    """Return when the last commit was made, in seconds since 1970."""
    return int(_git(repository, "log", "-1", "--format=%ct"))


def hashed(path: Path) -> str:
    """Return the SHA-256 and the name of a file, as sha256sum prints them."""
    return f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}"


def main() -> int:
    """Build, or build twice and compare; 1 where something differs or is not where it belongs."""
    parser = argparse.ArgumentParser(prog="python -m tools.dist")
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "dist")
    parser.add_argument("--check", action="store_true", help="build in two clones and compare")
    options = parser.parse_args()
    if not options.check:
        dist = build(ROOT, options.folder)
        print(f"{hashed(dist.sdist)}\n{hashed(dist.wheel)}")
        return 0
    return _check()


def _check() -> int:
    with tempfile.TemporaryDirectory() as folder:
        made = [_built_in_clone(Path(folder), number) for number in range(len(_SETTINGS))]
        sums = [(hashed(dist.sdist), hashed(dist.wheel)) for dist in made]
        print("\n".join(sums[0]))
        wrong = [f"another clone gave {line}" for line in {*sums[1], *sums[0]} - {*sums[0]}]
        tracked = _git(ROOT, "ls-tree", "-r", "-z", "--name-only", "HEAD").decode().split("\0")[:-1]
        project = tomllib.loads(_git(ROOT, "show", "HEAD:pyproject.toml").decode())
        wrong += problems(made[0], tracked, project)
    print(
        "\n".join(wrong) or f"{len(made)} clones gave the same bytes, and nothing is out of place"
    )
    return 1 if wrong else 0


def _built_in_clone(folder: Path, number: int) -> Dist:
    """Clone the repository into a folder of another name and depth, and have it build itself."""
    umask, environ = _SETTINGS[number]
    clone = folder / "a clone" / "deeper" if number else folder / "clone"
    before = os.umask(umask)
    try:
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        subprocess.run(
            [sys.executable, "-m", "tools.dist", "dist"],
            cwd=clone,
            env=os.environ | environ,
            stdout=subprocess.DEVNULL,
            check=True,
        )
    finally:
        os.umask(before)
    (sdist,), (wheel,) = clone.glob("dist/*.tar.gz"), clone.glob("dist/*.whl")
    return Dist(sdist, wheel)


def _hook(kind: str, source: Path, to: Path, epoch: int) -> Path:
    """Run a hook of the build backend and return the file that it made in a new folder."""
    to.mkdir()
    # No HOME of a person: setuptools reads a .pydistutils.cfg there.
    environ = os.environ | {"SOURCE_DATE_EPOCH": str(epoch), "HOME": str(source)}
    command = [sys.executable, "-c", _HOOK.format(kind), str(to)]
    subprocess.run(
        command, cwd=source, env=environ, stdout=subprocess.DEVNULL, check=True, umask=0o022
    )
    (result,) = to.iterdir()
    return result


def _write_references(source: Path) -> None:
    """Write the references and manual pages of an unpacked commit below its docs/."""
    environ = os.environ | {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "tools.documents"]
    subprocess.run(command, cwd=source, env=environ, stdout=subprocess.DEVNULL, check=True)


def _unpack(archive: bytes, to: Path) -> None:
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        tar.extractall(to, filter="data")


def _git(repository: Path, *words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=repository, check=True, capture_output=True).stdout


if __name__ == "__main__":  # pragma: no cover - run as a process
    sys.exit(main())
