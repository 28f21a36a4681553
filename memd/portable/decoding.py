"""Decode texts and times of other tools for the readers of their formats. Pure."""

from memd.base.instants import written
from memd.portable.errors import source_refused
from memd.portable.memories import ReadingBuilder
from memd.portable.values import ImportSource

_BOM = b"\xef\xbb\xbf"


def files(builder: ReadingBuilder, *suffixes: str) -> tuple[str, ...]:
    """Return the names of files with these endings; leave the others out, and hidden ones.

    Raises Refused if there is none.
    """
    endings, names = " or ".join(suffixes), builder.source.names()
    matching = tuple(name for name in names if name.endswith(suffixes) and not is_hidden(name))
    if not matching:
        why = f"it has no file {endings}"
        raise source_refused(builder.kind, why)
    for name in sorted(set(names).difference(matching)):
        builder.leave_out(name, f"it is no file {endings}")
    return matching


def is_hidden(name: str) -> bool:
    """Return whether a file, or a folder above it, is hidden."""
    return "/." in f"/{name}"


def text(source: ImportSource, name: str) -> str:
    """Return a file as text with LF line ends; bytes that are not UTF-8 become U+FFFD."""
    return source.read(name).removeprefix(_BOM).decode(errors="replace").replace("\r\n", "\n")


def seconds_of(day: str) -> float:
    """Return a time in ISO 8601 in seconds since 1970, 0 if there is none or it is invalid."""
    return (written(day) if day else None) or 0.0
