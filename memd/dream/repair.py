"""Frontmatter that memd reads and strict readers of YAML refuse: mended line by line. Pure.

Rules of this file
- What does not parse at all is damaged and never rewritten: a person sees to it.
- memd reads ``description: a: b``, text that begins with a special character, and tabs before a
  nested key; other programs refuse the whole frontmatter then. Such a line, and no other, is
  written anew so that every reader reads what memd has always read.
- Where that cannot be had, because a strict reader would read another line differently, nothing
  changes. What is read before and after is compared; nothing here is believed.
"""

from memd.documents.document import LENIENT_LINE, parse, plain, problem, scalar, split, unquoted

_TAB = "  "


def trouble(content: bytes) -> str:
    """Say in words why a strict reader refuses a memory's frontmatter, "" when it does not."""
    fenced = split(content)
    if fenced is None or plain(fenced.lines) is not None:
        return ""
    return problem("\n".join(fenced.lines))


def mended(content: bytes) -> bytes:
    """Return the memory with frontmatter that every reader reads as memd does.

    The very same bytes where nothing is broken, or where it cannot be mended without a change of
    what is read.
    """
    fenced = split(content)
    if fenced is None or not fenced.closed or not trouble(content):
        return content
    before = parse(content, "")
    if before.damaged:
        return content
    lines = content[fenced.start : fenced.end].splitlines(keepends=True)
    new = b"".join(map(_mended, lines))
    changed = content[: fenced.start] + new + content[fenced.end :]
    return changed if not trouble(changed) and parse(changed, "") == before else content


def _mended(raw: bytes) -> bytes:
    text = raw.rstrip(b"\r\n")
    line = text.decode(errors="replace")
    result = LENIENT_LINE.fullmatch(line)
    if result is None or line.encode() != text:
        return raw
    indent, key, value = result[1].replace("\t", _TAB), result[2], result[3] or ""
    if problem(line.strip()):
        line = f"{indent}{key}: {scalar(unquoted(value))}"
    else:
        line = indent + line[len(result[1]) :]
    return line.encode() + raw[len(text) :]
