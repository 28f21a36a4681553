"""Parse, cut and render the text of session notes: head, sections and cursor. Pure.

Rules of this file
- Parsed text is rendered byte for byte, whoever wrote it.
- A heading is a line ``# Title`` outside of a code fence, or anywhere if an italic line follows, so
  that an unclosed fence hides no section of the template.
- Titles and italic lines are never changed; an edit changes the content of a section.
- The cursor is a comment in the last line that is not blank, exactly as memd writes it, with a hash
  of the text above it. Notes without one, or with another text above it, are not memd's.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise, zip_longest
from urllib.parse import quote, unquote

from msgspec import Struct
from msgspec.structs import replace

from memd.base.text import sha256
from memd.conversation.history import estimate_text
from memd.store import secret

SECTION_TOKENS = 2_000  # that a reader gets of a section
NOTES_TOKENS = 12_000  # that a reader gets of all sections
_CUT_TOKENS = 3_000  # a section that a model writes is cut beyond this
_FENCE = r" {0,3}(`{3,}(?=[^`]*$)|~{3,})"
_ITALIC = r"([_*])(?![\s_*]).*\1\s*"
_CURSOR = (
    r"<!-- memd notes 2 session=(\S+) covers=(\S*) tokens=(\d{1,15})"
    r" engine=(model|local) hash=([0-9a-f]{16}) at=(\S*) -->"
)
_UNQUOTED = ":+.-_"  # characters that stand in a cursor as they are
# The order in which sections of too long notes are cut; "||" stands for all other sections.
_CUTTING_ORDER = (
    "|Worklog|Workflow|Codebase and System Documentation|Files and Functions|Learnings|Key results|"
    "|Task specification|Session Title|Errors & Corrections|Current State|"
)
_FIRST_CUT = 20  # sections are cut to a twentieth of the notes' limit before any is left out
_MISSING_NOTE = "[{} more lines]"


class NotesSection(Struct, frozen=True):
    """A section as it stands in the text: ``# title``, its italic line if any, and the rest."""

    title: str
    guide: str
    body: str

    @property
    def content(self) -> str:
        """The body without blank lines around it."""
        return _trimmed(self.body)

    def filled(self, content: str) -> "NotesSection":
        """Return the section with new content, in which headings are lowered and fences closed."""
        lines = _trimmed(content).split("\n")
        headings, open_fence = _headings(lines)
        while headings:  # lowering a heading may change where fences end
            for number in headings:
                lines[number] = f"#{lines[number]}"
            headings, open_fence = _headings(lines)
        if open_fence:
            lines.append(open_fence)
        text = "\n".join(lines)
        return replace(self, body=f"\n{text}\n\n" if text else "\n\n")

    def rendered(self) -> str:
        """Return the section's text."""
        guide = f"\n{self.guide}" if self.guide else ""
        return f"# {self.title}{guide}{self.body}"


class NotesCursor(Struct, frozen=True):
    """How far notes go: ``covers`` is the id of the last message, ``at`` an ISO time.

    ``tokens`` is the size of the context at that message; ``engine`` is ``model`` or ``local``.
    """

    session: str
    covers: str
    tokens: int
    engine: str
    at: str

    def rendered(self, text_hash: str) -> str:
        """Return the cursor's comment below a text with this hash.

        Special characters in its values are percent-encoded.
        """
        session = quote(self.session, _UNQUOTED, errors="replace")
        covers = quote(self.covers, _UNQUOTED, errors="replace")
        at = quote(self.at, _UNQUOTED, errors="replace")
        return (
            f"<!-- memd notes 2 session={session} covers={covers} tokens={self.tokens}"
            f" engine={self.engine} hash={text_hash} at={at} -->"
        )


class SessionNotes(Struct, frozen=True):
    """Notes of one session; ``head`` is the text above the first section, usually empty.

    ``changed`` says that somebody changed the text above the cursor since memd wrote it.
    """

    head: str
    sections: tuple[NotesSection, ...]
    cursor: NotesCursor | None = None
    changed: bool = False

    @property
    def title(self) -> str:
        """The first line of the first section's content, "" if there is none."""
        lines = self.sections[0].content.split("\n") if self.sections else []
        return lines[0].strip("-`* ") if lines else ""


def parse(text: str) -> SessionNotes:
    """Return a text parsed as notes; a text without headings becomes the head."""
    above, cursor, changed = _split_cursor(text)
    lines = re.findall(r"[^\n]*\n|[^\n]+", above)
    headings, _ = _headings(lines)
    edges = (0, *headings, len(lines))
    head, *sections = ["".join(lines[start:end]) for start, end in pairwise(edges)]
    return SessionNotes(head, tuple(map(_parse_section, sections)), cursor, changed)


