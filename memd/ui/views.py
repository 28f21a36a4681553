"""What a view is: which questions it asks the daemon, and what its template is given. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import tzinfo
from os.path import basename
from typing import Any

from memd.core.errors import WrongParameterError
from memd.ui import texts
from memd.ui.link import MethodCall, Unanswered

Answers = Mapping[str, Any]
Context = dict[str, Any]
_NUMBER_DIGITS = 9


class AddressIncompleteError(WrongParameterError):
    """An address of the page lacks what its view is about."""

    hint = "begin at the list of projects"

    def __init__(self, name: str) -> None:
        super().__init__(f"the address does not say which {name} is meant", name=name)


@dataclass(frozen=True, slots=True)
class PageQuery:
    """What the address of a page asks for, and the instant at which it does.

    ``zone`` is the person's, ``None`` for this machine's. ``now`` is in seconds since 1970.
    """

    values: Mapping[str, str]
    now: float
    zone: tzinfo | None = None

    def __getitem__(self, name: str) -> str:
        """Return a value that the view cannot do without. Raises AddressIncompleteError."""
        if not (value := self.values.get(name, "")):
            raise AddressIncompleteError(name)
        return value

    def get(self, name: str) -> str:
        """Return a value, "" where the address has none."""
        return self.values.get(name, "")

    def number(self, name: str, least: int, most: int, default: int) -> int:
        """Return a whole number within bounds."""
        text = self.get(name)
        sound = text.isascii() and text.isdecimal() and len(text) <= _NUMBER_DIGITS
        return min(max(int(text), least), most) if sound else default

    def one_of(self, name: str, *choices: str) -> str:
        """Return one of some words, the first where the address has none of them."""
        return self.get(name) if self.get(name) in choices else choices[0]

    @property
    def project(self) -> Context:
        """The project that the page is about."""
        cwd = self["cwd"]
        return {"cwd": cwd, "name": basename(cwd.rstrip("/")) or cwd}

    def about(self, method: str, **params: Any) -> MethodCall:
        """Return a call about the project, without parameters that are empty."""
        given = {name: value for name, value in params.items() if value not in (None, "")}
        return MethodCall(method, {**given, "cwd": self["cwd"]})

    def perhaps(self, method: str, **params: Any) -> MethodCall:
        """Return the same, of which the page can do without an answer."""
        return replace(self.about(method, **params), optional=True)

    def at(self, value: object) -> texts.Instant | None:
        """Return a time for people."""
        return texts.instant(value, self.now, self.zone)


def nothing(_: PageQuery, __: Answers) -> Context:
    """Return nothing: the template makes do with the answers as they are."""
    return {}


@dataclass(frozen=True, slots=True)
class PageView:
    """A page: its path, its heading, its questions, and what else its template gets than answers.

    ``then`` are questions that need the answers to the first ones. ``tab`` is the part of a
    project that it belongs to. ``topics`` are the notifications after which it is out of date.
    """

    path: str
    title: str
    questions: Callable[[PageQuery], Mapping[str, MethodCall]]
    context: Callable[[PageQuery, Answers], Context] = nothing
    then: Callable[[PageQuery, Answers], Mapping[str, MethodCall]] = nothing
    tab: str = ""
    topics: str = ""

    @property
    def template(self) -> str:
        """The name of its template."""
        return self.path or "projects"

    def shown(self, query: PageQuery, answers: Answers) -> Context:
        """Return what its template gets: the answers by their names, and what the view makes."""
        missing = [one for one in answers.values() if isinstance(one, Unanswered)]
        return {
            **{name: answered(answers, name) for name in answers},
            "problems": [one for one in missing if not one.absent],
            **self.context(query, answers),
        }


def answered(answers: Answers, name: str, member: str = "") -> Any:
    """Return an answer, or a member of it, ``None`` where the daemon gave none."""
    answer = answers.get(name)
    if answer is None or isinstance(answer, Unanswered):
        return None
    return answer.get(member) if member else answer
