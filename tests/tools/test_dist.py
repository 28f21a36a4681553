"""The packages that ``make dist`` builds."""

import io
import tarfile
import tomllib
import zipfile
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

import memd
from tools import dist

PROJECT = tomllib.loads((dist.ROOT / "pyproject.toml").read_text("utf-8"))
TRACKED = ("LICENSE", ".ci/run", "memd/a.py", "memd/b/t.md", "tests/t.py", "clients/x/memd.js")
DATA = {"tool": {"setuptools": {"data-files": {"share/x": ["clients/x/*.js"]}}}}
WHEEL = ("memd/a.py", "memd/b/t.md", "m-1.dist-info/licenses/LICENSE", "m-1.dist-info/RECORD")
MADE = ("docs/reference/cli.md", "docs/man/memd.1")  # by tools.documents
IN_DATA = "m-1.data/data/share/x/memd.js"
SDIST = (
    "LICENSE",
    "memd/a.py",
    "memd/b/t.md",
    "tests/t.py",
    "clients/x/memd.js",
    "PKG-INFO",
    *MADE,
)


def _archive(names: tuple[str, ...], **values: int) -> bytes:
    result = io.BytesIO()
    with tarfile.open(fileobj=result, mode="w:gz") as tar:
        for name in names:
            member = tarfile.TarInfo(f"m-1/{name}")
            member.size = len(name)
            for key, value in values.items():
                setattr(member, key, value)
            tar.addfile(member, io.BytesIO(name.encode()))
    return result.getvalue()


@pytest.mark.parametrize(
    ("wheel", "sdist", "said"),
    [
        ((*WHEEL, IN_DATA), SDIST, []),
        (WHEEL, SDIST, [f"the wheel lacks {IN_DATA}"]),
        ((*WHEEL[1:], IN_DATA), SDIST, ["the wheel lacks memd/a.py"]),
        ((*WHEEL, IN_DATA, "tests/t.py"), SDIST, ["the wheel has tests/t.py"]),
        ((*WHEEL, IN_DATA), SDIST[1:], ["the sdist lacks LICENSE"]),
        ((*WHEEL, IN_DATA), SDIST[:-1], ["the sdist lacks docs/man/"]),
        ((*WHEEL, IN_DATA), (*SDIST, "build/x"), ["the sdist has build/x"]),
    ],
)
def test_each_file_has_its_place(
    tmp_path: Path, wheel: tuple[str, ...], sdist: tuple[str, ...], said: list[str]
) -> None:
    """What is missing in a package or too much is named; .ci is in none."""
    made = dist.Dist(tmp_path / "m-1.tar.gz", tmp_path / "m-1-py3-none-any.whl")
    made.sdist.write_bytes(_archive(sdist))
    with zipfile.ZipFile(made.wheel, "w") as archive:
        for name in wheel:
            archive.writestr(name, "")
    assert dist.problems(made, TRACKED, DATA) == said


def test_an_sdist_tells_nothing_of_who_packed_it() -> None:
    """Order, owners, modes and times of the files do not matter, and contents stay."""
    one = _archive(("b", "a"), uid=1000, mtime=5, mode=0o600)
    other = _archive(("a", "b"), uid=0, mtime=9, mode=0o664)
    packed = dist.repacked(one, 7)
    assert packed == dist.repacked(other, 7) != dist.repacked(other, 8)
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        assert [(m.name, m.mtime, m.mode) for m in tar] == [
            ("m-1/a", 7, 0o644),
            ("m-1/b", 7, 0o644),
        ]
        file = tar.extractfile("m-1/b")
        assert file
        assert file.read() == b"b"


def test_no_file_of_the_program_is_forgotten() -> None:
    """Each file below memd/ that is no module is among the package data of pyproject.toml."""
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["memd"]
    root = Path(memd.__file__).parent
    files = [path.relative_to(root) for path in root.rglob("*") if path.is_file()]
    data = [str(p) for p in files if p.suffix != ".py" and "__pycache__" not in p.parts]
    globs = [pattern.replace("**/", "*") for pattern in patterns]
    assert [name for name in data if not any(fnmatchcase(name, glob) for glob in globs)] == []


def test_a_persons_own_settings_change_no_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a home says of building counts for nothing."""
    (tmp_path / ".pydistutils.cfg").write_text("[bdist_wheel]\nbuild_number=1\n")
    source = tmp_path / "source"
    source.mkdir()
    (source / "pyproject.toml").write_text('[project]\nname = "a"\nversion = "1"\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    made = dist._hook("wheel", source, tmp_path / "made", 1_000_000_000)
    assert made.name == "a-1-py3-none-any.whl"
