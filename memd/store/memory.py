"""A memory: a head with its fields, and a body of Markdown. Pure.

Reading is lenient and never raises: any bytes are some memory. Writing is strict: ``validate``
names everything that breaks the format. A memory whose head cannot be read is *damaged*: it is
listed and readable as raw Markdown, and nothing of memd rewrites it. ``head.py`` has the lines of
the head; this file has what they mean.
"""

import re
import unicodedata
from collections.abc import Container, Mapping

from msgspec import Struct

from memd.base import limits
from memd.base.errors import Invalid
from memd.base.names import SUFFIX
from memd.base.text import SAID, one_line, sha256
from memd.base.values import ORIGINS, MemoryType
from memd.store import head
from memd.store.head import BELOW, HeadFields
from memd.store.head import BOM as BOM
from memd.store.head import HEAD_BYTES as HEAD_BYTES
from memd.store.head import head_not_editable as head_not_editable
from memd.store.head import mapping as mapping
from memd.store.head import split as split
from memd.text.words import words

_TYPES = {kind.value: kind for kind in MemoryType}
_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")  # the form of a memory's name
_SLUG_CHARACTERS = 60
_HASH_DIGITS = 6  # of a name without any letter or digit
_WORD = re.compile(r"(?<![\w'])[A-Za-z]{2,20}(?![\w'])")  # may be in the name of a statement
NEGATIONS = frozenset({"never", "no", "not", "without", "don't"})  # among the stop words
_CONTRACTION = re.compile(r"(?i)\b[a-z]+n['\u2019]t\b")  # "don't", which is no word of a name
_URL = re.compile(r"\b(?:https?://|www\.)\S+")
_NAME_WORDS = 5
_LAST_WORDS = 3  # of a statement with hardly a content word
_LEAST_WORDS = 2  # fewer say nothing about a memory
_STATEMENT_HASH_DIGITS = 8  # of the name of a memory whose statement has too few words


class Memory(Struct, frozen=True):
    """A memory's parts."""

    name: str
    description: str
    type: MemoryType | None
    origin: str  # whose words the memory says it holds, "" if it does not say or is damaged
    damaged: bool  # the head could not be read
    head: HeadFields | None  # as it was read, ``None`` for a file without one
    metadata: Mapping[str, str]  # all fields but name and description, without nesting
    content: bytes  # all of it
    start: int  # of the body: after the head and its blank line; of a damaged memory all is body

    @property
    def raw_body(self) -> bytes:
        """Return the bytes of the body."""
        return self.content[self.start :]

    @property
    def body(self) -> str:
        """Return the text of the body."""
        return self.content[self.start :].decode("utf-8", errors="replace")


class StatementMemory(Struct, frozen=True):
    """A new memory that says one thing."""

    path: str
    name: str
    description: str
    body: str
    content: bytes


def parse(content: bytes, path: str) -> Memory:
    """Return a memory, or the head of one, whatever its bytes are. Never raises.

    ``path`` gives the name when the head does not.
    """
    span = split(content)
    fields = head.read(span) if span else HeadFields({})
    values = dict(fields.values)
    # Below ``metadata`` in Claude Code's layout, at the top in the older one.
    type_texts = (values.get(f"{BELOW}type", ""), values.get("type", ""))
    types = (text.partition(" #")[0].strip().lower() for text in type_texts)
    name = " ".join(values.pop("name", "").split())
    description = " ".join(values.pop("description", "").split())
    metadata = {key: text for key, text in values.items() if not key.startswith(BELOW)}
    metadata |= {k.removeprefix(BELOW): text for k, text in values.items() if k.startswith(BELOW)}
    origin = "" if fields.damaged else metadata.get("origin", "")
    return Memory(
        name or path.rpartition("/")[2].removesuffix(SUFFIX),
        description,
        next((_TYPES[text] for text in types if text in _TYPES), None),
        origin if origin in ORIGINS else "",
        fields.damaged,
        fields if span else None,
        metadata,
        content,
        span.content if span and not fields.damaged else len(BOM) * content.startswith(BOM),
    )


def body_start(content: bytes, *, damaged: bool) -> int:
    """Return where the body of a memory begins of which the head was read before."""
    span = None if damaged else split(content)
    return span.content if span else len(BOM) * content.startswith(BOM)


def validate(content: bytes, path: str) -> Memory:
    """Return the memory if it may be written through memd.

    Raises Invalid, which names everything that is missing.
    """
    memory = parse(content, path)
    problems: list[str] = []
    if len(content) > limits.MEMORY_BYTES:
        problems.append(f"it has {len(content)} bytes, the limit is {limits.MEMORY_BYTES}")
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        problems.append(f"it is not UTF-8 at byte {error.start}")
    if memory.head is None:
        problems.append("it has no frontmatter between two lines '---'")
    else:
        if memory.head.problem:
            problems.append(f"its frontmatter is refused: {memory.head.problem}")
        name = memory.head.values.get("name", "")
        if not name:
            problems.append("it has no name")
        elif not _SLUG.fullmatch(name):
            problems.append("its name is not a slug like two-words (small letters, digits, dashes)")
        if not memory.description:
            problems.append("it has no description")
        if memory.metadata.get("type") not in _TYPES:
            problems.append(f"its type is not one of {', '.join(MemoryType)}")
    if problems:
        listed = "; ".join(problems)
        raise Invalid(
            f"{path} cannot be written: {listed}",
            hint="begin with '---', name, description, metadata with type, '---', then the text",
            path=path,
            problems=listed,
        )
    return memory


