"""The definition of a view: its calls to the daemon, and the values for its template. Pure."""

from collections.abc import Callable, Mapping
from datetime import tzinfo
from os.path import basename
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memd.core.errors import WrongParameterError
from memd.ui import texts
from memd.ui.link import MethodCall, Unanswered

Answers = Mapping[str, Any]
Context = dict[str, Any]
_NUMBER_DIGITS = 9


class AddressIncompleteError(WrongParameterError):
    """The address of a page lacks a value that its view needs."""

    hint = "begin at the list of projects"

    def __init__(self, name: str) -> None:
        super().__init__(f"the address does not say which {name} is meant", name=name)


class PageQuery(Struct, frozen=True):
    """The values in the address of a page, and the time of its request.

    ``zone`` is the person's, ``None`` for this machine's. ``now`` is in seconds since 1970.
    """

    values: Mapping[str, str]
    now: float
    zone: tzinfo | None = None

    def __getitem__(self, name: str) -> str:
        """Return a value that the view needs. Raises AddressIncompleteError without it."""
        if not (value := self.values.get(name, "")):
            raise AddressIncompleteError(name)
        return value

    def get(self, name: str) -> str:
        """Return a value, or "" if the address has none."""
        return self.values.get(name, "")

    def number(self, name: str, least: int, most: int, default: int) -> int:
        """Return a value as a whole number, moved within bounds; ``default`` if it is none."""
        text = self.get(name)
        valid = text.isascii() and text.isdecimal() and len(text) <= _NUMBER_DIGITS
        return min(max(int(text), least), most) if valid else default

    def one_of(self, name: str, *choices: str) -> str:
        """Return a value that is one of the choices, else the first choice."""
        return self.get(name) if self.get(name) in choices else choices[0]

    @property
    def project(self) -> Context:
        """The directory and the name of the page's project. Raises AddressIncompleteError."""
        cwd = self["cwd"]
        return {"cwd": cwd, "name": basename(cwd.rstrip("/")) or cwd}

    def about(self, method: str, **params: Any) -> MethodCall:
        """Return a call for the page's project; empty parameters are left out."""
        given = {name: value for name, value in params.items() if value not in (None, "")}
        return MethodCall(method, {**given, "cwd": self["cwd"]})

    def perhaps(self, method: str, **params: Any) -> MethodCall:
        """Return the same call as an optional one: the page is shown without its answer."""
        return replace(self.about(method, **params), optional=True)

    def at(self, value: object) -> texts.Instant | None:
        """Return a time for people."""
        return texts.instant(value, self.now, self.zone)


def nothing(_: PageQuery, __: Answers) -> Context:
    """Return an empty dict, for a view without further values or calls."""
    return {}


class PageView(Struct, frozen=True):
    """A page: its path and title, its calls, and ``context`` for further template values.

    ``then`` makes the calls that need the answers to the first ones. ``tab`` is the part of a
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
        """Return the template's values: the answers by name, the problems, and the context."""
        missing = [one for one in answers.values() if isinstance(one, Unanswered)]
        return {
            **{name: answered(answers, name) for name in answers},
            "problems": [one for one in missing if not one.absent],
            **self.context(query, answers),
        }


def answered(answers: Answers, name: str, member: str = "") -> Any:
    """Return an answer or a member of it, or ``None`` if the daemon gave none."""
    answer = answers.get(name)
    if answer is None or isinstance(answer, Unanswered):
        return None
    return answer.get(member) if member else answer
