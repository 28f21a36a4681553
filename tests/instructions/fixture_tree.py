"""A tree of instruction files, each with a mark of its own, for Claude Code, Codex and Gemini CLI.

``make_tree`` writes it below a folder: the machine's policy in ``managed``, homes in ``home*``, and
projects, of which each is the working directory of some of ``CASES``. A file's mark is ``MARK-``
and its path with hyphens. The marks that a client sends to its model are what it loaded;
``expected/*.json`` has what the real clients sent (``python -m tests.e2e.instructions``).
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from memd.instructions.disk import RealDisk
from memd.instructions.values import View, ViewRequest
from memd.instructions.views import VIEWS
from tests.instructions.fixture_files import EMPTY, LINKS, PLAIN, REPOSITORIES, files

EXPECTED = Path(__file__).with_name("expected")
_MARK = re.compile(r"MARK-[a-z0-9-]*[a-z0-9]")


@dataclass(frozen=True, slots=True)
class Case:
    """One working directory for one client; all paths are relative to the tree.

    ``touched`` are files that the model reads, one after the other. ``exclude`` are what the user's
    settings exclude, ``external`` says that they allowed includes from outside. ``home`` is the
    user's home, ``folder`` the client's own folder, in the home where it is empty.
    """

    name: str
    view: View
    cwd: str
    touched: Sequence[str] = ()
    exclude: Sequence[str] = ()
    external: bool = False
    home: str = "home"
    folder: str = ""


def _claude(name: str, cwd: str, *touched: str) -> Case:
    return Case(name, View.CLAUDE, cwd, tuple(f"{cwd}/{path}" for path in touched))


_IN_AGENTS = ("sub/x.ts", "sub/deep/y.ts", "own/z.ts")
_WEB = "gemini/Apps/web"
_EXCLUDE = ("**/inc/a.md", "{base}/excluded/CLAUDE.md", "**/lang/**", "**/*.local.md", "**/s?b/*",
            "**/.[a-h]idden/*", "CLAUDE.md", "**/claude-code/**", "**/managed/**")  # fmt: skip
CASES = (
    _claude(
        "order", "outer/repo/app", "sub/deep/x.ts", "src/a.ts", "sub/src/b.ts", "../src/top.ts"
    ),
    _claude("forms", "forms/app"),
    _claude("extensions", "extensions"),
    _claude("conditions", "conditions/app", "src/a.ts", "src/n/b.ts", "docs/r.txt", ".h/h.ts"),
    _claude("agents", "agents/repo/app", *_IN_AGENTS),
    _claude("hidden", "hidden/repo/app", *_IN_AGENTS),
    _claude("hollow", "hollow/repo/app", *_IN_AGENTS),
    replace(_claude("excluded", "excluded/repo/app", "sub/x.ts", ".hidden/x.ts"), exclude=_EXCLUDE),
    _claude("links", "links/repo/app"),
    _claude("below home", "home/p/repo", "x.ts"),
    replace(_claude("other folder", "home/p/repo", "x.ts"), folder="config"),
    replace(_claude("allowed", "allowed/app", "sub/x.ts"), external=True, home="home-allowed"),
    Case("order", View.CODEX, "outer/repo/app"),
    Case("override", View.CODEX, "codex/repo", folder="codex-own"),
    Case("names", View.CODEX, "codex/repo/empty/fallback/last", folder="codex-own"),
    Case("large", View.CODEX, "codex/large/a/b/c"),
    Case("larger", View.CODEX, "codex/large/a/b/c", folder="codex-small"),
    Case("links", View.CODEX, "codex/links/a/b"),
    Case("order", View.GEMINI, "outer/repo/app", ("outer/repo/app/sub/deep/x.ts",)),
    Case("forms", View.GEMINI, _WEB, (f"{_WEB}/Zed/B/x.ts", "gemini/Apps/lib/y.ts")),
    Case("names", View.GEMINI, "loose/app", ("loose/app/sub/x.ts",), home="home-names"),
    Case("below home", View.GEMINI, "home/p/repo"),
)


def mark(path: str) -> str:
    """Return the mark of a file."""
    return "MARK-" + re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-")


def marks(text: str) -> list[str]:
    """Return the marks in a text, in their order."""
    return _MARK.findall(text)


def sorted_rules(found: Sequence[str]) -> list[str]:
    """Return marks with the rules of one folder in the order of their marks.

    Claude Code takes them as the file system lists them, so that no order can be expected.
    """
    groups = groupby(found, lambda each: each.partition("-rules-")[0])
    return [each for _, group in groups for each in sorted(group)]


def make_tree(base: Path) -> None:
    """Write the tree below an existing folder."""
    owners: dict[str, str] = {}
    for path, text in files().items():
        own = mark(path)
        assert owners.setdefault(own, path) == path, f"{path} and {owners[own]} have one mark"
        has_mark = "§" in text or "MARK" in text or (text and not text.strip())
        written = path.endswith((".toml", ".json")) and bool(text)
        content = text if has_mark or written or "<!--" in text else f"§\n{text}"
        content = content.replace("§", own).replace("{base}", str(base))
        _write(base / path, content.encode("utf-8", "surrogateescape"))
    for path in PLAIN:
        _write(base / path, b"plain\n")
    for path in EMPTY:
        _write(base / path, b"")
    for path, target in LINKS.items():
        (base / path).parent.mkdir(parents=True, exist_ok=True)
        (base / path).symlink_to(target.replace("{base}", str(base)))
    for path in REPOSITORIES:
        for folder in ("objects", "refs"):
            (base / path / ".git" / folder).mkdir(parents=True)
        _write(base / path / ".git" / "HEAD", b"ref: refs/heads/main\n")


def git_root(folder: Path) -> Path:
    """Return the top of the repository that a folder lies in, or the folder where there is none."""
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)


def request(case: Case, base: Path, touched: int) -> ViewRequest:
    """Return what memd is asked for a case, with so many of its files touched."""
    cwd = base / case.cwd
    home = base / case.home
    own = {case.view: str(base / case.folder)} if case.folder else {}
    root = git_root(cwd)
    return ViewRequest(
        cwd=str(cwd),
        root=str(root),
        home=str(home),
        config=own.get(View.CLAUDE, str(home / ".claude")),
        codex=own.get(View.CODEX, str(home / ".codex")),
        gemini=str(home / ".gemini"),
        managed=str(base / "managed"),
        touched=tuple(str(base / path) for path in case.touched[:touched]),
        exclude=tuple(glob.replace("{base}", str(base)) for glob in case.exclude),
        external=case.external,
    )


def view_marks(case: Case, base: Path) -> list[list[str]]:
    """Return the marks in memd's view of a case: at the start, then with each touched file."""
    result: list[list[str]] = []
    before: list[str] = []
    for touched in range(len(case.touched) + 1):
        resolution = VIEWS[case.view](request(case, base, touched), RealDisk())
        loaded = [file.path for file in resolution.files if file.loaded]
        now = [each for path in loaded for each in marks(resolution.texts[path])]
        assert now[: len(before)] == before, "a touched file changed what was loaded before it"
        result.append(sorted_rules(now[len(before) :]))
        before = now
    return result


def expected(view: View) -> dict[str, list[list[str]]]:
    """Return what the real client of a view sent for each of its cases."""
    content = json.loads((EXPECTED / f"{view}.json").read_text())
    result: dict[str, list[list[str]]] = content["cases"]
    return result


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
