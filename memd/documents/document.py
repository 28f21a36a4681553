"""A memory as a document: the one door to python-frontmatter.

Reading is lenient and never raises; writing is strict. Values are the strings that stand in the
file. Frontmatter that does not parse makes a *damaged* memory: it can be read as raw Markdown, and
no background job rewrites it. A rewrite changes only the lines of the fields that change.
"""

import re
from collections.abc import Mapping
from typing import Any

from frontmatter.default_handlers import YAMLHandler
from msgspec import Struct

from memd.base import limits
from memd.base.errors import MemdError
from memd.base.text import decode
from memd.base.values import ORIGINS, MemoryType
from memd.documents import frontmatter, heads, memory_merge
from memd.documents.frontmatter import BOM, FENCE, Fenced, lenient_fields
from memd.documents.frontmatter import HEAD_BYTES as HEAD_BYTES
from memd.documents.frontmatter import LENIENT_LINE as LENIENT_LINE
from memd.documents.frontmatter import Fields as Fields
from memd.documents.frontmatter import problem as problem
from memd.documents.frontmatter import quick_fields as quick_fields
from memd.documents.frontmatter import scalar as scalar
from memd.documents.frontmatter import simple_fields as simple_fields
from memd.documents.frontmatter import split as split
from memd.documents.frontmatter import unquoted as unquoted
from memd.documents.frontmatter_edit import (
    FrontmatterNotEditableError as FrontmatterNotEditableError,
)
from memd.documents.frontmatter_edit import edit
from memd.documents.heads import slug as slug
from memd.documents.wording import WordedMemory as WordedMemory
from memd.documents.wording import is_name_of_statement as is_name_of_statement
from memd.documents.wording import memory_of_statement as memory_of_statement
from memd.documents.wording import name_of_statement as name_of_statement
from memd.documents.wording import new as new

_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")  # the form of a memory's name
_YAML = YAMLHandler()


class InvalidMemoryError(MemdError):
    """A memory that was to be written breaks the format; each broken rule is named."""

    code = 1011
    kind = "invalid_memory"
    hint = "begin with '---', name, description, metadata with type, '---', then the text"

    def __init__(self, path: str, problems: tuple[str, ...]) -> None:
        listed = "; ".join(problems)
        super().__init__(f"{path} cannot be written: {listed}", path=path, problems=listed)
        self.problems = problems


class Document(Struct, frozen=True):
    """A memory's parts."""

    name: str
    description: str
    type: MemoryType | None
    body: str  # the text after the frontmatter and its blank line; all of a damaged memory
    damaged: bool  # the frontmatter could not be read
    metadata: Mapping[str, str]  # all fields but name and description, without nesting

    @property
    def fields(self) -> Fields:
        """Return what a header has of the memory: name, description, type and origin."""
        return self.name, self.description, self.type, self.origin

    @property
    def origin(self) -> str:
        """Return whose words the memory says it holds, "" if it does not say or is damaged."""
        origin = "" if self.damaged else self.metadata.get("origin", "")
        return origin if origin in ORIGINS else ""


class _Fields(Struct, frozen=True):
    """The values of a frontmatter by key."""

    values: Mapping[str, Any]
    problem: str  # why the frontmatter is not valid, "" if it is
    damaged: bool  # some of its lines could not be read


