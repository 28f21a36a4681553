"""Bugs to be planted into the context services, and the property that has to notice each.

Each is a small edit of one file; ``caught_by`` is how the sentence of a property begins. It
shows soon from story ``first`` on.
"""

from dataclasses import dataclass

FACTS, PLANNING = "memd/context/facts.py", "memd/context/planning.py"
SPILLING, CLEARING = "memd/context/spilling.py", "memd/context/clearing.py"
# What was sent changes: which of these sees it first depends on the story.
PREFIX = ("accepted", "same_prefix", "frozen", "obeyed", "idempotent", "cleared", "thinking")
KEEPING, STATE = "memd/context/keeping.py", "memd/state/contexts.py"


@dataclass(frozen=True)
class Mutant:
    """A bug by name: in ``path`` the text ``old``, which occurs once, becomes ``new``."""

    name: str
    path: str
    old: str
    new: str
    caught_by: tuple[str, ...]
    first: int = 0


MUTANTS = (
    Mutant(
        "the end of a large result is lost",
        SPILLING,
        'return text_of(content) or ""',
        'return (text_of(content) or "")[:5_000]',
        ("nothing_lost",),
    ),
    Mutant(
        "an edit names another block of its message",
        PLANNING,
        "return ContextEdit(change.message, change.block, decision",
        "return ContextEdit(change.message, 0, decision",
        ("edits", "shaped"),
    ),
    Mutant(
        "other settings thaw what was decided",
        PLANNING,
        "            if decision is not None:\n                text",
        "            if decision is not None and request.settings.context.spill:\n"
        "                text",
        PREFIX,
        first=15,
    ),
    Mutant(
        "what stays whole is not frozen",
        PLANNING,
        "decision = decisions.get(key)\n            if",
        "decision = decisions.get(key)\n"
        "            decision = None if decision and decision.action == KEEP else decision\n"
        "            if",
        PREFIX,
    ),
    Mutant(
        "a call that has the id of another gets its text",
        PLANNING,
        "            decision = decisions.get(key)\n",
        "            decision = next((each for each in decisions.values()\n"
        "                if each.tool_use_id == key.tool_use_id), None)\n",
        ("decided", "obeyed", "nothing_lost"),
    ),
    Mutant(
        "a result that could not be stored may be stored later",
        PLANNING,
        "    if item.action == CLEAR:\n        return None",
        "    if item:\n        return None",
        ("decided",),
    ),
    Mutant(
        "results are stored that nobody can read",
        SPILLING,
        "    if not request.reader:\n",
        "    if request.reader is None:\n",
        ("read", "limits"),
    ),
    Mutant(
        "what the reader gave is stored again",
        SPILLING,
        "    if tool == request.reader:\n",
        '    if tool == "":\n',
        ("limits",),
    ),
    Mutant(
        "what failed is stored",
        SPILLING,
        "if message >= start and not result.failed",
        "if message >= start",
        ("limits",),
    ),
    Mutant(
        "what was sent before memd came is stored",
        SPILLING,
        "if message >= start and not result.failed",
        "if not result.failed",
        PREFIX,
    ),
    Mutant(
        "the newest results are cleared",
        CLEARING,
        "in clearable[:-_NEWEST_RESULTS] if",
        "in clearable if",
        ("cleared",),
        first=15,
    ),
    Mutant(
        "thinking stays behind what is cleared",
        PLANNING,
        "        if message > first_cleared\n",
        "        if message > first_cleared + 9\n",
        PREFIX,
        first=15,
    ),
    Mutant(
        "of thinking one part goes",
        CLEARING,
        "for block, digest in facts[later].thinking\n",
        "for block, digest in facts[later].thinking[:1]\n",
        PREFIX,
        first=15,
    ),
    Mutant(
        "results are cleared in the middle of a turn",
        CLEARING,
        "or has_calls or speaker != USER",
        "or speaker != USER",
        ("cleared",),
        first=7,
    ),
    Mutant(
        "decisions are not written down",
        STATE,
        "[(row.folder, *decision) for decision in decisions],",
        "[(row.folder, *decision) for decision in decisions if not row.folder],",
        PREFIX,
        first=6,
    ),
    Mutant(
        "what a client sent does not replace what was decided",
        KEEPING,
        "            new |= restored\n",
        "            new = restored | session.decisions | new\n",
        PREFIX,
        first=7,
    ),
    Mutant(
        "a forked session begins anew",
        KEEPING,
        "        if fork_of:\n",
        '        if fork_of == "-":\n',
        PREFIX,
        first=15,
    ),
    Mutant(
        "another history with as many messages is taken for this one",
        PLANNING,
        "    if place > len(before) or (",
        "    if place > len(before) or place and place < 0 and (",
        ("agreed",),
        first=7,
    ),
    Mutant(
        "a sub-agent is told to compact",
        PLANNING,
        "    if request.conversation or request.supports",
        "    if request.supports",
        ("left_alone",),
        first=53,
    ),
)