def is_valid(content: bytes, path: str) -> bool:
    """Return whether a memory may be written through memd."""
    try:
        validate(content, path)
    except Invalid:
        return False
    return True


def with_fields(content: bytes, fields: Mapping[str, str]) -> bytes:
    """Return the memory with these fields set and every other byte as it was.

    Keys are ``name``, ``description`` or ``metadata.<key>``. A file without a head gets one. Raises
    Invalid if the head is damaged, or if other fields would change as well.
    """
    span = split(content)
    if span is None:
        start = len(BOM) if content.startswith(BOM) else 0
        line_end = b"\r\n" if b"\r\n" in content[:HEAD_BYTES] else b"\n"
        empty_head = line_end.join((b"---", b"---", b"", b""))
        content = content[:start] + empty_head + content[start:]
        span = split(content)
    before = parse(content, "")
    if span is None or before.damaged:
        why = "it does not parse"
        raise head_not_editable(why)
    line_end = b"\r\n" if content[: span.start].endswith(b"\r\n") else b"\n"
    lines = head.with_fields(content[span.start : span.end], fields, line_end)
    changed = content[: span.start] + lines + content[span.end :]
    # Read it back: a line that was misjudged must not become a damaged memory.
    expected = _facts(before)
    expected |= {k.removeprefix(BELOW): " ".join(v.split()) for k, v in fields.items()}
    after = parse(changed, "")
    if after.damaged or after.raw_body != before.raw_body or _facts(after) != expected:
        why = "the other fields would not stay as they are"
        raise head_not_editable(why)
    return changed


def with_body(content: bytes, body: str) -> bytes:
    """Return the memory with another text after its head, whose bytes stay.

    A file without a head becomes the text alone.
    """
    span = split(content)
    text = (body if body.endswith("\n") else body + "\n").encode("utf-8", errors="replace")
    if span is None or not span.closed:
        return text
    line_end = b"\r\n" if content[: span.body].endswith(b"\r\n") else b"\n"
    return content[: span.body] + line_end + text


def with_standard_head(content: bytes, base: bytes | None, path: str) -> bytes:
    """Return a memory with its head in memd's own layout, whatever lines a writer put there.

    ``base`` is the memory before, ``None`` if it is new; fields that only it has stay. A head that
    did not change keeps its bytes, and so does a valid head of a new memory that every reader of
    YAML understands alike, and one that cannot be read. The result may still lack fields.
    """
    span, old = split(content), split(base or b"")
    if span is None or not span.closed:
        return content
    if base and old and content[: span.body] == base[: old.body]:
        return content
    new = head.read(span)
    before = head.read(old) if old else HeadFields({})
    is_known = bool(before.values) and not before.damaged
    # Every reader of YAML takes these lines for the same texts.
    is_plain = head.plain_fields(span.text) is not None and " #" not in span.text
    if new.damaged or (not is_known and is_plain and is_valid(content, path)):
        return content
    values = dict(new.values)
    if is_known:
        # A key that is now at the top replaces the one that was below ``metadata``.
        names = {key.rpartition(".")[2] for key in values}
        values = {k: v for k, v in before.values.items() if k.rpartition(".")[2] not in names}
        values |= new.values
    file_name = path.rpartition("/")[2].removesuffix(SUFFIX)
    top_type = values.pop("type", "")
    kind = values.pop(f"{BELOW}type", "") or top_type
    values.pop(f"{BELOW}node_type", "")
    stamps = {key: values.pop(key) for key in head.STAMPS if key in values}
    fields = {
        "name": slug(values.pop("name", ""), file_name),
        "description": values.pop("description", ""),
        f"{BELOW}node_type": "memory",
        f"{BELOW}type": kind.strip().lower(),
    }
    return head.lines_of(fields | values | stamps) + content[span.body :]


def new(
    name: str,
    description: str,
    type: MemoryType | None,  # noqa: A002 - the word of the format
    body: str,
    *,
    session: str,
    modified: str,
    origin: str = "",
    when: str = "",
) -> bytes:
    """Return a new memory in the layout that Claude Code stamps.

    ``when`` says when it is needed, "" for nothing. ``session`` may be empty; ``modified`` is ISO
    8601 in UTC, or empty. What came from elsewhere may have no ``type``, and has an ``origin``.
    """
    optional = {"type": type or "", "origin": origin, "originSessionId": session}
    optional |= {"modified": modified, "when": when}
    fields = {"name": name, "description": description, f"{BELOW}node_type": "memory"}
    fields |= {f"{BELOW}{key}": text for key, text in optional.items() if text}
    text = body if body.endswith("\n") or not body else body + "\n"
    return head.lines_of(fields) + b"\n" + text.encode("utf-8", errors="replace")


