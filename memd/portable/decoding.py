"""Files, JSON and times of other tools as their readers need them. Pure.

Members that nobody reads are ignored; one of another type than it should be breaks its entry alone.
All raise SourceDamagedError for a file that is too large or no JSON. JSON of very many small values
is refused before it is decoded: that would hold up all prompts and fill the memory.
"""

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from memd.core.instants import written
from memd.core.yielding import yield_to_requests
from memd.portable.errors import SourceDamagedError, SourceRefusedError
from memd.portable.memories import ReadingBuilder
from memd.portable.values import ImportSource

T = TypeVar("T")
ERRORS = (msgspec.MsgspecError, RecursionError, UnicodeError)
_BOM = b"\xef\xbb\xbf"
_ENTRIES = 100_000  # of one file
_COMMAS = 2_000_000  # of a file; real ones have one in some thirty bytes
_PARTS = 500_000  # commas of one value that is decoded at once
_MANY_ENTRIES = f"it has more than {_ENTRIES:,} entries"
_MANY_PARTS = "it has too many parts"
_READ = ("results", "next", "observations", "metadata", "totalObservations")
_COUNTED = ("sessions", "summaries", "prompts")
_ABSENT = msgspec.Raw(b"")
_Members = msgspec.defstruct(
    "_Members", [(member, msgspec.Raw, _ABSENT) for member in (*_READ, *_COUNTED)]
)
_MILLISECONDS = 100_000_000_000  # as seconds this is in the year 5138


def files(builder: ReadingBuilder, *suffixes: str) -> tuple[str, ...]:
    """Return the files with these endings; the others are left out.

    Raises SourceRefusedError where there is none.
    """
    endings, names = " or ".join(suffixes), builder.source.names()
    chosen = tuple(name for name in names if name.endswith(suffixes) and not hidden(name))
    if not chosen:
        why = f"it has no file {endings}"
        raise SourceRefusedError(builder.kind, why)
    for name in sorted(set(names).difference(chosen)):
        builder.leave(name, f"it is no file {endings}")
    return chosen


def hidden(name: str) -> bool:
    """Say whether a file or a folder above it is hidden."""
    return "/." in f"/{name}"


def without_bom(source: ImportSource, name: str) -> bytes:
    """Return a file of a source without its BOM."""
    return source.read(name).removeprefix(_BOM)


def text(source: ImportSource, name: str) -> str:
    """Return a file of a source as text; foreign bytes become U+FFFD."""
    return without_bom(source, name).decode(errors="replace").replace("\r\n", "\n")


def entries(
    builder: ReadingBuilder, name: str, member: str = ""
) -> tuple[list[msgspec.Raw], dict[str, msgspec.Raw]]:
    """Return the entries of a JSON file, and the members of it that a reader asks for.

    They are those of a list, those of the list in a member, or the object itself.
    """
    content = without_bom(builder.source, name)
    value = json(content, name, list[msgspec.Raw] | _Members, _COMMAS)
    members = {} if isinstance(value, list) else msgspec.structs.asdict(value)
    members = {key: raw for key, raw in members.items() if bytes(raw)}
    listed = value if isinstance(value, list) else [msgspec.Raw(content)]
    if member in members:
        listed = json(members[member], name, list[msgspec.Raw], _COMMAS)
    if len(listed) > _ENTRIES:
        raise SourceDamagedError(name, _MANY_ENTRIES)
    return listed, members


def json(content: bytes | msgspec.Raw, name: str, shape: Any, commas: int = _PARTS) -> Any:
    """Return the value of a JSON text of one shape, which has at most so many commas."""
    if bytes(content).count(b",") > commas:
        raise SourceDamagedError(name, _MANY_PARTS)
    try:
        return msgspec.json.decode(content, type=shape)
    except ERRORS as error:
        why = f"it is not the JSON that was expected: {error}"
        raise SourceDamagedError(name, why) from error


def length(content: bytes | msgspec.Raw, name: str) -> int:
    """Return how many entries a JSON list has."""
    return len(json(content, name, list[msgspec.Raw], _COMMAS))


def each(
    builder: ReadingBuilder, name: str, values: Iterable[msgspec.Raw], shape: type[T]
) -> Iterator[tuple[str, T]]:
    """Yield the entries of a JSON list, each with its place; a broken one is left out."""
    decoder = msgspec.json.Decoder(shape)
    for number, raw in enumerate(values):
        yield_to_requests()
        where = f"{name}[{number}]"
        if bytes(raw).count(b",") > _PARTS:
            builder.leave(where, _MANY_PARTS)
            continue
        try:
            entry = decoder.decode(raw)
        except ERRORS as error:
            builder.leave(where, f"it cannot be read: {error}")
        else:
            yield where, entry


def moment(value: str | float | None) -> float:
    """Return the seconds since 1970 of a time as tools write it, 0 for none.

    It is ISO 8601, or a number of seconds or milliseconds.
    """
    if isinstance(value, float | int):
        value = str(value / 1000 if value > _MILLISECONDS else value)
    return (written(value) if value else None) or 0.0
