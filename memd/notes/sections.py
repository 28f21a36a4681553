"""Parse, cut and render the text of session notes: head, sections and cursor. Pure.

Rules of this file
- Parsed text is rendered byte for byte, whoever wrote it.
- A heading is a line ``# Title`` outside of a code fence, or anywhere if an italic line follows, so
  that an unclosed fence hides no section of the template.
- Titles and italic lines are never changed; an edit changes the content of a section.
- The cursor is a comment in the last line that is not blank, exactly as memd writes it. Notes
  without one are not memd's.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise, zip_longest
from urllib.parse import quote, unquote

from msgspec import Struct
from msgspec.structs import replace

from memd.conversation.history import estimate_text
from memd.documents import secrets

SECTION_TOKENS = 2_000
NOTES_TOKENS = 12_000
MARKER = "- (from the transcript)"
_CUT_TOKENS = 3_000  # a section that a model writes is cut beyond this
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_ITALIC = re.compile(r"([_*])(?![\s_*]).*\1\s*")
_CURSOR = re.compile(
    r"<!-- memd notes 1 session=(\S+) covers=(\S*) tokens=(\d{1,15})"
    r" engine=(model|local) at=(\S*) -->"
)
_PLAIN = ":+.-_"  # characters that stand in a cursor as they are
# The order in which sections of too long notes are cut; "||" stands for all other sections.
_ORDER = (
    "|Worklog|Workflow|Codebase and System Documentation|Files and Functions|Learnings|Key results|"
    "|Task specification|Session Title|Errors & Corrections|Current State|"
)
_SHARES = 20  # sections are first cut to a twentieth of the whole, before any is left out
_MISSING = "[{} more lines]"


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
        while headings := _headings(lines)[0]:  # lowering a heading may change where fences end
            for number in headings:
                lines[number] = f"#{lines[number]}"
        fence = _headings(lines)[1]
        whole = "\n".join([*lines, fence] if fence else lines)
        return replace(self, body=f"\n{whole}\n\n" if whole else "\n\n")

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

    def rendered(self) -> str:
        """Return the cursor's comment; special characters in its values are percent-encoded."""
        session, covers, at = (
            quote(value, _PLAIN, errors="replace") for value in (self.session, self.covers, self.at)
        )
        return (
            f"<!-- memd notes 1 session={session} covers={covers} tokens={self.tokens}"
            f" engine={self.engine} at={at} -->"
        )


class SessionNotes(Struct, frozen=True):
    """Notes of one session; ``head`` is the text above the first section, usually empty."""

    head: str
    sections: tuple[NotesSection, ...]
    cursor: NotesCursor | None = None

    @property
    def title(self) -> str:
        """The first line of the first section's content, "" if there is none."""
        lines = self.sections[0].content.split("\n") if self.sections else []
        return next((line.strip("-`* ") for line in lines if line.rstrip() != MARKER), "")

    def section(self, title: str) -> NotesSection | None:
        """Return the first section with a title, ``None`` if there is none."""
        return next((s for s in self.sections if s.title.strip() == title.strip()), None)

    def with_section(self, section: NotesSection) -> "SessionNotes":
        """Return the notes in which a section replaces the first one with its title."""
        sections = list(self.sections)
        sections[[s.title for s in sections].index(section.title)] = section
        return replace(self, sections=tuple(sections))


def parse(text: str) -> SessionNotes:
    """Return a text parsed as notes; a text without headings becomes the head."""
    above, cursor = _cursor(text)
    lines = re.findall(r"[^\n]*\n|[^\n]+", above)
    edges = (0, *_headings(lines)[0], len(lines))
    head, *sections = ("".join(lines[start:end]) for start, end in pairwise(edges))
    return SessionNotes(head, tuple(map(_section, sections)), cursor)


def rendered(notes: SessionNotes, *, cursor: bool = True) -> str:
    """Return the text of notes, byte for byte as parsed, with or without the cursor."""
    end = f"{notes.cursor.rendered()}\n" if cursor and notes.cursor else ""
    text = ""
    for part in filter(
        None, (notes.head, *(section.rendered() for section in notes.sections), end)
    ):
        text += f"\n{part}" if text and not text.endswith("\n") else part
    return text


