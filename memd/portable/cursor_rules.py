"""Show rules of Cursor as rules of Claude Code: a diff to read; no memories result. Pure."""

import re
from collections.abc import Iterator

from memd.core.names import printable
from memd.documents.document import parse, scalar
from memd.portable.errors import SourceRefusedError
from memd.portable.memories import ReadingBuilder
from memd.text import unified

_RULE = re.compile(
    r"(?P<above>.*/)?(?:\.cursor/rules/(?P<path>.+)\.mdc|\.(?P<legacy>cursorrules))"
    r"|(?P<alone>.+)\.mdc"
)
_DIFF_CHARACTERS = 5 * unified.CHARACTERS
_NONE = "it holds no rules of Cursor (.cursor/rules/*.mdc)"
_BY_DESCRIPTION = "Cursor loads it by description or by hand, Claude Code would load it always"


def read(builder: ReadingBuilder) -> None:
    """Build the diff that would add the rules. Raises SourceRefusedError if there are none."""
    names = frozenset(builder.source.names())
    for name in sorted(names):
        match = _RULE.fullmatch(name)
        if not match:
            continue
        stem = match["path"] or match["legacy"] or match["alone"]
        path = f"{match['above'] or ''}.claude/rules/{stem}.md"
        rule = _as_claude_rule(builder.source.read(name), name)
        if rule is None:
            builder.leave_out(name, _BY_DESCRIPTION)
        elif len(builder.diff) > _DIFF_CHARACTERS:
            builder.leave_out(name, "the diff is long enough; import the rules in parts")
        else:
            before = builder.source.read(path) if path in names else None
            shown = path if path.isprintable() else printable(path)
            builder.diff += unified.bounded(shown, before, rule)
    if not builder.diff and not builder.left_out.files:
        raise SourceRefusedError(builder.kind, _NONE)


def _as_claude_rule(content: bytes, name: str) -> bytes | None:
    """Return a Cursor rule as a rule file of Claude Code.

    ``None`` for a rule that Cursor loads neither always nor by file pattern: Claude Code cannot.
    """
    rule = parse(content, name)
    always = rule.metadata.get("alwaysApply", "").casefold() == "true"
    globs = [] if always else list(_split_globs(rule.metadata.get("globs", "")))
    if not globs and not always and name.endswith(".mdc"):  # .cursorrules is always loaded
        return None
    head = [f"description: {scalar(rule.description)}"] if rule.description else []
    if globs:
        head += ["paths:", *(f"  - {scalar(glob)}" for glob in globs)]
    lines = ["---", *head, "---", ""] if head else []
    return "\n".join((*lines, rule.body.strip(), "")).encode("utf-8", errors="replace")


def _split_globs(value: str) -> Iterator[str]:
    """Yield the patterns of a comma-separated list; a comma in braces is part of a pattern."""
    if value.startswith("[") and value.find("]") == len(value) - 1:
        value = value[1:-1]  # a list that is no YAML, such as [*.ts, *.js]
    depth = start = 0
    for at, character in enumerate(f"{value},"):
        depth += (character == "{") - (character == "}")
        if character == "," and (depth <= 0 or at == len(value)):
            if glob := value[start:at].strip(" \t\"'"):
                yield glob
            start = at + 1
