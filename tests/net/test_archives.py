"""Export and import: plain files that any tool can check, and nothing taken before a yes."""

import hashlib
import io
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.net.kit import Project
from tests.net.wire import RpcError


@pytest.fixture
def filled(project: Project) -> Project:
    """Return a project with five memories of all types."""
    for number, kind in enumerate(("user", "feedback", "project", "reference", "project")):
        project.write(f"m{number}.md", f"Body {number} of it.", type=kind)
    return project


def archive_of(project: Project, name: str = "out") -> Path:
    """Return the folder of a new export."""
    dest = project.path.parent / f"{project.path.name}-{name}"
    project.call("export", dest=str(dest))
    return dest


def memories_in(project: Project) -> dict[str, str]:
    """Return the files of a project without its index."""
    return {path: text for path, text in project.tree().items() if path != "MEMORY.md"}


def test_an_export_is_byte_for_byte(filled: Project) -> None:
    """An export holds the same bytes, sums that sha256sum accepts and no path of the machine."""
    dest = archive_of(filled)
    (project,) = (dest / "projects").iterdir()
    exported = {p.name: p.read_text() for p in (project / "memory").glob("*.md")}
    assert exported == filled.tree()
    sums = subprocess.run(
        ["sha256sum", "-c", "SHA256SUMS"], cwd=dest, capture_output=True, check=False
    )
    assert sums.returncode == 0
    manifest = (dest / "manifest.json").read_text()
    assert json.loads(manifest)["format"] == "memd-export"
    assert str(filled.home.path) not in manifest


def test_equal_files_give_equal_archives(filled: Project) -> None:
    """Two archives of the same memories are the same bytes, and hold what the folder holds."""
    archives = [str(filled.path.parent / f"{filled.path.name}-{n}.tar.gz") for n in "ab"]
    for dest in archives:
        filled.call("export", dest=dest)
    first, second = (Path(dest).read_bytes() for dest in archives)
    assert first == second
    with tarfile.open(archives[0]) as archive:
        assert any(name.endswith("memory/m0.md") for name in archive.getnames())


def test_an_export_replaces_nothing(filled: Project) -> None:
    """A destination that exists is refused and stays as it is."""
    dest = filled.path.parent / f"{filled.path.name}-taken"
    dest.mkdir()
    (dest / "mine.txt").write_text("mine")
    with pytest.raises(RpcError):
        filled.call("export", dest=str(dest))
    assert [path.name for path in dest.iterdir()] == ["mine.txt"]


def test_an_export_leaves_credentials_out(filled: Project) -> None:
    """A file with a credential is listed and not exported."""
    filled.put("key.md", "---\nname: key\n---\nghp_16C7e42F292c6912E7710c838347Ae178B4a\n")
    dest = filled.path.parent / f"{filled.path.name}-clean"
    answer = filled.call("export", dest=str(dest))
    assert "key.md" in json.dumps(answer)
    assert not list(dest.rglob("key.md"))
    for path in dest.rglob("*"):
        assert not path.is_file() or b"ghp_16C7" not in path.read_bytes()


def test_an_import_changes_nothing_before_the_yes(filled: Project) -> None:
    """Without accept the answer is the plan, and the directory stays as it was."""
    target = filled.home.project()
    plan = target.call("import", source=str(archive_of(filled)))
    assert plan["kind"] == "memd"
    assert not target.memory.exists() or memories_in(target) == {}


def test_an_import_is_made_once_and_undone_once(filled: Project) -> None:
    """Accepted it brings each memory in one change, again it brings nothing, one undo takes it."""
    target, source = filled.home.project(), str(archive_of(filled))
    first = target.call("import", source=source, accept=True)
    bodies = {path: text.split("---\n")[-1] for path, text in memories_in(target).items()}
    assert bodies == {p: t.split("---\n")[-1] for p, t in memories_in(filled).items()}
    again = target.call("import", source=source, accept=True)
    assert not any(part.get("change") for part in again["projects"])
    (change,) = [part["change"] for part in first["projects"] if part.get("change")]
    target.call("memory.undo", change=change)
    assert memories_in(target) == {}


