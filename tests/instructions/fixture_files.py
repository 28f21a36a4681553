"""What stands in the tree of ``fixture_tree.py``.

In a text ``§`` is the file's own mark and ``{base}`` the tree; without either the mark comes first.
"""

import json
from collections.abc import Mapping

from tests.instructions import fixture_forms as forms

_BIG = "many words\n" * 1450  # 15,950 bytes


def family(folder: str) -> dict[str, str]:
    """Return the files of every client in a folder of a project."""
    return {
        f"{folder}/CLAUDE.md": "",
        f"{folder}/.claude/CLAUDE.md": "",
        f"{folder}/CLAUDE.local.md": "",
        f"{folder}/AGENTS.md": "",
        f"{folder}/.claude/AGENTS.md": "",
        f"{folder}/GEMINI.md": "",
        f"{folder}/.claude/rules/style.md": "",
        f"{folder}/.claude/rules/.hidden.md": "",
        f"{folder}/.claude/rules/lang/python.md": "",
        f"{folder}/.claude/rules/lang/note.txt": "",
        f"{folder}/.claude/rules/Upper.MD": "",
        f"{folder}/.claude/rules/typed.md": "---\npaths: '**/*.ts'\n---\n§\n@./typed.txt\n",
        f"{folder}/.claude/rules/typed.txt": "",
        f"{folder}/.claude/rules/lang/folder.md": "---\npaths:\n  - src/**\n---\n§\n",
    }


def _of_users() -> dict[str, str]:
    user = "§\n@./more.md\n@~/notes/linked.md\n@{base}/shared/team.md\n"
    result = {
        "home/.claude/CLAUDE.md": user,
        "home/.claude/more.md": "",
        "home/.claude/CLAUDE.local.md": "",
        "home/.claude/AGENTS.md": "",
        "home/notes/linked.md": "",
        "shared/team.md": "",
        "home/CLAUDE.md": "",
        "home/GEMINI.md": "",
        "home/AGENTS.md": "",
        "home/.codex/AGENTS.md": "",
        "home/.gemini/GEMINI.md": "§\n@./more.md\n@../notes/linked.md\n",
        "home/.gemini/more.md": "",
    }
    rules = {path: text for path, text in family("home").items() if "/rules/" in path}
    managed = {
        "managed/CLAUDE.md": "§\n@./beside.md\n",
        "managed/beside.md": "",
        "managed/CLAUDE.local.md": "",
    }
    policy = {path: text for path, text in family("managed").items() if "/rules/" in path}
    return result | rules | managed | policy


def _forms() -> dict[str, str]:
    inner = {f"forms/app/inc/{name}": "" for name in forms.INNER}
    lines = "\n\n".join(line for line in forms.INNER.values() if line)
    special = {
        "forms/app/CLAUDE.md": f"§\n\n{lines}\n",
        "forms/app/.claude/CLAUDE.md": forms.COMMENTS,
        "forms/app/CLAUDE.local.md": "§\n@deep/1.md\n@circle/a.md\n@deep/6.md\n",
        "forms/CLAUDE.md": "\ufeff---\ntitle: MARK-head-bom\npaths: nope\n---\n§\n",
        "forms/app/inc/white.md": " \n\n",
        "forms/app/inc/crlf.md": "§\r\n@crlf-inner.md\r\n",
        "forms/app/inc/crlf-inner.md": "",
        "forms/app/inc/bom.md": "\ufeff§\n",
        "forms/app/inc/latin.md": "\udce9 §\n",
        "forms/app/inc/sub/relative.md": "§\n@beside.md\n@inc/from-cwd.md\n",
        "forms/app/inc/sub/beside.md": "",
        "forms/app/inc/from-cwd.md": "",
        "forms/above.md": "",
        "forms/app/circle/a.md": "§\n@b.md\n@a.md\n@../CLAUDE.md\n",
        "forms/app/circle/b.md": "§\n@a.md\n@../CLAUDE.local.md\n",
    }
    deep = {f"forms/app/deep/{n}.md": f"§\n@{n + 1}.md\n" for n in range(1, 8)}
    return inner | special | deep


