"""What the real Claude Code makes of the texts, globs and heads of ``expected/samples.json``.

``python -m tests.e2e.instruction_samples`` writes the answers in that file anew, from the client in
MEMD_E2E_PREFIX: which of ``@a.md`` to ``@h.md`` a text includes, and with which touched files a
rule loads that has a glob or a head; ``always`` where it loads without one.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.e2e.claude import environment
from tests.e2e.instructions import texts_of
from tests.e2e.programs import program, run, version
from tests.instructions.fixture_tree import EXPECTED, marks
from tests.support.daemon import throw_away_home
from tests.support.messages import messages_server, text, tools

SAMPLES = EXPECTED / "samples.json"
_NAMES = "abcdefgh"


def answers(samples: Mapping[str, Any]) -> dict[str, Any]:
    """Return the samples with what the client makes of them now."""
    paths: list[str] = samples["paths"]
    heads = [head for head, _ in samples["heads"]]
    globs = [glob for glob, _ in samples["globs"]]
    quoted = [f"---\npaths: {json.dumps(glob, ensure_ascii=False)}\n---\n" for glob in globs]
    result = dict(samples)
    for key in ("texts", "random"):
        texts = [each for each, _ in samples[key]]
        result[key] = [list(pair) for pair in zip(texts, _included(texts), strict=True)]
    touched = _touching([*quoted, *heads], paths)
    result["globs"] = [list(pair) for pair in zip(globs, touched, strict=False)]
    result["heads"] = [list(pair) for pair in zip(heads, touched[len(globs) :], strict=True)]
    return result


def _included(texts: Sequence[str]) -> list[str]:
    """Return the names, of one letter, of what each text includes."""
    files = {"CLAUDE.md": "".join(f"@d/{number}/doc.md\n\n" for number in range(len(texts)))}
    for number, each in enumerate(texts):
        files[f"d/{number}/doc.md"] = each
        files |= {f"d/{number}/{name}.md": f"MARK-{number}-{name}\n" for name in _NAMES}
        files[f"d/{number}/c_d.md"] = f"MARK-{number}-c\n"
    seen = _sent(files)
    return [
        "".join(name for name in _NAMES if f"MARK-{number}-{name}" in seen)
        for number in range(len(texts))
    ]


def _touching(heads: Sequence[str], paths: Sequence[str]) -> list[str | list[str]]:
    """Return for each head of a rule with which of the touched files the rule loads."""
    files = dict.fromkeys(paths, "Text.\n")
    for number, head in enumerate(heads):
        files[f".claude/rules/{number}.md"] = f"{head}MARK-{number}\n"
    always = _sent(files)
    seen = {path: _sent(files, [path]) for path in paths}
    return [
        "always" if mark in always else [path for path in paths if mark in seen[path]]
        for mark in (f"MARK-{number}" for number in range(len(heads)))
    ]


def _sent(files: Mapping[str, str], touched: Iterable[str] = ()) -> set[str]:
    """Return the marks that the client sends of a project with some files."""
    with throw_away_home() as home:
        base = Path(home.path).resolve() / "samples"
        for name, content in files.items():
            path = base / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode())
        reads = [tools(("Read", {"file_path": str(base / path)})) for path in touched]
        with messages_server([*reads, text("Done.")]) as server:
            command = [program("claude"), "-p", "Go on.", "--allowedTools", "Read"]
            run(command, home, environment(server), cwd=str(base))
            requests = [dict(request.json or {}) for request in server.messages]
    return set(marks("\n".join(texts_of(requests))))


def written(samples: Mapping[str, Any]) -> str:
    """Return the text of the file, a line for each sample."""
    members = []
    for key, value in samples.items():
        rows = ",\n".join(f"  {json.dumps(row)}" for row in value if isinstance(value, list))
        members.append(f' "{key}": [\n{rows}\n ]' if rows else f' "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(members) + "\n}\n"


def main() -> None:
    """Write the file anew."""
    samples = answers(json.loads(SAMPLES.read_text()))
    with throw_away_home() as home:
        samples["version"] = version(home, [program("claude"), "--version"])
    SAMPLES.write_text(written(samples))


if __name__ == "__main__":
    main()
