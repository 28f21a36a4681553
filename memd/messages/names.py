"""Check and make the names of agents, and parse their addresses. Pure."""

import re
from collections.abc import Collection, Iterable
from difflib import SequenceMatcher, get_close_matches
from heapq import nlargest

from msgspec import Struct

from memd.base.agents import AGENT_NAME_CHARACTERS, RESERVED_NAMES
from memd.base.errors import Refused
from memd.base.names import check_component, name_refused
from memd.messages.errors import address_refused, no_bridge, other_daemon

_TOO_LONG = f"an agent's name has at most {AGENT_NAME_CHARACTERS} characters"
_UPPER = "an agent's name is in lower case"
_RESERVED = "it is reserved"
_ADDRESS_CHARACTERS = 4_096 + 300  # a path of a socket, and an address behind it
_EMPTY = "it is empty"
_NOT_AN_AGENT = "it names no agent of this daemon"
_ADDRESS_TOO_LONG = "it is too long"
_TOO_MANY_PARTS = "it has more than one /"
_SLUG = r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,219}"
_NOT_A_PROJECT = "what stands behind @ is no project"
_SCHEME = "uds:"
_FORBIDDEN_CHARACTERS = r"[^a-z0-9._-]+"
_SHOWN_ADDRESSES = 3  # the most similar addresses that an error names
_COMPARED_ADDRESSES = 6  # the most addresses that are compared in full


class AgentAddress(Struct, frozen=True):
    """The parts of an agent's address: its name, its parent's name and a project's slug, or ""."""

    name: str
    parent: str = ""
    slug: str = ""


def _agent_name_refused(name: str, rule: str) -> Refused:
    refused = name_refused(name, rule)
    refused.hint = "agents' names have lower-case letters, digits, '.', '_' and '-'"
    return refused


def check_agent_name(name: str) -> str:
    """Return the name if an agent may have it. Raises Refused if not."""
    if name.casefold() in RESERVED_NAMES:
        raise _agent_name_refused(name, _RESERVED)
    try:
        check_component(name)
    except Refused as error:
        raise _agent_name_refused(name, str(error.facts["rule"])) from error
    if len(name) > AGENT_NAME_CHARACTERS:
        raise _agent_name_refused(name, _TOO_LONG)
    if name != name.lower():
        raise _agent_name_refused(name, _UPPER)
    return name


def without_socket(address: str, socket: str) -> str:
    """Return an address without ``uds:SOCKET#`` before it, where ``socket`` is this daemon's.

    Raises Refused for another socket.
    """
    if not address.startswith(_SCHEME):
        return address
    path, _, name = address.removeprefix(_SCHEME).rpartition("#")
    if path != socket:
        raise other_daemon(address)
    return name


def parse(address: str) -> AgentAddress:
    """Return the parts of an address.

    Raises Invalid and Refused.
    """
    if not address:
        raise address_refused(address, _EMPTY)
    if len(address) > _ADDRESS_CHARACTERS:
        raise address_refused(address, _ADDRESS_TOO_LONG)
    if address == "*":
        raise address_refused(address, _NOT_AN_AGENT)
    if address.startswith("bridge:"):
        raise no_bridge(address)
    names, at_sign, slug = address.partition("@")
    if at_sign and not re.fullmatch(_SLUG, slug):
        raise address_refused(address, _NOT_A_PROJECT)
    parts = names.split("/")
    if len(parts) > 2:  # noqa: PLR2004 - parent and name
        raise address_refused(address, _TOO_MANY_PARTS)
    *parent, name = map(check_agent_name, parts)
    return AgentAddress(name, parent[0] if parent else "", slug)


def nearest(address: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return up to three of the known addresses that are most similar to an unknown one."""
    matcher: SequenceMatcher[str] = SequenceMatcher(b=address)

    def similarity(other: str) -> float:
        matcher.set_seq1(other)
        return matcher.quick_ratio()

    # A full comparison takes milliseconds for hostile names, so only a few are compared in full.
    candidates = nlargest(_COMPARED_ADDRESSES, known, key=similarity)
    return tuple(get_close_matches(address, candidates, _SHOWN_ADDRESSES))


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the name, with -2, -3 and so on behind it if it is among the taken names."""
    number, free = 2, name
    while free in taken:
        suffix = f"-{number}"
        free = name[: AGENT_NAME_CHARACTERS - len(suffix)] + suffix
        number += 1
    return free


def name_from(text: str, otherwise: str) -> str:
    """Return a valid name made from a title, else from the text ``otherwise``, else "agent"."""
    for source in (text, otherwise):
        name = re.sub(_FORBIDDEN_CHARACTERS, "-", source.lower())
        # Names have no ".." and no dot or hyphen at an end, also after they are cut.
        name = re.sub(r"\.{2,}", ".", name).strip("-._")[:AGENT_NAME_CHARACTERS].strip("-._")
        try:
            return check_agent_name(name)
        except Refused:
            continue
    return "agent"
