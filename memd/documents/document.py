"""A memory as a document: the one door to python-frontmatter.

Reading is lenient and never raises; writing is strict. Values are the strings that
stand in the file. Frontmatter that does not parse makes a *damaged* memory: readable as raw
Markdown, never rewritten by a background job. Rewrites are surgical, never parse-and-dump.
"""

import re
from collections.abc import Mapping
from typing import Any

from frontmatter.default_handlers import YAMLHandler
from msgspec import Struct

from memd.core import limits
from memd.core.errors import MemdError
from memd.core.text import decode
from memd.core.values import ORIGINS, MemoryType
from memd.documents import frontmatter, heads, memory_merge
from memd.documents.frontmatter import BOM, FENCE, Fenced, lenient
from memd.documents.frontmatter import HEAD_BYTES as HEAD_BYTES
from memd.documents.frontmatter import LENIENT_LINE as LENIENT_LINE
from memd.documents.frontmatter import Fields as Fields
from memd.documents.frontmatter import plain as plain
from memd.documents.frontmatter import problem as problem
from memd.documents.frontmatter import quick as quick
from memd.documents.frontmatter import scalar as scalar
from memd.documents.frontmatter import split as split
from memd.documents.frontmatter import unquoted as unquoted
from memd.documents.frontmatter_edit import (
    FrontmatterNotEditableError as FrontmatterNotEditableError,
)
from memd.documents.frontmatter_edit import edit
from memd.documents.heads import slug as slug
from memd.documents.wording import WordedMemory as WordedMemory
from memd.documents.wording import new as new
from memd.documents.wording import worded as worded

_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_YAML = YAMLHandler()


class InvalidMemoryError(MemdError):
    """A memory that was to be written breaks the format; each broken rule is named."""

    code = 1011
    kind = "invalid_memory"
    hint = "begin with '---', name, description, metadata with type, '---', then the text"
    exit_status = 65

    def __init__(self, path: str, problems: tuple[str, ...]) -> None:
        listed = "; ".join(problems)
        super().__init__(f"{path} cannot be written: {listed}", path=path, problems=listed)
        self.problems = problems


class Document(Struct, frozen=True):
    """A memory's parts. ``metadata`` has every key but name and description, nested ones flat.

    ``body`` is the text after the frontmatter and its blank line; all of it when damaged.
    """

    name: str
    description: str
    type: MemoryType | None
    body: str
    damaged: bool
    metadata: Mapping[str, str]

    @property
    def fields(self) -> Fields:
        """Return what a header has of the memory: name, description, type and origin."""
        return self.name, self.description, self.type, self.origin

    @property
    def origin(self) -> str:
        """Return whose words the memory says it holds, "" where that is not to be known."""
        origin = "" if self.damaged else self.metadata.get("origin", "")
        return origin if origin in ORIGINS else ""


class _Fields(Struct, frozen=True):
    """What stands in a frontmatter. ``problem`` says why it is not valid, "" when it is."""

    values: Mapping[str, Any]
    problem: str
    damaged: bool


def parse(content: bytes, path: str) -> Document:
    """Read a memory, or the head of one, whatever its bytes are. Never raises.

    ``path`` gives the name when the frontmatter does not.
    """
    fenced = split(content)
    fields = _read(fenced)
    values = fields.values
    nested = values.get("metadata")
    table: Mapping[str, Any] = nested if isinstance(nested, dict) else {}
    name = " ".join(_text(values.get("name", "")).split())
    return Document(
        name=name or path.rpartition("/")[2].removesuffix(".md"),
        description=" ".join(_text(values.get("description", "")).split()),
        type=_type(table.get("type")) or _type(values.get("type")),
        body=decode(content) if fenced is None or fields.damaged else _body(content, fenced),
        damaged=fields.damaged,
        metadata=_flat(values) | {key: _text(value) for key, value in table.items()},
    )


def validate(content: bytes, path: str) -> Document:
    """Return the document when it may be written through memd.

    Raises InvalidMemoryError, which names everything that is missing.
    """
    problems: list[str] = []
    if len(content) > limits.MEMORY_BYTES:
        problems.append(f"it has {len(content)} bytes, the limit is {limits.MEMORY_BYTES}")
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        problems.append(f"it is not UTF-8 at byte {error.start}")
    fenced = split(content)
    fields = _read(fenced)
    if fenced is None:
        problems.append("it has no frontmatter between two lines '---'")
    elif fields.problem:
        problems.append(f"its frontmatter is refused: {fields.problem}")
    document = parse(content, path)
    if fenced is not None:
        problems += _missing(document, fields.values)
    if problems:
        raise InvalidMemoryError(path, tuple(problems))
    return document


def strict(content: bytes, base: bytes | None, path: str) -> bytes:
    """Return a memory with its head as memd writes it, whatever lines a writer put there.

    ``base`` is what it was before. A head that stands as it was, or that every reader understands
    alike, keeps its bytes. The result may still lack what a memory needs.
    """
    fenced, old = split(content), split(base or b"")
    if fenced is None or (base and old and content[: fenced.body] == base[: old.body]):
        return content
    known: dict[str, str] = {}
    if base is not None and not (before := parse(base, path)).damaged:
        known = {f"metadata.{key}": text for key, text in before.metadata.items()}
        known |= {"name": before.name, "description": before.description}
    elif plain(fenced.lines) is not None and _is_valid(content, path):
        return content
    return heads.rewritten(content, path, known)


