"""Define the values that callers of the rules pass and get, and their errors. Pure."""

from typing import Literal

from msgspec import Struct

from memd.base.errors import Invalid, NotFound
from memd.rules.check import PlannedCall

__all__ = [
    "Answer",
    "PlannedCall",
    "RuleAdded",
    "RuleAnswer",
    "RuleCandidate",
    "RuleCounts",
    "RuleList",
    "ToolRule",
]

Answer = Literal["ask", "deny"]
State = Literal["on", "off", "changed", "gone"]
RULES = 200  # rules that may be on in a project
_SHOWN = 40  # characters of an unknown rule's id in an error


def rule_not_found(rule: str) -> NotFound:
    """Return the error that this project has no rule with the given id."""
    shown = rule[:_SHOWN]
    return NotFound(
        f"this project has no rule {shown!r}", hint="memctl rule list shows them", rule=shown
    )


def not_arule(path: str, why: str) -> Invalid:
    """Return the error that a memory cannot carry a rule."""
    return Invalid(
        f"{path} cannot carry a rule: {why}",
        hint="a rule needs a memory of the type feedback, of the person's own, with a line check:",
        path=path,
        why=why,
    )


class ToolRule(Struct, frozen=True):
    """A rule with its check, its answer, and whether it holds.

    ``state`` is ``changed`` if the memory no longer has the words that were consented to, and
    ``gone`` if the memory was deleted; in both states the rule does not hold. ``words`` is the
    reason in its answers. It answered ``answered`` calls, the last one at ``last_at``.
    """

    id: str
    path: str
    name: str
    check: str
    answer: Answer
    state: State
    at: float
    answered: int
    last_at: float | None
    words: str


class RuleCandidate(Struct, frozen=True):
    """A memory that could be a rule, with its ``check``."""

    path: str
    name: str
    check: str


class RuleList(Struct, frozen=True):
    """The rules of a project, and the memories that could become rules."""

    rules: tuple[ToolRule, ...]
    candidates: tuple[RuleCandidate, ...]


class RuleAdded(Struct, frozen=True):
    """A rule that was switched on, and the change that wrote its line, if one did."""

    rule: ToolRule
    change: str | None


class RuleAnswer(Struct, frozen=True):
    """The answer to a tool's call: ``allow`` if it breaks no rule, else the rule's answer."""

    answer: Literal["allow", "ask", "deny"] = "allow"
    rule: str | None = None
    words: str = ""


class RuleCounts(Struct, frozen=True):
    """The number of rules in each state."""

    on: int = 0
    off: int = 0
    changed: int = 0
    gone: int = 0