def test_imported_words_are_not_the_persons(filled: Project) -> None:
    """What an import brought has the origin import and gives no orders."""
    target, source = filled.home.project(), str(archive_of(filled))
    target.call("import", source=source, accept=True)
    origins = {m["path"]: m["origin"] for m in target.call("memory.list")["memories"]}
    assert set(origins.values()) == {"import"}
    found = target.call("prefetch", session_id="i", query="body 1 of it, about m1 please")
    assert "Standing instructions" not in found["block"]


def test_an_import_writes_over_nothing(filled: Project) -> None:
    """A memory of the same name stays, and the imported one comes beside it."""
    target, source = filled.home.project(), str(archive_of(filled))
    target.write("m0.md", "The person's own text.")
    target.call("import", source=source, accept=True)
    assert "The person's own text." in target.read("m0.md")
    assert "Body 0 of it." in target.read("m0-2.md")


def test_of_a_damaged_archive_nothing_is_taken(filled: Project) -> None:
    """A file whose sum is wrong fails the whole archive and is named."""
    source = archive_of(filled)
    (damaged,) = source.glob("projects/*/memory/m1.md")
    damaged.write_text(damaged.read_text() + "x")
    target = filled.home.project()
    with pytest.raises(RpcError) as failed:
        target.call("import", source=str(source), accept=True)
    assert "m1.md" in json.dumps(failed.value.data) + failed.value.message
    assert not target.memory.exists() or memories_in(target) == {}