def _conditions() -> dict[str, str]:
    top = "conditions/app/.claude/rules"
    heads = {
        f"{top}/head-{name}.md": f"---\n{head}\n---\n§\n" for name, head in forms.HEADS.items()
    }
    whole = {f"{top}/whole-{name}.md": text for name, text in forms.WHOLE_RULES.items()}
    globs = {
        f"{top}/glob-{number:02}.md": f"---\npaths: {json.dumps(glob)}\n---\n§\n"
        for number, glob in enumerate(forms.GLOBS)
    }
    named = {"conditions/app/CLAUDE.md": "§\n@typed.md\n", "conditions/app/typed.md": ""}
    return heads | whole | globs | named


def _extensions() -> dict[str, str]:
    result = {f"extensions/x.{extension}": "" for extension in forms.EXTENSIONS}
    lines = "\n".join(f"@{path.removeprefix('extensions/')}" for path in result)
    return result | {"extensions/CLAUDE.md": f"§\n{lines}\n"}


def _agents() -> dict[str, str]:
    result: dict[str, str] = {}
    for top in ("agents", "hidden", "hollow"):
        result |= {
            f"{top}/AGENTS.md": "§\n@more.md\n",
            f"{top}/more.md": "",
            f"{top}/repo/AGENTS.md": "",
            f"{top}/repo/.claude/AGENTS.md": "",
            f"{top}/repo/.claude/rules/style.md": "",
            f"{top}/repo/app/AGENTS.md": "§\n@more.md\n<!-- MARK-of-comment -->\n@../../more.md\n",
            f"{top}/repo/app/AGENTS.override.md": "",
            f"{top}/repo/app/more.md": "",
            f"{top}/repo/app/.claude/rules/style.md": "",
            f"{top}/repo/app/sub/AGENTS.md": "§\n@more.md\n",
            f"{top}/repo/app/sub/more.md": "",
            f"{top}/repo/app/sub/.claude/AGENTS.md": "",
            f"{top}/repo/app/sub/.claude/rules/style.md": "",
            f"{top}/repo/app/sub/deep/AGENTS.md": "",
            f"{top}/repo/app/own/CLAUDE.md": "",
            f"{top}/repo/app/own/AGENTS.md": "",
        }
    hiding = {"hidden/repo/.claude/CLAUDE.md": ""}
    hollow = {"hollow/repo/app/CLAUDE.md": " \n", "hollow/CLAUDE.md": "<!-- nothing -->\n"}
    return result | hiding | hollow


def _others() -> dict[str, str]:
    """Return what tests excludes, links, the home as an ancestor, and includes with a yes."""
    return {
        "excluded/CLAUDE.md": "",
        "excluded/repo/CLAUDE.md": "",
        "excluded/repo/app/CLAUDE.md": "§\n@inc/a.md\n@inc/b.md\n",
        "excluded/repo/app/inc/a.md": "@c.md\n",
        "excluded/repo/app/inc/b.md": "",
        "excluded/repo/app/inc/c.md": "",
        "excluded/repo/app/CLAUDE.local.md": "",
        "excluded/repo/app/.claude/rules/style.md": "",
        "excluded/repo/app/.claude/rules/lang/python.md": "",
        "excluded/repo/app/sub/CLAUDE.md": "",
        "excluded/repo/app/.hidden/CLAUDE.md": "",
        "links/repo/app/real.md": "",
        "links/out.md": "§\n@beside.md\n",
        "links/beside.md": "",
        "links/repo/app/inner/x.md": "",
        "links/folder/y.md": "",
        "links/folder/rules/rule.md": "",
        "links/repo/app/mine/rule.md": "",
        "links/repo/app/CLAUDE.local.md": "§\n@l1.md @l2.md @l3.md @in/x.md @out/y.md @self.md\n",
        "home/p/repo/CLAUDE.md": "",
        "home/p/repo/AGENTS.md": "",
        "home/p/GEMINI.md": "",
        "home/p/repo/GEMINI.md": "",
        "allowed/CLAUDE.md": "§\n@more.md\n",
        "allowed/more.md": "",
        "allowed/app/CLAUDE.md": "§\n@../up.md @~/notes/linked.md @~/.ssh/id_rsa @~/.env\n",
        "allowed/up.md": "§\n@up-too.md\n",
        "allowed/up-too.md": "",
        "allowed/app/sub/CLAUDE.md": "§\n@../../late.md\n@inner.md\n",
        "allowed/app/sub/inner.md": "",
        "allowed/late.md": "",
        "home-allowed/notes/linked.md": "",
        "home-allowed/.ssh/id_rsa": "",
        "home-allowed/.env": "",
        "config/CLAUDE.md": "",
        "config/rules/style.md": "",
    }


