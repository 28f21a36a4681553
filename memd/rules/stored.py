"""Store the rules that a person switched on. Functions block and raise StateUnusableError.

Rules of this file
- Only a person's consent (``rule.add``) stores a rule. It names a memory and the hash of the text
  that was consented to; it holds no text of a memory.
- A memory has at most one rule, which keeps its number when it is switched on again.
"""

import os
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from memd.state import docs
from memd.state.docs import Docs


class StoredRule(Struct, frozen=True):
    """A rule that a person switched on for a memory; times are seconds since 1970."""

    number: int
    directory: str  # the real path
    path: str
    digest: str  # of the memory's text that the person consented to
    answer: Literal["ask", "deny"]
    enabled: bool
    at: float  # when the person switched it on
    answered: int = 0  # tool calls that it answered
    last_at: float | None = None  # when it last answered one


def stored_rules(table: Docs) -> tuple[StoredRule, ...]:
    """Return every rule, also those switched off, oldest first."""
    rules = table.list_all(StoredRule).values()
    return tuple(sorted(rules, key=lambda rule: rule.number))


def switch_on(table: Docs, rule: StoredRule) -> None:
    """Store a memory's rule, or switch it on again; it gets its number and counts here."""
    real = os.path.realpath(rule.directory)
    with table.transaction() as cursor:
        before = docs.get(cursor, StoredRule, real, rule.path)
        number = before.number if before else docs.next_number(cursor, StoredRule)
        rule = replace(rule, number=number, directory=real)
        if before:
            rule = replace(rule, answered=before.answered, last_at=before.last_at)
        docs.put(cursor, rule, real, rule.path)


def switch_off(table: Docs, rule: StoredRule, *, forget: bool = False) -> None:
    """Switch a rule off; with ``forget``, delete it."""
    with table.transaction() as cursor:
        stored = docs.get(cursor, StoredRule, rule.directory, rule.path)
        if stored is None or stored.number != rule.number:
            return
        if forget:
            docs.delete(cursor, StoredRule, rule.directory, rule.path)
        else:
            docs.put(cursor, replace(stored, enabled=False), rule.directory, rule.path)


def count_answer(table: Docs, rule: StoredRule, at: float) -> bool:
    """Count one answer of a rule; return whether the rule is still on.

    The count may be lost in a power cut, so that a tool call does not wait for the disk.
    """
    with table.transaction(synced=False) as cursor:
        stored = docs.get(cursor, StoredRule, rule.directory, rule.path)
        if stored is None or not stored.enabled or stored.number != rule.number:
            return False
        counted = replace(stored, answered=stored.answered + 1, last_at=at)
        docs.put(cursor, counted, rule.directory, rule.path)
        return True