def _tar(members: dict[str, bytes | str]) -> bytes:
    """Return a tar.gz of files; a text instead of bytes is where a link leads."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                archive.addfile(info)
            else:
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


HOSTILE = ["../evil.md", "/tmp/evil.md", "projects/p1/memory/../../../evil.md", "a\0b.md"]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_archive_writes_elsewhere(filled: Project, name: str) -> None:
    """A name in an archive that leads outside is refused, and no file appears anywhere."""
    good = archive_of(filled, "good")
    members = {str(p.relative_to(good)): p.read_bytes() for p in good.rglob("*") if p.is_file()}
    bad = filled.path.parent / f"{filled.path.name}-bad.tar.gz"
    bad.write_bytes(_tar({**members, name.replace("\0", "\\0"): b"evil"}))
    target = filled.home.project()
    try:
        target.call("import", source=str(bad), accept=True)
    except RpcError:
        assert not target.memory.exists() or memories_in(target) == {}
    assert not list(filled.home.path.rglob("evil.md"))
    assert not Path("/tmp/evil.md").exists()


def test_links_in_an_archive_are_not_followed(filled: Project) -> None:
    """A link in an archive brings no text of the file that it leads to."""
    outside = filled.home.path / "h" / "outside.md"
    outside.write_text("outside-words\n")
    bad = filled.path.parent / f"{filled.path.name}-link.tar.gz"
    bad.write_bytes(_tar({"MEMORY.md": b"- [a](a.md)\n", "a.md": str(outside)}))
    target = filled.home.project()
    target.call("import", source=str(bad), kind="claude-code", accept=True)
    assert "outside-words" not in str(target.tree())


def test_an_archive_bomb_is_refused(filled: Project) -> None:
    """An archive that unpacks to more than 200 times its size is refused."""
    bad = filled.path.parent / f"{filled.path.name}-bomb.tar.gz"
    bad.write_bytes(_tar({"MEMORY.md": b"", "a.md": b"x" * (64 << 20)}))
    with pytest.raises(RpcError):
        filled.home.project().call("import", source=str(bad), kind="claude-code", accept=True)


def test_newer_archives_are_refused_with_both_numbers(filled: Project) -> None:
    """A later version of the format is not guessed at."""
    source = archive_of(filled)
    manifest = json.loads((source / "manifest.json").read_text())
    text = json.dumps({**manifest, "version": 99})
    (source / "manifest.json").write_text(text)
    sums = (source / "SHA256SUMS").read_text().splitlines()
    digest = hashlib.sha256(text.encode()).hexdigest()
    fixed = [f"{digest}  manifest.json" if s.endswith("manifest.json") else s for s in sums]
    (source / "SHA256SUMS").write_text("\n".join(fixed) + "\n")
    with pytest.raises(RpcError) as failed:
        filled.home.project().call("import", source=str(source))
    assert "99" in failed.value.message + json.dumps(failed.value.data)


SOURCES: dict[str, Any] = {
    "claude-code": {"MEMORY.md": "- [a](a.md) — one\n", "a.md": "---\nname: a\n---\n\nOne.\n"},
    "codex": {"MEMORY.md": "# Task\n- the gate is shut at noon\n", "memory_summary.md": "v1\n"},
}


@pytest.mark.parametrize("kind", SOURCES)
def test_other_tools_folders_are_recognised(project: Project, kind: str) -> None:
    """A folder of another assistant is recognised by itself."""
    source = project.path.parent / f"{project.path.name}-{kind}"
    source.mkdir()
    for name, text in SOURCES[kind].items():
        (source / name).write_text(text)
    assert project.call("import", source=str(source))["kind"] == kind


def test_lists_of_lines_become_memories(project: Project) -> None:
    """Bullets, numbers and dated lines are one memory each, without a type."""
    source = project.path.parent / f"{project.path.name}.txt"
    source.write_text("- fed at noon\n1. shut at night\n[2026-01-02] - painted green\n")
    project.call("import", source=str(source), kind="text", accept=True)
    memories = project.call("memory.list")["memories"]
    assert len(memories) == 3
    assert {memory["type"] for memory in memories} == {None}


def test_notes_are_exported_only_when_asked(filled: Project) -> None:
    """A plain export holds no notes of a session, one that asks for notes does."""
    talk = filled.conversation().user("Build the importer.").assistant("Done.")
    given = {"session_id": talk.session, "transcript_path": str(talk.path)}
    filled.call("notes.update", force=True, wait=True, **given)
    dest = archive_of(filled, "plain")
    assert not list(dest.rglob("*summary*")) + list(dest.rglob("notes"))
    asked = filled.path.parent / f"{filled.path.name}-asked"
    filled.call("export", dest=str(asked), **{"with": ["notes"]})
    assert list(asked.rglob("notes"))


@pytest.mark.parametrize("kind", [None, "mem0", "chats"])
def test_other_tools_exports_are_not_recognised(project: Project, kind: str | None) -> None:
    """Of what is no archive, folder of an assistant or list the error says how to write a list."""
    source = project.path.parent / f"{project.path.name}.json"
    source.write_text(json.dumps({"results": [{"id": "1", "memory": "User prefers tabs"}]}))
    with pytest.raises(RpcError) as failed:
        project.call("import", source=str(source), kind=kind)
    assert failed.value.kind == "invalid_params"
    assert "--from text" in failed.value.data["hint"]


def test_a_newer_text_of_an_import_takes_the_place_of_the_older(filled: Project) -> None:
    """What an import wrote last is updated by the next; what the person wrote since stays."""
    target = filled.home.project()
    target.call("import", source=str(archive_of(filled)), accept=True)
    filled.write("m0.md", "Another body of it.", type="user")
    target.call("import", source=str(archive_of(filled, "two")), accept=True)
    assert "Another body of it." in target.read("m0.md")
    target.write("m0.md", "The person's own text.")
    target.call("import", source=str(archive_of(filled, "three")), accept=True)
    assert "The person's own text." in target.read("m0.md")
    assert "Another body of it." in target.read("m0-2.md")


def test_history_of_older_archives_is_passed_over(filled: Project) -> None:
    """An archive with history is checked whole, and only its memories come."""
    source = archive_of(filled)
    (source / "history").mkdir()
    text = b'{"at": 1.5, "actor": "client"}\n'
    (source / "history/p.jsonl").write_bytes(text)
    digest = hashlib.sha256(text).hexdigest()
    manifest = json.loads((source / "manifest.json").read_text())
    manifest["files"] = [{"path": "history/p.jsonl", "sha256": digest, "bytes": len(text)}]
    (source / "manifest.json").write_text(json.dumps(manifest))
    names = sorted(str(p.relative_to(source)) for p in source.rglob("*") if p.is_file())
    names = ["manifest.json", *(n for n in names if n not in ("manifest.json", "SHA256SUMS"))]
    sums = [f"{hashlib.sha256((source / n).read_bytes()).hexdigest()}  {n}\n" for n in names]
    (source / "SHA256SUMS").write_text("".join(sums))
    answer = filled.home.project().call("import", source=str(source), accept=True)
    assert answer["left_out"] == []
    assert answer["projects"][0]["files"]