def parse(content: bytes, path: str) -> Document:
    """Read a memory, or the head of one, whatever its bytes are. Never raises.

    ``path`` gives the name when the frontmatter does not.
    """
    fenced = split(content)
    fields = _read_fields(fenced)
    values = fields.values
    metadata = values.get("metadata")
    nested: Mapping[str, Any] = metadata if isinstance(metadata, dict) else {}
    name = " ".join(_text(values.get("name", "")).split())
    file_name = path.rpartition("/")[2].removesuffix(".md")
    return Document(
        name=name or file_name,
        description=" ".join(_text(values.get("description", "")).split()),
        # Below ``metadata`` in Claude Code's layout, at the top in the older one.
        type=_memory_type(nested.get("type")) or _memory_type(values.get("type")),
        body=decode(content) if fenced is None or fields.damaged else _body(content, fenced),
        damaged=fields.damaged,
        metadata=_top_metadata(values) | {key: _text(value) for key, value in nested.items()},
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
    fields = _read_fields(fenced)
    if fenced is None:
        problems.append("it has no frontmatter between two lines '---'")
    elif fields.problem:
        problems.append(f"its frontmatter is refused: {fields.problem}")
    document = parse(content, path)
    if fenced is not None:
        problems += _field_problems(document, fields.values)
    if problems:
        raise InvalidMemoryError(path, tuple(problems))
    return document


def with_standard_head(content: bytes, base: bytes | None, path: str) -> bytes:
    """Return a memory with its head in memd's own layout, whatever lines a writer put there.

    ``base`` is the memory before, ``None`` if it is new. A head that did not change keeps its
    bytes, and so does a valid head of a new memory that every reader of YAML understands alike. The
    result may still lack fields that a memory needs.
    """
    fenced, old = split(content), split(base or b"")
    if fenced is None:
        return content
    if base and old and content[: fenced.body] == base[: old.body]:  # the same head
        return content
    before = None if base is None else parse(base, path)
    known: dict[str, str] = {}
    if before is not None and not before.damaged:
        known = {f"metadata.{key}": text for key, text in before.metadata.items()}
        known |= {"name": before.name, "description": before.description}
    elif simple_fields(fenced.lines) is not None and _is_valid(content, path):
        return content  # every reader of YAML understands this head alike
    return heads.with_rewritten_head(content, path, known)


def with_fields(content: bytes, fields: Mapping[str, str]) -> bytes:
    """Return the memory with these fields set and every other byte as it was.

    Keys are ``name``, ``description`` or ``metadata.<key>``, which is set at the top of a file that
    has it there. A file without frontmatter gets one. Raises FrontmatterNotEditableError if the
    frontmatter is damaged, or if the change would change other fields as well.
    """
    fenced = split(content)
    if fenced is None:
        start = len(BOM) if content.startswith(BOM) else 0
        line_end = b"\r\n" if b"\r\n" in content[:HEAD_BYTES] else b"\n"
        empty_head = FENCE + line_end + FENCE + line_end + line_end
        content = content[:start] + empty_head + content[start:]
        fenced = split(content)
    before = parse(content, "")
    if fenced is None or before.damaged:
        why = "it does not parse"
        raise FrontmatterNotEditableError(why)
    changed = edit(content, fenced, fields)
    # Read it back: a line that was misjudged must not become a damaged memory.
    if _all_fields(parse(changed, "")) != _expected_fields(before, fields):
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
    line_end = b"\r\n" if content[: fenced.body].endswith(b"\r\n") else b"\n"
    return content[: fenced.body] + line_end + text


def mapping(raw: str) -> Mapping[str, Any] | None:
    """Return the YAML mapping in the text between the fences, ``None`` if it must not be loaded.

    Its values are texts as they were written, and lists and mappings of these.
    """
    return None if problem(raw) else _load_yaml(raw)


def merge(base: bytes, ours: bytes, theirs: bytes, path: str) -> bytes | None:
    """Return two versions of one memory merged (``memory_merge.py``), ``None`` for a conflict.

    If the result breaks the format and one of the versions did not, that is a conflict, too.
    """
    merged = memory_merge.merge(base, ours, theirs)
    if merged is None or _is_valid(merged, path):
        return merged
    is_broken_by_merge = _is_valid(ours, path) or _is_valid(theirs, path)
    return None if is_broken_by_merge else merged


def _is_valid(content: bytes, path: str) -> bool:
    """Say whether a memory may be written through memd, as ``validate`` decides."""
    try:
        validate(content, path)
    except InvalidMemoryError:
        return False
    return True


def _read_fields(fenced: Fenced | None) -> _Fields:
    """Return the fields of a frontmatter.

    They are read as simple lines; if that fails, by YAML; and if it is not valid YAML, leniently.
    """
    if fenced is None:
        return _Fields({}, "", damaged=False)
    reason = "" if fenced.closed else f"it is not closed within {limits.HEAD_LINES} lines"
    is_small = fenced.end - fenced.start <= limits.FRONTMATTER_BYTES
    if not reason and is_small:
        simple = simple_fields(fenced.lines)  # much faster than YAML, and mostly enough
        if simple is not None:
            return _Fields(simple, "", damaged=False)
    raw = "\n".join(fenced.lines)
    reason = reason or problem(raw)
    if not reason:
        loaded = _load_yaml(raw)
        if loaded is not None:
            return _Fields(loaded, "", damaged=False)
        reason = "it is not valid YAML"
    values, all_lines_read = lenient_fields(fenced.lines)
    is_readable = all_lines_read and fenced.closed and is_small
    return _Fields(values, reason, damaged=not is_readable)


def _load_yaml(raw: str) -> Mapping[str, Any] | None:
    """Return the mapping in a YAML text that ``problem`` let pass, ``None`` if it is not valid."""
    try:
        return _YAML.load(raw, Loader=frontmatter.LOADER) or {}
    except frontmatter.ERRORS:
        return None


def _body(content: bytes, fenced: Fenced) -> str:
    """Return the text after the frontmatter, without the blank line between them."""
    text = content[fenced.body :].decode("utf-8", errors="replace")
    return text.removeprefix("\r\n") if text.startswith("\r\n") else text.removeprefix("\n")


def _top_metadata(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields at the top of a head as texts, but for name and description.

    ``metadata`` itself is left out, unless a file has a text there.
    """
    fields = {key: _text(value) for key, value in values.items()}
    for key in ("name", "description"):
        fields.pop(key, None)
    if isinstance(values.get("metadata"), dict) or not fields.get("metadata"):
        fields.pop("metadata", None)
    return fields


def _text(value: Any) -> str:
    """Return a YAML value as one text."""
    if isinstance(value, dict):
        return ", ".join(f"{_text(key)}: {_text(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(_text(item) for item in value)
    # Without libyaml an escape may name half a character, which no reply can carry.
    return str(value).encode("utf-8", errors="replace").decode()


def _memory_type(value: Any) -> MemoryType | None:
    """Return the memory type that a YAML value names, ``None`` if it names none."""
    try:
        return MemoryType(str(value).strip().lower())
    except ValueError:
        return None


def _field_problems(document: Document, values: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each required field that is missing or has an invalid value.

    ``values`` are the fields as they were written.
    """
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


def _all_fields(document: Document) -> dict[str, Any]:
    """Return all that a memory says, as one mapping that can be compared."""
    fields: dict[str, Any] = {f"metadata.{key}": text for key, text in document.metadata.items()}
    fields |= {"name": document.name, "description": document.description}
    return fields | {"body": document.body, "damaged": document.damaged}


def _expected_fields(before: Document, changes: Mapping[str, str]) -> dict[str, Any]:
    """Return what ``_all_fields`` returns if just these fields of a memory have changed."""
    expected = _all_fields(before)
    for key, value in changes.items():
        is_full_key = key in ("name", "description") or "." in key
        expected[key if is_full_key else f"metadata.{key}"] = " ".join(value.split())
    return expected