def is_empty(notes: SessionNotes, template: str) -> bool:
    """Return whether each section of the notes is empty or as in the template."""
    known = dict(_parts(parse(template)))
    return all(content in ("", known.get(title)) for title, content in _parts(notes))


def section_tokens(section: NotesSection) -> int:
    """Return about how many tokens the content of a section has."""
    return estimate_text(section.content)


def split_local(body: str) -> tuple[str, list[str]]:
    """Return the text above the local writer's marker, and the lines below it."""
    lines = _trimmed(body).split("\n")
    marker = next((n for n, line in enumerate(lines) if line.rstrip() == MARKER), len(lines))
    local = (line for line in lines[marker:] if line.strip() and line.rstrip() != MARKER)
    return "\n".join(lines[:marker]).rstrip(), list(local)


def with_local(body: str, lines: Sequence[str]) -> str:
    """Return a section's body in which ``lines`` replace those below the local writer's marker."""
    authored, _ = split_local(body)
    local = "\n".join((MARKER, *lines)) if lines else ""
    content = "\n".join(filter(None, (authored, local)))
    return f"\n{content}\n\n" if content else "\n\n"


def redacted(text: str) -> str:
    """Return a text in which the name of the rule replaces each line with a credential."""
    rules: dict[int, str] = {}
    for finding in secrets.find(text):
        rules.setdefault(finding.line - 1, f"[removed: {finding.rule}]")
    if not rules:
        return text
    blanked = secrets.blank(text).split("\n")
    lines = enumerate(text.split("\n"))
    # A credential of several lines is reported for the first; its other lines become empty here.
    return "\n".join(
        rules.get(n, line) for n, line in lines if n in rules or blanked[n] or not line
    )


def checked(before: SessionNotes, after_text: str) -> tuple[SessionNotes, tuple[str, ...]]:
    """Return notes after a model edited their text, and a sentence for each dropped change.

    A section whose title or italic line changed keeps its old text. A heading that a model wrote
    within a section is lowered by one level.
    """
    remaining = f"\n{after_text}\n"
    bodies: list[str | None] = [""]
    # From the end, so that a heading quoted in a section above is not taken for the section.
    for section in reversed(before.sections):
        heading = "\n".join(filter(None, (f"\n# {section.title}", section.guide)))
        above, present, below = remaining.rpartition(f"{heading}\n")
        remaining = f"{above}\n" if present else remaining
        bodies.insert(0, below if present else None)
    faults: list[str] = []
    forms = {line for section in before.sections for line in (f"# {section.title}", section.guide)}
    sections = []
    for old, (body, following) in zip(before.sections, pairwise(bodies), strict=True):
        if body is None:
            faults.append(f'the heading or italic line of "{old.title}" changed; it is as it was')
        elif _trimmed(body) != old.content:
            lines = body.split("\n")
            # If the next section was not recognised, its changed heading ends this one.
            foreign = _headings(lines)[0] if following is None else []
            ends = (n for n, line in enumerate(lines) if n in foreign or (line and line in forms))
            content = _trimmed("\n".join(lines[: next(ends, None)]))
            sections.append(_edited(old, content, faults))
            continue
        sections.append(old)
    return replace(before, sections=tuple(sections)), tuple(faults)


def _edited(old: NotesSection, content: str, faults: list[str]) -> NotesSection:
    """Return a section with a model's content, without credentials and cut to its size.

    A sentence about each is added to ``faults``.
    """
    clean = redacted(content)
    if clean != content:
        faults.append(f'"{old.title}" had what looks like a credential; the line was removed')
    short = beginning(clean, _CUT_TOKENS, estimate_text)
    if short != clean:
        faults.append(f'"{old.title}" had over {_CUT_TOKENS} tokens; it was cut')
    return old.filled(short)


def shortened(notes: SessionNotes, path: str, *, characters: int | None = None) -> str:
    """Return the titles and contents of notes for a reader, within the size limits.

    A section that is cut ends with the number of missing lines, and the last line names the file
    at ``path``. The result has at most ``characters`` characters, ``None`` for no limit.
    """
    parts = _parts(notes)
    texts = [beginning(whole, SECTION_TOKENS, estimate_text) for _, whole in parts]
    _shrink(parts, texts, NOTES_TOKENS, estimate_text)
    note = f"[What was cut is in {path}]\n"
    if characters is not None:
        _shrink(parts, texts, characters - len(note), len)
    cut = texts != [whole for _, whole in parts]
    return "".join((*map(_excerpt, parts, texts), note if cut else ""))[:characters]