def _codex() -> dict[str, str]:
    return {
        "codex-own/AGENTS.override.md": "",
        "codex-own/AGENTS.md": "",
        "codex-own/config.toml": (
            'project_doc_fallback_filenames = ["docs/X.md", " TEAM.md ", "CLAUDE.md"]\n'
        ),
        "codex-small/AGENTS.override.md": " \n",
        "codex-small/AGENTS.md": f"§\n{_BIG}MARK-codex-user-end\n",
        "codex-small/config.toml": "project_doc_max_bytes = 40000\n",
        "codex/repo/AGENTS.override.md": "",
        "codex/repo/AGENTS.md": "",
        "codex/repo/empty/AGENTS.override.md": "\n",
        "codex/repo/empty/AGENTS.md": "",
        "codex/repo/empty/fallback/TEAM.md": "",
        "codex/repo/empty/fallback/CLAUDE.md": "",
        "codex/repo/empty/fallback/docs/X.md": "",
        "codex/repo/empty/fallback/last/CLAUDE.md": "§\n@x.md\n<!-- MARK-codex-comment -->\n",
        "codex/repo/empty/fallback/last/x.md": "",
        "codex/repo/empty/fallback/last/deeper/AGENTS.md": "",
        "codex/large/AGENTS.md": f"§\n{_BIG}MARK-codex-first-end\n",
        "codex/large/a/AGENTS.md": f"§\n{_BIG}MARK-codex-second-end\n",
        "codex/large/a/b/AGENTS.md": f"§\n{_BIG}MARK-codex-third-end\n",
        "codex/large/a/b/c/AGENTS.md": "",
        "codex/links/real.md": "",
        "codex/out.md": "",
        "codex/links/a/TEAM.md": "",
        "codex/links/a/b/AGENTS.md": "",
    }


def _gemini() -> dict[str, str]:
    web = "gemini/Apps/web"
    plain = (
        "dot mid paren span fence tilde indented list comment stop absolute a\u0020space _under "
        ".hidden no-break tick crlf ünï"
    )
    inner = {f"{web}/{name}.md": "" for name in plain.split(" ")}
    special = {
        "gemini/GEMINI.md": "",
        "gemini/Apps/GEMINI.md": "",
        f"{web}/GEMINI.md": forms.GEMINI_FORMS,
        f"{web}/a space.md": "",
        f"{web}/nothing": "",
        f"{web}/picture.png": "",
        f"{web}/folder/x.md": "",
        f"{web}/empty.md": " ",
        f"{web}/crlf.md": "\ufeff§\r\n@dot.md\r\n",
        f"{web}/circle-a.md": "§\n@circle-b.md\n",
        f"{web}/circle-b.md": "§\n@circle-a.md\n@GEMINI-2.md\n",
        f"{web}/GEMINI-2.md": "",
        f"{web}/Zed/GEMINI.md": "§\n@../dot.md\n",
        f"{web}/Zed/B/GEMINI.md": "",
        "gemini/Apps/above.md": "",
        "gemini/out.md": "",
        "out-of-gemini.md": "",
        "home-names/.gemini/GEMINI.md": "",
        "home-names/.gemini/AGENTS.md": "",
        "home-names/.gemini/settings.json": (
            '{// names\n"context": {"fileName": ["AGENTS.md", " docs/TEAM.md "]}}'
        ),
        "loose/GEMINI.md": "",
        "loose/app/GEMINI.md": "§\n@../GEMINI.md\n",
        "loose/app/AGENTS.md": "",
        "loose/app/docs/TEAM.md": "",
        "loose/app/sub/AGENTS.md": "§\n@../AGENTS.md\n",
        "loose/app/sub/GEMINI.md": "",
    }
    deep = {f"{web}/deep-{n}.md": f"§\n@deep-{n + 1}.md\n" for n in range(1, 8)}
    return inner | special | deep


