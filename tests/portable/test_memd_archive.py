"""Archives of memd: what comes of them, and what damage takes nothing."""

import json

import pytest

from memd.base.errors import Invalid, Refused
from memd.base.text import sha256
from memd.portable.manifest import MANIFEST, SUMS
from memd.portable.memd_archive import read
from memd.portable.values import MEMORIES, ImportReading, LeftOutFile, SourceKind
from tests.portable.archives import MTIME_NS, export_of, sealed
from tests.portable.sources import Files
from tests.portable.trees import memory

SECRET = b"the token is ghp" + b"_16C7e42F292c6912E7710c838347Ae178B4a\n"
OLD, NEW = memory("One."), memory("Two.")
PROJECT = {
    "memory/MEMORY.md": b"- [A](a.md)\n",
    "memory/a.md": NEW,
    "memory/odd näme.md": b"\xff damaged",
    "memory/team/MEMORY.md": b"- [a-name](t.md) \xe2\x80\x94 About it\n",
    "memory/team/t.md": memory("Ours."),
    "agents/project/reviewer/r.md": b"review",
    "agents/local/reviewer/l.md": b"local",
    "notes/abc-1.md": b"# notes",
}
OTHERS = {
    "agents/user/writer/w.md": b"write",
    "history/app.jsonl": b'{"at": 1.5, "actor": "client"}\n',  # of an earlier version
    f"history/blobs/{sha256(OLD)}": OLD,
    "settings.toml": b"enabled = true\n",
}
WHOLE = export_of({"app": PROJECT}, OTHERS, origin="user")


def taken(files: dict[str, bytes]) -> ImportReading:
    """Read an archive."""
    return read(Files(files))


def test_an_export_is_read_as_it_was_written() -> None:
    """Memories, agents and notes come back byte for byte; history of before is passed over."""
    reading = taken(WHOLE)
    (project,) = reading.projects
    assert (reading.kind, project.id, project.name) == (SourceKind.MEMD, "app", "app")
    assert {file.path: file.content for file in project.memories} == {
        path.removeprefix("memory/"): content
        for path, content in PROJECT.items()
        if path.startswith("memory/")
    }
    assert {(f.exact, f.mtime_ns) for f in project.memories} == {(True, MTIME_NS)}
    agents = {key: [f.path for f in files] for key, files in project.agents.items()}
    assert agents == {"project/reviewer": ["r.md"], "local/reviewer": ["l.md"]}
    assert [file.path for file in reading.agents["writer"]] == ["w.md"]
    assert [(file.path, file.content) for file in project.notes] == [("abc-1.md", b"# notes")]
    assert [left.name for left in reading.left_out] == ["settings.toml"]


def test_members_and_places_that_nobody_knows_are_passed_over() -> None:
    """Another member of the manifest changes nothing, and a file elsewhere is listed."""
    files = export_of(
        {"app": {"memory/a.md": NEW, "later/x.bin": b"x", "memory/logs/2026/a.md": b"l"}}
    )
    manifest = json.loads(files[MANIFEST])
    manifest["later"] = manifest["projects"][0]["later"] = {"x": [1]}
    inside = {name: c for name, c in files.items() if name not in (MANIFEST, SUMS)}
    reading = taken(sealed(json.dumps(manifest).encode(), inside))
    assert [file.path for file in reading.projects[0].memories] == ["a.md"]
    assert {left.name for left in reading.left_out} == {
        "projects/app/later/x.bin",
        "projects/app/memory/logs/2026/a.md",
    }


@pytest.mark.parametrize("name", sorted(WHOLE))
@pytest.mark.parametrize("how", ["changed", "longer", "missing"])
def test_damage_anywhere_takes_nothing_and_names_the_file(name: str, how: str) -> None:
    """A file with other bytes, another size, or none, is named, and nothing is taken."""
    files = dict(WHOLE)
    content = files.pop(name)
    if how != "missing":
        files[name] = content[:-1] + b"~" if how == "changed" else content + b"\n"
    with pytest.raises(Invalid) as caught:
        taken(files)
    named = {MANIFEST, SUMS} if name == MANIFEST else {name}
    assert caught.value.facts["name"] in named


def test_a_file_that_the_manifest_does_not_name_is_damage() -> None:
    """Nothing rides along in an archive."""
    with pytest.raises(Invalid, match=r"extra\.md: the manifest does not name it"):
        taken(WHOLE | {"projects/app/memory/extra.md": b"x"})


@pytest.mark.parametrize("key", ["", "..", ".", "a/b", "/x", "-x", "a\0", "\u2025"])
def test_an_id_that_is_no_name_is_damage(key: str) -> None:
    """The id of a project is a plain name, and each has its own."""
    with pytest.raises(Invalid, match="id"):
        taken(export_of({key: {"memory/a.md": NEW}}))


def test_a_file_that_is_listed_twice_is_damage() -> None:
    """One name has one record."""
    files = export_of({"app": {"memory/a.md": NEW}}, {"projects/app/memory/a.md": NEW})
    with pytest.raises(Invalid, match="twice"):
        taken(files)


def test_a_newer_version_is_refused_with_both_numbers() -> None:
    """An archive of a format that is not known yet says which memd would read it."""
    with pytest.raises(Refused, match=r"version 2 .* up to 1"):
        taken(export_of({"app": {}}, version=2))


@pytest.mark.parametrize(
    ("member", "value"), [("files", b"{}," * 300_000), ("scope", b'"",' * 3_000_000)]
)
def test_a_manifest_of_endless_values_is_refused_before_it_is_read(
    member: str, value: bytes
) -> None:
    """Values that say nothing fill no memory and hold up no prompt."""
    head = b'{"format": "memd-export", "version": 1, "%s": [' % member.encode()
    with pytest.raises(Invalid, match="too many"):
        taken({MANIFEST: head + value + b"]}", SUMS: b""})


def test_more_than_one_import_brings_is_listed() -> None:
    """Memories beyond the bound of one import are listed and not taken."""
    many = {f"memory/m{number}.md": b"" for number in range(MEMORIES + 1)}
    reading = taken(export_of({"app": many}))
    assert len(reading.projects[0].memories) == MEMORIES
    assert [type(left) for left in reading.left_out] == [LeftOutFile]
