"""The person's own rules, which a session is given whole at its start. Pure.

They are the memories of type user and feedback in the person's own words, the newest first, as far
as they fit. What a session got so counts as given, so its prompts bring facts. The text depends on
the memories alone: no age and no clock, since a prompt must not change by itself.
"""

from collections.abc import Iterable

from msgspec import Struct

from memd.base.text import one_line
from memd.base.values import MemoryFile
from memd.text.quoting import neutralise, units

UNITS = 6_000  # UTF-16 units, some 1,500 tokens
_NAME_CHARACTERS = 100
_INTRODUCTION = """## The user's own rules

These are the user's standing instructions, in their own words. They hold in this conversation; \
where two of them disagree, the first one is the newer."""


class OwnRules(Struct, frozen=True):
    """The section with the rules, "" for none, and the paths of the memories that it has whole."""

    text: str = ""
    paths: tuple[str, ...] = ()


def own_rules(files: Iterable[MemoryFile], room: int = UNITS) -> OwnRules:
    """Return the section with the first of these memories that fit into so many UTF-16 units."""
    entries, paths = [_INTRODUCTION], list[str]()
    left = room - units(_INTRODUCTION)
    for file in files:
        name = neutralise(one_line(neutralise(file.header.name), _NAME_CHARACTERS))
        text = file.body.encode(errors="replace").decode()  # a lone surrogate cannot be encoded
        body = neutralise(text).strip() or neutralise(file.header.description)
        quote = "\n".join(f"> {line}".rstrip() for line in body.split("\n"))
        entry = f"{name}:\n{quote}"
        left -= units(entry) + len("\n\n")
        if left < 0:
            break
        entries.append(entry)
        paths.append(file.header.path)
    return OwnRules("\n\n".join(entries), tuple(paths)) if paths else OwnRules()