_Part = tuple[str, str]  # a section's title and its whole content


def _parts(notes: SessionNotes) -> list[_Part]:
    """Return the title and content of each section; the head has the title ""."""
    head = notes.head.strip()
    sections = ((section.title.strip(), section.content) for section in notes.sections)
    return [*([("", head)] if head else []), *sections]


def _shrink(parts: list[_Part], texts: list[str], most: int, measure: Callable[[str], int]) -> None:
    """Cut ``texts`` in place, the least important sections first, until they fit into ``most``.

    ``measure`` returns the size of a text, in tokens or characters.
    """
    names = [f"|{title}|" for title, _ in parts]
    places = [_ORDER.index(name if name in _ORDER else "||") for name in names]
    excess = sum(map(measure, map(_excerpt, parts, texts))) - most
    for least in (most // _SHARES, 0):
        for number in sorted(range(len(parts)), key=places.__getitem__):
            if excess > 0:
                before = measure(_excerpt(parts[number], texts[number]))
                room = measure(texts[number]) - excess - measure(_MISSING.format(10**6))
                texts[number] = beginning(texts[number], max(least, room), measure)
                excess += measure(_excerpt(parts[number], texts[number])) - before


def _excerpt(part: _Part, text: str) -> str:
    """Return a section's title and its cut ``text``, and the number of missing lines."""
    title, whole = part
    missing = whole[len(text) :].strip().count("\n") + 1
    note = _MISSING.format(missing) if text != whole else ""
    return "\n".join(filter(None, (f"# {title}" if title else "", text, note))) + "\n\n"


def beginning(text: str, most: int, measure: Callable[[str], int]) -> str:
    """Return the whole first lines of a text that fit into ``most``, or a part of the first line.

    ``measure`` returns the size of a text, in tokens or characters.
    """
    ends = [*(match.start() for match in re.finditer("\n", text)), len(text)]
    lines = bisect_right(ends, most, key=lambda end: measure(text[:end]))
    if lines:
        return text[: ends[lines - 1]]
    size = bisect_right(range(ends[0]), most, key=lambda end: measure(f"{text[:end]}…")) - 1
    return f"{text[:size]}…" if size > 0 else ""


def _cursor(text: str) -> tuple[str, NotesCursor | None]:
    """Return a text without its cursor, and the cursor; ``None`` if it has none."""
    ended = text.rstrip()
    start = ended.rfind("\n") + 1
    match = _CURSOR.fullmatch(ended[start:])
    if match is None:
        return text, None
    session, covers, tokens, engine, at = match.groups()
    cursor = NotesCursor(unquote(session), unquote(covers), int(tokens), engine, unquote(at))
    # A comment that memd would write differently is somebody else's.
    return (text[:start], cursor) if cursor.rendered() == match[0] else (text, None)


def _headings(lines: Sequence[str]) -> tuple[list[int], str]:
    """Return the indexes of heading lines, and the code fence that is open at the end, or ""."""
    result: list[int] = []
    fence = ""
    for number, (line, below) in enumerate(zip_longest(lines, lines[1:], fillvalue="")):
        if line.startswith("# ") and line[2:].strip() and (not fence or _ITALIC.fullmatch(below)):
            result.append(number)
            fence = ""
        elif fence:
            bare = line.strip()
            fence = "" if bare.startswith(fence) and not bare.strip(fence[0]) else fence
        elif match := _FENCE.match(line):
            fence = match[1]
    return result, fence


def _section(text: str) -> NotesSection:
    """Return the section that a text consists of: a heading, an italic line if any, a body."""
    title, _, below = text[2:].partition("\n")
    guide = below.partition("\n")[0]
    if not _ITALIC.fullmatch(guide):
        guide = ""
    return NotesSection(title, guide, text[2 + len(title) + (len(guide) + 1 if guide else 0) :])


def _trimmed(text: str) -> str:
    """Return a text without blank lines around it; the first line keeps its indentation."""
    return text.rstrip().lstrip("\r\n")
