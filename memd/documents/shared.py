"""What a team shares: the rules for a key and for an entry, the same at a member and the server.

A rule is ``name``, ``size``, ``encoding``, ``type`` (private or missing), ``format`` (no valid
frontmatter) or ``secret:`` with the scanner's rule.
"""

from collections.abc import Iterator
from typing import NamedTuple

from memd.core.names import SUFFIX, TEAM, NameRefusedError, check_name
from memd.core.values import MemoryType
from memd.documents import document, secrets
from memd.documents.document import InvalidMemoryError

_FOLDER = "a folder of it ends in .md"


class BrokenRule(NamedTuple):
    """A rule that an entry breaks, what about it in words, and the line, 0 for the whole entry."""

    rule: str
    detail: str
    line: int = 0


def check_key(key: str) -> str:
    """Return the key if it is a valid path below ``team/``. Raises NameRefusedError if not."""
    check_name(f"{TEAM}{key}")
    # A folder named like a file could stand where another device has that file.
    if f"{SUFFIX}/" in key.casefold():
        raise NameRefusedError(key, _FOLDER)
    return key


def secrets_in_key(key: str) -> tuple[secrets.Finding, ...]:
    """Return the credentials found in a key, with or without its ending."""
    return secrets.find(key) or secrets.find(key.removesuffix(SUFFIX))


def broken_rules(key: str, content: bytes, most: int) -> Iterator[BrokenRule]:
    """Yield each rule that an entry of at most ``most`` bytes breaks, its secrets last."""
    try:
        check_key(key)
    except NameRefusedError as error:
        yield BrokenRule("name", str(error.facts["rule"]))
    for found in secrets_in_key(key):
        yield BrokenRule(f"secret:{found.rule}", f"its name looks like a secret ({found.rule})")
    if len(content) > most:
        yield BrokenRule("size", f"it has {len(content)} bytes, an entry may have {most}")
        return
    try:
        text = content.decode()
    except UnicodeDecodeError:
        yield BrokenRule("encoding", "it is not UTF-8")
        return
    parsed = document.parse(content, "")
    if not parsed.damaged and parsed.type in (None, MemoryType.USER):
        yield BrokenRule("type", f"its type is {parsed.type or 'missing'}")
    else:
        try:
            document.validate(content, "")
        except InvalidMemoryError as error:
            yield BrokenRule("format", "; ".join(error.problems))
    for found in secrets.find(text):
        words = f"line {found.line} looks like a secret ({found.rule})"
        yield BrokenRule(f"secret:{found.rule}", words, found.line)