def slug(name: str, otherwise: str = "") -> str:
    """Return a name in small letters, digits and dashes.

    If nothing of it is left, ``otherwise`` is used in its place, or a hash of the name.
    """
    for text in (name, otherwise):
        decomposed = unicodedata.normalize("NFKD", text[: 4 * _SLUG_CHARACTERS]).casefold()
        without_accents = re.sub(r"[\u0300-\u036f'\u2019]", "", decomposed)  # nor apostrophes
        joined = "-".join(re.findall("[a-z0-9]+", without_accents))
        result = joined[:_SLUG_CHARACTERS].strip("-")
        if result:
            return result
    return f"memory-{sha256(name.encode('utf-8', 'replace'))[:_HASH_DIGITS]}"


def of_statement(
    statement: str,
    kind: MemoryType,
    quotation: str,
    taken: Container[str] = (),
    *,
    session: str,
    modified: str,
) -> StatementMemory:
    """Return a new memory that says one statement, and ends with a quotation if there is one.

    No path of ``taken``, in folded case, is used again. ``session`` and ``modified`` are as in
    ``new``. Reads word lists at the first call.
    """
    name = first_name = name_of_statement(statement)
    path, number = f"{kind}_{name}{SUFFIX}", 1
    while path.casefold() in taken:
        number += 1
        name = f"{first_name}-{number}"
        path = f"{kind}_{name}{SUFFIX}"
    description = one_line(statement, limits.INDEX_HOOK_CHARACTERS)
    body = f"{statement}\n\n{quotation}\n" if quotation else f"{statement}\n"
    content = new(name, description, kind, body, session=session, modified=modified)
    return StatementMemory(path, name, description, body, content)


def with_statement(content: bytes, statement: str, quotation: str, modified: str) -> bytes:
    """Return a memory of one statement with another one in its place.

    Its quotations go, and ``quotation`` ends it unless that is ``""``. Raises Invalid if it says
    more than its statement, or its head cannot be changed.
    """
    old = parse(content, "")
    if not _only_line(old.body):
        sentence = "the memory says more than one thing, so a new statement cannot take its place"
        raise Invalid(sentence, hint="write the whole memory instead")
    description = one_line(statement, limits.INDEX_HOOK_CHARACTERS)
    fields = {"description": description} | ({f"{BELOW}modified": modified} if modified else {})
    changed = with_fields(content, fields)
    return with_body(changed, f"{statement}\n\n{quotation}\n" if quotation else f"{statement}\n")


def following_statement(old: bytes, content: bytes) -> bytes:
    """Return a memory whose head follows its statement, where only the body was edited.

    Where a memory said one sentence, which was its description too, and says another one now,
    description and a name that was made of it are those of the new sentence.
    """
    before, after = parse(old, ""), parse(content, "")
    said, says = _only_line(before.body), _only_line(after.body)
    is_own = bool(said) and one_line(said, limits.INDEX_HOOK_CHARACTERS) == before.description
    is_edited = bool(says) and says != said and after.description == before.description
    if not is_own or not is_edited or after.head is None or after.head.problem:
        return content
    fields = {"description": one_line(says, limits.INDEX_HOOK_CHARACTERS)}
    said_words = set(_WORD.findall(said.lower()))
    if after.name == before.name and said_words.issuperset(after.name.split("-")):
        fields["name"] = name_of_statement(says)
    return with_fields(content, fields)


def _only_line(body: str) -> str:
    """Return the one line of a body beside its quotations, "" if it has several or none."""
    lines = [line for line in body.splitlines() if line.strip() and not line.startswith(SAID)]
    return lines[0].strip() if len(lines) == 1 else ""


def name_of_statement(statement: str) -> str:
    """Return a name made of the first content words of a statement, its last words, or its hash.

    No number and no token gets into a name. Reads word lists at the first call.
    """
    plain = _CONTRACTION.sub("not", _URL.sub(" ", statement))
    all_words = [word.lower() for word in _WORD.findall(plain)]
    content = [word for word in all_words if word in NEGATIONS or words(word)]
    if len(content) >= _LEAST_WORDS:
        return "-".join(content[:_NAME_WORDS])
    if content and len(all_words) >= _LEAST_WORDS:
        return "-".join(all_words[-_LAST_WORDS:])
    return f"note-{sha256(statement.encode('utf-8', 'replace'))[:_STATEMENT_HASH_DIGITS]}"


def _facts(memory: Memory) -> dict[str, str]:
    """Return all that the head of a memory says, as one mapping."""
    return {**memory.metadata, "name": memory.name, "description": memory.description}
