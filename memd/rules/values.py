"""What callers ask about rules and are told. Pure."""

from dataclasses import dataclass
from typing import Literal

from memd.core.errors import MemdError
from memd.rules.check import CheckRefusedError, PlannedCall

__all__ = [
    "Answer",
    "CheckRefusedError",
    "NotARuleError",
    "PlannedCall",
    "RuleAdded",
    "RuleAnswer",
    "RuleCandidate",
    "RuleCounts",
    "RuleList",
    "RuleNotFoundError",
    "ToolRule",
]

Answer = Literal["ask", "deny"]
State = Literal["on", "off", "changed", "gone"]
RULES = 200  # of a project
_SHOWN = 40  # characters of a name that somebody gave


class RuleNotFoundError(MemdError):
    """There is no such rule in this project."""

    code = 1001
    kind = "rule_not_found"
    hint = "memctl rule list shows them"
    exit_status = 66

    def __init__(self, rule: str) -> None:
        shown = rule[:_SHOWN]
        super().__init__(f"this project has no rule {shown!r}", rule=shown)


class NotARuleError(MemdError):
    """A memory cannot carry a rule, since it is no feedback of the person's own, say."""

    code = 1088
    kind = "not_a_rule"
    hint = "a rule needs a memory of the type feedback, of the person's own, with a line check:"
    exit_status = 65

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path} cannot carry a rule: {why}", path=path, why=why)


@dataclass(frozen=True, slots=True)
class ToolRule:
    """A rule: what it checks, how it answers, and whether it holds.

    ``state`` is ``changed`` where the memory does not say any more what was consented to, and
    ``gone`` where it is not there; then the rule does not hold. ``words`` are what a call is
    answered with. ``answered`` calls were answered, the last one at ``last_at``.
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


@dataclass(frozen=True, slots=True)
class RuleCandidate:
    """A memory that could be a rule: its ``check``, and whether that is ``written`` in it.

    ``repeated`` is how often the person said again what it says.
    """

    path: str
    name: str
    check: str
    written: bool
    repeated: int


@dataclass(frozen=True, slots=True)
class RuleList:
    """The rules of a project, and memories that could be some."""

    rules: tuple[ToolRule, ...]
    candidates: tuple[RuleCandidate, ...]


@dataclass(frozen=True, slots=True)
class RuleAdded:
    """A rule that was switched on, and the change that wrote its line, if one did."""

    rule: ToolRule
    change: str | None


@dataclass(frozen=True, slots=True)
class RuleAnswer:
    """What a tool's call gets: ``allow`` where no rule says anything."""

    answer: Literal["allow", "ask", "deny"] = "allow"
    rule: str | None = None
    words: str = ""


@dataclass(frozen=True, slots=True)
class RuleCounts:
    """How many rules are in which state."""

    on: int = 0
    off: int = 0
    changed: int = 0
    gone: int = 0