def rendered(notes: SessionNotes, *, cursor: bool = True) -> str:
    """Return the text of notes, byte for byte as parsed, with or without the cursor."""
    text = ""
    for part in (notes.head, *(section.rendered() for section in notes.sections)):
        text = _on_new_line(text) + part if part else text
    if cursor and notes.cursor:
        text = _on_new_line(text)
        text += f"{notes.cursor.rendered(_hash(text))}\n"
    return text


def is_empty(notes: SessionNotes, template: str) -> bool:
    """Return whether each section of the notes is empty or as in the template."""
    content_in_template = dict(_parts(parse(template)))
    return all(content in ("", content_in_template.get(title)) for title, content in _parts(notes))


def section_tokens(section: NotesSection) -> int:
    """Return about how many tokens the content of a section has."""
    return estimate_text(section.content)


def redacted(text: str) -> str:
    """Return a text in which the name of the rule replaces each line with a credential."""
    replacements: dict[int, str] = {}  # by the index of a line
    for finding in secret.find(text):
        replacements.setdefault(finding.line - 1, f"[removed: {finding.rule}]")
    if not replacements:
        return text
    blanked_lines = secret.blank(text).split("\n")
    result: list[str] = []
    for number, line in enumerate(text.split("\n")):
        if number in replacements:
            result.append(replacements[number])
        # Of a credential of several lines only the first is reported; the others are blank here.
        elif blanked_lines[number] or not line:
            result.append(line)
    return "\n".join(result)


def checked_edit(before: SessionNotes, after_text: str) -> tuple[SessionNotes, tuple[str, ...]]:
    """Return notes after a model edited their text, and a sentence for each dropped change.

    A section whose title or italic line changed keeps its old text. A heading that a model wrote
    within a section is lowered by one level.
    """
    bodies = [*_find_bodies(before.sections, after_text), ""]
    titles = {f"# {section.title}" for section in before.sections}
    guides = {section.guide for section in before.sections if section.guide}
    faults: list[str] = []
    sections = []
    for old, (body, next_body) in zip(before.sections, pairwise(bodies), strict=True):
        if body is None:
            faults.append(f'the heading or italic line of "{old.title}" changed; it is as it was')
            sections.append(old)
        elif _trimmed(body) == old.content:
            sections.append(old)
        else:
            lines = body.split("\n")
            ends = {n for n, line in enumerate(lines) if line in titles or line in guides}
            if next_body is None:  # the changed heading of the next section ends this one
                ends.update(_headings(lines)[0])
            content = _trimmed("\n".join(lines[: min(ends, default=None)]))
            sections.append(_filled_section(old, content, faults))
    return replace(before, sections=tuple(sections)), tuple(faults)


def _find_bodies(sections: Sequence[NotesSection], text: str) -> list[str | None]:
    """Return the text behind the heading and italic line of each section, ``None`` if not found."""
    remaining = f"\n{text}\n"
    bodies: list[str | None] = []
    # From the end, so that a heading quoted in a section above is not taken for the section.
    for section in reversed(sections):
        heading = f"\n# {section.title}\n"
        if section.guide:
            heading += f"{section.guide}\n"
        above, separator, below = remaining.rpartition(heading)
        if separator:
            remaining = f"{above}\n"
        bodies.append(below if separator else None)
    return bodies[::-1]


def _filled_section(old: NotesSection, content: str, faults: list[str]) -> NotesSection:
    """Return a section with a model's content, without credentials and cut to its size.

    A sentence about what was removed is added to ``faults``.
    """
    redacted_content = redacted(content)
    if redacted_content != content:
        faults.append(f'"{old.title}" had what looks like a credential; the line was removed')
    cut_content = beginning(redacted_content, _CUT_TOKENS, estimate_text)
    if cut_content != redacted_content:
        faults.append(f'"{old.title}" had over {_CUT_TOKENS} tokens; it was cut')
    return old.filled(cut_content)


def shortened(notes: SessionNotes, path: str, *, characters: int | None = None) -> str:
    """Return the titles and contents of notes for a reader, within the size limits.

    A section that is cut ends with the number of missing lines, and the last line names the file
    at ``path``. The result has at most ``characters`` characters, ``None`` for no limit.
    """
    parts = _parts(notes)
    texts = [beginning(content, SECTION_TOKENS, estimate_text) for _, content in parts]
    _cut_to_fit(parts, texts, NOTES_TOKENS, estimate_text)
    last_line = f"[What was cut is in {path}]\n"
    if characters is not None:
        _cut_to_fit(parts, texts, characters - len(last_line), len)
    result = "".join(map(_excerpt, parts, texts))
    if texts != [content for _, content in parts]:
        result += last_line
    return result[:characters]


_Part = tuple[str, str]  # a section's title and its whole content


def _parts(notes: SessionNotes) -> list[_Part]:
    """Return the title and content of each section; the head has the title ""."""
    parts = [(section.title.strip(), section.content) for section in notes.sections]
    head = notes.head.strip()
    if head:
        parts.insert(0, ("", head))
    return parts