def files() -> dict[str, str]:
    """Return every file that may have a mark, by its path."""
    outer = (
        "outer",
        "outer/repo",
        "outer/repo/app",
        "outer/repo/app/sub",
        "outer/repo/app/sub/deep",
    )
    families = {path: text for folder in outer for path, text in family(folder).items()}
    rest = (
        _of_users()
        | _forms()
        | _extensions()
        | _conditions()
        | _agents()
        | _others()
        | _codex()
        | _gemini()
    )
    return families | rest


EMPTY = ("forms/app/inc/empty.md",)
# Files that a model reads.
PLAIN = (
    *(f"outer/repo/{name}" for name in ("src/top.ts", "app/src/a.ts", "app/sub/src/b.ts")),
    "outer/repo/app/sub/deep/x.ts",
    *(f"conditions/app/{name}" for name in ("src/a.ts", "src/n/b.ts", "docs/r.txt", ".h/h.ts")),
    *(f"{top}/repo/app/{name}" for top in ("agents", "hidden", "hollow") for name in (
        "sub/x.ts", "sub/deep/y.ts", "own/z.ts")),
    "excluded/repo/app/sub/x.ts",
    "excluded/repo/app/.hidden/x.ts",
    "home/p/repo/x.ts",
    "allowed/app/sub/x.ts",
    "gemini/Apps/web/Zed/B/x.ts",
    "gemini/Apps/lib/y.ts",
    "loose/app/sub/x.ts",
)  # fmt: skip
LINKS: Mapping[str, str] = {
    "forms/app/inc/link.md": "link.txt",
    "forms/app/inc/out.md": "../../above.md",
    "links/repo/app/CLAUDE.md": "../../out.md",
    "links/repo/app/l1.md": "real.md",
    "links/repo/app/l2.md": "real.md",
    "links/repo/app/l3.md": "../../out.md",
    "links/repo/app/in": "inner",
    "links/repo/app/out": "../../folder",
    "links/repo/app/self.md": "self.md",
    "links/repo/app/.claude/rules/out": "{base}/links/folder/rules",
    "links/repo/app/.claude/rules/in": "../../mine",
    "links/repo/app/.claude/rules/circle": ".",
    "links/repo/app/.claude/rules/one.md": "{base}/links/beside.md",
    "links/repo/app/.claude/rules/two.md": "../../real.md",
    "codex/links/AGENTS.md": "../out.md",
    "codex/links/a/AGENTS.override.md": "nowhere.md",
    "codex/links/a/AGENTS.md": "../real.md",
    "gemini/Apps/web/link.md": "dot.md",
    "gemini/Apps/web/out-link.md": "../../../out-of-gemini.md",
}
# Folders that are the top of a git repository.
REPOSITORIES = (
    "outer/repo",
    "forms",
    "extensions",
    "conditions",
    "agents/repo",
    "hidden/repo",
    "hollow/repo",
    "excluded/repo",
    "links/repo",
    "home/p/repo",
    "allowed",
    "codex/repo",
    "codex/large",
    "codex/links",
    "gemini",
)
