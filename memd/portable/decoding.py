"""Decode files, JSON and times of other tools for the readers of their formats. Pure.

Unknown members are ignored; a member of a wrong type makes only its entry unreadable. All functions
raise SourceDamagedError for a file that is too large or no JSON. JSON of very many small values is
refused before it is decoded, since decoding would delay all prompts and fill the memory.
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
_ENTRIES = 100_000  # limit for one file
# Commas are counted, since JSON of many small values needs much memory when it is decoded.
_FILE_COMMAS = 2_000_000  # limit for a file; real ones have one in some thirty bytes
_VALUE_COMMAS = 500_000  # limit for one value that is decoded at once
_TOO_MANY_ENTRIES = f"it has more than {_ENTRIES:,} entries"
_TOO_MANY_PARTS = "it has too many parts"
_READ_MEMBERS = ("results", "next", "observations", "metadata", "totalObservations")
_COUNTED_MEMBERS = ("sessions", "summaries", "prompts")
_ABSENT = msgspec.Raw(b"")
_Members = msgspec.defstruct(
    "_Members", [(member, msgspec.Raw, _ABSENT) for member in (*_READ_MEMBERS, *_COUNTED_MEMBERS)]
)
_LEAST_MILLISECONDS = 100_000_000_000  # as seconds this is in the year 5138: larger numbers are ms


def files(builder: ReadingBuilder, *suffixes: str) -> tuple[str, ...]:
    """Return the names of files with these endings; leave the others out, and hidden ones.

    Raises SourceRefusedError if there is none.
    """
    endings, names = " or ".join(suffixes), builder.source.names()
    matching = tuple(name for name in names if name.endswith(suffixes) and not is_hidden(name))
    if not matching:
        why = f"it has no file {endings}"
        raise SourceRefusedError(builder.kind, why)
    for name in sorted(set(names).difference(matching)):
        builder.leave_out(name, f"it is no file {endings}")
    return matching


def is_hidden(name: str) -> bool:
    """Return whether a file, or a folder above it, is hidden."""
    return "/." in f"/{name}"


def without_bom(source: ImportSource, name: str) -> bytes:
    """Return the content of a file without its byte order mark."""
    return source.read(name).removeprefix(_BOM)


def text(source: ImportSource, name: str) -> str:
    """Return a file as text with LF line ends; bytes that are not UTF-8 become U+FFFD."""
    return without_bom(source, name).decode(errors="replace").replace("\r\n", "\n")


def entries(
    builder: ReadingBuilder, name: str, member: str = ""
) -> tuple[list[msgspec.Raw], dict[str, msgspec.Raw]]:
    """Return the entries of a JSON file, undecoded, and the known members of its object.

    The entries are those of the file's list, or of the list in its ``member``. The object of a file
    that has no such member is itself the one entry.
    """
    content = without_bom(builder.source, name)
    value = json(content, name, list[msgspec.Raw] | _Members, _FILE_COMMAS)
    if isinstance(value, list):
        listed, members = value, {}
    else:
        values = msgspec.structs.asdict(value)
        members = {key: raw for key, raw in values.items() if bytes(raw)}  # without absent ones
        listed = [msgspec.Raw(content)]
        if member in members:
            listed = json(members[member], name, list[msgspec.Raw], _FILE_COMMAS)
    if len(listed) > _ENTRIES:
        raise SourceDamagedError(name, _TOO_MANY_ENTRIES)
    return listed, members


def json(content: bytes | msgspec.Raw, name: str, shape: Any, commas: int = _VALUE_COMMAS) -> Any:
    """Decode a JSON text into the type ``shape``; ``commas`` is the most that it may have."""
    if bytes(content).count(b",") > commas:
        raise SourceDamagedError(name, _TOO_MANY_PARTS)
    try:
        return msgspec.json.decode(content, type=shape)
    except ERRORS as error:
        why = f"it is not the JSON that was expected: {error}"
        raise SourceDamagedError(name, why) from error


def length(content: bytes | msgspec.Raw, name: str) -> int:
    """Return the number of entries of a JSON list; ``name`` is its file, for errors."""
    return len(json(content, name, list[msgspec.Raw], _FILE_COMMAS))


def each(
    builder: ReadingBuilder, name: str, values: Iterable[msgspec.Raw], shape: type[T]
) -> Iterator[tuple[str, T]]:
    """Decode the entries of a JSON list into ``shape``, and yield each with its place in the file.

    Entries that cannot be decoded are left out.
    """
    decoder = msgspec.json.Decoder(shape)
    for number, raw in enumerate(values):
        yield_to_requests()
        where = f"{name}[{number}]"
        if bytes(raw).count(b",") > _VALUE_COMMAS:
            builder.leave_out(where, _TOO_MANY_PARTS)
            continue
        try:
            entry = decoder.decode(raw)
        except ERRORS as error:
            builder.leave_out(where, f"it cannot be read: {error}")
        else:
            yield where, entry


def seconds_of(value: str | float | None) -> float:
    """Return a time in seconds since 1970, 0 if there is none or it is invalid.

    ``value`` is the time as tools write it: ISO 8601, or a number of seconds or milliseconds.
    """
    if isinstance(value, float | int):
        seconds = value / 1000 if value > _LEAST_MILLISECONDS else value
        value = str(seconds)
    seconds_or_none = written(value) if value else None
    return seconds_or_none or 0.0
