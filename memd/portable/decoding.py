"""Files, JSON and times of other tools as their readers need them. Pure.

Members that nobody reads are ignored; one of another type than it should be breaks its entry alone.
All raise SourceDamagedError for a file that is too large or no JSON.
"""

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from memd.core.instants import written
from memd.portable.errors import SourceDamagedError, SourceRefusedError
from memd.portable.memories import ReadingBuilder
from memd.portable.values import ImportSource

T = TypeVar("T")
ERRORS = (msgspec.MsgspecError, RecursionError, UnicodeError)
_BOM = b"\xef\xbb\xbf"
VALUES = 500_000  # of one file of JSON
_MANY = f"it has more than {VALUES:,} values"
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
    """Return the entries of a JSON file, and its members where it is an object.

    They are those of a list, those of the list in a member, or the object itself.
    """
    content = without_bom(builder.source, name)
    if content.count(b",") > VALUES:  # each takes its place in memory
        raise SourceDamagedError(name, _MANY)
    value = json(content, name, list[msgspec.Raw] | dict[str, msgspec.Raw])
    if isinstance(value, list):
        return value, {}
    inner = json(value[member], name, list[msgspec.Raw]) if member in value else None
    return [msgspec.Raw(content)] if inner is None else inner, value


def json(content: bytes | msgspec.Raw, name: str, shape: Any) -> Any:
    """Return the value of a JSON text of one shape."""
    try:
        return msgspec.json.decode(content, type=shape)
    except ERRORS as error:
        why = f"it is not the JSON that was expected: {error}"
        raise SourceDamagedError(name, why) from error


def each(
    builder: ReadingBuilder, name: str, values: Iterable[msgspec.Raw], shape: type[T]
) -> Iterator[tuple[str, T]]:
    """Yield the entries of a JSON list, each with its place; a broken one is left out."""
    decoder = msgspec.json.Decoder(shape)
    for number, raw in enumerate(values):
        where = f"{name}[{number}]"
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