def _cut_to_fit(
    parts: list[_Part], texts: list[str], most_size: int, measure: Callable[[str], int]
) -> None:
    """Cut ``texts`` in place, the least important sections first, until they fit.

    All of them together may have the size ``most_size``.

    ``texts`` are the contents of the ``parts`` as cut so far. ``measure`` returns the size of a
    text, in tokens or characters. All parts are first cut to a small size, and left out only then.
    """
    names = [f"|{title}|" for title, _ in parts]
    places = [_CUTTING_ORDER.index(name if name in _CUTTING_ORDER else "||") for name in names]
    least_important_first = sorted(range(len(parts)), key=places.__getitem__)
    excess = sum(map(measure, map(_excerpt, parts, texts))) - most_size
    for least in (most_size // _FIRST_CUT, 0):
        for index in least_important_first:
            if excess > 0:
                before = measure(_excerpt(parts[index], texts[index]))
                # A cut section also has the note, whose number is assumed to be long.
                room = measure(texts[index]) - excess - measure(_MISSING_NOTE.format(10**6))
                texts[index] = beginning(texts[index], max(least, room), measure)
                excess += measure(_excerpt(parts[index], texts[index])) - before


def _excerpt(part: _Part, text: str) -> str:
    """Return a section's title and its cut ``text``, and the number of missing lines."""
    title, content = part
    lines = [f"# {title}"] if title else []
    if text:
        lines.append(text)
    if text != content:
        missing = content[len(text) :].strip().count("\n") + 1
        lines.append(_MISSING_NOTE.format(missing))
    return "\n".join(lines) + "\n\n"


def beginning(text: str, most_size: int, measure: Callable[[str], int]) -> str:
    """Return the whole first lines of a text that fit, or a part of the first line.

    The result has at most the size ``most_size``. ``measure`` returns the size of a text, in tokens
    or characters. The size must not become less when a text becomes longer.
    """
    line_ends = [*(match.start() for match in re.finditer("\n", text)), len(text)]
    fitting_lines = bisect_right(line_ends, most_size, key=lambda end: measure(text[:end]))
    if fitting_lines:
        return text[: line_ends[fitting_lines - 1]]
    # The first line is too long; the longest of its beginnings that fits is returned.
    lengths = range(line_ends[0])
    fitting_lengths = bisect_right(lengths, most_size, key=lambda end: measure(f"{text[:end]}…"))
    length = fitting_lengths - 1
    return f"{text[:length]}…" if length > 0 else ""


def _on_new_line(text: str) -> str:
    """Return a text with a line end, unless it is empty or has one."""
    return f"{text}\n" if text and not text.endswith("\n") else text


def _hash(text: str) -> str:
    """Return the hash of a text in a cursor."""
    return sha256(text.encode("utf-8", "replace"))[:16]


def _split_cursor(text: str) -> tuple[str, NotesCursor | None, bool]:
    """Return a text without its cursor, the cursor or ``None``, and whether the text changed."""
    text_to_cursor = text.rstrip()
    start = text_to_cursor.rfind("\n") + 1
    match = re.fullmatch(_CURSOR, text_to_cursor[start:])
    if match is None:
        return text, None, False
    session, covers, tokens, engine, text_hash, at = match.groups()
    cursor = NotesCursor(unquote(session), unquote(covers), int(tokens), engine, unquote(at))
    if cursor.rendered(text_hash) != match[0]:  # memd would write it differently
        return text, None, False
    return text[:start], cursor, _hash(text[:start]) != text_hash


def _headings(lines: Sequence[str]) -> tuple[list[int], str]:
    """Return the indexes of heading lines, and the code fence that is open at the end, or ""."""
    result: list[int] = []
    fence = ""
    for number, (line, below) in enumerate(zip_longest(lines, lines[1:], fillvalue="")):
        has_title = line.startswith("# ") and bool(line[2:].strip())
        opening = re.match(_FENCE, line)
        if has_title and (not fence or re.fullmatch(_ITALIC, below)):
            result.append(number)
            fence = ""
        elif fence:
            # A fence is closed by a line of at least as many of its characters and nothing else.
            stripped = line.strip()
            if stripped.startswith(fence) and not stripped.strip(fence[0]):
                fence = ""
        elif opening:
            fence = opening[1]
    return result, fence


def _parse_section(text: str) -> NotesSection:
    """Return the section that a text consists of: a heading, an italic line if any, a body."""
    title, newline, below = text.removeprefix("# ").partition("\n")
    guide, _, _ = below.partition("\n")
    if re.fullmatch(_ITALIC, guide):
        return NotesSection(title, guide, below.removeprefix(guide))
    return NotesSection(title, "", newline + below)


def _trimmed(text: str) -> str:
    """Return a text without blank lines around it; the first line keeps its indentation."""
    return text.rstrip().lstrip("\r\n")
