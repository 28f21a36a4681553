"""Names of agents, and addresses. Pure."""

import re
from collections.abc import Collection, Iterable
from difflib import SequenceMatcher, get_close_matches
from heapq import nlargest

from msgspec import Struct

from memd.core.agents import AGENT_NAME_CHARACTERS, RESERVED_NAMES
from memd.core.names import NameRefusedError, check_component
from memd.messages.errors import AddressRefusedError, NoBridgeError

_TOO_LONG = f"an agent's name has at most {AGENT_NAME_CHARACTERS} characters"
_UPPER = "an agent's name is in lower case"
_RESERVED = "it is reserved"
_ADDRESS_CHARACTERS = 4_096 + 300  # a path of a socket, and an address behind it
_EMPTY = "it is empty"
_LONG = "it is too long"
_PARTS = "it has more than one /"
_SLUG = re.compile(r"[A-Za-z0-9-]{1,220}")
_NO_SLUG = "what stands behind @ is no project"
_NO_PLACE = "uds: is followed by a socket's absolute path, # and an address there"
_NOT_NAME = re.compile(r"[^a-z0-9._-]+")
_NEAREST = 3
_COMPARED = 6


class Everyone(Struct, frozen=True):
    """All agents of the sender's project."""


class AgentAddress(Struct, frozen=True):
    """An agent by its name, with the parent's for a sub-agent, and a project's slug if named."""

    name: str
    parent: str = ""
    slug: str = ""


class PeerAddress(Struct, frozen=True):
    """An agent of another memd: the path of its socket, and the address there."""

    path: str
    address: str


Address = Everyone | AgentAddress | PeerAddress


def check_agent_name(name: str) -> str:
    """Return an agent's name when the rule allows it. Raises NameRefusedError."""
    if name.casefold() in RESERVED_NAMES:
        raise NameRefusedError(name, _RESERVED)
    check_component(name)
    if len(name) > AGENT_NAME_CHARACTERS:
        raise NameRefusedError(name, _TOO_LONG)
    if name != name.lower():
        raise NameRefusedError(name, _UPPER)
    return name


def parse(address: str) -> Address:
    """Return what an address names. Raises AddressRefusedError, NoBridgeError, NameRefusedError."""
    if not address:
        raise AddressRefusedError(address, _EMPTY)
    if len(address) > _ADDRESS_CHARACTERS:
        raise AddressRefusedError(address, _LONG)
    if address == "*":
        return Everyone()
    if address.startswith("bridge:"):
        raise NoBridgeError(address)
    if address.startswith("uds:"):
        path, mark, there = address.removeprefix("uds:").rpartition("#")
        if not mark or not path.startswith("/") or "\0" in path or not there or there == "*":
            raise AddressRefusedError(address, _NO_PLACE)
        parse(there)
        return PeerAddress(path, there)
    names, mark, slug = address.partition("@")
    if mark and not _SLUG.fullmatch(slug):
        raise AddressRefusedError(address, _NO_SLUG)
    parts = names.split("/")
    if len(parts) > 2:  # noqa: PLR2004 - parent and name
        raise AddressRefusedError(address, _PARTS)
    *parent, name = map(check_agent_name, parts)
    return AgentAddress(name, parent[0] if parent else "", slug)


def nearest(address: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the addresses that are most like one that nobody has."""
    matcher: SequenceMatcher[str] = SequenceMatcher(b=address)

    def likeness(other: str) -> float:
        matcher.set_seq1(other)
        return matcher.quick_ratio()

    # Comparing in full takes milliseconds for names that are made for it: a few are enough.
    likely = nlargest(_COMPARED, known, key=likeness)
    return tuple(get_close_matches(address, likely, _NEAREST))


def free_name(name: str, taken: Collection[str]) -> str:
    """Return a name that nobody has, with a number behind it if need be."""
    number, free = 2, name
    while free in taken:
        tail = f"-{number}"
        free = name[: AGENT_NAME_CHARACTERS - len(tail)] + tail
        number += 1
    return free


def name_from(text: str, otherwise: str) -> str:
    """Return a name made of a title, or another one where nothing of it can be used."""
    for source in (text, otherwise):
        name = _NOT_NAME.sub("-", source.lower())
        name = re.sub(r"\.{2,}", ".", name).strip("-._")[:AGENT_NAME_CHARACTERS].strip("-._")
        try:
            return check_agent_name(name)
        except NameRefusedError:
            continue
    return "agent"
