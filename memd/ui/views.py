"""The definition of a view: its calls to the daemon, and the values for its template. Pure.

In the files of views ``_x_calls`` returns the calls of the view ``x``, ``_later_x_calls`` those
that need the answers to the first ones, and ``_x_page`` further values for its template.
"""

from collections.abc import Callable, Mapping
from datetime import tzinfo
from os.path import basename
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memd.base.errors import Invalid
from memd.ui import texts
from memd.ui.link import MethodCall, Unanswered

Calls = Mapping[str, MethodCall]  # by a name of the view's own
Answers = Mapping[str, Any]  # the results of the calls by the same names, or Unanswered
Context = dict[str, Any]  # values for a template
_NUMBER_DIGITS = 9  # the most digits of a number in an address


class PageQuery(Struct, frozen=True):
    """The values in the address of a page, and the time of its request.

    ``zone`` is the person's, ``None`` for this machine's. ``now`` is in seconds since 1970.
    """

    values: Mapping[str, str]
    now: float
    zone: tzinfo | None = None

    def __getitem__(self, name: str) -> str:
        """Return a value that the view needs. Raises Invalid without it."""
        if not (value := self.values.get(name, "")):
            raise Invalid(
                f"the address does not say which {name} is meant",
                hint="begin at the list of projects",
                name=name,
            )
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
        """The directory and the name of the page's project. Raises Invalid."""
        cwd = self["cwd"]
        return {"cwd": cwd, "name": basename(cwd.rstrip("/")) or cwd}

    def project_call(self, method: str, **params: Any) -> MethodCall:
        """Return a method's call for the page's project; empty parameters are left out."""
        not_empty = {name: value for name, value in params.items() if value not in (None, "")}
        return MethodCall(method, {**not_empty, "cwd": self["cwd"]})

    def optional_call(self, method: str, **params: Any) -> MethodCall:
        """Return the call as an optional one: if it fails, the page is still shown."""
        return replace(self.project_call(method, **params), optional=True)

    def at(self, value: object) -> texts.Instant | None:
        """Return a time for people."""
        return texts.instant(value, self.now, self.zone)


def no_values(_: PageQuery, __: Answers) -> Context:
    """Return an empty dict, for a view without further values or calls."""
    return {}


class PageView(Struct, frozen=True):
    """A page: its path and title, its calls, and ``context`` for further template values."""

    path: str
    title: str
    calls: Callable[[PageQuery], Calls]
    context: Callable[[PageQuery, Answers], Context] = no_values
    later_calls: Callable[[PageQuery, Answers], Calls] = no_values
    tab: str = ""  # the part of a project that the page belongs to

    @property
    def template(self) -> str:
        """The name of its template."""
        return self.path or "projects"

    def template_values(self, query: PageQuery, answers: Answers) -> Context:
        """Return the template's values: the answers by name, the problems, and the context."""
        failures = [answer for answer in answers.values() if isinstance(answer, Unanswered)]
        return {
            **{name: result_or_none(answers, name) for name in answers},
            "problems": [failure for failure in failures if not failure.absent],
            **self.context(query, answers),
        }


def result_or_none(answers: Answers, name: str, member: str = "") -> Any:
    """Return a call's result or a member of it, or ``None`` if there was no call or it failed."""
    answer = answers.get(name)
    if answer is None or isinstance(answer, Unanswered):
        return None
    return answer.get(member) if member else answer