def with_fields(content: bytes, fields: Mapping[str, str]) -> bytes:
    """Return the memory with these fields set and every other byte as it was.

    Keys are ``name``, ``description`` or ``metadata.<key>`` (the flat key where a file has that
    one). A file without frontmatter gets one. Raises FrontmatterNotEditableError when it is
    damaged, or when the change cannot be made without touching what is not ours.
    """
    fenced = split(content)
    if fenced is None:
        start = len(BOM) if content.startswith(BOM) else 0
        eol = b"\r\n" if b"\r\n" in content[:HEAD_BYTES] else b"\n"
        content = content[:start] + FENCE + eol + FENCE + eol + eol + content[start:]
        fenced = split(content)
    before = parse(content, "")
    if fenced is None or before.damaged:
        why = "it does not parse"
        raise FrontmatterNotEditableError(why)
    changed = edit(content, fenced, fields)
    if _facts(parse(changed, "")) != _expected(before, fields):
        why = "the other fields would not stay as they are"
        raise FrontmatterNotEditableError(why)
    return changed


def with_body(content: bytes, body: str) -> bytes:
    """Return the memory with another text after its frontmatter, whose bytes stay.

    A file without frontmatter becomes the text alone.
    """
    fenced = split(content)
    text = (body if body.endswith("\n") else body + "\n").encode("utf-8", errors="replace")
    if fenced is None or not fenced.closed:
        return text
    eol = b"\r\n" if content[: fenced.body].endswith(b"\r\n") else b"\n"
    return content[: fenced.body] + eol + text


def mapping(raw: str) -> Mapping[str, Any] | None:
    """Return what a head's text between the fences says, ``None`` for what must not be read.

    Values are texts as they stand there, and lists and mappings of these.
    """
    return None if problem(raw) else _loaded(raw)


def merge(base: bytes, ours: bytes, theirs: bytes, path: str) -> bytes | None:
    """Return what two writers made of one memory (``memory_merge.py``), ``None`` for a conflict.

    A result that breaks the format where a side did not is a conflict.
    """
    merged = memory_merge.merge(base, ours, theirs)
    if merged is None or _is_valid(merged, path):
        return merged
    return None if _is_valid(ours, path) or _is_valid(theirs, path) else merged


def _is_valid(content: bytes, path: str) -> bool:
    try:
        validate(content, path)
    except InvalidMemoryError:
        return False
    return True


def _read(fenced: Fenced | None) -> _Fields:
    """Return the fields between the fences: by simple lines, by YAML, or leniently."""
    if fenced is None:
        return _Fields({}, "", damaged=False)
    why = "" if fenced.closed else f"it is not closed within {limits.HEAD_LINES} lines"
    if not why and fenced.end - fenced.start <= limits.FRONTMATTER_BYTES:
        simple = plain(fenced.lines)
        if simple is not None:
            return _Fields(simple, "", damaged=False)
    raw = "\n".join(fenced.lines)
    why = why or problem(raw)
    if not why:
        loaded = _loaded(raw)
        if loaded is not None:
            return _Fields(loaded, "", damaged=False)
        why = "it is not valid YAML"
    values, understood = lenient(fenced.lines)
    size = fenced.end - fenced.start
    whole = fenced.closed and size <= limits.FRONTMATTER_BYTES
    return _Fields(values, why, damaged=not (understood and whole))


def _loaded(raw: str) -> Mapping[str, Any] | None:
    """Return what YAML makes of a text in which ``problem`` finds nothing."""
    try:
        return _YAML.load(raw, Loader=frontmatter.LOADER) or {}
    except frontmatter.ERRORS:
        return None


def _body(content: bytes, fenced: Fenced) -> str:
    text = content[fenced.body :].decode("utf-8", errors="replace")
    return text.removeprefix("\r\n") if text.startswith("\r\n") else text.removeprefix("\n")


def _flat(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the top fields as texts, but for name, description and the table."""
    flat = {key: _text(value) for key, value in values.items()}
    for key in ("name", "description"):
        flat.pop(key, None)
    if isinstance(values.get("metadata"), dict) or not flat.get("metadata"):
        flat.pop("metadata", None)
    return flat


def _text(value: Any) -> str:
    """Return a YAML value as one text."""
    if isinstance(value, dict):
        return ", ".join(f"{_text(key)}: {_text(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(_text(item) for item in value)
    # Without libyaml an escape may name half a character, which no reply can carry.
    return str(value).encode("utf-8", errors="replace").decode()


def _type(value: Any) -> MemoryType | None:
    try:
        return MemoryType(str(value).strip().lower())
    except ValueError:
        return None


def _missing(document: Document, values: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each field that a memory must have and this one lacks."""
    problems: list[str] = []
    name = _text(values.get("name", ""))
    if not name:
        problems.append("it has no name")
    elif not _SLUG.fullmatch(name):
        problems.append("its name is not a slug like two-words (small letters, digits, dashes)")
    if not document.description:
        problems.append("it has no description")
    kinds = ", ".join(MemoryType)
    if document.metadata.get("type") not in list(MemoryType):
        problems.append(f"its type is not one of {kinds}")
    return problems


def _facts(document: Document) -> dict[str, Any]:
    facts: dict[str, Any] = {f"metadata.{key}": text for key, text in document.metadata.items()}
    facts |= {"name": document.name, "description": document.description}
    return facts | {"body": document.body, "damaged": document.damaged}


def _expected(before: Document, fields: Mapping[str, str]) -> dict[str, Any]:
    wanted = {
        key if key in ("name", "description") or "." in key else f"metadata.{key}": value
        for key, value in fields.items()
    }
    return _facts(before) | {key: " ".join(value.split()) for key, value in wanted.items()}
