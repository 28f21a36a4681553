"""A visit: one request for a page, the values of its address, and what it asks the daemon."""

from collections.abc import Awaitable, Callable, Mapping
from os.path import basename
from typing import Any

from msgspec import Struct, field

from memd.base.errors import Invalid, MemdError
from memd.ui import texts
from memd.ui.link import MethodCall, SocketLink

Context = dict[str, Any]  # values for a template
_NUMBER_DIGITS = 9  # the most digits of a number in an address
_ABSENT = (-32601, 1001)  # the codes of errors: the method or the object does not exist


class PageVisit(Struct):
    """One request. ``here`` is where the page was started, ``now`` is in seconds since 1970.

    ``problems`` are the errors of optional calls, but for objects that are not there.
    """

    link: SocketLink
    values: Mapping[str, str]  # of the address
    here: str
    now: float
    problems: list[MemdError] = field(default_factory=list)
    holds: Mapping[str, int] = field(default_factory=dict)  # how much each view would show

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
    def project(self) -> Context | None:
        """The directory and the name of the page's project, ``None`` where it is of all."""
        cwd = self.get("cwd")
        return {"cwd": cwd, "name": basename(cwd.rstrip("/")) or cwd} if cwd else None

    def call(self, method: str, *, optional: bool = False, **params: Any) -> MethodCall:
        """Return a method's call for the page's project; empty parameters are left out."""
        not_empty = {name: value for name, value in params.items() if value not in (None, "")}
        return MethodCall(method, {**not_empty, "cwd": self["cwd"]}, optional)

    def at(self, value: object) -> texts.Instant | None:
        """Return a time for people."""
        return texts.instant(value, self.now)

    async def ask(self, **calls: MethodCall) -> dict[str, Any]:
        """Make calls together; return their results by name, ``None`` for one that failed.

        The first calls fill ``holds`` as well. Raises the error of a call that is not optional.
        """
        counting = {} if self.holds else self._counting_calls()
        results = await self.link.answers({**calls, **counting})
        if counting:
            answers = {name: results.pop(name) for name in counting}
            self.holds = {
                name: 0 if isinstance(answer, MemdError) else COUNTS[name](answer)
                for name, answer in answers.items()
            }
        for name, result in results.items():
            if isinstance(result, MemdError):
                if not calls[name].optional:
                    raise result
                results[name] = None
                if result.code not in _ABSENT:
                    self.problems.append(result)
        return results

    def _counting_calls(self) -> dict[str, MethodCall]:
        """Return the calls that tell which views of the navigation are empty."""
        calls = {
            "projects held": MethodCall("status", {}, optional=True),
            "reviews held": MethodCall("review.list", {}, optional=True),
        }
        if self.project:
            calls["memories held"] = self.call("memory.list", limit=1, optional=True)
            calls["review held"] = self.call("review.list", optional=True)
            calls["dreams held"] = self.call("dream.status", optional=True)
            calls["notes held"] = self.call("notes.list", limit=1, optional=True)
        return calls


COUNTS: Mapping[str, Callable[[Any], int]] = {
    "projects held": lambda status: len(status["folders"]),
    "reviews held": lambda listed: len(listed["items"]),
    "memories held": lambda listed: int(listed["count"]),
    "review held": lambda listed: len(listed["items"]),
    "dreams held": lambda status: int(status["last"] is not None or status["error"] is not None),
    "notes held": lambda listed: len(listed["notes"]),
}


class PageView(Struct, frozen=True):
    """A page: its path, its title, and what returns the values for its template."""

    path: str
    title: str
    context: Callable[[PageVisit], Awaitable[Context]]

    @property
    def template(self) -> str:
        """The name of its template."""
        return self.path or "projects"
